"""Conversion of cells to item numbers: labels or numbers, with the location of every error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lore_active.data.columns import AnswerTable, at_start
from lore_active.data.lookalikes import look_alike, peculiar, unified
from lore_active.data.values import float_of, is_missing, is_number, text_of
from lore_active.errors import InvalidTriplets

COLUMNS = ("anchor", "nearer", "farther")
Place = Callable[[int], str]
Rows = NDArray[Any]
Labels = tuple[str, ...] | None


def numbered(table: AnswerTable, labels: Sequence[str] | None) -> tuple[Rows, Labels]:
    """Convert the rows of a table to item numbers, and return the labels of the items, if any.

    labels: labels of all items, by number. None: those that occur, sorted. Empty: items must be
    given by number.
    """
    if labels and table.names is not None:
        return _by_label(_rectangular(table.names, table.place), tuple(labels), table.place)
    array = _checked(_rectangular(table.rows, table.place))
    own = None if table.labels is None else _unified(table.labels)
    _refuse_missing(array, table.place)
    if not _are_labels(array, own or labels, table.place):
        rows = _whole(array, table.place)
        if own is not None and labels and tuple(labels) != own:
            return _by_label(_named(rows, own, table.place), tuple(labels), table.place)
        if labels is not None:
            return rows, tuple(labels) or None
        return rows, own
    if labels is not None and not labels:
        _fail(
            f"{at_start(table.place(0))}: anchor {array[0, 0]!r} is a label, but items must be "
            "given by number here."
        )
    return _by_label(array, tuple(labels or own or ()), table.place)


def _fail(message: str) -> NoReturn:
    raise InvalidTriplets(message)


def _checked(array: Rows) -> Rows:
    if array.size == 0:
        _fail("There are no answers: at least one triplet (anchor, nearer, farther) is needed.")
    if array.ndim != 2 or array.shape[1] != 3:
        _fail(
            f"Answers have shape {array.shape}, but must have three columns: "
            "anchor, nearer, farther."
        )
    if array.dtype.kind not in "iufOUS":
        _fail(f"Items must be whole numbers or labels, not {array.dtype.name}.")
    return array


def _rectangular(cells: Any, place: Place) -> Rows:
    """Convert an array-like to a two-dimensional array; errors name ragged rows."""
    if isinstance(cells, np.ndarray):
        return cells
    if isinstance(cells, (str, bytes)):
        _fail(f"Answers must be rows of three items, not {cells!r:.60}.")
    try:
        rows = [_row(row, number, place) for number, row in enumerate(cells)]
    except TypeError:
        _fail(f"Answers must be rows of three items, not {cells!r:.60}.")
    kinds = {type(cell) for row in rows for cell in row}
    if all(issubclass(kind, (int, float, np.integer, np.floating)) for kind in kinds):
        whole = all(issubclass(kind, (int, np.integer)) for kind in kinds)
        if not any(abs(cell) >= 2**62 for row in rows for cell in row):
            return np.array(rows, dtype=np.int64 if whole else float)
    return np.array(rows, dtype=object)


def _row(row: Any, number: int, place: Place) -> list[Any]:
    # Iterating would give a text's characters, a set in arbitrary order, a mapping's keys.
    if isinstance(row, (str, bytes, set, frozenset, dict)):
        _fail(f"{at_start(place(number))} is {row!r:.60}, but must be three items in order.")
    cells = list(row)
    if len(cells) != 3:
        _fail(
            f"Ragged answers: {place(number)} has {len(cells)} values, but each row must have "
            "three: anchor, nearer, farther."
        )
    for cell in cells:
        if isinstance(cell, (bool, np.bool_)) or not (
            isinstance(cell, (str, int, float, np.integer, np.floating)) or is_missing(cell)
        ):
            _fail(f"Items must be numbers or labels: {place(number)} has {cell!r:.60}.")
    return cells


def _refuse_missing(array: Rows, place: Place) -> None:
    if array.dtype.kind in "iu":
        return
    missing = (
        np.isnan(array)
        if array.dtype.kind == "f"
        else np.array([[is_missing(cell) for cell in row] for row in array])
    )
    if missing.any():
        row, column = (int(at) for at in np.argwhere(missing)[0])
        cell = str(array[row, column]).strip()
        what = f" {cell} is missing or not a number" if cell else " is missing"
        _fail(f"{at_start(place(row))}: {COLUMNS[column]}{what}. Omit rows without an answer.")


def _are_labels(array: Rows, labels: Sequence[str] | None, place: Place) -> bool:
    if array.dtype.kind in "iuf":
        return False
    if labels and all(isinstance(cell, (str, bytes)) for cell in array.ravel()):
        return True
    is_label = np.array([[not is_number(cell) for cell in row] for row in array])
    for row, column in np.argwhere(is_label):
        if not isinstance(array[row, column], (str, bytes)):
            _fail(
                f"Items must be numbers or labels: {place(int(row))} has "
                f"{array[row, column]!r:.60}."
            )
    if is_label.any() and not is_label.all():
        # Report a cell of the rarer kind, which is probably the mistake.
        odd = is_label if is_label.mean() <= 0.5 else ~is_label
        row, column = np.argwhere(odd)[0]
        _fail(
            f"Labels and numbers are mixed: {place(int(row))} has {array[row, column]!r} as "
            f"{COLUMNS[column]}. Items must be all numbers (from 0) or all labels."
        )
    return bool(is_label.all())


def _whole(array: Rows, place: Place) -> Rows:
    """Convert numbers, or texts of numbers, to whole numbers."""
    if array.dtype.kind in "iu":
        return array
    values = (
        array if array.dtype.kind == "f" else np.array([[*map(float_of, row)] for row in array])
    )
    bad = ~np.isfinite(values) | (values != np.floor(values))
    if bad.any():
        row, column = (int(at) for at in np.argwhere(bad)[0])
        _fail(
            f"{at_start(place(row))}: {COLUMNS[column]} {values[row, column]} is not a whole "
            "number. Items are numbered 0, 1, 2, …"
        )
    # Larger numbers are out of range anyway, and the error should show them unchanged.
    return values.astype(np.int64) if np.abs(values).max() < 2**53 else values


def _by_label(array: Rows, labels: tuple[str, ...], place: Place) -> tuple[Rows, Labels]:
    cells = [[text_of(cell) for cell in row] for row in array]
    text = {cell: unified(cell) for cell in {cell for row in cells for cell in row}}
    known = labels or tuple(sorted(set(text.values())))
    if not labels:
        refuse_look_alikes(known)
    number = {unified(label): index for index, label in enumerate(known)}
    if len(number) < len(known):
        _refuse_twice(known)
    rows = np.empty(array.shape, dtype=np.int64)
    for row, three in enumerate(cells):
        for column, cell in enumerate(three):
            item = number.get(text[cell])
            if item is None:
                _fail(
                    f"{at_start(place(row))}: {COLUMNS[column]} {cell!r} is not among the "
                    f"{len(known)} known labels{_hint(text[cell], known)}."
                )
            rows[row, column] = item
    return rows, known


def refuse_look_alikes(labels: Sequence[str]) -> None:
    """Reject labels that look the same: probably one item, written in two ways."""
    pair = look_alike(labels)
    if pair is not None:
        first, second = pair
        _fail(
            f"The labels {first!r}{peculiar(first, second)} and {second!r}"
            f"{peculiar(second, first)} look the same. Write them the same way, or make them "
            "distinguishable."
        )


def _hint(label: str, known: Sequence[str]) -> str:
    for other in known:
        if look_alike((other, label)) is not None:
            return (
                f"; {label!r}{peculiar(label, other)} looks like {other!r}{peculiar(other, label)}"
            )
    return ""


def _unified(labels: Sequence[str]) -> tuple[str, ...]:
    known = tuple(unified(label) for label in labels)
    _refuse_twice(known)
    refuse_look_alikes(known)
    return known


def _refuse_twice(labels: Sequence[str]) -> None:
    seen: set[str] = set()
    for label in map(unified, labels):
        if label in seen:
            _fail(f"The label {label!r} occurs twice in the list of labels.")
        seen.add(label)


def _named(rows: Rows, labels: tuple[str, ...], place: Place) -> Rows:
    bad = (rows < 0) | (rows >= len(labels))
    if bad.any():
        row, column = (int(at) for at in np.argwhere(bad)[0])
        _fail(
            f"{at_start(place(row))}: {COLUMNS[column]} {rows[row, column]} is out of range: there "
            f"are {len(labels)} labels."
        )
    return np.array(labels, dtype=object)[rows]


def names_of(rows: Rows, table: AnswerTable, count: int) -> Labels:
    """Labels of `count` numbered items, if the table has labels beside the numbers."""
    if table.names is None:
        return None
    label_of: dict[int, str] = {}
    for row, (numbers, names) in enumerate(zip(rows.tolist(), table.names.tolist(), strict=True)):
        for number, name in zip(numbers, names, strict=True):
            label = unified(text_of(name))
            if label_of.setdefault(number, label) != label:
                _fail(
                    f"{at_start(table.place(row))}: item {number} has the label {label!r}, but "
                    f"{label_of[number]!r} in an earlier row."
                )
    return _unified([label_of.get(number, f"item {number}") for number in range(count)])
