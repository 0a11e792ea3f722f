"""One process's watch over a study: reads what is new, and makes each update once for everybody."""

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

# Pace and presence change without anything being stored: look again after this long.
BUSY_MS, QUIET_MS = 10_000, 60_000
BUSY_FOR_MS = 65 * 60_000
# While answers come in, every look would find something new; between decisions this is soon enough.
REST_MS = 3_000
# A monitor asks every few seconds; when none has for this long, what was read for it is let go.
UNWATCHED_MS = 10 * 60_000
# Those with a flag or excluded first, then those who were here last; the others are in the export.
MAX_ROWS = 1000


@dataclass(frozen=True)
class Update:
    """What the monitor shows, ready to be sent; equal versions are equal updates."""

    version: str
    plain: bytes
    packed: bytes


class Feed:
    """Gives the newest update. Callers share it: ten monitors cost what one costs."""

    def __init__(self, database: Database, study: LoadedStudy, clock: Callable[[], int]) -> None:
        self.database = database
        self.study = study
        self.clock = clock
        self._lock = threading.Lock()
        self._reader = Reader(database, study)
        self._found: dict[str, Any] = {}
        self._updates: dict[bool, Update] = {}
        self._key = _Key("", "")
        self._read_at = 0
        self._asked_at: int | None = None

    def update(self, with_names: bool, error: type[StoreError] | None = None) -> Update:
        """The newest; `with_names` tells who participants are to the recruiting service.

        `error` is why nothing can be stored: that is shown even if nothing can be read either.
        """
        self._asked_at = self.clock()
        made = self._updates.get(with_names)
        # Whoever comes while an update is being made takes the one before: nobody's thread waits.
        if not self._lock.acquire(blocking=made is None):
            assert made is not None
            return made
        try:
            now = self.clock()
            key = self._look(now, error)
            # A clock that was set back: not only when it has caught up.
            rested = not 0 <= now - self._read_at < REST_MS
            urgent = (key.decided, key.error) != (self._key.decided, self._key.error)
            if urgent or (rested and key != self._key):
                self._read(now)
                self._updates = {}
                self._key, self._read_at = key, now
            if with_names not in self._updates:
                self._updates[with_names] = _packed(self._key, self._found, with_names)
            return self._updates[with_names]
        finally:
            self._lock.release()

    def session(self, number: int, with_names: bool) -> dict[str, Any] | None:
        """One participant in detail, as of now; None if there is no such participant."""
        self._asked_at = self.clock()
        with self._lock:
            now = self.clock()

            def work(c: Connection) -> dict[str, Any] | None:
                # What is usual is known only to who has read everybody.
                self._reader.read(c, now)
                return self._reader.session(c, number, with_names)

            return self.database.read_apart(work)

    def _look(self, now: int, error: type[StoreError] | None) -> _Key:
        """What there is to show: what is stored, and why nothing can be."""
        try:
            return self.database.read_apart(lambda c: _key(c, now, error))
        except StoreError as failed:
            if not self._found:
                raise
            return replace(self._key, error=error or type(failed))

    def _read(self, now: int) -> None:
        try:
            facts = self.database.read_apart(lambda c: self._reader.read(c, now))
        except StoreError:
            # What was read last is still worth looking at.
            if not self._found:
                raise
        else:
            self._found = self._reader.shown(facts)

    def rest(self) -> None:
        """Let go of everything if no monitor is open any more; called every now and then."""
        asked = self._asked_at
        if asked is None or 0 <= self.clock() - asked < UNWATCHED_MS:
            return
        if self._lock.acquire(blocking=False):
            try:
                self._reader = Reader(self.database, self.study)
                self._found, self._updates, self._key = {}, {}, _Key("", "")
                self._asked_at = None
            finally:
                self._lock.release()


@dataclass(frozen=True)
class _Key:
    """Digests of all that an update shows, and of what somebody decided: that is shown at once, as
    is an error that keeps everything from being stored."""

    whole: str
    decided: str
    error: type[StoreError] | None = None


def _key(c: Connection, now: int, error: type[StoreError] | None) -> _Key:
    pulse = summaries.change_marks(c)
    every = BUSY_MS if now - pulse.seen_at < BUSY_FOR_MS else QUIET_MS
    state = collection.state(c)
    return _Key(_digest((pulse, state, now // every)), _digest((pulse.event, state)), error)


def _digest(what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:20]


def _packed(key: _Key, found: dict[str, Any], with_names: bool) -> Update:
    table = found["participants"]
    rows = sorted(
        table["rows"],
        key=lambda one: (not (one["flags"] or one["excluded"]), -one["seen_at"]),
    )[:MAX_ROWS]
    log = found["log"]
    if not with_names:
        rows = [{**one, "external": None, "feedback": ""} for one in rows]
        # Details about a participant may name them: the link they came by, why they were excluded.
        log = [one if one["participant"] is None else {**one, "detail": {}} for one in log]
    shown = {**table, "all": len(table["rows"]), "rows": rows}
    error = key.error
    storage = None
    if error is not None:
        storage = {"name": error.name, "meaning": error.meaning, "advice": error.advice}
    version = _digest((key.whole, storage)) + ("-n" if with_names else "-a")
    changed = {"version": version, "storage": storage, "participants": shown, "log": log}
    plain = msgspec.json.encode({**found, **changed})
    return Update(version, plain, gzip.compress(plain, 5, mtime=0))
