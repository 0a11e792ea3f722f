"""The data of a report, read from the database in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from server.exports.answers import answers_csv
from server.monitor.figures import StudySummary, asked
from server.monitor.history import HistoryPoint
from server.monitor.map import placed
from server.monitor.reader import Reader
from server.store import models, summaries
from server.store.database import Connection, Database
from server.store.summaries import EventRow, MadeWith
from server.study.config import LoadedStudy

# Numbers in all maps together, so that the page stays below three megabytes.
MAX_NUMBERS = 60_000
MAX_SNAPSHOTS = 16
# Events about participants' links, which identify them.
PRIVATE_EVENTS = ("entry", "link", "revoke link")


@dataclass(frozen=True)
class ReportData:
    """A study at the time of the report; `shown` is the data of the monitor."""

    study: LoadedStudy
    summary: StudySummary
    shown: dict[str, Any]
    events: list[EventRow]
    made_with: list[MadeWith]
    snapshots: list[dict[str, Any]]
    heads: tuple[int, int]
    digest: str = ""


def report_data(
    database: Database, study: LoadedStudy, clock: Callable[[], int], simulated: bool = False
) -> ReportData:
    """Read the data; `simulated` lists simulated participants even where they are left out."""
    reader = Reader(database, study)
    now = clock()

    def read(c: Connection) -> ReportData:
        summary = reader.read(c, now)
        shown = reader.shown(summary)
        if simulated:
            everybody = Reader(database, study, everybody=True)
            shown["participants"] = everybody.shown(everybody.read(c, now))["participants"]
        if _size(summary.items, shown["map"]["rank"]) > MAX_NUMBERS:
            shown["map"]["covariance"] = None
        events = [event for event in summaries.all_events(c) if event.kind not in PRIVATE_EVENTS]
        snapshots = _snapshots(c, summary)
        return ReportData(
            study, summary, shown, events, summaries.made_with(c), snapshots, _heads(c)
        )

    report = database.read(read)
    return replace(report, digest=_digest(database, report))


def _digest(database: Database, report: ReportData) -> str:
    """SHA-256 of answers.csv as exported; empty if answers have arrived in the meantime."""
    digest = hashlib.sha256()
    for chunk in answers_csv(database, report.study):
        digest.update(str(chunk).encode())
    return digest.hexdigest() if database.read(_heads) == report.heads else ""


def _heads(c: Connection) -> tuple[int, int]:
    """The numbers of the last answer and the last decision."""
    marks = summaries.change_marks(c)
    return marks.seq, marks.event


def _snapshots(c: Connection, summary: StudySummary) -> list[dict[str, Any]]:
    """Snapshots of the map, evenly spaced over the answers; the last is the latest."""
    points = summary.history.points
    if not points:
        return []
    room = MAX_NUMBERS // max(_size(summary.items, point.rank) for point in points) - 1
    count = max(0, min(MAX_SNAPSHOTS - 1, room, len(points) - 1))
    answers = np.array([point.answers for point in points])
    wanted = np.linspace(answers[0], answers[-1], count + 1)[:-1]
    indices = sorted({int(np.searchsorted(answers, number)) for number in wanted})
    # An exclusion makes a new model of the same answers; the slider shows only the latest of them.
    earlier = [_moment(c, summary, points[at]) for at in indices if answers[at] < answers[-1]]
    return [*earlier, {"answers": points[-1].answers}]


def _moment(c: Connection, summary: StudySummary, point: HistoryPoint) -> dict[str, Any]:
    model = models.model_numbered(c, point.version)
    columns = summary.columns.until(point.answers)
    shown = {**placed(model, summary.items), "asked": asked(columns, summary.items)}
    return {"answers": point.answers, "map": shown}


def _size(items: int, rank: int) -> int:
    """How many numbers a map has: positions, covariances, and two counts per item."""
    return items * (rank + rank * (rank + 1) // 2 + 2)
