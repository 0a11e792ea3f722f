"""All answers as columns, kept in memory and grown by what is new: figures cost no long queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.growing import NOTHING, Table, item_type
from lore_active.types import Flags, Floats
from server.store.monitoring import AnswerRow

Numbers = NDArray[np.int64]
# Of whatever size was large enough.
Whole = NDArray[Any]
PURPOSES = ("cover", "active", "random", "catch", "repeat")
CATCH, REPEAT = PURPOSES.index("catch"), PURPOSES.index("repeat")


@dataclass(frozen=True)
class Columns:
    """The answers so far; items are numbers, and NOTHING where there is none.

    `as_known` and `as_before` tell whether the option was chosen that is known to be nearer, and
    the one that was chosen when the same person was asked first; NOTHING where there is no such.
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
    rt_ms: Floats

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


class Ledger:
    """Columns that grow, 40 bytes an answer; appending costs what is appended."""

    def __init__(self, items: int) -> None:
        item = item_type(items)
        self._held = Table(
            [
                *((name, np.int64) for name in ("seq", "received_at")),
                ("rt_ms", np.float64),
                ("participant", np.int32),
                *((name, item) for name in ("anchor", "left", "right", "chosen")),
                *((name, np.int8) for name in ("purpose", "as_known", "as_before", "blurred")),
            ]
        )

    def __len__(self) -> int:
        return len(self._held)

    @property
    def last(self) -> int:
        """The last answer taken in."""
        return int(self._held.rows["seq"][-1]) if len(self._held) else 0

    def append(self, rows: Sequence[AnswerRow]) -> None:
        """Take in the next answers."""
        self._held.extend([_numbers(row) for row in rows])

    def columns(self) -> Columns:
        """A view of everything taken in."""
        rows = self._held.rows
        return Columns(**{name: rows[name] for name in Columns.__dataclass_fields__})


def _numbers(row: AnswerRow) -> tuple[float, ...]:
    chosen = {"left": row.left, "right": row.right}.get(row.side, NOTHING)
    rt = nan if row.rt_ms is None else row.rt_ms
    return (
        *(row.seq, row.received_at),
        # What a page says about time is its own claim.
        rt if isfinite(rt) and rt >= 0.0 else nan,
        row.participant,
        *(row.anchor, row.left, row.right, chosen),
        PURPOSES.index(row.purpose),
        *(NOTHING if known is None else known == chosen for known in (row.nearer, row.before)),
        bool(row.blurred),
    )
