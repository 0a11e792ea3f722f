"""Selector of near-ties among neighbouring items, which reveal a weak further dimension.

A further coordinate u changes a distance d to √(d² + Δu²): much where d is small, hardly where it
is large. So the answers that depend on u are those to questions whose options are both close to the
anchor and about equally far from it.
"""

from __future__ import annotations

import numpy as np

from lore_active.acquisition.selectors import POOL, AnchorBalance, Selection, SelectorState
from lore_active.errors import InvalidParameter
from lore_active.types import Floats

# Nodes of Gauss–Hermite quadrature over the difference of two further coordinates.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


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
    >>> from lore_active.acquisition.selectors import SelectorState
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

    def pick(self, known: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions; see `Selector.pick`."""
        rows = known.source.new(POOL, known.taken, rng)
        scores = self.scores(known, rows)
        turn = AnchorBalance(known, count)
        picked = [turn.best(rows, scores) for _ in range(min(count, len(rows)))]
        return Selection(rows[picked], scores[picked])

    def scores(self, known: SelectorState, rows: np.ndarray) -> Floats:
        """How much the answers depend on the further dimension, by question.

        p (1 − p) times the variance of what the further coordinates, of variance s² each, add to
        the margin; p is the probability of an answer without them.
        """
        z = known.embedding
        variance = self.share / (1.0 - self.share) * float(z.var(axis=0).sum())
        squares = 2.0 * variance * NODES**2
        near, far = (np.linalg.norm(z[rows[:, 0]] - z[rows[:, k]], axis=1) for k in (1, 2))
        added = np.zeros(len(rows))
        for distance in (near, far):
            gain = np.sqrt(distance[:, np.newaxis] ** 2 + squares) - distance[:, np.newaxis]
            added += (gain**2) @ WEIGHTS - (gain @ WEIGHTS) ** 2
        likely = 0.5 * (1.0 + np.tanh(0.5 * (far - near) / known.temperature))
        return np.asarray(likely * (1.0 - likely) * added)
