"""Everything the monitor shows, put together from rows of the store: pure functions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lore_active.pacing import FIRST_AUDIT
from server.counting import AnswerCounts, ParticipantCounts
from server.monitoring import words
from server.monitoring.history import History
from server.monitoring.ledger import CATCH, Columns
from server.monitoring.outlook import outlook
from server.monitoring.quality import NAMES, RULES, Quality
from server.monitoring.table import Rows, number
from server.store.collection import State
from server.store.models import ModelRow
from server.store.monitoring import AnswerGroup, DecisionRow, EventRow, MachineRow, Person

MINUTE_MS = 60_000
PACE_MINUTES = 5
SPARK_MINUTES = 60
# A worker that has not been heard of for this long is in trouble, or in a very long audit.
SILENT_MS = 60_000
# How the worker signs what its stopping rule decides.
RULE = "stopping rule"
NO_SHARE = {"count": 0, "value": 0.5, "low": 0.0, "high": 1.0}


@dataclass(frozen=True)
class Facts:
    """What was read at one moment."""

    now: int
    state: State
    items: int
    people: list[Person]
    columns: Columns
    qualities: list[Quality]
    history: History
    model: ModelRow | None
    decision: DecisionRow | None
    events: list[EventRow]
    machine: MachineRow
    bytes: int
    groups: list[AnswerGroup]
    answers: AnswerCounts
    participants: ParticipantCounts
    backup_at: int | None = None


def figures(facts: Facts, rows: Rows) -> dict[str, Any]:
    """All but the map."""
    return {
        "where": where(facts),
        "dimensions": dimensions(facts),
        "stopping": stopping(facts.decision),
        "accuracy": accuracy(facts.history),
        "spectrum": spectrum(facts.history),
        "participants": {
            "names": NAMES,
            "rules": RULES,
            "rows": [rows.row(one, facts.qualities[one.id], facts.now) for one in facts.people],
        },
        "machine": machine(facts),
        "log": [_event(one) for one in facts.events],
    }


def where(facts: Facts) -> dict[str, Any]:
    """State, answers, people, pace and forecast."""
    state, decision, counts = facts.state, facts.decision, facts.answers
    collected = counts.answers
    per_minute, spark = pace(facts.columns.received_at, facts.now)
    reasons = [] if decision is None else decision.reasons
    ahead = outlook(reasons, counts.fitted, collected)
    if state.status == "stopped":
        ahead = outlook([], 0, 0)
    by_rule = stopped_by_rule(facts.events)
    minutes = ahead.answers / per_minute if ahead.answers and per_minute > 0 else None
    return {
        "status": state.status,
        "reason": "" if by_rule else state.reason,
        "by_rule": by_rule,
        "begun": bool(facts.people),
        "settled": decision is not None and decision.settled,
        "headline": words.headline(
            decision,
            state.status,
            collected,
            FIRST_AUDIT * facts.items - counts.imported,
            collected >= state.budget_answers,
            by_rule,
        ),
        "answers": collected,
        "fitted": counts.fitted,
        "waiting": counts.waiting,
        "prior": counts.imported,
        "counts": counts.plain(),
        "budget": state.budget_answers,
        "budget_participants": state.budget_participants,
        "trials": state.trials,
        "participants": asdict(facts.participants),
        "per_minute": round(per_minute, 2),
        "spark": spark,
        "to_stop": {
            "answers": ahead.answers,
            "minutes": None if minutes is None else round(minutes, 1),
            "words": words.forecast(
                ahead, state.status, per_minute, state.budget_answers - collected
            ),
        },
    }


def stopped_by_rule(events: list[EventRow]) -> bool:
    """Whether the last stop was the stopping rule's; events come newest first."""
    stops = (one.who == RULE for one in events if one.kind == "stop")
    return next(stops, False)


def pace(received_at: Any, now: int) -> tuple[float, list[int]]:
    """Answers per minute of late, and answers in each of the last sixty minutes."""
    recent = received_at[np.searchsorted(received_at, now - SPARK_MINUTES * MINUTE_MS) :]
    ages = np.clip((now - recent) // MINUTE_MS, 0, SPARK_MINUTES - 1)
    spark = np.bincount(ages, minlength=SPARK_MINUTES)[::-1].tolist() if len(recent) else []
    late = recent[recent > now - PACE_MINUTES * MINUTE_MS]
    if not len(late):
        return 0.0, spark
    # At the beginning of a session the five minutes have not passed yet.
    begun = max(now - PACE_MINUTES * MINUTE_MS, int(late[0]))
    return len(late) / max(1.0, (now - begun) / MINUTE_MS), spark


def dimensions(facts: Facts) -> dict[str, Any]:
    """The rank, the evidence for each rank, and what it was before."""
    points = facts.history.drawn()
    ranks = facts.history.latest.get("evidence", [])
    rank = None if facts.decision is None else facts.decision.rank
    return {
        "rank": rank,
        "words": words.evidence(rank, ranks),
        "evidence": [
            {
                "rank": one["rank"],
                "worse": number(one["worse"], 6),
                "error": number(one["error"], 6),
                "accuracy": number(one["accuracy"], 4),
            }
            for one in ranks
        ],
        "history": {
            "answers": [one.answers for one in points],
            "rank": [one.rank for one in points],
            "audit": [int(one.audit) for one in points],
        },
    }


def stopping(decision: DecisionRow | None) -> dict[str, Any]:
    """Each criterion, and what is missing."""
    if decision is None:
        nothing = "The criteria are looked at with the first audit."
        return {"settled": False, "words": "", "missing": nothing, "criteria": []}
    criteria = [
        {
            "name": one["name"],
            "title": words.TITLES.get(one["name"], one["name"]),
            "value": number(float(one["value"]), 4),
            "threshold": number(float(one["threshold"]), 4),
            "passed": bool(one["passed"]),
            "words": one["words"],
        }
        for one in decision.reasons
    ]
    missing = [one["name"] for one in criteria if not one["passed"]]
    # Without a dimension there is no number of them to be compared with others.
    missing = [name for name in missing if decision.rank or name not in words.COMPARED]
    return {
        "settled": decision.settled,
        "words": decision.words,
        "missing": words.missing(missing),
        "criteria": criteria,
    }


def accuracy(history: History) -> dict[str, Any]:
    """Progressive accuracy, the ceiling, and what both were before."""
    points = [one for one in history.drawn() if one.value is not None]
    share = history.latest.get("progressive", NO_SHARE)
    ceiling = history.latest.get("ceiling")
    return {
        "count": share["count"],
        "value": number(share["value"], 4),
        "low": number(share["low"], 4),
        "high": number(share["high"], 4),
        "ceiling": number(ceiling, 4),
        "chance": 0.5,
        "words": words.accuracy(share, ceiling),
        "history": {
            "answers": [one.answers for one in points],
            "value": [one.value for one in points],
            "low": [one.low for one in points],
            "high": [one.high for one in points],
        },
    }


def spectrum(history: History) -> dict[str, Any]:
    """Singular values now and before."""
    points = history.drawn()
    now = list(points[-1].spectrum) if points else []
    return {
        "values": now,
        "words": words.spectrum(now),
        "history": {
            "answers": [one.answers for one in points],
            "values": [list(one.spectrum) for one in points],
        },
    }


def asked(columns: Columns, items: int) -> list[list[int]]:
    """How often each item was the anchor, and how often an option."""
    counts = columns.purpose != CATCH
    anchor = np.bincount(columns.anchor[counts], minlength=items)
    option = np.bincount(columns.left[counts], minlength=items)
    option = option + np.bincount(columns.right[counts], minlength=items)
    return np.column_stack([anchor, option]).tolist()  # type: ignore[no-any-return]


def machine(facts: Facts) -> dict[str, Any]:
    """The worker's health and its queue."""
    one = facts.machine
    newest = int(facts.columns.seq[-1]) if len(facts.columns.seq) else 0
    age = None if one.beat_at is None else max(0, facts.now - one.beat_at)
    return {
        "worker": "unknown" if age is None else "silent" if age > SILENT_MS else "alive",
        "beat_seconds": None if age is None else round(age / 1000),
        "doing": one.doing,
        "restarts": one.restarts,
        "trouble": one.trouble,
        "lag_answers": max(0, newest - one.up_to_seq),
        "version": facts.history.version,
        "seconds": {name: number(value, 3) for name, value in one.seconds.items()},
        "ready": one.ready,
        "out": one.out,
        "fallback": one.fallback,
        "random_share": number(facts.history.latest.get("random_share"), 3),
        "bytes": facts.bytes,
        "backup_at": facts.backup_at,
    }


def _event(one: EventRow) -> dict[str, Any]:
    return {
        "at": one.at,
        "who": one.who,
        "kind": one.kind,
        "participant": one.participant,
        "detail": one.detail,
    }
