"""Selectors: acquisition functions that pick the next questions, behind one protocol.

`FisherSelector` is a batch design in the sense of MacKay (1992), "Information-based objective
functions for active data selection", Neural Computation 4: it reduces the expected variance of
the predictions of interest, here the margins of random questions.
"""

from __future__ import annotations

import numpy as np

from lore_active.acquisition import grids
from lore_active.acquisition.block_candidates import BlockCandidates
from lore_active.acquisition.candidates import Candidates, Gradients
from lore_active.acquisition.state import (
    MAX_EXACT,
    TARGETS,
    Selection,
    SelectorState,
    coordinate_covariance,
    covariance_blocks,
    target_weights,
)
from lore_active.embedding.covariance import block_variances
from lore_active.questions.kinds import TRIPLET
from lore_active.questions.pool import Questions, draw
from lore_active.types import Floats

# Candidates scored for each batch.
POOL = 4000
# Random questions whose margins' variance is to be reduced, where items are many.
TARGETS_PER_ITEM = 10
# Scores can only decrease during a batch: after the first pass a shortlist is enough.
SHORTLIST = 200
SHORTLIST_EACH = 6


class RandomSelector:
    """Select uniformly random questions.

    Examples
    --------
    >>> from lore_active import Learner
    >>> from lore_active.acquisition.selectors import RandomSelector
    >>> Learner(n_objects=5, selector=RandomSelector()).selector.name
    'random'
    """

    name = "random"

    def pick(self, state: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions; see `Selector.pick`."""
        rows = state.source.new(count, state.taken, rng)
        return Selection(rows, np.zeros(len(rows)))


class UncertaintySelector:
    """Select the questions with the smallest absolute margin, balanced over anchors.

    Examples
    --------
    >>> import numpy as np
    >>> from lore_active.acquisition.selectors import UncertaintySelector
    >>> from lore_active.acquisition.state import SelectorState
    >>> from lore_active.questions.pool import AllQuestions
    >>> none = np.empty((0, 3), dtype=np.int64)
    >>> line = np.array([[0.0], [1.0], [2.1], [4.0]])
    >>> state = SelectorState(line, 1.0, none, none, set(), AllQuestions(4))
    >>> best = UncertaintySelector().pick(state, 1, np.random.default_rng(0))
    >>> sorted(best.questions[0].tolist()), best.scores.round(2).tolist()
    ([0, 1, 2], [-0.1])
    """

    name = "uncertainty"

    def pick(self, state: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions; see `Selector.pick`."""
        if state.kind != TRIPLET:
            return grids.uncertain(state, count, rng)
        rows = state.source.new(POOL, state.taken, rng)
        near, far = (
            np.linalg.norm(state.embedding[rows[:, 0]] - state.embedding[rows[:, k]], axis=1)
            for k in (1, 2)
        )
        scores = -np.abs(far - near)
        turn = AnchorBalance(state, count)
        picked = [turn.best(rows, scores) for _ in range(min(count, len(rows)))]
        return Selection(rows[picked], scores[picked])


class FisherSelector:
    """Select the questions that most reduce the expected variance of other questions' margins.

    The covariance of the coordinates is the inverse of the expected Fisher information plus a weak
    prior. A candidate is scored by the expected reduction of the variance of random questions'
    margins, weighted towards margins whose sign is still uncertain. After each pick
    the covariance is updated as if the question had been answered, and pending questions count as
    answered, so that participants who are asked at the same time get different questions.

    With more than 1,000 coordinates the covariance is approximated by one block for each item.

    Examples
    --------
    >>> import numpy as np
    >>> from lore_active.acquisition.selectors import FisherSelector
    >>> from lore_active.acquisition.state import SelectorState
    >>> from lore_active.questions.pool import AllQuestions
    >>> none = np.empty((0, 3), dtype=np.int64)
    >>> space = np.random.default_rng(1).normal(size=(6, 2))
    >>> state = SelectorState(space, 1.0, none, none, set(), AllQuestions(6))
    >>> selection = FisherSelector().pick(state, 3, np.random.default_rng(0))
    >>> selection.questions.shape, bool((selection.scores > 0).all())
    ((3, 3), True)
    """

    name = "fisher"

    def pick(self, state: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions; see `Selector.pick`."""
        if state.kind != TRIPLET:
            return grids.informative(state, count, rng)
        candidates = self._candidates(state, rng)
        best_first = np.argsort(-candidates.scores(), kind="stable")
        candidates.narrow(best_first[: SHORTLIST + SHORTLIST_EACH * count], learn=count)
        rows = candidates.rows
        turn = AnchorBalance(state, count)
        picked, scores = [], []
        for _ in range(min(count, len(rows))):
            score = candidates.scores()
            best = turn.best(rows, score)
            picked.append(best)
            scores.append(score[best])
            candidates.learn(best)
        return Selection(rows[picked], np.array(scores))

    def _candidates(
        self, state: SelectorState, rng: np.random.Generator
    ) -> Candidates | BlockCandidates:
        z = np.ascontiguousarray(state.embedding)
        if z.size > MAX_EXACT:
            blocks = covariance_blocks(state)
            rows = state.source.new(POOL, state.taken, rng)
            targets = draw(len(z), TARGETS_PER_ITEM * len(z), rng)
            asked, variances = Gradients(z, targets), np.empty(len(targets))
            block_variances(asked.slopes, targets, blocks, variances)
            weights = target_weights(asked.margins, variances)
            return BlockCandidates(z, blocks, targets, weights, rows, state.temperature)
        covariance = coordinate_covariance(state)
        rows = state.source.new(POOL, state.taken, rng)
        asked = Gradients(z, draw(len(z), TARGETS, rng))
        weights = target_weights(asked.margins, asked.variances(covariance))
        images = asked.through(covariance) * np.sqrt(weights / TARGETS)[:, np.newaxis]
        return Candidates(z, covariance, np.ascontiguousarray(images.T), rows, state.temperature)


class AnchorBalance:
    """Anchor balancing: no item becomes the anchor much more often than the others."""

    def __init__(self, state: SelectorState, count: int) -> None:
        self._used = np.bincount(state.pending[:, 0], minlength=state.n_objects)
        self._slack = count // state.n_objects
        self._free: np.ndarray | None = None

    def best(self, rows: Questions, scores: Floats) -> int:
        """Pick the row with the best score among the least used anchors, and mark it as used."""
        if self._free is None:
            self._free = np.ones(len(rows), dtype=bool)
        used = self._used[rows[:, 0]]
        lowest = used[self._free].min()
        allowed = self._free & (used <= lowest + self._slack)
        best = int(np.argmax(np.where(allowed, scores, -np.inf)))
        self._free[best] = False
        self._used[rows[best, 0]] += 1
        return best
