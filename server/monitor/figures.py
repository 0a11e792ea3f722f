"""The data of the monitor, computed from rows of the store by pure functions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.row_table import NOTHING
from lore_active.simulation.cost import Pay
from lore_active.stopping import criteria
from lore_active.stopping.registry import STOPPING_RULES
from lore_active.stopping.sensitivity import Sensitivity, from_stored
from lore_active.stopping.verdict import Verdict, verdict
from server.monitor import messages
from server.monitor.answers import CATCH, Columns
from server.monitor.flags import OVERALL, names, rules
from server.monitor.forecast import Crowd, ahead, costs, message
from server.monitor.history import History
from server.monitor.messages import banner
from server.monitor.participants import Rows, number
from server.monitor.quality import Quality
from server.status.activity import described
from server.status.counting import AnswerCounts, ParticipantCounts
from server.status.verdict import RULE, collection_of, findings_of
from server.store.collection import StudyState
from server.store.heartbeat import MachineRow
from server.store.models import ModelRow
from server.store.summaries import AnswerGroup, DecisionRow, EventRow, ParticipantSummary

MINUTE_MS = 60_000
PACE_MINUTES = 5
SPARK_MINUTES = 60
# With fewer answers than this in five minutes, the pace is that of the last hour.
MIN_PACE_ANSWERS = 5
OPENED = ("start", "resume", "reopen")
# A worker without a heartbeat for this long has a problem, or is in a very long audit.
SILENT_MS = 60_000
# The rule that tests for a further dimension.
FURTHER = "smallest_dimension"
NO_SHARE = {"count": 0, "value": 0.5, "low": 0.0, "high": 1.0}


@dataclass(frozen=True)
class StudySummary:
    """The state of a study, read in one transaction."""

    now: int
    state: StudyState
    items: int
    kind: Kind
    participants: list[ParticipantSummary]
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
    participant_counts: ParticipantCounts
    crowd: Crowd
    pay: Pay
    rule: str = "rank_settled"
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
            collection_of(
                self.state, self.answers, self.participant_counts, self.items, self.by_rule
            ),
            findings_of(self.decision, self.ranks, self.history.latest.get("evidence", [])),
        )


def figures(summary: StudySummary, rows: Rows) -> dict[str, Any]:
    """All data of the monitor except the map."""
    verdict = summary.verdict
    share = accuracy(summary.history, verdict, summary.kind)
    return {
        "kind": {
            "label": summary.kind.label,
            "options": summary.kind.options,
            "pick": summary.kind.pick,
            "chance": summary.kind.chance,
            "chance_overlap": summary.kind.chance_overlap,
        },
        "where": where(summary, verdict, share),
        "dimensions": dimensions(summary, verdict),
        "stopping": stopping(summary.decision, verdict, summary.rule),
        "accuracy": share,
        "spectrum": spectrum(summary.history, verdict),
        "participants": {
            "names": names(summary.kind),
            "rules": rules(summary.kind),
            "about_flags": OVERALL,
            # Whether places are sides, and whether there are several choices.
            "sides": summary.kind == TRIPLET,
            "several": summary.kind.pick > 1,
            "rows": [
                rows.row(participant, summary.qualities[participant.id], summary.now)
                for participant in summary.participants
            ],
        },
        "machine": machine(summary),
        "log": [_event(event) for event in summary.events],
    }


def where(summary: StudySummary, verdict: Verdict, share: dict[str, Any]) -> dict[str, Any]:
    """State, verdict, answers, participants, pace and forecast."""
    state, decision, counts = summary.state, summary.decision, summary.answers
    collected = counts.answers
    running = state.status == "running"
    since = next((event.at for event in summary.events if event.kind in OPENED), 0)
    per_minute, window, spark = pace(summary.columns.received_at, summary.now, since)
    per_minute = per_minute if running else None
    known = known_sensitivity(summary.history, verdict)
    coming = ahead(decision, state, counts, summary.history.audited, summary.items, summary.crowd)
    return {
        "status": state.status,
        "reason": "" if summary.by_rule else state.reason,
        "by_rule": summary.by_rule,
        "begun": bool(summary.participants),
        "settled": verdict.stage == "settled",
        "stage": verdict.stage,
        "headline": verdict.headline,
        "explanation": verdict.explanation,
        "predicted": messages.predicted(share, summary.kind),
        "sensitivity": messages.sensitivity(known, summary.rule == FURTHER),
        "has_rank": verdict.has_rank,
        "answers": collected,
        "fitted": counts.fitted,
        "waiting": counts.waiting,
        "imported": counts.imported,
        "counts": counts.plain(),
        "budget": state.budget_answers,
        "budget_participants": state.budget_participants,
        "trials": state.trials,
        "participants": asdict(summary.participant_counts),
        "banner": banner(
            counts,
            summary.participant_counts,
            summary.simulated_stopped and state.status == "running",
            summary.rehearsal,
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
            "message": message(coming, state, collected),
        },
        "cost": costs(summary.pay, summary.crowd, state.trials, coming),
    }


def known_sensitivity(history: History, verdict: Verdict) -> Sensitivity | None:
    """What the newest model says about further dimensions, where a rank is reported."""
    return from_stored(history.latest.get("sensitivity")) if verdict.has_rank else None


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


def dimensions(summary: StudySummary, verdict: Verdict) -> dict[str, Any]:
    """The rank, the evidence for each rank, and the history of the rank."""
    points = summary.history.drawn()
    # Without criteria, the answers that count now have not been audited.
    ranks = summary.history.latest.get("evidence", []) if verdict.criteria else []
    rank = summary.decision.rank if summary.decision and verdict.criteria else None
    reference = messages.reference(ranks)
    return {
        "rank": rank,
        "reference": reference,
        "compared": messages.compared(reference, ranks),
        "message": messages.evidence(rank, ranks),
        "evidence": [
            {
                "rank": row["rank"],
                "difference": number(row["difference"], 6),
                "error": number(row["error"], 6),
                "accuracy": number(row["accuracy"], 4),
            }
            for row in ranks
        ],
        "history": {
            "answers": [point.answers for point in points],
            "rank": [point.rank for point in points],
            "audit": [int(point.audit) for point in points],
        },
    }


def stopping(decision: DecisionRow | None, verdict: Verdict, rule: str) -> dict[str, Any]:
    """The criteria that apply, what is missing, and the rule."""
    rows = [
        {
            "name": criterion.name,
            "title": criteria.title(criterion.name),
            "value": number(criterion.value, 4),
            "threshold": number(criterion.threshold, 4),
            "passed": criterion.passed,
            "message": criteria.message(criterion, 0 if decision is None else decision.rank),
        }
        for criterion in verdict.criteria
    ]
    return {
        "settled": verdict.stage == "settled",
        "rule": rule,
        "about_rule": STOPPING_RULES[rule].description if rule in STOPPING_RULES else "",
        "missing": messages.missing(verdict),
        "criteria": rows,
    }


def accuracy(history: History, verdict: Verdict, kind: Kind) -> dict[str, Any]:
    """Prequential accuracy, the noise ceiling, and the history of the accuracy.

    A model without dimensions predicts nothing, so there is none while no rank is reported. Without
    a current accuracy there is no history either: its last value would be taken for the current one
    after exclusions.
    """
    latest = history.latest
    share = latest.get("prequential", NO_SHARE)
    share = share if verdict.has_rank else NO_SHARE
    ceiling = latest.get("ceiling")
    known = share["count"] > 0
    drawn = history.drawn() if known else []
    points = [point for point in drawn if point.value is not None and point.rank > 0]
    return {
        "count": share["count"],
        "value": number(share["value"], 4) if known else None,
        "low": number(share["low"], 4) if known else None,
        "high": number(share["high"], 4) if known else None,
        "ceiling": number(ceiling, 4),
        "chance": kind.chance,
        "message": messages.accuracy(share, ceiling, verdict, kind),
        "history": {
            "answers": [point.answers for point in points],
            "value": [point.value for point in points],
            "low": [point.low for point in points],
            "high": [point.high for point in points],
        },
    }


def spectrum(history: History, verdict: Verdict) -> dict[str, Any]:
    """Singular values, the share of each dimension over time, and what is ruled out beyond them."""
    points = history.drawn()
    now = list(points[-1].shares) if points else []
    known = known_sensitivity(history, verdict)
    return {
        "values": list(points[-1].spectrum) if points else [],
        "shares": now,
        "message": messages.spectrum(now, known),
        "smallest": None if known is None else known.smallest,
        "history": {
            "answers": [point.answers for point in points],
            "shares": [list(point.shares) for point in points],
            "ruled_out": [point.ruled_out for point in points],
        },
    }


def asked(columns: Columns, items: int) -> list[list[int]]:
    """How often each item was the anchor, and how often an option."""
    counts = columns.purpose != CATCH
    anchors = columns.anchor[counts]
    anchor = np.bincount(anchors[anchors != NOTHING], minlength=items)
    option = np.bincount(columns.options[counts].ravel(), minlength=items)
    return np.column_stack([anchor, option]).tolist()  # type: ignore[no-any-return]


def machine(summary: StudySummary) -> dict[str, Any]:
    """The state of the worker and its queue."""
    row = summary.machine
    newest = int(summary.columns.seq[-1]) if len(summary.columns.seq) else 0
    age = None if row.beat_at is None else max(0, summary.now - row.beat_at)
    return {
        "worker": "unknown" if age is None else "silent" if age > SILENT_MS else "alive",
        "beat_seconds": None if age is None else round(age / 1000),
        "doing": row.doing,
        "restarts": row.restarts,
        "error": row.error,
        "lag_answers": max(0, newest - row.up_to_seq),
        "version": summary.history.version,
        "seconds": {name: number(value, 3) for name, value in row.seconds.items()},
        "ready": row.ready,
        "out": row.out,
        "fallback": row.fallback,
        "random_share": number(summary.history.latest.get("random_share"), 3),
        "bytes": summary.bytes,
        "backup_at": summary.backup_at,
    }


def _event(event: EventRow) -> dict[str, Any]:
    return {**asdict(event), **asdict(described(event))}
