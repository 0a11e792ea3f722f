"""SQL of questions: which are ready, who was asked, and the answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Row
from typing import Any

from server.store.database import Connection
from server.store.sqlite.item_lists import Items, items_in, listed, question_key


@dataclass(frozen=True)
class Issued:
    """A question leased to a participant; it was displayed at `served_at` or later.

    `options` are in the order of display; `known` is the answer of catch and practice questions.
    `outcome` is None until it is answered, `chosen` in the order of choice.
    """

    id: int
    purpose: str
    anchor: int | None
    options: Items
    known: Items
    participant: int
    slot: int
    token: str
    expires_at: int
    served_at: int
    outcome: str | None
    chosen: Items


@dataclass(frozen=True)
class NewQuestion:
    """A question to be leased to a participant."""

    origin: str
    purpose: str
    anchor: int | None
    options: Items
    known: Items
    repeats: int | None
    probability: float | None
    seed: str


@dataclass(frozen=True)
class ReadyQuestion:
    """A question of the queue."""

    id: int
    purpose: str
    anchor: int | None
    options: Items


# A question is leased, and preloaded, while the one before it is still displayed: its turn comes
# with the answer to that one.
SERVED_AT = "max(coalesce(q.leased_at, 0), coalesce(before.received_at, 0))"
BEFORE = (
    "LEFT JOIN queries earlier ON earlier.participant = q.participant "
    "AND earlier.slot = q.slot - 1 LEFT JOIN answers before ON before.query = earlier.id "
)
# Sent by the page, so it can be anything; only a colour is kept.
BACKGROUND = (
    "CASE WHEN json_valid(a.timings) AND a.timings ->> '$.background' GLOB '#"
    + 6 * "[0-9a-f]"
    + "' THEN a.timings ->> '$.background' END"
)
_ISSUED = (
    "SELECT q.id, q.purpose, q.anchor, q.options, q.known, q.participant, q.slot, q.token, "
    f"q.expires_at, {SERVED_AT}, a.outcome, a.chosen FROM queries q "
    f"LEFT JOIN answers a ON a.query = q.id {BEFORE}"
)
# Columns of lists.
_OPTIONS, _KNOWN, _CHOSEN = 3, 4, 11

_encode = json.JSONEncoder(ensure_ascii=False).encode


def _issued(row: Row) -> Issued:
    values = list(row)
    for place in (_OPTIONS, _KNOWN, _CHOSEN):
        values[place] = items_in(values[place])
    return Issued(*values)


def issued(c: Connection, token: str) -> Issued | None:
    """Return the question with this token."""
    row = c.execute(_ISSUED + "WHERE q.token = ?", (token,)).fetchone()
    return None if row is None else _issued(row)


def issued_in(c: Connection, participant: int, slots: Sequence[int]) -> list[Issued]:
    """Return the questions in these slots of a participant's session, as far as they exist."""
    places = ", ".join("?" * len(slots))
    rows = c.execute(
        _ISSUED + f"WHERE q.participant = ? AND q.slot IN ({places})", (participant, *slots)
    )
    return [_issued(row) for row in rows]


def repeatable(c: Connection, participant: int, up_to: int) -> list[ReadyQuestion]:
    """List the answered questions that were not repeated, in order."""
    rows = c.execute(
        "SELECT q.id, q.purpose, q.anchor, q.options FROM queries q "
        "JOIN answers a ON a.query = q.id "
        "WHERE q.participant = :participant AND q.slot BETWEEN 0 AND :up_to "
        "AND q.purpose IN ('cover', 'active', 'random') AND a.outcome = 'chosen' "
        "AND q.id NOT IN (SELECT r.repeats FROM queries r "
        "WHERE r.participant = :participant AND r.purpose = 'repeat') ORDER BY q.slot",
        {"participant": participant, "up_to": up_to},
    )
    return [_ready(row) for row in rows]


def _ready(row: Row) -> ReadyQuestion:
    return ReadyQuestion(row[0], row[1], row[2], items_in(row[3]))


def times(c: Connection, participant: int, limit: int) -> list[int]:
    """List the times of a participant's last answers, newest first, without practice."""
    rows = c.execute(
        "SELECT a.received_at FROM queries q JOIN answers a ON a.query = q.id "
        "WHERE q.participant = ? AND q.slot >= 0 ORDER BY q.slot DESC LIMIT ?",
        (participant, limit),
    )
    return [int(row[0]) for row in rows]


def last_practice(c: Connection, participant: int) -> Issued | None:
    """Return the last practice question that a participant answered."""
    row = c.execute(
        _ISSUED + "WHERE q.participant = ? AND q.slot < 0 AND a.outcome IS NOT NULL "
        "ORDER BY q.slot DESC LIMIT 1",
        (participant,),
    ).fetchone()
    return None if row is None else _issued(row)


_NEW_ONES = "purpose NOT IN ('catch', 'repeat', 'practice')"


def count_had(c: Connection, participant: int) -> int:
    """Count a participant's questions, without catch, repeat and practice trials."""
    row = c.execute(
        f"SELECT count(*) FROM queries WHERE participant = ? AND {_NEW_ONES}", (participant,)
    ).fetchone()
    return int(row[0])


def has_had(c: Connection, participant: int, anchor: int | None, options: Items) -> bool:
    """Return whether the participant already had this question, in any order of its options."""
    row = c.execute(
        f"SELECT 1 FROM queries WHERE participant = ? AND key = ? AND {_NEW_ONES}",
        (participant, question_key(anchor, options)),
    ).fetchone()
    return row is not None


def first_ready(c: Connection, participant: int) -> ReadyQuestion | None:
    """Return the best ready question that is new to a participant.

    Those with items that do not exist, in a file that was edited, are passed over.
    """
    row = c.execute(
        "SELECT id, purpose, anchor, options FROM queries r "
        "WHERE participant IS NULL AND withdrawn IS NULL AND NOT EXISTS ("
        "  SELECT 1 FROM queries q WHERE q.participant = ? AND q.key = r.key "
        f"  AND {_NEW_ONES}"
        ") AND json_valid(options) AND NOT EXISTS ("
        "  SELECT 1 FROM json_each(r.options) WHERE value NOT IN (SELECT id FROM items)"
        ") AND (anchor IS NULL OR anchor IN (SELECT id FROM items)) ORDER BY id LIMIT 1",
        (participant,),
    ).fetchone()
    return None if row is None else _ready(row)


def lease_ready(
    c: Connection,
    question: int,
    participant: int,
    slot: int,
    token: str,
    now: int,
    expires_at: int,
) -> None:
    """Lease a ready question to a participant."""
    c.execute(
        "UPDATE queries SET participant = ?, slot = ?, token = ?, leased_at = ?, expires_at = ? "
        "WHERE id = ? AND participant IS NULL",
        (participant, slot, token, now, expires_at, question),
    )


def lease_new(
    c: Connection,
    new: NewQuestion,
    version: int,
    participant: int,
    slot: int,
    token: str,
    now: int,
    expires_at: int,
) -> int:
    """Lease a question that did not come from the learner to a participant; return its number."""
    cursor = c.execute(
        "INSERT INTO queries (origin, purpose, anchor, options, known, key, repeats, version, "
        "probability, seed, created_at, participant, slot, token, leased_at, expires_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.origin,
            new.purpose,
            new.anchor,
            listed(new.options),
            listed(new.known) if new.known else None,
            question_key(new.anchor, new.options),
            new.repeats,
            version,
            new.probability,
            new.seed,
            now,
            participant,
            slot,
            token,
            now,
            expires_at,
        ),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def renew_lease(c: Connection, question: int, expires_at: int) -> None:
    """Extend a lease, since the participant has loaded the question again."""
    c.execute("UPDATE queries SET expires_at = ? WHERE id = ?", (expires_at, question))


def add_answer(
    c: Connection,
    question: int,
    outcome: str,
    chosen: Items,
    late: bool,
    received_at: int,
    rt_ms: float | None,
    timings: Mapping[str, Any] | None,
) -> int:
    """Store an answer; return its sequence number. Nothing is chosen by a skip or a time-out."""
    text = None if timings is None else _encode(timings)
    cursor = c.execute(
        "INSERT INTO answers (query, outcome, chosen, late, received_at, rt_ms, timings) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            *(question, outcome, listed(chosen) if outcome == "chosen" else None),
            *(int(late), received_at, rt_ms, text),
        ),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid
