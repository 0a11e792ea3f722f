"""How long participants took: from their arrival to their last answer, long pauses left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from server.monitoring.ledger import Columns, Numbers
from server.store.monitoring import Person

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


class SessionTimes:
    """Time of every participant, added up; reading on costs what is new.

    A pause counts as `idle_minutes` at most: who comes back after lunch has not worked for so long.
    """

    def __init__(self, idle_minutes: int) -> None:
        self._longest = idle_minutes * MINUTE_MS
        self._read = 0
        self._last: Numbers = np.zeros(0, dtype=np.int64)
        self.ms: Numbers = np.zeros(0, dtype=np.int64)

    def update(self, columns: Columns, people: Sequence[Person]) -> None:
        """Take in the answers that came since the last reading; `ms` is by participant's number."""
        known = len(self.ms)
        size = max((one.id for one in people), default=-1) + 1
        if size > known:
            grown = np.zeros(size - known, dtype=np.int64)
            self._last, self.ms = np.append(self._last, grown), np.append(self.ms, grown)
            for one in people:
                if one.id >= known:
                    self._last[one.id] = one.arrived_at
        new = columns.since(self._read)
        self._read = len(columns.seq)
        order = np.lexsort((new.received_at, new.participant))
        who, at = new.participant[order], new.received_at[order]
        first = np.append(True, who[1:] != who[:-1])[: len(who)]
        before = np.where(first, self._last[who], np.roll(at, 1))
        np.add.at(self.ms, who, np.clip(at - before, 0, self._longest))
        last = np.append(first[1:], True)[: len(who)]
        self._last[who[last]] = at[last]
