"""Rows of numbers in one array that grows: what is kept for each answer, at a few bytes each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

FIRST_ROOM = 256
# Room is made for an eighth more at a time: little is held in vain, and copying stays rare.
ROOM = 1.125
# Where there is no number.
NOTHING = -1


class RowTable:
    """Rows of one `dtype` (of a number, of several with names, or of a fixed count of them)."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._held: NDArray[Any] = np.zeros(FIRST_ROOM, dtype)
        # Rows of a fixed count have their dtype in the array's shape.
        self._dtype = np.dtype(dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> NDArray[Any]:
        """All rows, not copied; what is appended later does not show in it."""
        return self._held[: self._count]

    def append(self, row: Any) -> int:
        """Take in one row; its place."""
        self._make_room(self._count + 1)
        self._held[self._count] = row
        self._count += 1
        return self._count - 1

    def extend(self, rows: Any) -> None:
        """Take in several rows."""
        end = self._count + len(rows)
        self._make_room(end)
        self._held[self._count : end] = rows
        self._count = end

    def _make_room(self, end: int) -> None:
        if end > len(self._held):
            grown = np.zeros(max(end, int(ROOM * len(self._held))), self._dtype)
            grown[: self._count] = self.rows
            self._held = grown


def item_type(n_objects: int) -> np.dtype[Any]:
    """The smallest numbers that can tell the items apart, and from NOTHING."""
    return np.dtype(np.int16 if n_objects <= np.iinfo(np.int16).max else np.int32)
