"""Columns of tables whose rows are trials of several comparisons, recognised by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lore_active.data.columns import is_standard, only_column
from lore_active.data.headers import (
    CHOICE_OF_ODD,
    CHOSEN_PREFIXES,
    KIND,
    MASK_ZERO,
    NUMBER_OF_PICKS,
    OPTION_PREFIXES,
    RANKED,
    ROLES,
    STIMULUS_SET,
    normal,
)
from lore_active.errors import InvalidTriplets
from lore_active.questions.kinds import ODD_ONE_OUT, TRIPLET, Kind

NUMBERED = re.compile(r"([a-z]+)([0-9]+)")


@dataclass(frozen=True)
class TrialColumns:
    """Indices of the columns of a table of trials; None or empty where there is none.

    table: an array with the query and all references. anchor, options: what was shown. chosen: the
    picks in order. choice: the only pick. picks, ranked, kind: how many were picked, and whether in
    order. mask_zero: whether 0 is no item.
    """

    table: int | None
    anchor: int | None
    options: tuple[int, ...]
    chosen: tuple[int, ...]
    choice: int | None
    picks: int | None
    ranked: int | None
    kind: int | None
    mask_zero: int | None


def recognised(header: Sequence[str], stated: Kind | None = None) -> TrialColumns | None:
    """Columns of a table of trials; None if these are not the names of such columns.

    stated: the kind of question, if the caller says so.
    """
    names = [normal(name) for name in header]
    if is_standard(header):
        return None

    def one(wanted: Sequence[str]) -> int | None:
        known = {normal(name) for name in wanted}
        return only_column(header, names, wanted) if known & set(names) else None

    table = one(STIMULUS_SET)
    options = () if table is not None else _numbered(header, OPTION_PREFIXES)
    if table is None and len(options) < 2:
        return None
    chosen, picks = _numbered(header, CHOSEN_PREFIXES), one(NUMBER_OF_PICKS)
    anchor = one(ROLES["anchor"]) if table is None else None
    of_odd, named = one(CHOICE_OF_ODD), one(KIND)
    if table is None and anchor is None:
        known = of_odd is not None or named is not None or stated == ODD_ONE_OUT
        if len(options) != 3 or not known:
            return None
    elif table is None and len(options) == 2:
        other = stated not in (None, TRIPLET)
        if not (chosen or picks is not None or other):
            return None
    choice = None
    if not chosen:
        choice = of_odd if of_odd is not None else one(ROLES["chosen"])
    return TrialColumns(
        *(table, anchor, options, chosen, choice, picks),
        *(one(RANKED), named, one(MASK_ZERO)),
    )


def _numbered(header: Sequence[str], prefixes: Sequence[str]) -> tuple[int, ...]:
    """Columns with one of these names and a number, in the order of the numbers."""
    groups: dict[str, list[tuple[int, int]]] = {}
    for k, name in enumerate(header):
        matched = NUMBERED.fullmatch(normal(name))
        if matched is not None and matched[1] in prefixes:
            groups.setdefault(matched[1], []).append((int(matched[2]), k))
    if not groups:
        return ()
    first, *others = sorted(groups, key=lambda name: (-len(groups[name]), prefixes.index(name)))
    if others and len(groups[others[0]]) == len(groups[first]) > 2:
        column, other = (str(header[groups[name][0][1]]) for name in (first, others[0]))
        raise InvalidTriplets(
            f"The columns {column!r}, … and {other!r}, … could both be what was shown: rename or "
            "remove all but one of these sets."
        )
    numbered = sorted(groups[first])
    begin = numbered[0][0]
    if begin > 1 or [number for number, _ in numbered] != [*range(begin, begin + len(numbered))]:
        if len(numbered) < 3:
            return ()
        raise InvalidTriplets(
            f"The columns {', '.join(repr(str(header[k])) for _, k in numbered)} must be numbered "
            "from 1 (or 0) without gaps."
        )
    return tuple(k for _, k in numbered)
