"""A study's figures for its methods section: people, answers and their kinds, times, the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from server.monitor.answers import PURPOSES
from server.monitor.quality import response_ms
from server.report.data import ReportData
from server.status.verdict import RULE
from server.store.collection import SIMULATED_STOP
from server.store.summaries import EventRow

KINDS = {
    "cover": "covering the items evenly",
    "active": "chosen by the model",
    "random": "drawn at random",
    "catch": "with a known answer (catch)",
    "repeat": "asked a second time, sides swapped",
    "practice": "practice",
}


@dataclass(frozen=True)
class Exclusion:
    """Somebody who is left out now, and why."""

    participant: int
    answers: int
    at: int
    who: str
    reason: str


@dataclass(frozen=True)
class Totals:
    """Quality over all participants who are not excluded; None where nothing was asked."""

    people: int
    flagged: int
    catches: int
    catch_right: int
    repeats: int
    repeats_alike: int
    left: float | None
    times: list[float] | None
    """Quartiles of the response times, in milliseconds."""


@dataclass(frozen=True)
class Ending:
    """How collection ended: by rule, by hand, by budget, for simulated ones only, or not yet."""

    how: str
    answers: int
    reason: str


def exclusions(found: ReportData) -> list[Exclusion]:
    """Those who are excluded now, each with the last decision about them."""
    last = {one.participant: one for one in found.events if one.kind == "exclude"}
    made = []
    for one in found.facts.people:
        if one.excluded:
            event = last.get(one.id)
            at, who = (0, "") if event is None else (event.at, event.who)
            reason = "" if event is None else str(event.detail.get("reason", ""))
            made.append(Exclusion(one.id, one.done, at, who, reason))
    return made


def by_kind(found: ReportData) -> list[dict[str, Any]]:
    """Answers of each kind of question: all, skipped, timed out, of excluded people."""
    rows = []
    excluded = {one.id for one in found.facts.people if one.excluded}
    for purpose in (*PURPOSES, "practice"):
        mine = [one for one in found.facts.groups if one.purpose == purpose]
        outcome: Counter[str] = Counter()
        for one in mine:
            outcome[one.side] += one.count
        rows.append(
            {
                "purpose": purpose,
                "words": KINDS[purpose],
                "all": sum(outcome.values()),
                "skipped": outcome["skip"],
                "timeout": outcome["timeout"],
                "late": sum(one.late for one in mine),
                "excluded": sum(one.count for one in mine if one.participant in excluded),
                "fallback": sum(one.count for one in mine if one.origin == "fallback"),
            }
        )
    return [one for one in rows if one["all"]]


def totals(found: ReportData) -> Totals:
    """Sums over everybody who counts."""
    facts = found.facts
    counted = [one for one in facts.people if not one.excluded]
    them = [facts.qualities[one.id] for one in counted]
    sides = sum(one.sides for one in them)
    lefts = sum((one.left or 0.0) * one.sides for one in them)
    mine = np.isin(facts.columns.participant, [one.id for one in counted])
    rt = response_ms(facts.columns)[mine]
    rt = rt[~np.isnan(rt)]
    return Totals(
        people=sum(one.answers > 0 for one in them),
        flagged=sum(bool(one.flags) for one in them),
        catches=sum(one.catches for one in them),
        catch_right=sum(one.catch_right for one in them),
        repeats=sum(one.repeats for one in them),
        repeats_alike=sum(one.repeats_alike for one in them),
        left=lefts / sides if sides else None,
        times=np.percentile(rt, [25, 50, 75]).tolist() if len(rt) else None,
    )


def ending(found: ReportData) -> Ending:
    """Whether and why no more is collected."""
    where, answers = found.shown["where"], found.facts.answers.answers
    stops = [one for one in found.events if one.kind == "stop"]
    if where["status"] == "stopped" and stops:
        last = stops[-1]
        how = "rule" if last.who == RULE else "hand"
        return Ending(how, _answers_before(found, last), str(last.detail.get("reason", "")))
    met = [one for one in found.events if one.kind == SIMULATED_STOP]
    if met and found.facts.answers.simulated:
        return Ending("simulated", _answers_before(found, met[0]), "")
    if answers >= where["budget"]:
        return Ending("budget", answers, "")
    return Ending("not", answers, "")


def _answers_before(found: ReportData, event: EventRow) -> int:
    received = found.facts.columns.received_at
    return int(np.searchsorted(received, event.at, side="right"))


def day(ms: int) -> str:
    """`3 May 2026`, UTC."""
    when = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{when.day} {when:%B %Y}"


def minute(ms: int) -> str:
    """`2026-05-03 14:05`, UTC."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}"


def collected(found: ReportData, most: int = 120) -> dict[str, Any]:
    """Answers over time: at most so many points of the curve, and what was decided when."""
    received = found.facts.columns.received_at
    if not len(received):
        return {"at": [], "answers": [], "events": []}
    places = np.unique(np.linspace(0, len(received) - 1, most).astype(int))
    shown = ("start", "pause", "resume", "stop", "reopen", "exclude", "restore")
    return {
        "at": [int(received[0]), *received[places].tolist()],
        "answers": [0, *(places + 1).tolist()],
        "events": [
            {"at": one.at, "answers": _answers_before(found, one), "kind": one.kind}
            for one in found.events
            if one.kind in shown and received[0] <= one.at
        ],
    }
