"""SQL of learning: the worker's journal, its queue of questions, its snapshot and health."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Row
from typing import TYPE_CHECKING

from server.store import collection
from server.store.database import Connection

if TYPE_CHECKING:
    # Importing it would bring the compiler into the web process.
    from lore_active.questions.question import Purpose


# What seems to have been given out more than an hour from now was so before the clock was set back,
# and would be out for as long.
SET_BACK_MS = 3_600_000
# Numbers of the questions or answers (the parameter) that the worker set aside.
QUARANTINED = "SELECT json_extract(detail, '$.' || ?) FROM events WHERE kind = 'set aside'"


@dataclass(frozen=True)
class Step:
    """One turn of the worker: what it had seen, what it did, what came out (as a hash)."""

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
    """A question that did not come from the learner."""

    id: int
    purpose: str
    anchor: int
    left: int
    right: int
    repeats: int | None
    repeats_learner: int | None


@dataclass(frozen=True)
class AnswerToLearn:
    """An answer as the learner wants it: `chosen` is the item called nearer, None if skipped.

    `left_out`: it came from a simulated participant when their answers no longer counted.
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
    """An answer that a model can be fitted to, whoever gave it.

    `excluded` if its participant is, or is simulated where people have answered.
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
    """A participant excluded or restored, simulated ones left out, or a file of prior answers
    brought in or taken out."""

    id: int
    kind: str
    participant: int | None
    prior: int | None


@dataclass(frozen=True)
class ReadyQuestion:
    """A question of the learner's for the queue."""

    learner: int
    purpose: str
    anchor: int
    left: int
    right: int
    version: int
    score: float
    seed: str


def heads(c: Connection) -> tuple[int, int, int]:
    """The newest query, answer and event."""
    row = c.execute(
        "SELECT (SELECT coalesce(max(id), 0) FROM queries), "
        "(SELECT coalesce(max(seq), 0) FROM answers), "
        "(SELECT coalesce(max(id), 0) FROM events)"
    ).fetchone()
    return row[0], row[1], row[2]


def server_questions(c: Connection, after: int, up_to: int) -> list[ServerQuestion]:
    """Questions of the web's own choosing that the learner must know of."""
    rows = c.execute(
        "SELECT id, purpose, anchor, left, right, repeats, "
        "(SELECT o.learner FROM queries o WHERE o.id = q.repeats) FROM queries q "
        "WHERE id > ? AND id <= ? AND origin <> 'learner' "
        "AND purpose NOT IN ('catch', 'practice') ORDER BY id",
        (after, up_to),
    )
    aside = _quarantined(c, "question")
    return [one for one in (ServerQuestion(*row) for row in rows) if one.id not in aside]


def answers_to_learn(
    c: Connection, after: int, up_to: int, up_to_event: int
) -> list[AnswerToLearn]:
    """Answers to questions that count for the model, in order, as of an event."""
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
    aside = quarantined_answers(c)
    return [one for one in (AnswerToLearn(*row) for row in rows) if one.seq not in aside]


def quarantined_answers(c: Connection) -> set[int]:
    """The answers that no learner can use."""
    return _quarantined(c, "answer")


def _quarantined(c: Connection, what: str) -> set[int]:
    """Numbers of the questions or answers that no learner can use."""
    return {row[0] for row in c.execute(QUARANTINED, (what,)) if row[0] is not None}


def counted(c: Connection) -> list[CountedAnswer]:
    """Every answer that can count, excluded people's included, in order."""
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
    aside = quarantined_answers(c)
    return [one for one in (CountedAnswer(*row) for row in rows) if one.seq not in aside]


def changes(c: Connection, after: int, up_to: int) -> list[JournalChange]:
    """Exclusions and restorations, simulated answers out, prior answers in and out, in order."""
    rows = c.execute(
        "SELECT id, kind, participant, json_extract(detail, '$.prior') FROM events "
        "WHERE id > ? AND id <= ? "
        "AND kind IN ('exclude', 'restore', 'simulated_out', 'prior', 'prior_out') ORDER BY id",
        (after, up_to),
    )
    return [JournalChange(*row) for row in rows]


def simulated_until(c: Connection, up_to: int) -> list[int]:
    """The simulated participants who had answered by then."""
    rows = c.execute(
        "SELECT DISTINCT q.participant FROM participants p JOIN queries q ON q.participant = p.id "
        "JOIN answers a ON a.query = q.id WHERE p.simulated = 1 AND a.seq <= ? ORDER BY 1",
        (up_to,),
    )
    return [row[0] for row in rows]


def settled_before(c: Connection, change: JournalChange) -> bool:
    """Whether a change is about a simulated participant when these were left out already."""
    out = collection.simulated_out(c)
    if out is None or out > change.id:
        return False
    sql = "SELECT 1 FROM participants WHERE id = ? AND simulated = 1"
    return c.execute(sql, (change.participant,)).fetchone() is not None


def out(c: Connection, now: int, up_to: int) -> list[tuple[int, int | None]]:
    """(query, learner's number) of what is with somebody whose lease runs."""
    rows = c.execute(
        "SELECT q.id, q.learner FROM queries q LEFT JOIN answers a ON a.query = q.id "
        "WHERE q.participant IS NOT NULL AND q.expires_at > ? AND q.leased_at <= ? "
        "AND a.seq IS NULL AND +q.id <= ? "
        "AND q.purpose NOT IN ('catch', 'practice') ORDER BY q.id",
        (now, now + SET_BACK_MS, up_to),
    )
    return [(row[0], row[1]) for row in rows]


def ready(c: Connection) -> list[int]:
    """The learner's numbers of what is waiting for somebody."""
    rows = c.execute(
        "SELECT learner FROM queries WHERE participant IS NULL AND withdrawn IS NULL ORDER BY id"
    )
    return [row[0] for row in rows]


def recent_answers(c: Connection, since: int) -> int:
    """Answers received since then."""
    # From the newest back: the table is ordered by arrival, and only its end matters.
    row = c.execute(
        "SELECT seq FROM answers WHERE received_at < ? ORDER BY seq DESC LIMIT 1", (since,)
    )
    found = row.fetchone()
    newest = c.execute("SELECT coalesce(max(seq), 0) FROM answers").fetchone()[0]
    return int(newest) - (0 if found is None else int(found[0]))


def set_learner_numbers(c: Connection, numbers: Sequence[tuple[int, int]]) -> None:
    """Write down which of the learner's queries the web's own ones became: (learner, query)."""
    c.executemany("UPDATE queries SET learner = ? WHERE id = ?", numbers)


def withdraw_ready(c: Connection, step: int) -> int:
    """Take back what nobody has been given yet."""
    cursor = c.execute(
        "UPDATE queries SET withdrawn = ? WHERE participant IS NULL AND withdrawn IS NULL", (step,)
    )
    return cursor.rowcount


def add_ready(c: Connection, step: int, now: int, ready: Sequence[ReadyQuestion]) -> None:
    """Put questions into the queue, but none that went out while they were being chosen."""
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
                *(one.purpose, one.anchor, one.left, one.right, one.version, one.score, one.seed),
                *(one.learner, step, now),
                step
                if (one.anchor, min(one.left, one.right), max(one.left, one.right)) in busy
                else None,
            )
            for one in ready
        ],
    )


def add_step(c: Connection, step: Step) -> None:
    """Write down a turn of the worker."""
    c.execute(
        "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            step.id,
            step.at,
            step.up_to_query,
            step.up_to_seq,
            step.up_to_event,
            step.work,
            step.asked,
            json.dumps(step.pending),
            step.version,
            step.hash,
            json.dumps(step.seconds),
        ),
    )


def steps(c: Connection, after: int = 0) -> list[Step]:
    """The worker's turns after a given one, in order."""
    rows = c.execute("SELECT * FROM steps WHERE id > ? ORDER BY id", (after,)).fetchall()
    return [_step(row) for row in rows]


def step_numbered(c: Connection, number: int) -> Step | None:
    """One turn of the worker."""
    row = c.execute("SELECT * FROM steps WHERE id = ?", (number,)).fetchone()
    return None if row is None else _step(row)


def _step(row: Row) -> Step:
    held = {name: row[name] for name in row.keys()}  # noqa: SIM118 - a Row has no items()
    held["pending"] = tuple(json.loads(held["pending"]))
    held["seconds"] = json.loads(held["seconds"])
    return Step(**held)


def asked_in(c: Connection, step: int) -> list[tuple[int, int, int, Purpose]]:
    """(anchor, left, right, purpose) of the questions that the learner asked in a step."""
    rows = c.execute(
        "SELECT anchor, left, right, purpose FROM queries WHERE step = ? ORDER BY learner", (step,)
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows]


def scored_in(c: Connection, step: int) -> list[tuple[int, int, float]]:
    """(query, learner's number, score) of the questions that the learner asked in a step."""
    rows = c.execute(
        "SELECT id, learner, score FROM queries WHERE step = ? ORDER BY learner", (step,)
    )
    return [(row[0], row[1], row[2]) for row in rows]


def save_snapshot(c: Connection, step: int, document: bytes, arrays: bytes) -> None:
    """Replace the place from which a restarted worker goes on."""
    c.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?)", (step, document, arrays))


def snapshot(c: Connection) -> tuple[int, bytes, bytes] | None:
    """(step, document, arrays) of the last snapshot."""
    row = c.execute("SELECT step, document, arrays FROM snapshot").fetchone()
    return None if row is None else (row[0], row[1], row[2])
