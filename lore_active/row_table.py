"""Growable array of rows: compact storage of the records of a learner."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

INITIAL_CAPACITY = 256
# Capacity grows by an eighth: little memory is unused, and copying is rare.
GROWTH = 1.125
# Code for "no number".
NOTHING = -1


class RowTable:
    """Append-only rows of one `dtype` (scalar, structured, or a fixed-size subarray)."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._held: NDArray[Any] = np.zeros(INITIAL_CAPACITY, dtype)
        # The array's own dtype lacks the shape of a subarray.
        self._dtype = np.dtype(dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> NDArray[Any]:
        """All rows as a view; rows that are appended later are not in it."""
        return self._held[: self._count]

    def append(self, row: Any) -> int:
        """Append a row, and return its index."""
        self._reserve(self._count + 1)
        self._held[self._count] = row
        self._count += 1
        return self._count - 1

    def extend(self, rows: Any) -> None:
        """Append several rows."""
        end = self._count + len(rows)
        self._reserve(end)
        self._held[self._count : end] = rows
        self._count = end

    def _reserve(self, end: int) -> None:
        if end > len(self._held):
            grown = np.zeros(max(end, int(GROWTH * len(self._held))), self._dtype)
            grown[: self._count] = self.rows
            self._held = grown


def item_type(n_objects: int) -> np.dtype[Any]:
    """Smallest integer type that can hold all item numbers, and NOTHING."""
    return np.dtype(np.int16 if n_objects <= np.iinfo(np.int16).max else np.int32)
