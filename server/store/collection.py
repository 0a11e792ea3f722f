"""SQL of collecting: participants, the questions they are given, their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from sqlite3 import Row
from typing import Any

from server.store.database import Connection

# People in these stages may still answer, so what they were promised is set aside for them.
UNDER_WAY = ("consent", "instructions", "practice", "trials")
STILL_HERE = ("consent", "instructions", "practice", "trials", "feedback")


@dataclass(frozen=True)
class State:
    """What the experimenter can change while the study runs."""

    status: str
    reason: str
    budget_answers: int
    budget_participants: int
    trials: int
    seed: int


@dataclass(frozen=True)
class Participant:
    """A person taking part."""

    id: int
    token: str
    external: str | None
    entry: str
    agent: str
    stage: str
    trials: int
    done: int
    practised: int
    rested: int
    visit: int
    excluded: int
    feedback: str
    arrived_at: int
    seen_at: int
    consented_at: int | None
    finished_at: int | None


@dataclass(frozen=True)
class Issued:
    """A question in somebody's hands."""

    id: int
    purpose: str
    anchor: int
    left: int
    right: int
    nearer: int | None
    participant: int
    slot: int
    token: str
    expires_at: int
    side: str | None


@dataclass(frozen=True)
class NewQuery:
    """A question to be given to a participant."""

    origin: str
    purpose: str
    anchor: int
    left: int
    right: int
    nearer: int | None
    repeats: int | None
    probability: float | None
    seed: str


_PARTICIPANT = ", ".join(field.name for field in fields(Participant))
_ISSUED = (
    "SELECT q.id, q.purpose, q.anchor, q.left, q.right, q.nearer, q.participant, q.slot, q.token, "
    "q.expires_at, a.side FROM queries q LEFT JOIN answers a ON a.query = q.id "
)


def _one(row: Row | None, kind: type[Any]) -> Any:
    return None if row is None else kind(*row)


def begin_study(
    c: Connection, items: Sequence[tuple[int, str, str, str]], state: Mapping[str, Any]
) -> None:
    """Write down the items and the state a study starts in."""
    c.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", items)
    c.execute(
        "INSERT INTO state VALUES (1, 'running', '', :answers, :participants, :trials, :seed)",
        state,
    )


def items(c: Connection) -> list[tuple[int, str, str, str]]:
    """(number, key, kind, content) of every item."""
    return [tuple(row) for row in c.execute("SELECT * FROM items ORDER BY id")]


def state(c: Connection) -> State | None:
    """The study's state; None before it has begun."""
    row = c.execute(
        "SELECT status, reason, budget_answers, budget_participants, trials, seed FROM state"
    ).fetchone()
    found: State | None = _one(row, State)
    return found


def set_state(c: Connection, **changes: Any) -> None:
    """Change the study's state."""
    assert set(changes) <= {field.name for field in fields(State)}
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    c.execute(f"UPDATE state SET {assignments}", changes)


def set_content(c: Connection, item: int, content: str) -> None:
    """Take note that an item's file has changed."""
    c.execute("UPDATE items SET content = ? WHERE id = ?", (content, item))


# ---- participants -------------------------------------------------------------------------------


def participant(c: Connection, token: str) -> Participant | None:
    """Who holds this token."""
    row = c.execute(f"SELECT {_PARTICIPANT} FROM participants WHERE token = ?", (token,)).fetchone()
    found: Participant | None = _one(row, Participant)
    return found


def participant_by_id(c: Connection, number: int) -> Participant | None:
    """The participant of this number."""
    row = c.execute(f"SELECT {_PARTICIPANT} FROM participants WHERE id = ?", (number,)).fetchone()
    found: Participant | None = _one(row, Participant)
    return found


def participant_known_as(c: Connection, external: str) -> Participant | None:
    """Who the recruiting service calls so."""
    row = c.execute(
        f"SELECT {_PARTICIPANT} FROM participants WHERE external = ?", (external,)
    ).fetchone()
    found: Participant | None = _one(row, Participant)
    return found


def add_participant(
    c: Connection,
    token: str,
    external: str | None,
    entry: Mapping[str, str],
    agent: str,
    trials: int,
    now: int,
) -> Participant:
    """A new participant, at the consent page."""
    c.execute(
        "INSERT INTO participants (token, external, entry, agent, stage, trials, arrived_at, "
        "seen_at) VALUES (?, ?, ?, ?, 'consent', ?, ?, ?)",
        (token, external, json.dumps(entry, ensure_ascii=False), agent, trials, now, now),
    )
    found = participant(c, token)
    assert found is not None
    return found


def change_participant(c: Connection, number: int, **changes: Any) -> Participant:
    """Set some of a participant's fields; gives the participant as they now are."""
    assert set(changes) <= {field.name for field in fields(Participant)} - {"id", "token"}
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    c.execute(f"UPDATE participants SET {assignments} WHERE id = :id", {**changes, "id": number})
    found = participant_by_id(c, number)
    assert found is not None
    return found


def promised(c: Connection, since: int, until: int, but: int = 0) -> tuple[int, int]:
    """(answers given or set aside for people under way, participants who count).

    People who were not seen between `since` and `until` keep what they gave, but nothing is set
    aside for them any more. `but` leaves one participant out.
    """
    row = c.execute(
        f"SELECT coalesce(sum(CASE WHEN stage IN {UNDER_WAY!r} "
        "AND seen_at BETWEEN :since AND :until THEN max(trials, done) ELSE done END), 0), "
        f"count(*) FILTER (WHERE done > 0 OR stage NOT IN ('declined', 'expired') "
        f"AND (stage NOT IN {UNDER_WAY!r} OR seen_at BETWEEN :since AND :until)) "
        "FROM participants WHERE id <> :but",
        {"since": since, "until": until, "but": but},
    ).fetchone()
    return int(row[0]), int(row[1])


def most_promised(c: Connection, after: int, up_to: int) -> int:
    """What would be promised to participants of these numbers if every one of them were here."""
    row = c.execute(
        "SELECT coalesce(sum(max(trials, done)), 0) FROM participants WHERE id > ? AND id <= ?",
        (after, up_to),
    ).fetchone()
    return int(row[0])


def newest_participant(c: Connection) -> int:
    """The highest number that a participant has; 0 where there is none."""
    return int(c.execute("SELECT coalesce(max(id), 0) FROM participants").fetchone()[0])


def under_way(c: Connection, since: int, until: int) -> int:
    """How many people are answering now: seen between these."""
    row = c.execute(
        f"SELECT count(*) FROM participants WHERE stage IN {UNDER_WAY!r} "
        "AND seen_at BETWEEN ? AND ?",
        (since, until),
    ).fetchone()
    return int(row[0])


# ---- questions ----------------------------------------------------------------------------------


def issued(c: Connection, token: str) -> Issued | None:
    """The question with this token."""
    found: Issued | None = _one(
        c.execute(_ISSUED + "WHERE q.token = ?", (token,)).fetchone(), Issued
    )
    return found


def issued_in(c: Connection, participant: int, slot: int) -> Issued | None:
    """The question in this place of a participant's session."""
    row = c.execute(
        _ISSUED + "WHERE q.participant = ? AND q.slot = ?", (participant, slot)
    ).fetchone()
    found: Issued | None = _one(row, Issued)
    return found


def issued_to(c: Connection, participant: int) -> list[Issued]:
    """All questions that a participant was given, in order."""
    rows = c.execute(_ISSUED + "WHERE q.participant = ? ORDER BY q.slot", (participant,))
    return [Issued(*row) for row in rows]


_NEW_ONES = "purpose NOT IN ('catch', 'repeat', 'practice')"


def count_had(c: Connection, participant: int) -> int:
    """How many different questions a participant was given, known ones and repeats aside."""
    row = c.execute(
        f"SELECT count(*) FROM queries WHERE participant = ? AND {_NEW_ONES}", (participant,)
    ).fetchone()
    return int(row[0])


def has_had(c: Connection, participant: int, anchor: int, one: int, other: int) -> bool:
    """Whether the participant was given this question before, on whatever sides."""
    row = c.execute(
        "SELECT 1 FROM queries WHERE participant = ? AND anchor = ? AND min(left, right) = ? "
        f"AND max(left, right) = ? AND {_NEW_ONES}",
        (participant, anchor, min(one, other), max(one, other)),
    ).fetchone()
    return row is not None


def first_ready(c: Connection, participant: int) -> tuple[int, int, int, int] | None:
    """(id, anchor, left, right) of the best ready question that is new to the participant."""
    row = c.execute(
        "SELECT id, anchor, left, right FROM queries r "
        "WHERE participant IS NULL AND withdrawn IS NULL AND NOT EXISTS ("
        "  SELECT 1 FROM queries q WHERE q.participant = ? AND q.anchor = r.anchor "
        "  AND min(q.left, q.right) = min(r.left, r.right) "
        "  AND max(q.left, q.right) = max(r.left, r.right) "
        "  AND q.purpose NOT IN ('catch', 'repeat', 'practice')"
        ") AND max(anchor, left, right) < (SELECT count(*) FROM items) ORDER BY id LIMIT 1",
        (participant,),
    ).fetchone()
    return None if row is None else (row[0], row[1], row[2], row[3])


def lease_ready(
    c: Connection,
    query: int,
    left: int,
    right: int,
    participant: int,
    slot: int,
    token: str,
    now: int,
    expires_at: int,
) -> None:
    """Give a ready question to a participant, with its sides as they will be shown."""
    c.execute(
        "UPDATE queries SET left = ?, right = ?, participant = ?, slot = ?, token = ?, "
        "leased_at = ?, expires_at = ? WHERE id = ? AND participant IS NULL",
        (left, right, participant, slot, token, now, expires_at, query),
    )


def lease_new(
    c: Connection,
    new: NewQuery,
    version: int,
    participant: int,
    slot: int,
    token: str,
    now: int,
    expires_at: int,
) -> None:
    """Give a participant a question that did not come from the learner."""
    c.execute(
        "INSERT INTO queries (origin, purpose, anchor, left, right, nearer, repeats, version, "
        "probability, seed, created_at, participant, slot, token, leased_at, expires_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.origin,
            new.purpose,
            new.anchor,
            new.left,
            new.right,
            new.nearer,
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


def renew_lease(c: Connection, query: int, expires_at: int) -> None:
    """The participant is looking at it again: it is out for a while longer."""
    c.execute("UPDATE queries SET expires_at = ? WHERE id = ?", (expires_at, query))


def add_answer(
    c: Connection,
    query: int,
    side: str,
    late: bool,
    received_at: int,
    rt_ms: float | None,
    timings: Mapping[str, Any] | None,
) -> int:
    """Store an answer; gives its place in the order of answers."""
    text = None if timings is None else json.dumps(timings, ensure_ascii=False)
    cursor = c.execute(
        "INSERT INTO answers (query, side, late, received_at, rt_ms, timings) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (query, side, int(late), received_at, rt_ms, text),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def model_version(c: Connection) -> int:
    """The version of the latest model; 0 before there is one."""
    return int(c.execute("SELECT coalesce(max(version), 0) FROM models").fetchone()[0])


# ---- events -------------------------------------------------------------------------------------


def add_event(
    c: Connection, kind: str, who: str, now: int, participant: int | None = None, **detail: Any
) -> int:
    """Write down what somebody decided."""
    cursor = c.execute(
        "INSERT INTO events (at, who, kind, participant, detail) VALUES (?, ?, ?, ?, ?)",
        (now, who, kind, participant, json.dumps(detail, ensure_ascii=False)),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid
