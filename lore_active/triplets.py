"""The one gate for answers: whatever comes in, validated index arrays come out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lore_active.errors import InvalidParameter, InvalidTriplets
from lore_active.formats import read_table
from lore_active.types import Floats, Indices

COLUMNS = ("anchor", "nearer", "farther")
FEWEST_ITEMS = 3


@dataclass(frozen=True, eq=False)
class Triplets:
    """Validated answers: row t says that `anchor[t]` is nearer to `nearer[t]` than to `farther[t]`.

    `labels` names the items in index order, or is None when items are known by number only.
    """

    anchor: Indices
    nearer: Indices
    farther: Indices
    weight: Floats
    n_objects: int
    labels: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.anchor)

    def take(self, rows: NDArray[Any]) -> Triplets:
        """The answers of `rows` (indices or a mask), among the same items."""
        return Triplets(
            self.anchor[rows],
            self.nearer[rows],
            self.farther[rows],
            self.weight[rows],
            self.n_objects,
            self.labels,
        )


def as_triplets(
    source: Any,
    n_objects: int | None = None,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
) -> Triplets:
    """Validate answers from an array-like, a file path or an earlier `Triplets`.

    Rows are (anchor, nearer, farther), either 0-based item numbers or item labels. Without
    `labels` the labels found are numbered in sorted order; without `n_objects` the items are
    those that occur, up to the highest number.
    """
    if isinstance(source, Triplets):
        weight = source.weight if sample_weight is None else sample_weight
        known = source.labels if labels is None else labels
        rows = np.column_stack([source.anchor, source.nearer, source.farther])
        return _from_numbers(rows, n_objects or source.n_objects, weight, known, _array_row)
    if isinstance(source, (str, os.PathLike)):
        table = read_table(source)
        weights = table.weights if sample_weight is None else sample_weight
        known = table.labels if labels is None else labels
        return _from_cells(table.rows, n_objects, weights, known, table.place)
    return _from_cells(source, n_objects, sample_weight, labels, _array_row)


def _array_row(row: int) -> str:
    return f"row {row} (counted from 0)"


def _sentence(start: str) -> str:
    return start[:1].upper() + start[1:]


def _fail(message: str) -> NoReturn:
    raise InvalidTriplets(message)


def _from_cells(
    cells: Any,
    n_objects: int | None,
    weights: ArrayLike | None,
    labels: Sequence[str] | None,
    place: Callable[[int], str],
) -> Triplets:
    """Tell numbers from labels, then check."""
    array = cells if isinstance(cells, np.ndarray) else _rectangular(cells, place)
    if array.size == 0:
        _fail("There are no answers: at least one triplet (anchor, nearer, farther) is needed.")
    if array.ndim != 2 or array.shape[1] != 3:
        _fail(
            f"Answers have shape {array.shape}, but must have three columns: "
            "anchor, nearer, farther."
        )
    if array.dtype.kind in "iu":
        return _from_numbers(array, n_objects, weights, labels, place)
    if array.dtype.kind == "f":
        return _from_numbers(_whole(array, place), n_objects, weights, labels, place)
    if array.dtype.kind not in "OUS":
        _fail(f"Items must be whole numbers or labels, not {array.dtype.name}.")
    numeric = np.array([[_number(cell) for cell in row] for row in array], dtype=float)
    is_label = np.array([[_is_label(cell) for cell in row] for row in array])
    if labels is not None or is_label.all():
        return _from_labels(array, n_objects, weights, labels, place)
    if is_label.any():
        # Name a cell of the rarer kind: that is the one which is out of place.
        odd = is_label if is_label.mean() <= 0.5 else ~is_label
        row, column = np.argwhere(odd)[0]
        _fail(
            f"Labels and numbers are mixed: {place(int(row))} has {array[row, column]!r} as "
            f"{COLUMNS[column]}. Items must be all numbers (from 0) or all labels."
        )
    return _from_numbers(_whole(numeric, place), n_objects, weights, labels, place)


def _rectangular(cells: Any, place: Callable[[int], str]) -> NDArray[Any]:
    """An array-like as a two-dimensional array, with ragged rows named."""
    try:
        rows = [list(row) for row in cells]
    except TypeError:
        _fail(f"Answers must be rows of three items, not {cells!r:.60}.")
    for number, row in enumerate(rows):
        if len(row) != 3:
            _fail(
                f"Ragged answers: {place(number)} has {len(row)} values, but each row must have "
                "three: anchor, nearer, farther."
            )
        for cell in row:
            if isinstance(cell, (bool, np.bool_)) or not isinstance(
                cell, (str, int, float, np.integer, np.floating)
            ):
                _fail(f"Items must be numbers or labels: {place(number)} has {cell!r:.60}.")
    kinds = {isinstance(cell, str) for row in rows for cell in row}
    if kinds == {False}:
        if all(isinstance(cell, (int, np.integer)) for row in rows for cell in row):
            return np.array(rows, dtype=object if _too_large(rows) else np.int64)
        return np.array(rows, dtype=float)
    return np.array(rows, dtype=object)


def _too_large(rows: list[list[Any]]) -> bool:
    return any(abs(int(cell)) >= 2**62 for row in rows for cell in row)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _is_label(cell: Any) -> bool:
    """Whether a cell is text that is no number; an empty cell or `nan` is a missing value."""
    if not isinstance(cell, (str, bytes)):
        return False
    text = cell.decode() if isinstance(cell, bytes) else cell
    if not text.strip():
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _whole(array: NDArray[Any], place: Callable[[int], str]) -> NDArray[np.int64]:
    """Floats that are whole numbers, as integers."""
    with np.errstate(invalid="ignore"):
        good = np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2**53)
    if not good.all():
        row, column = np.argwhere(~good)[0]
        value = array[row, column]
        what = "is missing or not a number" if np.isnan(value) else "is not a whole number"
        _fail(
            f"{_sentence(place(int(row)))}: {COLUMNS[column]} {value} {what}. "
            "Items are numbered 0, 1, 2, …"
        )
    return array.astype(np.int64)


def _from_labels(
    array: NDArray[Any],
    n_objects: int | None,
    weights: ArrayLike | None,
    labels: Sequence[str] | None,
    place: Callable[[int], str],
) -> Triplets:
    text = [[_text(cell) for cell in row] for row in array]
    known = tuple(sorted({cell for row in text for cell in row}) if labels is None else labels)
    _check_labels(known)
    number = {label: index for index, label in enumerate(known)}
    rows = np.empty((len(text), 3), dtype=np.int64)
    for row, cells in enumerate(text):
        for column, cell in enumerate(cells):
            if cell not in number:
                _fail(
                    f"{_sentence(place(row))}: {COLUMNS[column]} {cell!r} is not among the "
                    f"{len(known)} known labels."
                )
            rows[row, column] = number[cell]
    return _from_numbers(rows, n_objects, weights, known, place)


def _text(cell: Any) -> str:
    return (cell.decode() if isinstance(cell, bytes) else str(cell)).strip()


def _check_labels(labels: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            _fail(f"Label {label!r} stands twice in the list of labels.")
        seen.add(label)


def _from_numbers(
    rows: NDArray[Any],
    n_objects: int | None,
    weights: ArrayLike | None,
    labels: Sequence[str] | None,
    place: Callable[[int], str],
) -> Triplets:
    """The checks that every source ends in."""
    known = None if labels is None else tuple(labels)
    count = _item_count(rows, n_objects, known)
    bad = (rows < 0) | (rows >= count)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        _fail(
            f"{_sentence(place(int(row)))}: {COLUMNS[column]} {rows[row, column]} is out of "
            f"range: there are {count} items, numbered 0 to {count - 1}."
        )
    a, i, j = (np.ascontiguousarray(rows[:, k], dtype=np.int32) for k in range(3))
    repeated = (a == i) | (a == j) | (i == j)
    if repeated.any():
        row = int(np.flatnonzero(repeated)[0])
        _fail(
            f"{_sentence(place(row))}: ({a[row]}, {i[row]}, {j[row]}) names an item twice. "
            "Anchor, nearer and farther must be three different items."
        )
    return Triplets(a, i, j, _weights(weights, len(a), place), count, known)


def _item_count(rows: NDArray[Any], n_objects: int | None, labels: tuple[str, ...] | None) -> int:
    if n_objects is None:
        return max(int(rows.max()) + 1, FEWEST_ITEMS) if labels is None else len(labels)
    if isinstance(n_objects, bool) or not isinstance(n_objects, (int, np.integer)):
        raise InvalidParameter(f"n_objects is {n_objects!r}, but must be a whole number.")
    if n_objects < FEWEST_ITEMS:
        raise InvalidParameter(f"n_objects is {n_objects}, but a triplet needs three items.")
    if labels is not None and len(labels) != n_objects:
        raise InvalidParameter(f"n_objects is {n_objects}, but there are {len(labels)} labels.")
    return int(n_objects)


def _weights(weights: ArrayLike | None, count: int, place: Callable[[int], str]) -> Floats:
    if weights is None:
        return np.ones(count)
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        _fail("Weights must be numbers, one for each answer.")
    if array.shape != (count,):
        _fail(f"Weights have shape {array.shape}, but there are {count} answers.")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        _fail(f"{_sentence(place(row))}: weight {array[row]} is not a number of 0 or more.")
    if not array.sum() > 0:
        _fail("All weights are 0: at least one answer must count.")
    return np.ascontiguousarray(array)
