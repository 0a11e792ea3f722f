"""SQL of the worker: its journal, its queue of questions and its snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Row
from typing import TYPE_CHECKING

from server.store import collection
from server.store.database import Connection
from server.store.sqlite.former_names import IMPORT_NUMBER, current_event, event_kinds
from server.store.sqlite.item_lists import Items, items_in, listed, question_key

if TYPE_CHECKING:
    # Importing it at run time would load the compiler into the web process.
    from lore_active.questions.question import Purpose, Question


# A lease that starts more than an hour from now was given before the clock was set back, and would
# otherwise be out for as long.
SET_BACK_MS = 3_600_000
# Numbers of the questions or answers (the parameter) that the worker quarantined.
QUARANTINED = (
    "SELECT json_extract(detail, '$.' || ?) FROM events "
    f"WHERE kind IN ({event_kinds('quarantine')})"
)
# In earlier versions the learner numbered questions itself, from 0; queries.learner has its number
# of each. Steps whose hash has this prefix, or none, list pending questions by these numbers.
NUMBERED = "2:"
_PENDING = (
    f"CASE WHEN instr(hash, ':') > 0 AND hash NOT LIKE '{NUMBERED}%' THEN pending ELSE "
    "(SELECT json_group_array(q.id) FROM json_each(pending) n "
    "JOIN queries q ON q.learner = n.value) END AS pending"
)
CHANGES = event_kinds("exclude", "restore", "simulated_out", "import", "import_removed")


@dataclass(frozen=True)
class Step:
    """One step of the worker: its input, its work, and the result (as a hash).

    `audit_of` is the step after which the audit that this one takes in was started, if any.
    """

    id: int
    at: int
    up_to_question: int
    up_to_seq: int
    up_to_event: int
    work: str
    asked: int
    pending: tuple[int, ...]
    version: int
    hash: str
    seconds: Mapping[str, float]
    audit_of: int | None = None


@dataclass(frozen=True)
class ServerQuestion:
    """A question that the web server chose, not the learner."""

    id: int
    purpose: str
    anchor: int | None
    options: Items
    repeats: int | None


@dataclass(frozen=True)
class AnswerToLearn:
    """An answer as the learner uses it: the chosen items in order, None if it was skipped.

    `left_out` if it is from a simulated participant and these no longer count.
    """

    seq: int
    question: int
    participant: int
    chosen: Items | None
    left_out: int


@dataclass(frozen=True)
class CountedAnswer:
    """An answer that a model can be fitted to.

    `excluded` if its participant is excluded, or simulated while real ones have answered.
    """

    seq: int
    participant: int
    anchor: int | None
    options: Items
    chosen: Items
    excluded: int
    purpose: str


@dataclass(frozen=True)
class JournalChange:
    """A participant excluded or restored, bots left out, or a file imported or removed."""

    id: int
    kind: str
    participant: int | None
    file: int | None


@dataclass(frozen=True)
class AskedQuestion:
    """A question that the learner selected, as stored: `options` in the order of display.

    `number` is the learner's own number of it, in studies of earlier versions.
    """

    id: int
    anchor: int | None
    options: Items
    purpose: Purpose
    score: float
    number: int | None


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
        "SELECT id, purpose, anchor, options, repeats FROM queries "
        "WHERE id > ? AND id <= ? AND origin <> 'learner' "
        "AND purpose NOT IN ('catch', 'practice') ORDER BY id",
        (after, up_to),
    )
    bad = _quarantined(c, "question")
    new = (ServerQuestion(row[0], row[1], row[2], items_in(row[3]), row[4]) for row in rows)
    return [question for question in new if question.id not in bad]


def answers_to_learn(
    c: Connection, after: int, up_to: int, up_to_event: int
) -> list[AnswerToLearn]:
    """List answers that the model uses, in order, as of an event."""
    out = collection.simulated_out(c)
    left_out = out is not None and out <= up_to_event
    rows = c.execute(
        "SELECT a.seq, q.id, q.participant, a.chosen, "
        "? AND EXISTS (SELECT 1 FROM participants p WHERE p.id = q.participant AND p.simulated = 1)"
        " FROM answers a JOIN queries q ON q.id = a.query WHERE a.seq > ? AND a.seq <= ? "
        "AND q.purpose NOT IN ('catch', 'practice') ORDER BY a.seq",
        (left_out, after, up_to),
    )
    bad = quarantined_answers(c)
    return [
        AnswerToLearn(row[0], row[1], row[2], None if row[3] is None else items_in(row[3]), row[4])
        for row in rows
        if row[0] not in bad
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
        "SELECT a.seq, q.participant, q.anchor, q.options, a.chosen, "
        "p.excluded OR (p.simulated AND ?), q.purpose "
        "FROM answers a JOIN queries q ON q.id = a.query "
        "JOIN participants p ON p.id = q.participant WHERE a.outcome = 'chosen' "
        "AND q.purpose NOT IN ('catch', 'practice') ORDER BY a.seq",
        (out,),
    )
    bad = quarantined_answers(c)
    return [
        CountedAnswer(row[0], row[1], row[2], items_in(row[3]), items_in(row[4]), row[5], row[6])
        for row in rows
        if row[0] not in bad
    ]


def changes(c: Connection, after: int, up_to: int) -> list[JournalChange]:
    """List exclusions, restorations, imports and their removal, in order."""
    rows = c.execute(
        f"SELECT id, kind, participant, {IMPORT_NUMBER} FROM events "
        f"WHERE id > ? AND id <= ? AND kind IN ({CHANGES}) ORDER BY id",
        (after, up_to),
    )
    return [JournalChange(row[0], current_event(row[1]), row[2], row[3]) for row in rows]


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


# Questions with a current lease. Looked for among those that participants have still to answer:
# leases of the last minutes alone, mostly of answered questions, would be a hundred thousand rows
# in a crowd.
_OUT = (
    "FROM participants p CROSS JOIN queries q ON q.participant = p.id AND q.slot >= p.done "
    "WHERE p.stage IN ('practice', 'trials', 'expired') "
    "AND +q.expires_at > :now AND q.leased_at <= :latest "
    "AND NOT EXISTS (SELECT 1 FROM answers a WHERE a.query = q.id) "
)


def out(c: Connection, now: int, up_to: int) -> list[int]:
    """List the questions with a current lease."""
    rows = c.execute(
        f"SELECT q.id {_OUT} AND +q.id <= :up_to "
        "AND q.purpose NOT IN ('catch', 'practice') ORDER BY q.id",
        {"now": now, "latest": now + SET_BACK_MS, "up_to": up_to},
    )
    return [row[0] for row in rows]


def ready(c: Connection) -> list[int]:
    """List the questions in the queue."""
    rows = c.execute(
        "SELECT id FROM queries WHERE participant IS NULL AND withdrawn IS NULL ORDER BY id"
    )
    return [row[0] for row in rows]


def withdraw_ready(c: Connection, step: int) -> int:
    """Withdraw all questions in the queue."""
    cursor = c.execute(
        "UPDATE queries SET withdrawn = ? WHERE participant IS NULL AND withdrawn IS NULL", (step,)
    )
    return cursor.rowcount


def add_ready(c: Connection, step: Step, now: int, ready: Sequence[Question]) -> list[int]:
    """Store a step's questions, and return their ids.

    They are in the queue, except those leased while they were being selected.
    """
    busy = {
        row[0]
        for row in c.execute(f"SELECT q.key {_OUT}", {"now": now, "latest": now + SET_BACK_MS})
    }
    ids = []
    for new in ready:
        key = question_key(new.anchor, new.options)
        cursor = c.execute(
            "INSERT INTO queries (origin, purpose, anchor, options, key, version, score, seed, "
            "step, created_at, withdrawn) VALUES ('learner', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(new.purpose, new.anchor, listed(new.options), key, step.version, new.score),
                "/".join(str(part) for part in new.seed),
                *(step.id, now, step.id if key in busy else None),
            ),
        )
        assert cursor.lastrowid is not None
        ids.append(cursor.lastrowid)
    return ids


def add_step(c: Connection, step: Step) -> None:
    """Store a step of the worker."""
    c.execute(
        "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(step.id, step.at, step.up_to_question, step.up_to_seq, step.up_to_event),
            *(step.work, step.asked),
            json.dumps(step.pending),
            step.version,
            step.hash,
            json.dumps(step.seconds),
            step.audit_of,
        ),
    )


def steps(c: Connection, after: int = 0) -> list[Step]:
    """List the worker's steps after a given one, in order."""
    rows = c.execute(f"SELECT *, {_PENDING} FROM steps WHERE id > ? ORDER BY id", (after,))
    return [_step(row) for row in rows]


def step_numbered(c: Connection, number: int) -> Step | None:
    """Return one step of the worker."""
    row = c.execute(f"SELECT *, {_PENDING} FROM steps WHERE id = ?", (number,)).fetchone()
    return None if row is None else _step(row)


def _step(row: Row) -> Step:
    # The last of two columns with the same name counts.
    values = dict(zip(row.keys(), row, strict=True))
    values["up_to_question"] = values.pop("up_to_query")
    values["pending"] = tuple(json.loads(values["pending"]))
    values["seconds"] = json.loads(values["seconds"])
    return Step(**values)


def asked_in(c: Connection, step: int) -> list[AskedQuestion]:
    """List the questions selected in a step, in the order in which they were selected."""
    columns = "id, anchor, options, purpose, score, learner"
    rows = c.execute(f"SELECT {columns} FROM queries WHERE step = ? ORDER BY id", (step,))
    return [AskedQuestion(row[0], row[1], items_in(row[2]), *row[3:]) for row in rows]


def ids_of_numbers(c: Connection) -> list[int]:
    """List the ids of the questions that the learner numbered itself, by its number."""
    rows = c.execute("SELECT id FROM queries WHERE learner IS NOT NULL ORDER BY learner")
    return [row[0] for row in rows]


def save_snapshot(c: Connection, step: int, document: bytes, arrays: bytes) -> None:
    """Replace the snapshot from which a restarted worker continues."""
    c.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?)", (step, document, arrays))


def snapshot(c: Connection) -> tuple[int, bytes, bytes] | None:
    """Return (step, document, arrays) of the last snapshot."""
    row = c.execute("SELECT step, document, arrays FROM snapshot").fetchone()
    return None if row is None else (row[0], row[1], row[2])
