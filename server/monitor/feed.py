"""The monitor's updates: reads what is new, and makes each update once for all viewers."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from server.monitor.reader import Reader
from server.store import collection, summaries
from server.store.database import Connection, Database
from server.store.sqlite.errors import StoreError
from server.study.config import LoadedStudy

# Pace and presence change without anything being stored, so updates expire after this long.
BUSY_MS, QUIET_MS = 10_000, 60_000
BUSY_FOR_MS = 65 * 60_000
# Minimum time between updates while answers come in; decisions are shown at once.
REST_MS = 3_000
# Monitors poll every few seconds; if none has for this long, what was read is released.
UNWATCHED_MS = 10 * 60_000
# Flagged and excluded participants first, then the latest; all are in the export.
MAX_ROWS = 1000


@dataclass(frozen=True)
class Update:
    """The monitor's data, ready to be sent; equal versions mean equal data."""

    version: str
    plain: bytes
    packed: bytes


class Feed:
    """Provides the latest update, shared by all viewers of a study."""

    def __init__(self, database: Database, study: LoadedStudy, clock: Callable[[], int]) -> None:
        self.database = database
        self.study = study
        self.clock = clock
        self._lock = threading.Lock()
        self._reader = Reader(database, study)
        self._data: dict[str, Any] = {}
        self._updates: dict[bool, Update] = {}
        self._key = _Key("", "")
        self._read_at = 0
        self._asked_at: int | None = None

    def update(self, with_names: bool, error: type[StoreError] | None = None) -> Update:
        """The latest update; `with_names` includes recruitment IDs and comments.

        `error` is why nothing can be stored; it is shown even if nothing can be read either.
        """
        self._asked_at = self.clock()
        made = self._updates.get(with_names)
        # While an update is being made, others get the previous one, so that no thread waits.
        if not self._lock.acquire(blocking=made is None):
            assert made is not None
            return made
        try:
            now = self.clock()
            key = self._look(now, error)
            # If the clock was set back, do not wait until it has caught up.
            due = not 0 <= now - self._read_at < REST_MS
            urgent = (key.decided, key.error) != (self._key.decided, self._key.error)
            if urgent or (due and key != self._key):
                self._read(now)
                self._updates = {}
                self._key, self._read_at = key, now
            if with_names not in self._updates:
                self._updates[with_names] = _packed(self._key, self._data, with_names)
            return self._updates[with_names]
        finally:
            self._lock.release()

    def session(self, number: int, with_names: bool) -> dict[str, Any] | None:
        """One participant in detail, as of now; None if there is no such participant."""
        self._asked_at = self.clock()
        with self._lock:
            now = self.clock()

            def work(c: Connection) -> dict[str, Any] | None:
                # Flags compare with all other participants, so all must have been read.
                self._reader.read(c, now)
                return self._reader.session(c, number, with_names)

            return self.database.read_apart(work)

    def _look(self, now: int, error: type[StoreError] | None) -> _Key:
        """The key of the current state: what is stored, or why nothing can be."""
        try:
            return self.database.read_apart(lambda c: _key(c, now, error))
        except StoreError as failed:
            if not self._data:
                raise
            return replace(self._key, error=error or type(failed))

    def _read(self, now: int) -> None:
        try:
            summary = self.database.read_apart(lambda c: self._reader.read(c, now))
        except StoreError:
            # Keep showing what was read last.
            if not self._data:
                raise
        else:
            self._data = self._reader.shown(summary)

    def rest(self) -> None:
        """Release all data if no monitor is open any more; called from time to time."""
        asked = self._asked_at
        if asked is None or 0 <= self.clock() - asked < UNWATCHED_MS:
            return
        if self._lock.acquire(blocking=False):
            try:
                self._reader = Reader(self.database, self.study)
                self._data, self._updates, self._key = {}, {}, _Key("", "")
                self._asked_at = None
            finally:
                self._lock.release()


@dataclass(frozen=True)
class _Key:
    """Digests of all that an update shows, and of decisions, which are shown at once, as is an
    error that prevents answers from being stored."""

    whole: str
    decided: str
    error: type[StoreError] | None = None


def _key(c: Connection, now: int, error: type[StoreError] | None) -> _Key:
    marks = summaries.change_marks(c)
    every = BUSY_MS if now - marks.seen_at < BUSY_FOR_MS else QUIET_MS
    state = collection.state(c)
    return _Key(_digest((marks, state, now // every)), _digest((marks.event, state)), error)


def _digest(what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:20]


def _packed(key: _Key, data: dict[str, Any], with_names: bool) -> Update:
    table = data["participants"]
    rows = sorted(
        table["rows"],
        key=lambda row: (not (row["flags"] or row["excluded"]), -row["seen_at"]),
    )[:MAX_ROWS]
    log = data["log"]
    if not with_names:
        rows = [{**cells, "external": None, "feedback": ""} for cells in rows]
        # Details such as links and reasons for exclusion may identify a participant.
        bare = {"detail": {}, "reason": ""}
        log = [event if event["participant"] is None else {**event, **bare} for event in log]
    shown = {**table, "all": len(table["rows"]), "rows": rows}
    error = key.error
    storage = None
    if error is not None:
        storage = {"name": error.name, "meaning": error.meaning, "advice": error.advice}
    version = _digest((key.whole, storage)) + ("-n" if with_names else "-a")
    changed = {"version": version, "storage": storage, "participants": shown, "log": log}
    plain = msgspec.json.encode({**data, **changed})
    return Update(version, plain, gzip.compress(plain, 5, mtime=0))
