"""Rows of a table of trials: what was shown in each, and the cells of its other columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lore_active.data.columns import Sheet, at_start, cells_of, stacked
from lore_active.data.trial_columns import TrialColumns
from lore_active.data.values import float_of, is_missing, is_number
from lore_active.errors import InvalidTriplets

NOT_GIVEN = ("na", "nan", "null", "none")
Whole = NDArray[np.int64]


def fail(message: str) -> NoReturn:
    """Raise `InvalidTriplets`."""
    raise InvalidTriplets(message)


def not_given(cell: Any) -> bool:
    """Whether a cell holds no value."""
    return is_missing(cell) or (isinstance(cell, str) and cell.strip().lower() in NOT_GIVEN)


def items_shown(sheet: Sheet, at: TrialColumns) -> NDArray[Any]:
    """What was shown in each trial: the anchor, if any, then the options."""
    if at.table is None:
        places = [*(() if at.anchor is None else (at.anchor,)), *at.options]
        total = len(cells_of(sheet, places[0]))
        return stacked([cells_of(sheet, k, total) for k in places])
    held = sheet.column(at.table)
    if held.ndim != 2 or held.shape[1] < 3 or held.dtype.kind not in "iu":
        fail(
            f"The array {sheet.header[at.table]} of {sheet.name} has shape {held.shape} and type "
            f"{held.dtype.name}, but must have a row of whole numbers for each trial: the query, "
            "then its references."
        )
    return held


class TrialRows:
    """The rows of a sheet that are judgements; `shown` holds their items, `kept` their places."""

    def __init__(self, sheet: Sheet, at: TrialColumns, kept: Whole, shown: NDArray[Any]) -> None:
        self.sheet, self.at, self.kept = sheet, at, kept
        self.total, self.shown = len(shown), shown[kept]
        self.has_anchor = at.anchor is not None or at.table is not None

    def keep(self, rows: Sequence[int]) -> None:
        """Omit all other rows."""
        at = np.array(rows, dtype=np.int64)
        self.kept, self.shown = self.kept[at], self.shown[at]

    def options(self, row: int) -> list[Any]:
        """The options of a trial."""
        return list(self.shown[row, int(self.has_anchor) :].tolist())

    def named(self, row: int) -> str:
        """The items of a trial, for an error message."""
        return ", ".join(repr(item) for item in self.shown[row].tolist())

    def cells(self, k: int) -> NDArray[Any]:
        """The cells of a column; arrays of a file may hold one value for all trials."""
        cells = self.sheet.column(k)
        if cells.ndim == 0:
            return np.full(len(self.kept), cells)
        return cells_of(self.sheet, k, self.total)[self.kept]

    def whole(self, k: int) -> Whole:
        """The numbers in a column."""
        cells = self.cells(k).tolist()
        for row, cell in enumerate(cells):
            if not is_number(cell) or not float_of(cell).is_integer():
                self.refuse(row, f"{self.sheet.header[k]} is {cell!r}, but must be a whole number")
        return np.array([int(float_of(cell)) for cell in cells], dtype=np.int64)

    def true(self, k: int) -> NDArray[np.bool_]:
        """The truth values in a column."""
        text = [str(cell).strip().lower().removesuffix(".0") for cell in self.cells(k).tolist()]
        for row, cell in enumerate(text):
            if cell not in ("true", "false", "1", "0"):
                self.refuse(row, f"{self.sheet.header[k]} is {cell!r}, but must be true or false")
        return np.array([cell in ("true", "1") for cell in text], dtype=bool)

    def refuse(self, row: int, what: str) -> NoReturn:
        """Raise `InvalidTriplets` that names the row."""
        fail(f"{at_start(self.sheet.place(int(self.kept[row])))}: {what}.")

    def empty(self, zero: bool) -> NDArray[np.bool_]:
        """Places without an item: without a value, with a negative number or, if `zero`, with 0."""
        lowest = 1 if zero else 0
        if self.shown.dtype.kind in "iuf":
            return np.asarray(~(self.shown >= lowest))
        empty = [
            not_given(cell) or (is_number(cell) and float_of(cell) < lowest)
            for cell in self.shown.ravel().tolist()
        ]
        return np.array(empty, dtype=bool).reshape(self.shown.shape)

    def zero_is_none(self) -> bool:
        """Whether 0 marks an empty place, so that items are numbered from 1."""
        if self.at.mask_zero is None:
            return False
        values = self.true(self.at.mask_zero)
        for row in np.flatnonzero(values != values[:1])[:1]:
            self.refuse(row, "mask_zero must be the same for all trials")
        return bool(values.any())

    def count_options(self, empty: NDArray[np.bool_]) -> Whole:
        """Number of options of each trial; empty places must be the last."""
        for row in np.flatnonzero(empty[:, 0])[:1]:
            self.refuse(row, "the query is missing")
        for row in np.flatnonzero((empty[:, 1:-1] & ~empty[:, 2:]).any(axis=1))[:1]:
            self.refuse(row, "an option follows an empty place, but empty places must be the last")
        return np.asarray((~empty[:, 1:]).sum(axis=1), dtype=np.int64)

    def refuse_repeated(self, empty: NDArray[np.bool_]) -> None:
        """Reject trials that show an item twice."""
        codes = self.shown
        if codes.dtype.kind not in "iuf":
            text = np.array([str(cell).strip() for cell in codes.ravel().tolist()])
            codes = np.unique(text, return_inverse=True)[1].reshape(codes.shape)
        # Empty places differ from all items, and from each other.
        codes = np.where(empty, -1.0 - np.arange(codes.shape[1]), codes)
        for row in np.flatnonzero((np.diff(np.sort(codes, axis=1)) == 0).any(axis=1))[:1]:
            self.refuse(row, f"an item occurs twice among {self.named(row)}")

    def number_from_zero(self) -> None:
        """Number items from 0 that the source numbers from 1."""
        if self.shown.dtype.kind in "iuf":
            self.shown = self.shown - 1
            return
        rows = self.shown.tolist()
        self.shown = np.array(
            [[float_of(cell) - 1 if is_number(cell) else cell for cell in row] for row in rows],
            dtype=object,
        )
