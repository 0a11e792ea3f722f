"""The data of the monitor, computed from rows of the store by pure functions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lore_active.simulation.cost import Pay
from lore_active.stopping import criteria
from lore_active.stopping.verdict import Verdict, verdict
from server.monitor import messages
from server.monitor.answers import CATCH, Columns
from server.monitor.flags import NAMES, OVERALL, RULES
from server.monitor.forecast import Crowd, ahead, costs, message
from server.monitor.history import History
from server.monitor.messages import banner
from server.monitor.participants import Rows, number
from server.monitor.quality import Quality
from server.status.counting import AnswerCounts, ParticipantCounts
from server.status.verdict import RULE, collection_of, findings_of
from server.store.collection import StudyState
from server.store.heartbeat import MachineRow
from server.store.models import ModelRow
from server.store.summaries import AnswerGroup, DecisionRow, EventRow, Person

MINUTE_MS = 60_000
PACE_MINUTES = 5
SPARK_MINUTES = 60
# With fewer answers than this in five minutes, the pace is that of the last hour.
MIN_PACE_ANSWERS = 5
OPENED = ("start", "resume", "reopen")
# A worker without a heartbeat for this long has a problem, or is in a very long audit.
SILENT_MS = 60_000
NO_SHARE = {"count": 0, "value": 0.5, "low": 0.0, "high": 1.0}


@dataclass(frozen=True)
class StudySummary:
    """The state of a study, read in one transaction."""

    now: int
    state: StudyState
    items: int
    people: list[Person]
    columns: Columns
    qualities: list[Quality]
    history: History
    model: ModelRow | None
    decision: DecisionRow | None
    ranks: tuple[int, ...]
    stopped_by: str
    events: list[EventRow]
    machine: MachineRow
    bytes: int
    groups: list[AnswerGroup]
    answers: AnswerCounts
    participants: ParticipantCounts
    crowd: Crowd
    pay: Pay
    backup_at: int | None = None
    simulated_stopped: bool = False
    rehearsal: dict[str, Any] | None = None

    @property
    def by_rule(self) -> bool:
        """Whether the stopping rule made the last stop."""
        return self.stopped_by == RULE

    @property
    def verdict(self) -> Verdict:
        """The verdict of the study."""
        return verdict(
            collection_of(self.state, self.answers, self.participants, self.items, self.by_rule),
            findings_of(self.decision, self.ranks, self.history.latest.get("evidence", [])),
        )


def figures(facts: StudySummary, rows: Rows) -> dict[str, Any]:
    """All data of the monitor except the map."""
    verdict = facts.verdict
    share = accuracy(facts.history, verdict)
    return {
        "where": where(facts, verdict, share),
        "dimensions": dimensions(facts, verdict),
        "stopping": stopping(facts.decision, verdict),
        "accuracy": share,
        "spectrum": spectrum(facts.history),
        "participants": {
            "names": NAMES,
            "rules": RULES,
            "about_flags": OVERALL,
            "rows": [rows.row(one, facts.qualities[one.id], facts.now) for one in facts.people],
        },
        "machine": machine(facts),
        "log": [_event(one) for one in facts.events],
    }


def where(facts: StudySummary, verdict: Verdict, share: dict[str, Any]) -> dict[str, Any]:
    """State, verdict, answers, participants, pace and forecast."""
    state, decision, counts = facts.state, facts.decision, facts.answers
    collected = counts.answers
    running = state.status == "running"
    since = next((one.at for one in facts.events if one.kind in OPENED), 0)
    per_minute, window, spark = pace(facts.columns.received_at, facts.now, since)
    per_minute = per_minute if running else None
    coming = ahead(decision, state, counts, facts.history.audited, facts.items, facts.crowd)
    return {
        "status": state.status,
        "reason": "" if facts.by_rule else state.reason,
        "by_rule": facts.by_rule,
        "begun": bool(facts.people),
        "settled": verdict.stage == "settled",
        "stage": verdict.stage,
        "headline": verdict.headline,
        "explanation": verdict.explanation,
        "predicted": messages.predicted(share),
        "has_rank": verdict.has_rank,
        "answers": collected,
        "fitted": counts.fitted,
        "waiting": counts.waiting,
        "prior": counts.imported,
        "counts": counts.plain(),
        "budget": state.budget_answers,
        "budget_participants": state.budget_participants,
        "trials": state.trials,
        "participants": asdict(facts.participants),
        "banner": banner(
            counts,
            facts.participants,
            facts.simulated_stopped and state.status == "running",
            facts.rehearsal,
        ),
        "per_minute": None if per_minute is None else round(per_minute, 3),
        "pace_minutes": window,
        "spark": spark,
        "to_stop": {
            "answers": coming.answers,
            "middle": coming.middle,
            "participants": coming.participants,
            "hours": None if coming.hours is None else [round(end, 2) for end in coming.hours],
            "minutes": None
            if coming.answers is None or not per_minute
            else [round(end / per_minute, 1) for end in coming.answers],
            "met": coming.met,
            "words": message(coming, state, collected),
        },
        "cost": costs(facts.pay, facts.crowd, state.trials, coming),
    }


def pace(received_at: Any, now: int, since: int = 0) -> tuple[float | None, int, list[int]]:
    """Answers per minute, the minutes that it was measured over, and counts of the last sixty.

    The rate is over the last five minutes, or the last hour where answers were few, but not from
    before `since`, when collection was last opened; None if that was less than a minute ago.
    """
    recent = received_at[np.searchsorted(received_at, now - SPARK_MINUTES * MINUTE_MS) :]
    ages = np.clip((now - recent) // MINUTE_MS, 0, SPARK_MINUTES - 1)
    spark = np.bincount(ages, minlength=SPARK_MINUTES)[::-1].tolist() if len(recent) else []
    begun = max(since, int(received_at[0])) if len(received_at) else now
    rate, window = None, PACE_MINUTES
    for window in (PACE_MINUTES, SPARK_MINUTES):
        start = max(now - window * MINUTE_MS, begun)
        if now - start < MINUTE_MS:
            return None, window, spark
        came = int((recent >= start).sum())
        rate = came * MINUTE_MS / (now - start)
        if came >= MIN_PACE_ANSWERS:
            break
    return rate, window, spark


def dimensions(facts: StudySummary, verdict: Verdict) -> dict[str, Any]:
    """The rank, the evidence for each rank, and the history of the rank."""
    points = facts.history.drawn()
    # Without criteria, the answers that count now have not been audited.
    ranks = facts.history.latest.get("evidence", []) if verdict.criteria else []
    rank = facts.decision.rank if facts.decision and verdict.criteria else None
    reference = messages.reference(ranks)
    return {
        "rank": rank,
        "reference": reference,
        "compared": messages.compared(reference, ranks),
        "words": messages.evidence(rank, ranks),
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


def stopping(decision: DecisionRow | None, verdict: Verdict) -> dict[str, Any]:
    """The criteria that apply, and what is missing."""
    rows = [
        {
            "name": one.name,
            "title": criteria.title(one.name),
            "value": number(one.value, 4),
            "threshold": number(one.threshold, 4),
            "passed": one.passed,
            "words": criteria.message(one, 0 if decision is None else decision.rank),
        }
        for one in verdict.criteria
    ]
    return {
        "settled": verdict.stage == "settled",
        "missing": messages.missing(verdict),
        "criteria": rows,
    }


def accuracy(history: History, verdict: Verdict) -> dict[str, Any]:
    """Prequential accuracy, the noise ceiling, and the history of the accuracy.

    A model without dimensions predicts nothing, so there is none while no rank is reported.
    """
    points = [one for one in history.drawn() if one.value is not None and one.rank > 0]
    latest = history.latest
    share = latest.get("prequential", latest.get("progressive", NO_SHARE))
    share = share if verdict.has_rank else NO_SHARE
    ceiling = history.latest.get("ceiling")
    known = share["count"] > 0
    return {
        "count": share["count"],
        "value": number(share["value"], 4) if known else None,
        "low": number(share["low"], 4) if known else None,
        "high": number(share["high"], 4) if known else None,
        "ceiling": number(ceiling, 4),
        "chance": 0.5,
        "words": messages.accuracy(share, ceiling, verdict),
        "history": {
            "answers": [one.answers for one in points],
            "value": [one.value for one in points],
            "low": [one.low for one in points],
            "high": [one.high for one in points],
        },
    }


def spectrum(history: History) -> dict[str, Any]:
    """Singular values, and the share of the variance of each dimension over time."""
    points = history.drawn()
    now = list(points[-1].shares) if points else []
    return {
        "values": list(points[-1].spectrum) if points else [],
        "shares": now,
        "words": messages.spectrum(now),
        "history": {
            "answers": [one.answers for one in points],
            "shares": [list(one.shares) for one in points],
        },
    }


def asked(columns: Columns, items: int) -> list[list[int]]:
    """How often each item was the anchor, and how often an option."""
    counts = columns.purpose != CATCH
    anchor = np.bincount(columns.anchor[counts], minlength=items)
    option = np.bincount(columns.left[counts], minlength=items)
    option = option + np.bincount(columns.right[counts], minlength=items)
    return np.column_stack([anchor, option]).tolist()  # type: ignore[no-any-return]


def machine(facts: StudySummary) -> dict[str, Any]:
    """The state of the worker and its queue."""
    row = facts.machine
    newest = int(facts.columns.seq[-1]) if len(facts.columns.seq) else 0
    age = None if row.beat_at is None else max(0, facts.now - row.beat_at)
    return {
        "worker": "unknown" if age is None else "silent" if age > SILENT_MS else "alive",
        "beat_seconds": None if age is None else round(age / 1000),
        "doing": row.doing,
        "restarts": row.restarts,
        "trouble": row.trouble,
        "lag_answers": max(0, newest - row.up_to_seq),
        "version": facts.history.version,
        "seconds": {name: number(value, 3) for name, value in row.seconds.items()},
        "ready": row.ready,
        "out": row.out,
        "fallback": row.fallback,
        "random_share": number(facts.history.latest.get("random_share"), 3),
        "bytes": facts.bytes,
        "backup_at": facts.backup_at,
    }


def _event(event: EventRow) -> dict[str, Any]:
    return {
        "at": event.at,
        "who": event.who,
        "kind": event.kind,
        "participant": event.participant,
        "detail": event.detail,
    }
