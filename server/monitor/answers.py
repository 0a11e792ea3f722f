"""All answers as columns in memory, updated incrementally, so that figures need no long queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.data.row_table import NOTHING, RowTable, item_type
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

    `as_known`: whether the option known to be nearer was chosen; `as_before`: whether the choice is
    the same as when the participant first answered the question; NOTHING where that does not apply.
    `rt_ms` is the response time measured by the page (nan: none), `elapsed_ms` the time from
    serving the question to receiving the answer (-1: unknown). `predicted` is the probability of
    the left option under the model before the answer (nan: no model).
    """

    seq: Numbers
    participant: Whole
    purpose: Whole
    anchor: Whole
    left: Whole
    right: Whole
    chosen: Whole
    as_known: Whole
    as_before: Whole
    received_at: Numbers
    blurred: Whole
    timing: Whole
    elapsed_ms: Whole
    rt_ms: NDArray[Any]
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
        return np.asarray(self.chosen != NOTHING)

    @property
    def other(self) -> Whole:
        """The option that was not chosen."""
        return np.where(self.chosen == self.left, self.right, self.left)


class AnswerColumns:
    """Growing columns of answers, 45 bytes each; appending takes time only for what is appended."""

    def __init__(self, items: int) -> None:
        item = item_type(items)
        self._held = RowTable(
            [
                *((name, np.int64) for name in ("seq", "received_at")),
                # Single precision is more exact than any page can measure.
                *((name, np.float32) for name in ("rt_ms", "predicted")),
                ("participant", np.int32),
                *((name, item) for name in ("anchor", "left", "right", "chosen")),
                ("elapsed_ms", np.int32),
                *((name, np.int8) for name in ("purpose", "as_known", "as_before")),
                *((name, np.int8) for name in ("blurred", "timing")),
            ]
        )

    def __len__(self) -> int:
        return len(self._held)

    @property
    def last(self) -> int:
        """The number of the last answer appended; 0 if there is none."""
        return int(self._held.rows["seq"][-1]) if len(self._held) else 0

    def append(self, rows: Sequence[AnswerRow], predicted: Floats) -> None:
        """Append the next answers with their predictions."""
        pairs = zip(rows, predicted.tolist(), strict=True)
        self._held.extend([_numbers(row, share) for row, share in pairs])

    def columns(self) -> Columns:
        """A view of all answers appended so far."""
        rows = self._held.rows
        return Columns(**{name: rows[name] for name in Columns.__dataclass_fields__})


def _numbers(row: AnswerRow, predicted: float) -> tuple[float, ...]:
    chosen = {"left": row.left, "right": row.right}.get(row.side, NOTHING)
    rt = nan if row.rt_ms is None else row.rt_ms
    possible = isfinite(rt) and rt >= 0.0
    timing = UNTIMED if not row.measured else WHOLE if possible and row.onset else PARTIAL
    return (
        *(row.seq, row.received_at),
        # Pages measure their own times, so these need not be valid.
        rt if possible else nan,
        predicted,
        row.participant,
        *(row.anchor, row.left, row.right, chosen),
        _elapsed(row.served_at, row.received_at),
        PURPOSES.index(row.purpose),
        *(NOTHING if known is None else known == chosen for known in (row.nearer, row.before)),
        bool(row.blurred),
        timing,
    )


def _elapsed(served_at: int, received_at: int) -> int:
    # For erased participants only the dates are kept.
    erased = served_at % DAY_MS == received_at % DAY_MS == 0
    # No duration can be computed across a clock that was set back.
    return -1 if erased or received_at < served_at else min(received_at - served_at, MAX_MS)
