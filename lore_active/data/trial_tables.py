"""Trials of several comparisons as they are published, each row one trial.

The odd one out (THINGS; Hebart et al., 2020): three items and the choice, or the odd one last.
Grids (psiz; Roads & Mozer, 2019): the query, its references in the order in which they were picked,
those that were not, and the number of picks. Or, as this program writes them, the options as they
were shown and those that were picked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.data.columns import (
    AnswerTable,
    Sheet,
    answers_in,
    at_start,
    identities_in,
    judgements_in,
    named_or_three,
    same_item,
    stacked,
    weights_in,
)
from lore_active.data.headers import PARTICIPANT
from lore_active.data.trial_columns import TrialColumns, recognised
from lore_active.data.trial_rows import TrialRows, Whole, fail, items_shown, not_given
from lore_active.data.values import float_of, is_number
from lore_active.errors import InvalidParameter
from lore_active.questions.kinds import ODD_ONE_OUT, TRIPLET, Kind, KindName, kind
from lore_active.wording import listed, many

FROM_ONE = "its item numbers count from 1"
SAY_WHICH = "pass --format rank-2-of-8, or the like (in Python, kind='rank-2-of-8')"


def trials_in(
    sheet: Sheet, simulated: bool = False, stated: Kind | None = None
) -> AnswerTable | None:
    """Read a table of trials by the names of its columns; None if the names are others.

    stated: the kind of question, if the caller says so.
    """
    at = recognised(sheet.header, stated)
    if at is None:
        return None
    if stated == TRIPLET:
        fail(f"The columns of {sheet.name} show trials with several options, not triplets.")
    shown = items_shown(sheet, at)
    kept, real = judgements_in(sheet, len(shown), simulated)
    reader = _Reader(sheet, at, kept, shown, stated)
    kinds = reader.read()
    if not len(kinds):
        fail(f"There are no answers in {sheet.name}.")
    rows, trial = _comparisons(reader.shown, kinds)
    source = reader.kept[trial]
    weights = weights_in(sheet, reader.kept, len(shown))
    participants = identities_in(sheet, PARTICIPANT, reader.kept, len(shown))
    different = sorted({trial_kind.label for trial_kind in kinds})
    return AnswerTable(
        sheet.name,
        rows,
        sheet.lines,
        None if weights is None else np.asarray(weights)[trial],
        left_out=real - len(reader.kept),
        simulated_left_out=len(shown) - real,
        kept=source,
        kind="answers",
        trials=source,
        participants=None if participants is None else participants[trial],
        source_rows=len(shown),
        reading=f"read as {many(len(kinds), 'trial')} of the kind {listed(different)}"
        + (f"; {FROM_ONE}" if reader.from_one else ""),
    )


def named_or_in_order(
    sheet: Sheet, simulated: bool = False, stated: Kind | None = None
) -> AnswerTable:
    """Read the answers of a sheet by the names of its columns, or by their order."""
    table = trials_in(sheet, simulated, stated)
    if table is None and stated is not None and stated != TRIPLET:
        refuse_comparisons(answers_in(sheet, simulated), stated)
        columns = [sheet.column(k) for k in range(len(sheet.header))]
        return trials_of_rows(sheet.name, stacked(columns), stated, sheet.lines)
    return named_or_three(sheet, simulated) if table is None else table


def refuse_comparisons(table: AnswerTable | None, stated: Kind | None) -> None:
    """Raise `InvalidTriplets` if these are comparisons, but other trials were expected."""
    if table is not None and stated is not None and stated != TRIPLET:
        fail(
            f"The columns of {table.name} are those of comparisons (anchor, nearer, farther), not "
            f"of trials of the kind {stated.label!r}: omit the kind."
        )


def trials_of_rows(
    name: str, rows: Any, stated: Kind, lines: Sequence[int] | None = None
) -> AnswerTable:
    """Read trials without column names: the query and its references in order, or the odd one last.

    Raises
    ------
    InvalidTriplets
        If the rows are not such trials.
    """
    order = "the query, the references in the order of choice, the others"
    for row, cells in enumerate(rows):
        if np.ndim(cells) != 1 or len(cells) != stated.items:
            place = Sheet(name, (), lambda _: np.empty(0), lines).place(row)
            fail(
                f"{at_start(place)} has {np.size(cells)} values, but a trial of the kind "
                f"{stated.label!r} has {stated.items}: "
                f"{order if stated.has_anchor else 'the odd one is the last'}."
            )
    held = rows if isinstance(rows, np.ndarray) else np.array([*rows], dtype=object)
    if not len(held):
        fail(f"There are no trials in {name or 'the source'}.")
    names = ["item_1", "item_2", "item_3"]
    if stated.has_anchor:
        names = ["query", *(f"reference_{k}" for k in range(1, stated.items))]
    table = trials_in(Sheet(name, names, lambda k: held[:, k], lines), stated=stated)
    assert table is not None
    return table


# Made once, not for each of many trials.
_labelled = cache(kind)


@cache
def _kind(name: KindName, options: int, pick: int) -> Kind:
    return Kind(name, options, pick)


def _comparisons(items: NDArray[Any], kinds: Sequence[Kind]) -> tuple[NDArray[Any], Whole]:
    """Comparisons of trials whose items are the anchor, the picks in order, and the others."""
    rows, trials = [], []
    number = {trial_kind: k for k, trial_kind in enumerate(dict.fromkeys(kinds))}
    kind_of = np.array([number[trial_kind] for trial_kind in kinds], dtype=np.int64)
    for trial_kind, k in number.items():
        trial = np.flatnonzero(kind_of == k)
        anchor, first = (0, 1) if trial_kind.has_anchor else (None, 0)
        options = range(first, first + trial_kind.options)
        at = np.array(trial_kind.comparisons(anchor, options, options[: trial_kind.pick]))
        rows.append(items[trial][:, at].reshape(-1, 3))
        trials.append(np.repeat(trial, len(at)))
    belongs = np.concatenate(trials)
    order = np.argsort(belongs, kind="stable")
    return np.concatenate(rows)[order], belongs[order]


class _Reader(TrialRows):
    """Reads trials; afterwards, `shown` has the picked options of each before the others."""

    def __init__(
        self,
        sheet: Sheet,
        at: TrialColumns,
        kept: Whole,
        shown: NDArray[Any],
        stated: Kind | None,
    ) -> None:
        super().__init__(sheet, at, kept, shown)
        self.stated, self.from_one = stated, False

    def read(self) -> list[Kind]:
        """The kind of each trial."""
        if self.at.choice is not None and not self.has_anchor:
            picks: Whole | None = self._sort_picks(self._odd_ones())
        elif self.at.chosen or self.at.choice is not None:
            picks = self._sort_picks(self._picked())
        else:
            picks = None
            if not self.has_anchor:
                # The odd one is the last of the three.
                self._sort_picks(np.full((len(self.shown), 1), 2))
        zero_is_none = self.zero_is_none()
        self.from_one |= zero_is_none
        empty = self.empty(zero_is_none)
        if not self.has_anchor:
            for row in np.flatnonzero(empty.any(axis=1))[:1]:
                self.refuse(row, "an item is missing")
            options = np.full(len(self.shown), 3)
        else:
            options = self.count_options(empty)
        self.refuse_repeated(empty)
        kinds = self._kinds(options, picks)
        if self.from_one:
            self.number_from_zero()
        return kinds

    # ---- which kind -----------------------------------------------------------------------------

    def _kinds(self, options: Whole, chosen: Whole | None) -> list[Kind]:
        stated = self._stated()
        if not self.has_anchor:
            for row, stated_kind in enumerate(stated or []):
                if stated_kind != ODD_ONE_OUT:
                    self.refuse(row, f"the kind is {stated_kind.label!r}, but there is no anchor")
            return [ODD_ONE_OUT] * len(options)
        said = {} if chosen is None else {"the chosen columns": chosen}
        if self.at.picks is not None:
            said[str(self.sheet.header[self.at.picks])] = self.whole(self.at.picks)
        if stated is not None:
            said["the kind"] = np.array([stated_kind.pick for stated_kind in stated])
        if not said:
            fail(
                f"The columns of {self.sheet.name} show up to {options.max()} options, but not how "
                f"many of them were picked: add the column n_select, or {SAY_WHICH}."
            )
        (source, picks), *others = said.items()
        for other, numbers in others:
            for row in np.flatnonzero(numbers != picks)[:1]:
                self.refuse(
                    row, f"{source} says {picks[row]} picks, but {other} says {numbers[row]}"
                )
        ordered = self._ordered(stated, picks)
        kinds = []
        for row, (count, pick) in enumerate(zip(options.tolist(), picks.tolist(), strict=True)):
            if stated is not None and (stated[row].options != count or not stated[row].has_anchor):
                self.refuse(
                    row, f"the kind is {stated[row].label!r}, but {count} options were shown"
                )
            try:
                kinds.append(_kind("rank" if ordered[row] else "choose", count, pick))
            except InvalidParameter as error:
                self.refuse(row, str(error).removesuffix("."))
        return kinds

    def _stated(self) -> list[Kind] | None:
        """The kind of each trial by a column or the caller."""
        if self.at.kind is None:
            return None if self.stated is None else [self.stated] * len(self.kept)
        kinds = []
        for row, cell in enumerate(self.cells(self.at.kind).tolist()):
            try:
                kinds.append(_labelled(str(cell).strip()))
            except InvalidParameter as error:
                self.refuse(row, str(error).removesuffix("."))
            if self.stated is not None and kinds[-1] != self.stated:
                self.refuse(row, f"the kind is {cell!r}, but should be {self.stated.label!r}")
        return kinds

    def _ordered(self, stated: list[Kind] | None, picks: Whole) -> NDArray[np.bool_]:
        """Whether the order of the picks is part of the answer; not of a single one."""
        several = picks > 1
        by_kind = (
            None if stated is None else np.array([stated_kind.ordered for stated_kind in stated])
        )
        if self.at.ranked is None:
            if by_kind is None and several.any():
                fail(
                    f"The columns of {self.sheet.name} do not say whether the order of the picks "
                    f"is part of the answer: add the column is_ranked, or {SAY_WHICH}."
                )
            return several if by_kind is None else several & by_kind
        ordered = self.true(self.at.ranked)
        if by_kind is not None:
            for row in np.flatnonzero(several & (ordered != by_kind))[:1]:
                self.refuse(
                    row, f"is_ranked is {ordered[row]}, but should be {by_kind[row]} by the kind"
                )
        return several & ordered

    # ---- what was picked ------------------------------------------------------------------------

    def _picked(self) -> list[list[int]]:
        """Places of the picked options in order, given as items; rows without any are omitted."""
        columns = self.at.chosen or ((self.at.choice,) if self.at.choice is not None else ())
        cells = zip(*(self.cells(k).tolist() for k in columns), strict=True)
        answered, picked = [], []
        for row, picks in enumerate(cells):
            given = [cell for cell in picks if not not_given(cell)]
            options = self.options(row)
            if any(not_given(cell) for cell in picks[: len(given)]):
                self.refuse(row, "a pick follows an empty one")
            places = []
            for cell in given:
                same = [k for k, option in enumerate(options) if same_item(cell, option)]
                if not same:
                    self.refuse(row, f"{cell!r} was picked, but is not among {self.named(row)}")
                places.append(same[0])
            if len(set(places)) < len(places):
                self.refuse(row, f"an option was picked twice: {', '.join(map(repr, given))}")
            if places:
                answered.append(row)
                picked.append(places)
        self.keep(answered)
        return picked

    def _odd_ones(self) -> list[list[int]]:
        """The place of the odd one of three items by a column with its position, or the item."""
        assert self.at.choice is not None
        name = str(self.sheet.header[self.at.choice])
        cells = self.cells(self.at.choice).tolist()
        self.keep([row for row, cell in enumerate(cells) if not not_given(cell)])
        cells = self.cells(self.at.choice).tolist()
        if not cells:
            return []
        same = [
            [k for k, item in enumerate(self.options(row)) if same_item(cell, item)]
            for row, cell in enumerate(cells)
        ]
        positions = [float_of(cell) if is_number(cell) else -1.0 for cell in cells]
        if not all(position in (0.0, 1.0, 2.0, 3.0) for position in positions):
            for row, places in enumerate(same):
                if not places:
                    self.refuse(
                        row, f"{name} is {cells[row]!r}, but the items are {self.named(row)}"
                    )
            return same
        low, high = min(positions), max(positions)
        if all(same) or (low == 0.0) == (high == 3.0):
            fail(
                f"The column {name!r} of {self.sheet.name} has numbers from {low:g} to {high:g}: "
                "they could be items, or positions from 0 or from 1. Omit it, put the odd one "
                "last, and pass --format odd-one-out (in Python, kind='odd-one-out')."
            )
        numbers = self.shown.ravel().tolist()
        # As published, items are numbered like positions.
        self.from_one = high == 3.0 and all(
            is_number(number) and float_of(number) for number in numbers
        )
        return [[int(position - (high == 3.0))] for position in positions]

    def _sort_picks(self, picked: Sequence[Sequence[int]] | Whole) -> Whole:
        """Put the picked options before the others, and count them."""
        first, shown = int(self.has_anchor), self.shown.copy()
        for row, places in enumerate(picked):
            others = [k for k in range(shown.shape[1] - first) if k not in places]
            shown[row, first:] = self.shown[row, [first + k for k in (*places, *others)]]
        self.shown = shown
        return np.array([len(places) for places in picked], dtype=np.int64)
