"""Selectors: acquisition functions that pick the next questions, behind one protocol.

`FisherSelector` is a batch design in the sense of MacKay (1992), "Information-based objective
functions for active data selection", Neural Computation 4: it reduces the expected variance of
the predictions of interest, here the margins of random questions.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from lore_active.acquisition.candidates import Candidates, Gradients
from lore_active.embedding import information
from lore_active.embedding.covariance import MAX_COORDINATES, factored
from lore_active.errors import InvalidParameter
from lore_active.questions.pool import Questions, QuestionSource, draw
from lore_active.reproducibility import one_thread
from lore_active.types import Floats

# Candidates scored for each batch, and random questions whose margins' variance is to be reduced.
POOL = 4000
TARGETS = 200
# Scores can only decrease during a batch: after the first pass a shortlist is enough.
SHORTLIST = 200
SHORTLIST_EACH = 6


@dataclass(frozen=True, eq=False)
class SelectorState:
    """Input of a selector: the acquisition model, and which questions are answered or pending.

    Attributes
    ----------
    embedding : array of shape (n_objects, n_dimensions)
        Coordinates of the items in the acquisition model.
    temperature : float
        Scale of the margins in the logistic likelihood.
    answered : array of shape (n_answers, 3)
        Rows (anchor, nearer, farther).
    pending : array of shape (n_pending, 3)
        Rows (anchor, left, right) that participants are working on.
    taken : set of int
        Keys of the questions that must not be selected.
    source : QuestionSource
        Where new questions come from.
    """

    embedding: Floats
    temperature: float
    answered: Questions
    pending: Questions
    taken: Set[int]
    source: QuestionSource

    @property
    def n_objects(self) -> int:
        """Number of items."""
        return len(self.embedding)


@dataclass(frozen=True, eq=False)
class Selection:
    """Output of a selector: rows (anchor, option, option) in order, and their scores."""

    questions: Questions
    scores: Floats


class Selector(Protocol):
    """Protocol of an acquisition function over questions.

    Implementations pick questions for a model of at least one dimension, and draw all randomness
    from the generator that is passed in.
    """

    @property
    def name(self) -> str:
        """Name in configuration files."""
        ...

    def pick(self, known: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions.

        Parameters
        ----------
        known : SelectorState
            The acquisition model, and the questions that are answered, pending or taken.
        count : int
            How many questions to select.
        rng : numpy.random.Generator
            Source of all randomness.

        Returns
        -------
        Selection
            Up to `count` different questions, none of them taken.
        """
        ...


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

    def pick(self, known: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions; see `Selector.pick`."""
        rows = known.source.new(count, known.taken, rng)
        return Selection(rows, np.zeros(len(rows)))


class UncertaintySelector:
    """Select the questions with the smallest absolute margin, balanced over anchors.

    Examples
    --------
    >>> import numpy as np
    >>> from lore_active.acquisition.selectors import SelectorState, UncertaintySelector
    >>> from lore_active.questions.pool import AllQuestions
    >>> none = np.empty((0, 3), dtype=np.int64)
    >>> line = np.array([[0.0], [1.0], [2.1], [4.0]])
    >>> state = SelectorState(line, 1.0, none, none, set(), AllQuestions(4))
    >>> best = UncertaintySelector().pick(state, 1, np.random.default_rng(0))
    >>> sorted(best.questions[0].tolist()), best.scores.round(2).tolist()
    ([0, 1, 2], [-0.1])
    """

    name = "uncertainty"

    def pick(self, known: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions; see `Selector.pick`."""
        rows = known.source.new(POOL, known.taken, rng)
        near, far = (
            np.linalg.norm(known.embedding[rows[:, 0]] - known.embedding[rows[:, k]], axis=1)
            for k in (1, 2)
        )
        scores = -np.abs(far - near)
        turn = AnchorBalance(known, count)
        picked = [turn.best(rows, scores) for _ in range(min(count, len(rows)))]
        return Selection(rows[picked], scores[picked])


class FisherSelector:
    """Select the questions that most reduce the expected variance of other questions' margins.

    The covariance of the coordinates is the inverse of the expected Fisher information plus a weak
    prior. A candidate is scored by the expected reduction of the variance of random questions'
    margins, weighted towards margins whose sign is still uncertain. After each pick
    the covariance is updated as if the question had been answered, and pending questions count as
    answered, so that participants who are asked at the same time get different questions.

    With more than 4,000 coordinates it falls back to `UncertaintySelector`.

    Examples
    --------
    >>> import numpy as np
    >>> from lore_active.acquisition.selectors import FisherSelector, SelectorState
    >>> from lore_active.questions.pool import AllQuestions
    >>> none = np.empty((0, 3), dtype=np.int64)
    >>> space = np.random.default_rng(1).normal(size=(6, 2))
    >>> state = SelectorState(space, 1.0, none, none, set(), AllQuestions(6))
    >>> selection = FisherSelector().pick(state, 3, np.random.default_rng(0))
    >>> selection.questions.shape, bool((selection.scores > 0).all())
    ((3, 3), True)
    """

    name = "fisher"

    def pick(self, known: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions; see `Selector.pick`."""
        if known.embedding.size > MAX_COORDINATES:
            return UncertaintySelector().pick(known, count, rng)
        z = np.ascontiguousarray(known.embedding)
        covariance = coordinate_covariance(known)
        rows = known.source.new(POOL, known.taken, rng)
        targets = self._targets(z, covariance, rng)
        candidates = Candidates(z, covariance, targets, rows, known.temperature)
        best_first = np.argsort(-candidates.scores(), kind="stable")
        candidates.narrow(best_first[: SHORTLIST + SHORTLIST_EACH * count], learn=count)
        rows = candidates.rows
        turn = AnchorBalance(known, count)
        picked, scores = [], []
        for _ in range(min(count, len(rows))):
            score = candidates.scores()
            best = turn.best(rows, score)
            picked.append(best)
            scores.append(score[best])
            candidates.learn(best)
        return Selection(rows[picked], np.array(scores))

    @staticmethod
    def _targets(z: Floats, covariance: Floats, rng: np.random.Generator) -> Floats:
        """Gradients of random questions' margins times the covariance, scaled by their weights.

        The weight φ(margin / deviation) / deviation is proportional to the rate at which the
        expected size of an error in the margin's sign decreases with its variance.
        """
        asked = Gradients(z, draw(len(z), TARGETS, rng))
        variances = np.maximum(asked.variances(covariance), 1e-12)
        weight = np.exp(-0.5 * asked.margins**2 / variances) / np.sqrt(variances)
        images = asked.through(covariance) * np.sqrt(weight / TARGETS)[:, np.newaxis]
        return np.ascontiguousarray(images.T)


def coordinate_covariance(known: SelectorState) -> Floats:
    """Covariance of all coordinates: inverse of the expected information plus a weak prior.

    The prior variance of a coordinate is the mean square of its axis. Without it the variance of
    translations and rotations, which no answer can identify, would be infinite.
    """
    z = np.ascontiguousarray(known.embedding)
    prior = 1.0 / np.maximum((z**2).mean(axis=0), 1e-12)
    matrix = factored(z, (known.answered, known.pending), known.temperature, prior)
    with one_thread():
        _, failed = lapack.dpotri(matrix.T, lower=0, overwrite_c=1)
    if failed:
        raise InvalidParameter(
            "The information matrix of the embedding is singular: its covariance is undefined."
        )
    information.mirror(matrix)
    return matrix


class AnchorBalance:
    """Anchor balancing: no item becomes the anchor much more often than the others."""

    def __init__(self, known: SelectorState, count: int) -> None:
        self._used = np.bincount(known.pending[:, 0], minlength=known.n_objects)
        self._slack = count // known.n_objects
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
