"""Reads a study for the monitor or a report, incrementally."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from server.monitor.answers import AnswerColumns
from server.monitor.figures import StudySummary, asked, figures
from server.monitor.forecast import SessionTimes, crowd
from server.monitor.history import History
from server.monitor.map import damage, placed
from server.monitor.participants import Rows, details, quartiles
from server.monitor.quality import Predictor, Qualities
from server.status.contents import openness
from server.status.counting import CountsByGroup, counting, participant_counts, simulated_left_out
from server.store import collection, heartbeat, models, sessions, summaries
from server.store.database import Connection, Database
from server.store.heartbeat import MachineRow
from server.store.models import ModelRow
from server.store.recovery import backups
from server.study.config import LoadedStudy

EVENTS_SHOWN = 40


class Reader:
    """Reads a study; keeps what it has read, so that each update reads only what is new.

    Simulated participants are left out where they do not count, unless `everybody` is set.
    """

    def __init__(self, database: Database, study: LoadedStudy, everybody: bool = False) -> None:
        self.database = database
        self.study = study
        self._everybody = everybody
        self._begin(False)

    def _begin(self, left_out: bool) -> None:
        study = self.study
        self._left_out = left_out
        self._answers = AnswerColumns(len(study.items), study.kind)
        self._history = History()
        self._predictor = Predictor(len(study.items), study.kind)
        self._qualities = Qualities(len(study.items), study.kind)
        self._counts = CountsByGroup()
        self._rows = Rows(study.settings.session.idle_minutes, study.kind)
        self._times = SessionTimes(study.settings.session.idle_minutes)
        self._model: ModelRow | None = None
        self._damage = ""

    def read(self, c: Connection, now: int) -> StudySummary:
        """Read what is new; the current state of the study."""
        left_out = simulated_left_out(c)
        if left_out != self._left_out:
            self._begin(left_out)
        shows = self._everybody or not left_out
        while rows := summaries.answers_after(c, self._answers.last, shows):
            usable = self._answers.usable(rows)
            self._answers.append(usable, *self._predictor.predicted(c, usable))
            self._answers.read_up_to(rows[-1].seq)
        columns, items = self._answers.columns(), len(self.study.items)
        new = summaries.milestones_after(c, self._history.version)
        self._history.append(new, columns.seq)
        if new:
            self._model = models.latest_model(c)
            self._damage = damage(self._model, items)
            if self._damage:
                self._model = None
        state = collection.state(c)
        assert state is not None
        everybody = summaries.participants(c)
        participants = counting(everybody, not shows)
        numbers = {participant.id for participant in participants}
        self._counts.read(c)
        idle = self.study.settings.session.idle_minutes
        self._qualities.update(columns, participants)
        self._times.update(columns, participants)
        return StudySummary(
            now=now,
            state=state,
            items=items,
            kind=self.study.kind,
            participants=participants,
            columns=columns,
            qualities=self._qualities.of,
            history=self._history,
            model=self._model,
            decision=summaries.decision(c),
            ranks=summaries.audited_ranks(c),
            stopped_by=summaries.stopped_by(c),
            events=summaries.events(c, EVENTS_SHOWN),
            machine=self._machine(c, now),
            bytes=self._size(),
            groups=[group for group in self._counts.groups if group.participant in numbers],
            answers=self._counts.counts(c, everybody),
            participant_counts=participant_counts(everybody, now, idle, left_out),
            crowd=crowd(participants, self._times, now, idle),
            pay=self.study.settings.pay,
            rule=self._history.latest.get("rule", self.study.settings.stopping.rule),
            backup_at=max(map(backups.made_at, backups.every(self.study.folder)), default=None),
            simulated_stopped=collection.simulated_stopped(c),
            rehearsal=collection.last_event(c, collection.REHEARSAL),
            is_full=openness(c, self.study, now) == "full",
        )

    def session(self, c: Connection, number: int, with_names: bool) -> dict[str, Any] | None:
        """One participant in detail; None if there is no such participant. Call `read` first."""
        stored = sessions.session(c, number)
        if stored is None or (
            stored.participant.simulated and self._left_out and not self._everybody
        ):
            return None
        own = AnswerColumns(len(self.study.items), self.study.kind)
        answers = own.usable(stored.answers)
        own.append(answers, *self._predictor.predicted(c, answers))
        same = stored.participant.simulated
        counted = [
            participant.id
            for participant in summaries.participants(c)
            if not participant.excluded and participant.simulated == same
        ]
        return details(
            stored,
            own.columns(),
            self._qualities.tests(number, own.columns()) if answers else (),
            quartiles(self._answers.columns(), counted),
            self._qualities.of[number].floor_ms,
            with_names,
            self.study.kind,
        )

    def shown(self, summary: StudySummary) -> dict[str, Any]:
        """The data of the monitor, including the map."""
        return {
            "at": summary.now,
            **figures(summary, self._rows),
            "map": {
                **placed(summary.model, summary.items),
                "asked": asked(summary.columns, summary.items),
            },
        }

    def _machine(self, c: Connection, now: int) -> MachineRow:
        row = heartbeat.machine(c, now)
        problem = (collection.last_event(c, "backup") or {}).get("problem")
        backup = f"The last backup failed: {problem}" if problem else ""
        errors = [text for text in (row.error, self._damage, backup) if text]
        return replace(row, error=" ".join(errors))

    def _size(self) -> int:
        path = self.database.path
        files = (path, path.with_name(path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())
