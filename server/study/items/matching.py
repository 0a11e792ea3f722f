"""Matching of a file's answers to a study's items, by name or number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, Literal

import numpy as np

from lore_active.data.columns import AnswerTable, at_start
from lore_active.data.comparisons import first_nearer, identified, weights_of
from lore_active.data.lookalikes import appearance, peculiar, unified
from lore_active.data.triplets import MAX_REPEATED
from lore_active.data.values import is_number
from lore_active.errors import InvalidTriplets
from server.study.config import Item

By = Literal["auto", "name", "number"]
# At most this many are listed; the rest is counted.
MAX_SAID = 20


@dataclass(frozen=True)
class Matched:
    """Rows (anchor, nearer, farther) of item numbers; `by` says how items were matched.

    `trials` has the number of the trial of each row, if some trials have several rows.
    """

    rows: list[tuple[int, int, int]]
    by: Literal["name", "number"]
    trials: tuple[int, ...] = ()

    @property
    def answers(self) -> int:
        """Number of answers; the rows of one trial are one."""
        return len(set(self.trials)) or len(self.rows)


def matched(table: AnswerTable, items: Sequence[Item], by: By = "auto") -> Matched:
    """Match the table's answers to these items; report everything that does not match at once.

    Names are an item's key or, if unique, its label, text or file name. Numbers count the items
    from 0. With `auto`, names are used if all are known.
    """
    known, count = _names(items), len(items)
    cells, named = _cells(table)
    if by == "auto":
        # If some names are known, the others are errors to be reported.
        if not named and table.names is not None and _any(table.names, known):
            cells, named = _listed_rows(table.names), True
        numeric = all(_whole(cell) is not None for row in cells for cell in row)
        by = "name" if named or not numeric or _all(cells, known) else "number"
    elif by == "name" and not named and table.names is not None:
        cells = _listed_rows(table.names)
    swapped = ~first_nearer(table, None, len(cells))
    cells = [
        [a, j, i] if swap else [a, i, j] for (a, i, j), swap in zip(cells, swapped, strict=True)
    ]

    def find(cell: Any) -> int | None:
        if by == "name":
            return known.get(unified(str(cell)))
        number = _whole(cell)
        return number if number is not None and 0 <= number < count else None

    display_items = {appearance(key): key for key in known} if by == "name" else {}

    def hint(name: str) -> str:
        other = display_items.get(appearance(name))
        if other is None:
            return ""
        return f"{peculiar(name, other)}, which looks like {other!r}{peculiar(other, name)}"

    rows = _matched_rows(table, cells, find, count, by, hint)
    times, trials = _times(table, len(rows)), _trials(table)
    repeated = [at for at, count in enumerate(times) for _ in range(count)]
    return Matched(
        [rows[at] for at in repeated], by, tuple(trials[at] for at in repeated if trials)
    )


def _trials(table: AnswerTable) -> list[int]:
    """Number the trials; empty if each row is a trial of its own."""
    if table.trials is None:
        return []
    numbers = identified(table, len(table.trials))[0].tolist()
    return numbers if len(set(numbers)) < len(numbers) else []


def _cells(table: AnswerTable) -> tuple[list[list[Any]], bool]:
    """Return the cells, and whether they are names: arrays may come with labels."""
    rows = _listed_rows(table.rows)
    for at, row in enumerate(rows):
        if len(row) != 3:
            place = table.place(at)
            raise InvalidTriplets(
                f"{place[:1].upper()}{place[1:]} has {len(row)} values, but each row must have "
                "three: anchor, nearer, farther."
            )
    if not rows:
        raise InvalidTriplets(f"{table.name} contains no answers.")
    if table.labels is None:
        return rows, False
    labels = table.labels

    def name(cell: Any) -> Any:
        number = _whole(cell)
        return labels[number] if number is not None and 0 <= number < len(labels) else cell

    return [[name(cell) for cell in row] for row in rows], True


def _listed_rows(rows: Any) -> list[list[Any]]:
    return [list(row) for row in (rows.tolist() if isinstance(rows, np.ndarray) else rows)]


def _matched_rows(
    table: AnswerTable,
    cells: list[list[Any]],
    find: Callable[[Any], int | None],
    count: int,
    by: str,
    hint: Callable[[str], str],
) -> list[tuple[int, int, int]]:
    unknown: dict[str, list[int]] = defaultdict(list)
    duplicated: list[int] = []
    rows = []
    for at, row in enumerate(cells):
        numbers = [find(cell) for cell in row]
        for cell, number in zip(row, numbers, strict=True):
            if number is None:
                unknown[str(cell)].append(at)
        if None not in numbers and len(set(numbers)) < 3:
            duplicated.append(at)
        rows.append(numbers)
    errors = []
    if unknown:
        what = "item is" if len(unknown) == 1 else "items are"
        rule = f"; it has {count}, numbered 0 to {count - 1}" if by == "number" else ""
        errors.append(
            f"{len(unknown)} {what} not in this study{rule}: "
            + _listed(
                [f"{name!r} ({_places(table, at)}){hint(name)}" for name, at in unknown.items()]
            )
        )
    if duplicated:
        errors.append(f"the same item occurs twice in {_places(table, duplicated)}")
    if errors:
        raise InvalidTriplets(f"{table.name}: {'; '.join(errors)}.")
    return [(a, i, j) for a, i, j in rows if a is not None and i is not None and j is not None]


def _listed(parts: Sequence[str]) -> str:
    rest = len(parts) - MAX_SAID
    return ", ".join(parts[:MAX_SAID]) + (f" and {rest} more" if rest > 0 else "")


def _places(table: AnswerTable, at: Sequence[int]) -> str:
    """Describe the position of rows, as in `line 4 and 12 more`."""
    first = table.place(at[0]).removesuffix(f" of {table.name}")
    return first if len(at) == 1 else f"{first} and {len(at) - 1} more"


def _names(items: Sequence[Item]) -> Mapping[str, int]:
    """Map every unique name to an item number; keys take precedence."""
    keys = {unified(item.key): number for number, item in enumerate(items)}
    others: dict[str, set[int]] = defaultdict(set)
    for number, item in enumerate(items):
        for name in (item.label, item.text, item.file.name if item.file else ""):
            if name:
                others[unified(name)].add(number)
    alone = {name: next(iter(found)) for name, found in others.items() if len(found) == 1}
    return {**alone, **keys}


def _all(rows: Any, known: Mapping[str, int]) -> bool:
    return all(unified(str(cell)) in known for row in rows for cell in row)


def _any(rows: Any, known: Mapping[str, int]) -> bool:
    return any(unified(str(cell)) in known for row in rows for cell in row)


def _whole(cell: Any) -> int | None:
    number = float(cell) if is_number(cell) else nan
    return int(number) if number.is_integer() else None


def _times(table: AnswerTable, count: int) -> list[int]:
    """How often each row counts: its weight, which must be an integer."""
    if table.weights is None:
        return [1] * count
    weights = weights_of(table, None, count).tolist()
    for at, weight in enumerate(weights):
        if not weight.is_integer():
            raise InvalidTriplets(
                f"{at_start(table.place(at))}: weight {weight:g} is not a whole number of answers."
            )
    if sum(weights) > MAX_REPEATED:
        raise InvalidTriplets(
            f"The weights of {table.name} add up to {sum(weights):.0f} answers, but at most "
            f"{MAX_REPEATED} are allowed."
        )
    return [int(weight) for weight in weights]
