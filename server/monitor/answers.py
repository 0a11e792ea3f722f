"""All answers as columns in memory, updated incrementally, so that figures need no long queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.questions.kinds import Kind
from lore_active.row_table import NOTHING, RowTable, item_type
from lore_active.types import Flags, Floats
from server.store.erasure import DAY_MS
from server.store.summaries import AnswerRow

Numbers = NDArray[np.int64]
# Integers of any size.
Whole = NDArray[Any]
PURPOSES = ("cover", "active", "random", "catch", "repeat")
CATCH, REPEAT = PURPOSES.index("catch"), PURPOSES.index("repeat")
# Which timings a page reported: none, all, or some.
UNTIMED, WHOLE, PARTIAL = range(3)
# About three weeks: the largest value that the column holds.
MAX_MS = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Columns:
    """The answers so far; items are numbers, and NOTHING where there is none.

    `options`: (answers, options), as displayed; `picks`: (answers, picks) the places of the chosen
    ones, from 0, in the order of choice. `as_known`: whether the option known to be right was
    chosen; `shared`: how many of the choices are the same as when the participant first answered
    the question; NOTHING where that does not apply. `known` is the option known to be right.
    `rt_ms` is the response time measured by the page (nan: none), `elapsed_ms` the time from
    serving the question to receiving the answer (-1: unknown). `likely` is the place of the option
    that is most probably picked under the model before the answer, `predicted` the probability that
    it is (nan: no model).
    """

    seq: Numbers
    participant: Whole
    purpose: Whole
    anchor: Whole
    options: Whole
    picks: Whole
    known: Whole
    as_known: Whole
    shared: Whole
    received_at: Numbers
    blurred: Whole
    timing: Whole
    elapsed_ms: Whole
    rt_ms: NDArray[Any]
    likely: Whole
    predicted: NDArray[Any]

    def since(self, count: int) -> Columns:
        """All but the first `count`."""
        return Columns(**{name: column[count:] for name, column in self.__dict__.items()})

    def until(self, count: int) -> Columns:
        """The first `count`."""
        return Columns(**{name: column[:count] for name, column in self.__dict__.items()})

    @property
    def decided(self) -> Flags:
        """Answers with a choice, as opposed to skips and time-outs."""
        return np.asarray(self.picks[:, 0] != NOTHING)

    @property
    def first(self) -> Whole:
        """The place of the first choice; NOTHING if there is none."""
        return np.asarray(self.picks[:, 0])

    @property
    def picked(self) -> Flags:
        """(answers, options) whether each option was chosen."""
        places = np.arange(self.options.shape[1])
        return np.asarray((self.picks[:, :, None] == places).any(axis=1))

    @property
    def agrees(self) -> Flags:
        """Whether the option that was most probable under the model was chosen."""
        return np.asarray((self.picks == self.likely[:, None]).any(axis=1))


class AnswerColumns:
    """Growing columns of answers, about 50 bytes each for triplets; appending takes time only for
    what is appended."""

    def __init__(self, items: int, kind: Kind) -> None:
        item = item_type(items)
        self._items, self._kind = items, kind
        self._last = 0
        self._held = RowTable(
            [
                *((name, np.int64) for name in ("seq", "received_at")),
                # Single precision is more exact than any page can measure.
                *((name, np.float32) for name in ("rt_ms", "predicted")),
                ("participant", np.int32),
                *((name, item) for name in ("anchor", "known")),
                ("options", item, (kind.options,)),
                ("picks", np.int8, (kind.pick,)),
                ("elapsed_ms", np.int32),
                *((name, np.int8) for name in ("purpose", "as_known", "shared")),
                *((name, np.int8) for name in ("blurred", "timing", "likely")),
            ]
        )

    def __len__(self) -> int:
        return len(self._held)

    @property
    def last(self) -> int:
        """The number of the last answer read; 0 if there is none."""
        return self._last

    def usable(self, rows: Sequence[AnswerRow]) -> list[AnswerRow]:
        """The answers without those that refer to items that do not exist, as in a damaged file."""
        return [row for row in rows if self._is_whole(row)]

    def append(
        self, rows: Sequence[AnswerRow], likely: NDArray[np.int64], predicted: Floats
    ) -> None:
        """Append the next answers with their predictions."""
        parts = zip(rows, likely.tolist(), predicted.tolist(), strict=True)
        self._held.extend([_numbers(row, self._kind, *prediction) for row, *prediction in parts])

    def read_up_to(self, seq: int) -> None:
        """Note the last answer that was read, whether it could be appended or not."""
        self._last = seq

    def _is_whole(self, row: AnswerRow) -> bool:
        anchored = (row.anchor is not None) == self._kind.has_anchor
        shown = row.options if row.anchor is None else (row.anchor, *row.options)
        return (
            anchored
            and len(row.options) == self._kind.options
            and len(row.chosen) in (0, self._kind.pick)
            and all(0 <= item < self._items for item in shown)
            and set(row.chosen) <= set(row.options)
            and len(set(row.chosen)) == len(row.chosen)
        )

    def columns(self) -> Columns:
        """A view of all answers appended so far."""
        rows = self._held.rows
        return Columns(**{name: rows[name] for name in Columns.__dataclass_fields__})


def _numbers(row: AnswerRow, kind: Kind, likely: int, predicted: float) -> tuple[Any, ...]:
    chosen = set(row.chosen)
    rt = nan if row.rt_ms is None else row.rt_ms
    possible = isfinite(rt) and rt >= 0.0
    timing = UNTIMED if not row.measured else WHOLE if possible and row.onset else PARTIAL
    return (
        *(row.seq, row.received_at),
        # Pages measure their own times, so these need not be valid.
        rt if possible else nan,
        predicted,
        row.participant,
        NOTHING if row.anchor is None else row.anchor,
        row.known[0] if row.known else NOTHING,
        row.options,
        _places(row.options, row.chosen) or (NOTHING,) * kind.pick,
        _elapsed(row.served_at, row.received_at),
        PURPOSES.index(row.purpose),
        chosen.issuperset(row.known) if row.known else NOTHING,
        len(chosen.intersection(row.before)) if row.before else NOTHING,
        bool(row.blurred),
        timing,
        likely,
    )


def _places(options: Sequence[int], chosen: Sequence[int]) -> tuple[int, ...]:
    """The places of the chosen options in order; an item that is shown twice has two."""
    places: list[int] = []
    for item in chosen:
        places.append(
            next(k for k, option in enumerate(options) if option == item and k not in places)
        )
    return tuple(places)


def _elapsed(served_at: int, received_at: int) -> int:
    # For erased participants only the dates are kept.
    erased = served_at % DAY_MS == received_at % DAY_MS == 0
    # No duration can be computed across a clock that was set back.
    return -1 if erased or received_at < served_at else min(received_at - served_at, MAX_MS)
