"""SQL of the monitor: summaries cheap enough to be read every few seconds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from sqlite3 import Row
from typing import Any

from server.store.database import Connection
from server.store.journal import CHANGES, QUARANTINED
from server.store.models import last_simulated_step
from server.store.questions import BACKGROUND, BEFORE, SERVED_AT
from server.store.sqlite.former_names import current_detail, current_event
from server.store.sqlite.item_lists import Items, items_in

AT_ONCE = 5000
RECENT_AUDITS = 100


@dataclass(frozen=True)
class ChangeMarks:
    """Numbers that change whenever something shown on the monitor changes."""

    seq: int
    event: int
    step: int
    version: int
    participants: int
    seen_at: int
    moves: int
    error: str
    restarts: int


@dataclass(frozen=True)
class AnswerRow:
    """An answer for the figures.

    `options` are in the order of display, `chosen` in the order of choice (none if the trial was
    skipped or timed out), `known` is the answer of catch questions. `before` is what the
    participant chose the first time, for repeats; the question was displayed at `served_at` or
    later. `measured` says whether the page sent timings, `onset` whether these include the onset.
    `version` is of the model when the question was selected.
    """

    seq: int
    participant: int
    purpose: str
    anchor: int | None
    options: Items
    chosen: Items
    known: Items
    before: Items
    rt_ms: float | None
    received_at: int
    blurred: int
    served_at: int
    measured: int
    onset: int
    version: int


@dataclass(frozen=True)
class ParticipantSummary:
    """A participant, as shown in the table."""

    id: int
    external: str | None
    stage: str
    trials: int
    done: int
    excluded: int
    feedback: str
    arrived_at: int
    seen_at: int
    simulated: int = 0


@dataclass(frozen=True)
class Milestone:
    """A published model without its coordinates."""

    version: int
    up_to_seq: int
    answers: int
    audit: int
    rank: int
    summary: str


@dataclass(frozen=True)
class DecisionRow:
    """The last stopping decision."""

    stop: bool
    settled: bool
    rank: int
    message: str
    reasons: list[dict[str, Any]]


@dataclass(frozen=True)
class EventRow:
    """An entry of the activity log."""

    id: int
    at: int
    who: str
    kind: str
    participant: int | None
    detail: dict[str, Any]


@dataclass(frozen=True)
class AnswerGroup:
    """Number of answers of one kind by a participant; `side` is chosen, skip or timeout."""

    participant: int
    purpose: str
    origin: str
    side: str
    count: int
    late: int

    def plus(self, more: AnswerGroup) -> AnswerGroup:
        """Return the sum of both."""
        return replace(self, count=self.count + more.count, late=self.late + more.late)


@dataclass(frozen=True)
class MadeWith:
    """The models computed with one fingerprint."""

    fingerprint: str
    models: int
    first: int
    last: int


def change_marks(c: Connection) -> ChangeMarks:
    """Return a few numbers that change if anything is new."""
    row = c.execute(
        "SELECT (SELECT coalesce(max(seq), 0) FROM answers), "
        "(SELECT coalesce(max(id), 0) FROM events), (SELECT coalesce(max(id), 0) FROM steps), "
        "(SELECT coalesce(max(version), 0) FROM models), count(*), coalesce(max(seen_at), 0), "
        "coalesce(sum(visit + practice_done + done + break_done + excluded + length(stage)), 0) "
        "FROM participants"
    ).fetchone()
    beat = c.execute("SELECT error, restarts FROM heartbeat").fetchone()
    return ChangeMarks(*row, *(beat or ("", 0)))


# A page may send timings that SQLite rejects as JSON (NaN): that must not stop the monitor.
ANSWERS = (
    "SELECT a.seq, q.participant, q.purpose, q.anchor, q.options, a.chosen, q.known, o.chosen, "
    "a.rt_ms, a.received_at, CASE WHEN json_valid(a.timings) "
    "THEN coalesce(json_array_length(a.timings, '$.away'), 0) > 0 ELSE 0 END, "
    f"{SERVED_AT}, a.timings IS NOT NULL, CASE WHEN json_valid(a.timings) "
    "THEN coalesce(json_type(a.timings, '$.onset_at') IN ('integer', 'real'), 0) ELSE 0 END, "
    f"q.version FROM answers a JOIN queries q ON q.id = a.query {BEFORE}"
    "LEFT JOIN queries p ON p.id = q.repeats LEFT JOIN answers o ON o.query = p.id "
    "WHERE q.purpose <> 'practice' "
)


def answer_row(row: Row | tuple[Any, ...]) -> AnswerRow:
    """Return an answer from a row of `ANSWERS`."""
    return AnswerRow(*row[:4], *map(items_in, row[4:8]), *row[8:])


def answers_after(c: Connection, seq: int, simulated: bool = True) -> list[AnswerRow]:
    """List the next few thousand answers in order, without practice.

    Simulated participants are left out unless `simulated`.
    """
    rows = c.execute(
        ANSWERS + "AND a.seq > ? "
        "AND (? OR q.participant NOT IN (SELECT id FROM participants WHERE simulated = 1)) "
        "ORDER BY a.seq LIMIT ?",
        (seq, simulated, AT_ONCE),
    )
    return [answer_row(row) for row in rows]


def participants(c: Connection) -> list[ParticipantSummary]:
    """List all participants."""
    rows = c.execute(
        "SELECT id, external, stage, trials, done, excluded, feedback, arrived_at, seen_at, "
        "simulated FROM participants ORDER BY id"
    )
    return [ParticipantSummary(*row) for row in rows]


def milestones_after(c: Connection, version: int) -> list[Milestone]:
    """List the models published since, in order."""
    rows = c.execute(
        "SELECT version, up_to_seq, answers, audit, rank, summary FROM models "
        "WHERE version > ? AND step > ? ORDER BY version",
        (version, last_simulated_step(c)),
    )
    return [Milestone(*row) for row in rows]


def decision(c: Connection) -> DecisionRow | None:
    """Return the newest decision."""
    row = c.execute(
        "SELECT stop, settled, rank, message, reasons FROM decisions WHERE step > ? "
        "ORDER BY step DESC LIMIT 1",
        (last_simulated_step(c),),
    ).fetchone()
    if row is None:
        return None
    return DecisionRow(bool(row[0]), bool(row[1]), row[2], row[3], json.loads(row[4]))


def audited_ranks(c: Connection) -> tuple[int, ...]:
    """Return the ranks of the last audits, the newest last.

    Only those since the last change of included participants or imported answers: earlier audits
    used other answers.
    """
    rows = c.execute(
        "SELECT m.rank FROM models m JOIN steps s ON s.id = m.step "
        "WHERE m.audit = 1 AND s.up_to_event >= (SELECT coalesce(max(id), 0) FROM events "
        f"WHERE kind IN ({CHANGES})) "
        "ORDER BY m.version DESC LIMIT ?",
        (RECENT_AUDITS,),
    )
    return tuple(row[0] for row in rows.fetchall()[::-1])


def stopped_by(c: Connection) -> str:
    """Return who stopped the study last; empty if it was not stopped."""
    row = c.execute("SELECT who FROM events WHERE kind = 'stop' ORDER BY id DESC LIMIT 1")
    last_stop = row.fetchone()
    return "" if last_stop is None else str(last_stop[0])


def events(c: Connection, last: int) -> list[EventRow]:
    """List the last events, newest first."""
    rows = c.execute(
        "SELECT id, at, who, kind, participant, detail FROM events ORDER BY id DESC LIMIT ?",
        (last,),
    )
    return [_event(row) for row in rows]


def answers_for_export(c: Connection, seq: int) -> list[tuple[Any, ...]]:
    """List the next few thousand answers in order, with lists of items as stored."""
    rows = c.execute(
        "SELECT a.seq, q.participant, p.excluded, p.simulated, q.slot, q.purpose, q.origin, "
        "q.anchor, q.options, a.outcome, a.chosen, q.known, q.repeats, a.rt_ms, a.late, "
        f"a.received_at, q.leased_at, q.version, q.id, {BACKGROUND} "
        "FROM answers a JOIN queries q ON q.id = a.query "
        "JOIN participants p ON p.id = q.participant WHERE a.seq > ? ORDER BY a.seq LIMIT ?",
        (seq, AT_ONCE),
    )
    return [tuple(row) for row in rows]


def item_keys(c: Connection) -> dict[int, str]:
    """Return the key of each item by its number."""
    return dict(tuple(row) for row in c.execute("SELECT id, key FROM items"))


def participants_for_export(c: Connection) -> list[tuple[Any, ...]]:
    """List every participant, as in the CSV file."""
    rows = c.execute(
        "SELECT id, excluded, simulated, stage, trials, done, arrived_at, finished_at, external, "
        "entry, agent, feedback FROM participants ORDER BY id"
    )
    return [tuple(row) for row in rows]


_GROUPED = (
    "SELECT q.participant, q.purpose, q.origin, a.outcome, count(*), sum(a.late) "
    "FROM answers a JOIN queries q ON q.id = a.query WHERE {which} "
    "GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
)


def answer_groups(c: Connection, after: int = 0) -> tuple[int, list[AnswerGroup]]:
    """Return the last answer, and groups of all after a given one, including practice."""
    last = int(c.execute("SELECT coalesce(max(seq), 0) FROM answers").fetchone()[0])
    rows = c.execute(_GROUPED.format(which="a.seq > ? AND a.seq <= ?"), (after, last))
    return last, [AnswerGroup(*row) for row in rows]


def answer_seqs(c: Connection) -> list[int]:
    """List the sequence numbers of answers, without practice."""
    rows = c.execute(
        "SELECT a.seq FROM answers a JOIN queries q ON q.id = a.query "
        "WHERE q.purpose <> 'practice' ORDER BY a.seq"
    )
    return [row[0] for row in rows]


def quarantined(c: Connection) -> list[AnswerGroup]:
    """Group the quarantined answers."""
    rows = c.execute(_GROUPED.format(which=f"a.seq IN ({QUARANTINED})"), ("answer",))
    return [AnswerGroup(*row) for row in rows]


def made_with(c: Connection) -> list[MadeWith]:
    """List the fingerprints of the models, in order."""
    rows = c.execute(
        "SELECT fingerprint, count(*), min(version), max(version) FROM models "
        "GROUP BY fingerprint ORDER BY min(version)"
    )
    return [MadeWith(*row) for row in rows]


def all_events(c: Connection, participant: int | None = None) -> Iterator[EventRow]:
    """Yield every event in order, or those about a participant."""
    for row in c.execute(
        "SELECT id, at, who, kind, participant, detail FROM events "
        "WHERE ?1 IS NULL OR participant = ?1 ORDER BY id",
        (participant,),
    ).fetchall():
        yield _event(row)


def _event(row: Row) -> EventRow:
    detail = current_detail(json.loads(row[5]))
    return EventRow(row[0], row[1], row[2], current_event(row[3]), row[4], detail)


def recent_answers(c: Connection, since: int) -> int:
    """Count answers received since this time."""
    # Searched from the newest back, since only the end of the table matters.
    row = c.execute(
        "SELECT seq FROM answers WHERE received_at < ? ORDER BY seq DESC LIMIT 1", (since,)
    )
    last_before = row.fetchone()
    newest = c.execute("SELECT coalesce(max(seq), 0) FROM answers").fetchone()[0]
    return int(newest) - (0 if last_before is None else int(last_before[0]))
