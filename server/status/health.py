"""Health of a study's storage: whether answers can be stored, and the worker's last heartbeat.

Callers get a result at once: whatever may take long or hang runs in a thread of its own.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from server.store import heartbeat
from server.store.database import Database
from server.store.sqlite.errors import StoreError, WriterFailed

# Results are reused for this long.
FRESH_SECONDS = 4.0
WAIT_SECONDS = 0.02
# A commit that takes longer will not recover by itself.
STUCK_SECONDS = 10.0


@dataclass(frozen=True)
class StorageState:
    """`error` is why nothing can be stored, since `seconds`; None if storage works."""

    writer: Literal["ok", "failed", "stuck"]
    error: type[StoreError] | None
    seconds: float
    heartbeat_seconds: float | None


class Checkup:
    """Checks the database of one study."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self.database = database
        self.clock = clock
        self._heartbeat_at: int | None = None
        self._looked_at = float("-inf")
        self._looking = False
        self._news = threading.Condition()

    def state(self) -> StorageState:
        """The current state, within 20 milliseconds even if the database hangs."""
        with self._news:
            old = time.monotonic() - self._looked_at > FRESH_SECONDS
            if old and not self._looking:
                self._looking = True
                threading.Thread(target=self._look, name="checkup", daemon=True).start()
                self._news.wait(WAIT_SECONDS)
            heard = self._heartbeat_at
        age = None if heard is None else max(0, self.clock() - heard) / 1000
        return StorageState(*self._writer(), age)

    def _writer(self) -> tuple[Literal["ok", "failed", "stuck"], type[StoreError] | None, float]:
        now, writer = time.monotonic(), self.database.writer
        failure, busy_since = writer.failure, writer.busy_since
        if busy_since is not None and now - busy_since > STUCK_SECONDS:
            return "stuck", WriterFailed, now - busy_since
        if failure is not None:
            return "failed", type(failure.error), now - failure.since
        return "ok", None, 0.0

    def _look(self) -> None:
        try:
            # After a recent commit there is no need to test the database.
            if time.monotonic() - self.database.writer.written_at > FRESH_SECONDS:
                with contextlib.suppress(StoreError):
                    self.database.writer.probe()
            with contextlib.suppress(StoreError):
                heard = self.database.read_apart(heartbeat.heard)
                self._heartbeat_at = None if heard is None else heard[0]
        finally:
            with self._news:
                self._looking, self._looked_at = False, time.monotonic()
                self._news.notify_all()
