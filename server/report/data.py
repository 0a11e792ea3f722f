"""Everything that a report tells, read from the database at one moment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from server.exports.tables import answers_csv
from server.monitor.figures import StudySummary, asked
from server.monitor.history import HistoryPoint
from server.monitor.map import placed
from server.monitor.reader import Reader
from server.store import models, summaries
from server.store.database import Connection, Database
from server.store.summaries import EventRow, MadeWith
from server.study.config import LoadedStudy

# Numbers of all maps together: what a page of three megabytes has room for.
MAX_NUMBERS = 60_000
MAX_MOMENTS = 16
# These are about people's links, and name them.
PRIVATE_EVENTS = ("entry", "link", "revoke link")


@dataclass(frozen=True)
class ReportData:
    """A study as it was when the report was made; `shown` is what the monitor shows."""

    study: LoadedStudy
    facts: StudySummary
    shown: dict[str, Any]
    events: list[EventRow]
    made_with: list[MadeWith]
    moments: list[dict[str, Any]]
    heads: tuple[int, int]
    digest: str = ""


def gathered(
    database: Database, study: LoadedStudy, clock: Callable[[], int], simulated: bool = False
) -> ReportData:
    """Read it all; with `simulated`, list simulated participants even where they do not count."""
    reader = Reader(database, study)
    now = clock()

    def read(c: Connection) -> ReportData:
        facts = reader.read(c, now)
        shown = reader.shown(facts)
        if simulated:
            everybody = Reader(database, study, everybody=True)
            shown["participants"] = everybody.shown(everybody.read(c, now))["participants"]
        if _size(facts.items, shown["map"]["rank"]) > MAX_NUMBERS:
            shown["map"]["spread"] = None
        events = [one for one in summaries.all_events(c) if one.kind not in PRIVATE_EVENTS]
        moments = _moments(c, facts)
        return ReportData(study, facts, shown, events, summaries.made_with(c), moments, _heads(c))

    found = database.read(read)
    return replace(found, digest=_digest(database, found))


def _digest(database: Database, found: ReportData) -> str:
    """SHA-256 of answers.csv as it is exported; empty if answers came in meanwhile."""
    digest = hashlib.sha256()
    for piece in answers_csv(database, found.study):
        digest.update(str(piece).encode())
    return digest.hexdigest() if database.read(_heads) == found.heads else ""


def _heads(c: Connection) -> tuple[int, int]:
    """The last answer and the last decision."""
    pulse = summaries.change_marks(c)
    return pulse.seq, pulse.event


def _moments(c: Connection, facts: StudySummary) -> list[dict[str, Any]]:
    """The map at some times, evenly over the answers; the last one is the newest."""
    points = facts.history.points
    if not points:
        return []
    room = MAX_NUMBERS // max(_size(facts.items, one.rank) for one in points) - 1
    many = max(0, min(MAX_MOMENTS - 1, room, len(points) - 1))
    answers = np.array([one.answers for one in points])
    wanted = np.linspace(answers[0], answers[-1], many + 1)[:-1]
    places = sorted({int(np.searchsorted(answers, one)) for one in wanted})
    # An exclusion makes a new model of the same answers; the slider shows the last of those.
    earlier = [_moment(c, facts, points[at]) for at in places if answers[at] < answers[-1]]
    return [*earlier, {"answers": points[-1].answers}]


def _moment(c: Connection, facts: StudySummary, point: HistoryPoint) -> dict[str, Any]:
    model = models.model_numbered(c, point.version)
    columns = facts.columns.until(point.answers)
    found = {**placed(model, facts.items), "asked": asked(columns, facts.items)}
    return {"answers": point.answers, "map": found}


def _size(items: int, rank: int) -> int:
    """How many numbers a map has: positions, covariances, and how often items were asked about."""
    return items * (rank + rank * (rank + 1) // 2 + 2)
