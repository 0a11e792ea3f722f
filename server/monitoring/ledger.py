"""All answers as columns, kept in memory and grown by what is new: figures cost no long queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lore_active.types import Flags, Floats
from server.store.monitoring import AnswerRow

Numbers = NDArray[np.int64]
PURPOSES = ("cover", "active", "random", "catch", "repeat")
CATCH, REPEAT = PURPOSES.index("catch"), PURPOSES.index("repeat")
NOTHING = -1
FIRST_ROOM = 1024


@dataclass(frozen=True)
class Columns:
    """The answers so far; items are numbers, and NOTHING where there is none."""

    seq: Numbers
    participant: Numbers
    purpose: Numbers
    anchor: Numbers
    left: Numbers
    right: Numbers
    chosen: Numbers
    nearer: Numbers
    before: Numbers
    received_at: Numbers
    blurred: Numbers
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
    def other(self) -> Numbers:
        """The option that was not chosen."""
        return np.where(self.chosen == self.left, self.right, self.left)


class Ledger:
    """Columns that grow; appending costs what is appended."""

    WHOLE = (
        "seq",
        "participant",
        "purpose",
        "anchor",
        "left",
        "right",
        "chosen",
        "nearer",
        "before",
        "received_at",
        "blurred",
    )

    def __init__(self) -> None:
        self._whole = np.zeros((len(self.WHOLE), FIRST_ROOM), dtype=np.int64)
        self._rt = np.zeros(FIRST_ROOM)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def last(self) -> int:
        """The last answer taken in."""
        return int(self._whole[0, self._count - 1]) if self._count else 0

    def append(self, rows: Sequence[AnswerRow]) -> None:
        """Take in the next answers."""
        if not rows:
            return
        end = self._count + len(rows)
        if end > len(self._rt):
            room = max(end, 2 * len(self._rt)) - len(self._rt)
            self._whole = np.pad(self._whole, ((0, 0), (0, room)))
            self._rt = np.pad(self._rt, (0, room))
        self._whole[:, self._count : end] = np.array([_whole(row) for row in rows]).T
        times = [np.nan if row.rt_ms is None else row.rt_ms for row in rows]
        self._rt[self._count : end] = times
        self._count = end

    def columns(self) -> Columns:
        """A view of everything taken in."""
        whole = self._whole[:, : self._count]
        rt = self._rt[: self._count]
        # What a page says about time is its own claim.
        sane = np.where(np.isfinite(rt) & (rt >= 0.0), rt, np.nan)
        return Columns(**dict(zip(self.WHOLE, whole, strict=True)), rt_ms=sane)


def _whole(row: AnswerRow) -> tuple[int, ...]:
    chosen = {"left": row.left, "right": row.right}.get(row.side, NOTHING)
    return (
        row.seq,
        row.participant,
        PURPOSES.index(row.purpose),
        row.anchor,
        row.left,
        row.right,
        chosen,
        NOTHING if row.nearer is None else row.nearer,
        NOTHING if row.before is None else row.before,
        row.received_at,
        row.blurred,
    )
