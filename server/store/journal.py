"""SQL of the worker: its journal, its queue of questions and its snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Row
from typing import TYPE_CHECKING

from server.store import collection
from server.store.database import Connection

if TYPE_CHECKING:
    # Importing it at run time would load the compiler into the web process.
    from lore_active.questions.question import Purpose


# A lease that starts more than an hour from now was given before the clock was set back, and would
# otherwise be out for as long.
SET_BACK_MS = 3_600_000
# Numbers of the questions or answers (the parameter) that the worker quarantined.
QUARANTINED = "SELECT json_extract(detail, '$.' || ?) FROM events WHERE kind = 'set aside'"


@dataclass(frozen=True)
class Step:
    """One step of the worker: its input, its work, and the result (as a hash)."""

    id: int
    at: int
    up_to_query: int
    up_to_seq: int
    up_to_event: int
    work: str
    asked: int
    pending: tuple[int, ...]
    version: int
    hash: str
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class ServerQuestion:
    """A question that the web server chose, not the learner."""

    id: int
    purpose: str
    anchor: int
    left: int
    right: int
    repeats: int | None
    repeats_learner: int | None


@dataclass(frozen=True)
class AnswerToLearn:
    """An answer as the learner uses it: `chosen` is the nearer item, None if skipped.

    `left_out` if it is from a simulated participant and these no longer count.
    """

    seq: int
    query: int
    learner: int | None
    purpose: str
    participant: int
    chosen: int | None
    left_out: int


@dataclass(frozen=True)
class CountedAnswer:
    """An answer that a model can be fitted to.

    `excluded` if its participant is excluded, or simulated while real ones have answered.
    """

    seq: int
    participant: int
    anchor: int
    nearer: int
    farther: int
    excluded: int
    purpose: str


@dataclass(frozen=True)
class JournalChange:
    """A participant excluded or restored, simulated ones left out, or a file of answers imported or
    removed."""

    id: int
    kind: str
    participant: int | None
    prior: int | None


@dataclass(frozen=True)
class ReadyQuestion:
    """A question of the learner for the queue."""

    learner: int
    purpose: str
    anchor: int
    left: int
    right: int
    version: int
    score: float
    seed: str


def heads(c: Connection) -> tuple[int, int, int]:
    """Return the newest question, answer and event."""
    row = c.execute(
        "SELECT (SELECT coalesce(max(id), 0) FROM queries), "
        "(SELECT coalesce(max(seq), 0) FROM answers), "
        "(SELECT coalesce(max(id), 0) FROM events)"
    ).fetchone()
    return row[0], row[1], row[2]


def server_questions(c: Connection, after: int, up_to: int) -> list[ServerQuestion]:
    """List questions chosen by the web server that the learner must know."""
    rows = c.execute(
        "SELECT id, purpose, anchor, left, right, repeats, "
        "(SELECT o.learner FROM queries o WHERE o.id = q.repeats) FROM queries q "
        "WHERE id > ? AND id <= ? AND origin <> 'learner' "
        "AND purpose NOT IN ('catch', 'practice') ORDER BY id",
        (after, up_to),
    )
    quarantined = _quarantined(c, "question")
    return [
        question
        for question in (ServerQuestion(*row) for row in rows)
        if question.id not in quarantined
    ]


def answers_to_learn(
    c: Connection, after: int, up_to: int, up_to_event: int
) -> list[AnswerToLearn]:
    """List answers that the model uses, in order, as of an event."""
    out = collection.simulated_out(c)
    left_out = out is not None and out <= up_to_event
    rows = c.execute(
        "SELECT a.seq, q.id, q.learner, q.purpose, q.participant, "
        "CASE a.side WHEN 'left' THEN q.left WHEN 'right' THEN q.right END, "
        "? AND EXISTS (SELECT 1 FROM participants p WHERE p.id = q.participant AND p.simulated = 1)"
        " FROM answers a JOIN queries q ON q.id = a.query WHERE a.seq > ? AND a.seq <= ? "
        "AND q.purpose NOT IN ('catch', 'practice') ORDER BY a.seq",
        (left_out, after, up_to),
    )
    quarantined = quarantined_answers(c)
    return [
        answer for answer in (AnswerToLearn(*row) for row in rows) if answer.seq not in quarantined
    ]


def quarantined_answers(c: Connection) -> set[int]:
    """Return the numbers of quarantined answers."""
    return _quarantined(c, "answer")


def _quarantined(c: Connection, what: str) -> set[int]:
    """Return the numbers of quarantined questions or answers."""
    return {row[0] for row in c.execute(QUARANTINED, (what,)) if row[0] is not None}


def counted(c: Connection) -> list[CountedAnswer]:
    """List every answer that can count, in order, including excluded participants."""
    out = collection.simulated_out(c) is not None
    rows = c.execute(
        "SELECT a.seq, q.participant, q.anchor, "
        "CASE a.side WHEN 'left' THEN q.left ELSE q.right END, "
        "CASE a.side WHEN 'left' THEN q.right ELSE q.left END, p.excluded OR (p.simulated AND ?), "
        "q.purpose "
        "FROM answers a JOIN queries q ON q.id = a.query "
        "JOIN participants p ON p.id = q.participant WHERE a.side IN ('left', 'right') "
        "AND q.purpose NOT IN ('catch', 'practice') ORDER BY a.seq",
        (out,),
    )
    quarantined = quarantined_answers(c)
    return [
        answer for answer in (CountedAnswer(*row) for row in rows) if answer.seq not in quarantined
    ]


def changes(c: Connection, after: int, up_to: int) -> list[JournalChange]:
    """List exclusions, restorations, imports and their removal, in order."""
    rows = c.execute(
        "SELECT id, kind, participant, json_extract(detail, '$.prior') FROM events "
        "WHERE id > ? AND id <= ? "
        "AND kind IN ('exclude', 'restore', 'simulated_out', 'prior', 'prior_out') ORDER BY id",
        (after, up_to),
    )
    return [JournalChange(*row) for row in rows]


def simulated_until(c: Connection, up_to: int) -> list[int]:
    """List simulated participants with answers up to this one."""
    rows = c.execute(
        "SELECT DISTINCT q.participant FROM participants p JOIN queries q ON q.participant = p.id "
        "JOIN answers a ON a.query = q.id WHERE p.simulated = 1 AND a.seq <= ? ORDER BY 1",
        (up_to,),
    )
    return [row[0] for row in rows]


def settled_before(c: Connection, change: JournalChange) -> bool:
    """Return whether a change concerns a simulated participant who was already left out."""
    out = collection.simulated_out(c)
    if out is None or out > change.id:
        return False
    sql = "SELECT 1 FROM participants WHERE id = ? AND simulated = 1"
    return c.execute(sql, (change.participant,)).fetchone() is not None


def out(c: Connection, now: int, up_to: int) -> list[tuple[int, int | None]]:
    """List (query, learner's number) of questions with a current lease."""
    rows = c.execute(
        "SELECT q.id, q.learner FROM queries q LEFT JOIN answers a ON a.query = q.id "
        "WHERE q.participant IS NOT NULL AND q.expires_at > ? AND q.leased_at <= ? "
        "AND a.seq IS NULL AND +q.id <= ? "
        "AND q.purpose NOT IN ('catch', 'practice') ORDER BY q.id",
        (now, now + SET_BACK_MS, up_to),
    )
    return [(row[0], row[1]) for row in rows]


def ready(c: Connection) -> list[int]:
    """List the learner's numbers of the questions in the queue."""
    rows = c.execute(
        "SELECT learner FROM queries WHERE participant IS NULL AND withdrawn IS NULL ORDER BY id"
    )
    return [row[0] for row in rows]


def set_learner_numbers(c: Connection, numbers: Sequence[tuple[int, int]]) -> None:
    """Store the learner's numbers of the web server's questions: (learner, query)."""
    c.executemany("UPDATE queries SET learner = ? WHERE id = ?", numbers)


def withdraw_ready(c: Connection, step: int) -> int:
    """Withdraw all questions in the queue."""
    cursor = c.execute(
        "UPDATE queries SET withdrawn = ? WHERE participant IS NULL AND withdrawn IS NULL", (step,)
    )
    return cursor.rowcount


def add_ready(c: Connection, step: int, now: int, ready: Sequence[ReadyQuestion]) -> None:
    """Add questions to the queue, except those leased while they were being selected."""
    busy = {
        (row[0], row[1], row[2])
        for row in c.execute(
            "SELECT q.anchor, min(q.left, q.right), max(q.left, q.right) FROM queries q "
            "WHERE q.participant IS NOT NULL AND q.expires_at > ? AND q.leased_at <= ? "
            "AND NOT EXISTS (SELECT 1 FROM answers a WHERE a.query = q.id)",
            (now, now + SET_BACK_MS),
        )
    }
    c.executemany(
        "INSERT INTO queries (origin, purpose, anchor, left, right, version, score, seed, "
        "learner, step, created_at, withdrawn) VALUES ('learner', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(
                    question.purpose,
                    question.anchor,
                    question.left,
                    question.right,
                    question.version,
                    question.score,
                    question.seed,
                ),
                *(question.learner, step, now),
                step
                if (
                    question.anchor,
                    min(question.left, question.right),
                    max(question.left, question.right),
                )
                in busy
                else None,
            )
            for question in ready
        ],
    )


def add_step(c: Connection, step: Step) -> None:
    """Store a step of the worker."""
    c.execute(
        "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(step.id, step.at, step.up_to_query, step.up_to_seq, step.up_to_event),
            *(step.work, step.asked),
            json.dumps(step.pending),
            step.version,
            step.hash,
            json.dumps(step.seconds),
        ),
    )


def steps(c: Connection, after: int = 0) -> list[Step]:
    """List the worker's steps after a given one, in order."""
    rows = c.execute("SELECT * FROM steps WHERE id > ? ORDER BY id", (after,)).fetchall()
    return [_step(row) for row in rows]


def step_numbered(c: Connection, number: int) -> Step | None:
    """Return one step of the worker."""
    row = c.execute("SELECT * FROM steps WHERE id = ?", (number,)).fetchone()
    return None if row is None else _step(row)


def _step(row: Row) -> Step:
    values = {name: row[name] for name in row.keys()}  # noqa: SIM118 - a Row has no items()
    values["pending"] = tuple(json.loads(values["pending"]))
    values["seconds"] = json.loads(values["seconds"])
    return Step(**values)


def asked_in(c: Connection, step: int) -> list[tuple[int, int, int, Purpose]]:
    """List (anchor, left, right, purpose) of the questions selected in a step."""
    rows = c.execute(
        "SELECT anchor, left, right, purpose FROM queries WHERE step = ? ORDER BY learner", (step,)
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows]


def scored_in(c: Connection, step: int) -> list[tuple[int, int, float]]:
    """List (query, learner's number, score) of the questions selected in a step."""
    rows = c.execute(
        "SELECT id, learner, score FROM queries WHERE step = ? ORDER BY learner", (step,)
    )
    return [(row[0], row[1], row[2]) for row in rows]


def save_snapshot(c: Connection, step: int, document: bytes, arrays: bytes) -> None:
    """Replace the snapshot from which a restarted worker continues."""
    c.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?)", (step, document, arrays))


def snapshot(c: Connection) -> tuple[int, bytes, bytes] | None:
    """Return (step, document, arrays) of the last snapshot."""
    row = c.execute("SELECT step, document, arrays FROM snapshot").fetchone()
    return None if row is None else (row[0], row[1], row[2])
