"""Selector of near-ties among neighbouring items, which reveal a weak further dimension.

A further coordinate u changes a distance d to √(d² + Δu²): much where d is small, hardly where it
is large. So the answers that depend on u are those to questions whose options are both close to the
anchor and about equally far from it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition import grids
from lore_active.acquisition.selectors import POOL, AnchorBalance
from lore_active.acquisition.state import Selection, SelectorState
from lore_active.errors import InvalidParameter
from lore_active.questions.kinds import TRIPLET
from lore_active.questions.pool import Questions, keys
from lore_active.questions.pool_of_kinds import grid_keys
from lore_active.row_table import NOTHING
from lore_active.trials import composition
from lore_active.types import Floats

# Nodes of Gauss–Hermite quadrature over the difference of two further coordinates.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# Options of a trial are composed of so many times as many of the anchor's nearest neighbours.
NEIGHBOURS = 1.5


class LocalSelector:
    """Select the near-ties whose answers depend most on a further dimension of a given size.

    Parameters
    ----------
    share : float, default 0.10
        Share of the variance that the further dimension would carry.

    Raises
    ------
    InvalidParameter
        If the share is not between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from lore_active.acquisition.local import LocalSelector
    >>> from lore_active.acquisition.state import SelectorState
    >>> from lore_active.questions.pool import AllQuestions
    >>> none = np.empty((0, 3), dtype=np.int64)
    >>> line = np.array([[0.0], [0.1], [-0.1], [5.0], [9.0]])
    >>> state = SelectorState(line, 1.0, none, none, set(), AllQuestions(5))
    >>> best = LocalSelector().pick(state, 1, np.random.default_rng(0))
    >>> sorted(best.questions[0].tolist())
    [0, 1, 2]
    """

    name = "local"

    def __init__(self, share: float = 0.10) -> None:
        if not 0.0 < share < 1.0:
            raise InvalidParameter(f"share is {share!r}, but must be between 0 and 1.")
        self.share = share

    def pick(self, state: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions; see `Selector.pick`."""
        if state.kind != TRIPLET:
            return self._grids(state, count, rng)
        rows = state.source.new(POOL, state.taken, rng)
        scores = self.scores(state, rows)
        turn = AnchorBalance(state, count)
        picked = [turn.best(rows, scores) for _ in range(min(count, len(rows)))]
        return Selection(rows[picked], scores[picked])

    def scores(self, state: SelectorState, rows: Questions) -> Floats:
        """How much the answers depend on the further dimension, by question.

        p (1 − p) times the variance of what the further coordinates, of variance s² each, add to
        the margin; p is the probability of an answer without them. Earlier answers to the same
        question have reduced that variance.
        """
        z = state.embedding
        near, far = (np.linalg.norm(z[rows[:, 0]] - z[rows[:, k]], axis=1) for k in (1, 2))
        added = np.zeros(len(rows))
        for distance in (near, far):
            added += self._added(z, distance)
        likely = 0.5 * (1.0 + np.tanh(0.5 * (far - near) / state.temperature))
        score = likely * (1.0 - likely) * added
        return np.asarray(score / (1.0 + self._times_asked(state, rows) * score))

    def _added(self, z: Floats, distance: Floats) -> Floats:
        """Variance of what the further coordinates add to distances."""
        variance = self.share / (1.0 - self.share) * float(z.var(axis=0).sum())
        squares = 2.0 * variance * NODES**2
        gain = np.sqrt(distance[:, np.newaxis] ** 2 + squares) - distance[:, np.newaxis]
        return np.asarray((gain**2) @ WEIGHTS - (gain @ WEIGHTS) ** 2)

    def _grids(self, state: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """The most informative trials of an anchor and its neighbours about what would be added."""
        z, kind = np.ascontiguousarray(state.embedding), state.kind
        size = round(NEIGHBOURS * kind.options)

        def composed(anchor: int) -> tuple[Questions, float]:
            away = np.linalg.norm(z - z[anchor], axis=1)
            away[anchor] = np.inf
            near = np.argsort(away, kind="stable")[: min(size, len(z) - 1)]
            if not kind.has_anchor:
                return self._odd_one(state, anchor, near)
            options = np.empty(kind.options, dtype=np.int32)
            score = composition.compose(
                *(kind.options, kind.pick, kind.ordered, away[near] / state.temperature),
                *(np.zeros((len(near), len(near))), np.diag(self._added(z, away[near])), options),
            )
            return np.array([[anchor, *near[options]]], dtype=np.int64), score

        return grids.turns(state, count, rng, composed)

    def _odd_one(
        self, state: SelectorState, item: int, near: NDArray[np.int64]
    ) -> tuple[Questions, float]:
        """The item and the two of its neighbours whose comparison is most informative."""
        first, second = np.triu_indices(len(near), 1)
        rows = np.column_stack([np.full(len(first), item), near[first], near[second]])
        z = state.embedding
        sides = [
            np.linalg.norm(z[rows[:, m]] - z[rows[:, n]], axis=1)
            for m, n in ((1, 2), (2, 0), (0, 1))
        ]
        distance = np.column_stack(sides) / state.temperature
        p = np.exp(distance.min(axis=1, keepdims=True) - distance)
        p /= p.sum(axis=1, keepdims=True)
        added = np.column_stack([self._added(z, side) for side in sides])
        scores = (p * (1.0 - p) * added).sum(axis=1)
        scores[[int(key) in state.taken for key in grid_keys(_no_anchor(rows))]] = -np.inf
        best = int(np.argmax(scores))
        return _no_anchor(rows[best : best + 1]), float(scores[best])

    @staticmethod
    def _times_asked(state: SelectorState, rows: Questions) -> NDArray[np.int64]:
        """How often each question has been answered or is pending."""
        asked = len(state.answered) + len(state.pending)
        if not state.source.asks_again(asked):
            # Only new questions are candidates.
            return np.zeros(len(rows), dtype=np.int64)
        earlier, candidates = (
            keys(some, state.n_objects)
            for some in (np.concatenate([state.answered, state.pending]), rows)
        )
        number, times = np.unique(earlier, return_counts=True)
        place = np.searchsorted(number, candidates).clip(max=len(number) - 1)
        return np.where(number[place] == candidates, times[place], 0)


def _no_anchor(rows: Questions) -> Questions:
    return np.column_stack([np.full(len(rows), NOTHING), rows]).astype(np.int64)
