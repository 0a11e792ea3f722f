"""The answers that count, and what they tell at once: accuracy of predictions, consistency."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lore_active.records import Answer, Query, as_rows
from lore_active.stopping import Share, wilson

# Random questions that tell how good the model is now.
WINDOW = 200
# Questions asked twice before consistency is spoken of.
FEWEST_REPEATS = 10


class Tally:
    """Grows answer by answer; begun anew when a participant is excluded or taken back.

    `predictions` holds, by query, the margin that the model of the time predicted (None: there
    was no model); it is filled when questions are asked.
    """

    def __init__(self) -> None:
        self.predictions: dict[int, float | None] = {}
        self._rows = as_rows([])
        self._waiting: list[tuple[int, int, int]] = []
        self._unselected: list[bool] = []
        self._hits: list[float] = []
        self._left: dict[int, bool] = {}
        self._agreements: list[float] = []

    def __len__(self) -> int:
        return len(self._rows) + len(self._waiting)

    def count(self, answer: Answer, queries: Sequence[Query]) -> None:
        """Let an answer count: for the fit, for the accuracy, for consistency."""
        query = None if answer.query is None else queries[answer.query]
        if query is not None and query.purpose == "catch":
            return
        self._waiting.append((answer.anchor, answer.nearer, answer.farther))
        self._unselected.append(query is None or query.purpose in ("cover", "random"))
        if query is None:
            return
        chose_left = answer.nearer == query.left
        self._left[query.id] = chose_left
        margin = self.predictions.get(query.id)
        if query.purpose == "random" and margin is not None:
            right = 0.5 if margin == 0.0 else float((margin > 0.0) == chose_left)
            self._hits.append(right)
        if query.repeats is not None and query.repeats in self._left:
            # Sides were swapped: agreeing means choosing the other side.
            self._agreements.append(float(self._left[query.repeats] != chose_left))

    @property
    def rows(self) -> NDArray[np.int64]:
        """The answers as rows (anchor, nearer, farther); only new ones cost anything."""
        if self._waiting:
            self._rows = np.concatenate([self._rows, as_rows(self._waiting)])
            self._waiting = []
        return self._rows

    @property
    def unselected(self) -> NDArray[np.bool_]:
        """Which of the rows answer questions that no model picked: fair ones to judge one by."""
        return np.array(self._unselected, dtype=bool)

    @property
    def progressive(self) -> Share:
        """Share of the latest random questions that were predicted right before being answered."""
        recent = self._hits[-WINDOW:]
        return wilson(float(sum(recent)), len(recent))

    @property
    def ceiling(self) -> float | None:
        """How often a perfect model could be right, from how often people repeat themselves."""
        if len(self._agreements) < FEWEST_REPEATS:
            return None
        agreement = sum(self._agreements) / len(self._agreements)
        return float(0.5 * (1.0 + np.sqrt(max(0.0, 2.0 * agreement - 1.0))))
