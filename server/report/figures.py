"""Figures of a report: exclusions, answers by question type, response times, how it ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lore_active.questions.kinds import TRIPLET
from server.monitor.answers import PURPOSES
from server.monitor.quality import Quality, response_ms
from server.report.data import ReportData
from server.status.verdict import RULE
from server.store.collection import SIMULATED_STOP
from server.store.summaries import EventRow

QUESTION_TYPES = {
    "cover": "Coverage design",
    "active": "Selected by the model",
    "random": "Random",
    "catch": "Catch trials",
    "repeat": "Repeats, options in reverse order",
    "practice": "Practice",
}


@dataclass(frozen=True)
class Exclusion:
    """A participant who is excluded, and why."""

    participant: int
    answers: int
    at: int
    who: str
    reason: str


@dataclass(frozen=True)
class Totals:
    """Response quality over all participants who are not excluded; None where there are no data."""

    participants: int
    flagged: int
    catches: int
    catch_right: int
    repeats: int
    repeats_alike: int
    overlap: float | None
    """Mean share of the choices that are the same in repeats."""
    place: tuple[int, float] | None
    """The place of the option that was chosen most often, from 1, and its share; of triplets, the
    left one."""
    times: list[float] | None
    """Quartiles of the response times, in milliseconds."""


@dataclass(frozen=True)
class Ending:
    """How collection ended: by rule, hand or budget, for bots only, or not yet."""

    how: str
    answers: int
    reason: str


def exclusions(report: ReportData) -> list[Exclusion]:
    """The participants who are excluded, each with the latest decision about them."""
    latest = {
        exclusion.participant: exclusion
        for exclusion in report.events
        if exclusion.kind == "exclude"
    }
    rows = []
    for participant in report.summary.participants:
        if participant.excluded:
            event = latest.get(participant.id)
            at, who = (0, "") if event is None else (event.at, event.who)
            reason = "" if event is None else str(event.detail.get("reason", ""))
            rows.append(Exclusion(participant.id, participant.done, at, who, reason))
    return rows


def by_kind(report: ReportData) -> list[dict[str, Any]]:
    """Answers by question type: all, skipped, timed out, from excluded participants."""
    rows = []
    excluded = {
        participant.id for participant in report.summary.participants if participant.excluded
    }
    for purpose in (*PURPOSES, "practice"):
        groups = [group for group in report.summary.groups if group.purpose == purpose]
        outcome: Counter[str] = Counter()
        for group in groups:
            outcome[group.side] += group.count
        rows.append(
            {
                "purpose": purpose,
                "label": QUESTION_TYPES[purpose],
                "all": sum(outcome.values()),
                "skipped": outcome["skip"],
                "timeout": outcome["timeout"],
                "late": sum(group.late for group in groups),
                "excluded": sum(group.count for group in groups if group.participant in excluded),
                "fallback": sum(group.count for group in groups if group.origin == "fallback"),
            }
        )
    return [row for row in rows if row["all"]]


def totals(report: ReportData) -> Totals:
    """Sums over all participants who are not excluded."""
    summary = report.summary
    counted = [participant for participant in summary.participants if not participant.excluded]
    qualities = [summary.qualities[participant.id] for participant in counted]
    repeats = sum(quality.repeats for quality in qualities)
    shared = sum((quality.overlap or 0.0) * quality.repeats for quality in qualities)
    rows = np.isin(summary.columns.participant, [participant.id for participant in counted])
    rt = response_ms(summary.columns)[rows]
    rt = rt[~np.isnan(rt)]
    return Totals(
        participants=sum(quality.answers > 0 for quality in qualities),
        flagged=sum(bool(quality.flags) for quality in qualities),
        catches=sum(quality.catches for quality in qualities),
        catch_right=sum(quality.catch_right for quality in qualities),
        repeats=repeats,
        repeats_alike=sum(quality.repeats_alike for quality in qualities),
        overlap=shared / repeats if repeats else None,
        place=_preferred(qualities, summary.kind == TRIPLET),
        times=np.percentile(rt, [25, 50, 75]).tolist() if len(rt) else None,
    )


def _preferred(qualities: list[Quality], of_triplets: bool) -> tuple[int, float] | None:
    sides = sum(quality.sides for quality in qualities)
    if not sides:
        return None
    counts = [np.array(quality.places) * quality.sides for quality in qualities if quality.sides]
    shares = np.sum(counts, axis=0) / sides
    place = 0 if of_triplets else int(shares.argmax())
    return place + 1, float(shares[place])


def ending(report: ReportData) -> Ending:
    """Whether and how collection ended."""
    where, answers = report.shown["where"], report.summary.answers.answers
    stops = [event for event in report.events if event.kind == "stop"]
    if where["status"] == "stopped" and stops:
        last = stops[-1]
        how = "rule" if last.who == RULE else "hand"
        return Ending(how, _answers_before(report, last), str(last.detail.get("reason", "")))
    met = [event for event in report.events if event.kind == SIMULATED_STOP]
    if met and report.summary.answers.simulated:
        return Ending("simulated", _answers_before(report, met[0]), "")
    if answers >= where["budget"]:
        return Ending("budget", answers, "")
    return Ending("not", answers, "")


def _answers_before(report: ReportData, event: EventRow) -> int:
    received = report.summary.columns.received_at
    return int(np.searchsorted(received, event.at, side="right"))


def day(ms: int) -> str:
    """A date in UTC: `3 May 2026`."""
    when = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{when.day} {when:%B %Y}"


def minute(ms: int) -> str:
    """A time in UTC: `2026-05-03 14:05`."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}"


def collected(report: ReportData, max_points: int = 120) -> dict[str, Any]:
    """Answers over time, with at most `max_points` points, and the decisions."""
    received = report.summary.columns.received_at
    if not len(received):
        return {"at": [], "answers": [], "events": []}
    indices = np.unique(np.linspace(0, len(received) - 1, max_points).astype(int))
    kinds = ("start", "pause", "resume", "stop", "reopen", "exclude", "restore")
    return {
        "at": [int(received[0]), *received[indices].tolist()],
        "answers": [0, *(indices + 1).tolist()],
        "events": [
            {"at": event.at, "answers": _answers_before(report, event), "kind": event.kind}
            for event in report.events
            if event.kind in kinds and received[0] <= event.at
        ],
    }
