"""One process's watch over a study: reads what is new, and makes each update once for everybody."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from lore_active.study import LoadedStudy
from server.monitoring.figures import Facts, asked, figures
from server.monitoring.history import History
from server.monitoring.ledger import Ledger
from server.monitoring.picture import embedding_of, placed
from server.monitoring.quality import qualities
from server.store import collection, learning
from server.store import monitoring as store
from server.store.database import Connection, Database
from server.store.learning import ModelRow

EVENTS_SHOWN = 40
# Pace and presence change without anything being stored: look again after this long.
BUSY_MS, QUIET_MS = 10_000, 60_000
BUSY_FOR_MS = 65 * 60_000
# Recent participants, and all with a flag or excluded; the others are in the export.
MOST_PEOPLE = 400


@dataclass(frozen=True)
class Update:
    """What the monitor shows, ready to be sent; equal versions are equal updates."""

    version: str
    plain: bytes
    packed: bytes


class Watch:
    """Gives the newest update. Callers share it: ten monitors cost what one costs."""

    def __init__(self, database: Database, study: LoadedStudy, clock: Callable[[], int]) -> None:
        self.database = database
        self.study = study
        self.clock = clock
        self._lock = threading.Lock()
        self._ledger = Ledger()
        self._history = History()
        self._model: ModelRow | None = None
        self._updates: dict[bool, Update] = {}
        self._key = ""

    def update(self, with_names: bool) -> Update:
        """The newest; `with_names` tells who participants are to the recruiting service."""
        with self._lock:
            now = self.clock()
            key = self.database.read(lambda c: _key(c, now))
            if key != self._key:
                found = self.database.read(lambda c: self._read(c, now))
                self._updates = {named: _packed(key, found, named) for named in (True, False)}
                self._key = key
            return self._updates[with_names]

    def _read(self, c: Connection, now: int) -> dict[str, Any]:
        while rows := store.answers_after(c, self._ledger.last):
            self._ledger.append(rows)
        columns, items = self._ledger.columns(), len(self.study.items)
        new = store.milestones_after(c, self._history.version)
        self._history.append(new, columns.seq)
        if new:
            self._model = learning.latest_model(c)
        state = collection.state(c)
        assert state is not None
        people = store.people(c)
        newest = max((one.id for one in people), default=0)
        z = embedding_of(self._model, items)
        facts = Facts(
            now=now,
            state=state,
            items=items,
            people=people,
            columns=columns,
            qualities=qualities(columns, np.asarray(z), newest),
            history=self._history,
            decision=store.decision(c),
            events=store.events(c, EVENTS_SHOWN),
            machine=store.machine(c, now),
            bytes=self._size(),
        )
        return {
            "at": now,
            **figures(facts),
            "map": {**placed(self._model, items), "asked": asked(columns, items)},
        }

    def _size(self) -> int:
        path = self.database.path
        files = (path, path.with_name(path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())


def _key(c: Connection, now: int) -> str:
    pulse = store.pulse(c)
    every = BUSY_MS if now - pulse.seen_at < BUSY_FOR_MS else QUIET_MS
    state = collection.state(c)
    text = repr((pulse, state, now // every))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _packed(key: str, found: dict[str, Any], with_names: bool) -> Update:
    table = found["participants"]
    rows = sorted(
        table["rows"],
        key=lambda one: (not (one["flags"] or one["excluded"]), -one["seen_at"]),
    )[:MOST_PEOPLE]
    if not with_names:
        rows = [{**one, "external": None, "feedback": ""} for one in rows]
    shown = {**table, "all": len(table["rows"]), "rows": rows}
    version = f"{key}-{'n' if with_names else 'a'}"
    plain = msgspec.json.encode({"version": version, **found, "participants": shown})
    return Update(version, plain, gzip.compress(plain, 5, mtime=0))
