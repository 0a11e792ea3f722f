"""Reading a study for the monitor or a report: what is new is added to what was read before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lore_active.study import LoadedStudy
from server.counting import RunningCounts, participant_counts
from server.monitoring.figures import Facts, asked, figures
from server.monitoring.history import History
from server.monitoring.ledger import Ledger
from server.monitoring.picture import damage, embedding_of, placed
from server.monitoring.quality import Qualities
from server.monitoring.table import Rows
from server.store import backups, collection, models
from server.store import monitoring as store
from server.store.database import Connection, Database
from server.store.models import ModelRow
from server.store.monitoring import MachineRow

EVENTS_SHOWN = 40


class Reader:
    """Keeps what it has read: each reading costs what is new."""

    def __init__(self, database: Database, study: LoadedStudy) -> None:
        self.database = database
        self.study = study
        self._ledger = Ledger(len(study.items))
        self._history = History()
        self._qualities = Qualities()
        self._counts = RunningCounts()
        self._rows = Rows(study.settings.session.idle_minutes)
        self._model: ModelRow | None = None
        self._damage = ""

    def read(self, c: Connection, now: int) -> Facts:
        """All that the figures are made of."""
        while rows := store.answers_after(c, self._ledger.last):
            self._ledger.append(rows)
        columns, items = self._ledger.columns(), len(self.study.items)
        new = store.milestones_after(c, self._history.version)
        self._history.append(new, columns.seq)
        if new:
            self._model = models.latest_model(c)
            self._damage = damage(self._model, items)
            if self._damage:
                self._model = None
        state = collection.state(c)
        assert state is not None
        people = store.people(c)
        self._counts.read(c)
        idle = self.study.settings.session.idle_minutes
        newest = max((one.id for one in people), default=0)
        z = embedding_of(self._model, items)
        self._qualities.update(columns, z, self._history.version, newest)
        return Facts(
            now=now,
            state=state,
            items=items,
            people=people,
            columns=columns,
            qualities=self._qualities.of,
            history=self._history,
            model=self._model,
            decision=store.decision(c),
            events=store.events(c, EVENTS_SHOWN),
            machine=self._machine(c, now),
            bytes=self._size(),
            groups=self._counts.groups,
            answers=self._counts.counts(c, people),
            participants=participant_counts(people, now, idle),
            backup_at=max(map(backups.made_at, backups.every(self.study.folder)), default=None),
        )

    def shown(self, facts: Facts) -> dict[str, Any]:
        """The figures, the map among them."""
        return {
            "at": facts.now,
            **figures(facts, self._rows),
            "map": {
                **placed(facts.model, facts.items),
                "asked": asked(facts.columns, facts.items),
            },
        }

    def _machine(self, c: Connection, now: int) -> MachineRow:
        found = store.machine(c, now)
        problem = (collection.last_event(c, "backup") or {}).get("problem")
        backup = f"The last backup failed: {problem}" if problem else ""
        troubles = [one for one in (found.trouble, self._damage, backup) if one]
        return replace(found, trouble=" ".join(troubles))

    def _size(self) -> int:
        path = self.database.path
        files = (path, path.with_name(path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())
