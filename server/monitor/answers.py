"""All answers as columns, kept in memory and grown by what is new: figures cost no long queries."""

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
# Of whatever size is large enough.
Whole = NDArray[Any]
PURPOSES = ("cover", "active", "random", "catch", "repeat")
CATCH, REPEAT = PURPOSES.index("catch"), PURPOSES.index("repeat")
# What a page said about time: nothing, all that it should, or less.
UNTIMED, WHOLE, PARTIAL = range(3)
# About three weeks; nothing depends on how much longer it was.
MAX_MS = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Columns:
    """The answers so far; items are numbers, and NOTHING where there is none.

    `as_known` and `as_before` tell whether the option was chosen that is known to be nearer, and
    the one that was chosen when the same person was asked first; NOTHING where there is no such.
    `rt_ms` is what the page says that the answer took (nan: nothing), `elapsed_ms` how long it was
    from the server's question to the answer's arrival (-1: unknown). `predicted` is the probability
    of the left option by the model that was there before (nan: none).
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
        """Answers that name an option: no skips and time-outs."""
        return np.asarray(self.chosen != NOTHING)

    @property
    def other(self) -> Whole:
        """The option that was not chosen."""
        return np.where(self.chosen == self.left, self.right, self.left)


class AnswerColumns:
    """Columns that grow, 45 bytes an answer; appending costs what is appended."""

    def __init__(self, items: int) -> None:
        item = item_type(items)
        self._held = RowTable(
            [
                *((name, np.int64) for name in ("seq", "received_at")),
                # Single precision tells apart what no page can: microseconds.
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
        """The last answer taken in."""
        return int(self._held.rows["seq"][-1]) if len(self._held) else 0

    def append(self, rows: Sequence[AnswerRow], predicted: Floats) -> None:
        """Take in the next answers, and what was predicted of them."""
        pairs = zip(rows, predicted.tolist(), strict=True)
        self._held.extend([_numbers(row, share) for row, share in pairs])

    def columns(self) -> Columns:
        """A view of everything taken in."""
        rows = self._held.rows
        return Columns(**{name: rows[name] for name in Columns.__dataclass_fields__})


def _numbers(row: AnswerRow, predicted: float) -> tuple[float, ...]:
    chosen = {"left": row.left, "right": row.right}.get(row.side, NOTHING)
    rt = nan if row.rt_ms is None else row.rt_ms
    possible = isfinite(rt) and rt >= 0.0
    said = UNTIMED if not row.measured else WHOLE if possible and row.onset else PARTIAL
    return (
        *(row.seq, row.received_at),
        # What a page says about time is its own claim.
        rt if possible else nan,
        predicted,
        row.participant,
        *(row.anchor, row.left, row.right, chosen),
        _elapsed(row.served_at, row.received_at),
        PURPOSES.index(row.purpose),
        *(NOTHING if known is None else known == chosen for known in (row.nearer, row.before)),
        bool(row.blurred),
        said,
    )


def _elapsed(served_at: int, received_at: int) -> int:
    # Of participants who were erased only the days are left.
    erased = served_at % DAY_MS == received_at % DAY_MS == 0
    # A clock that was set back says nothing.
    return -1 if erased or received_at < served_at else min(received_at - served_at, MAX_MS)
