"""SQL of collecting: the study's items and state, its participants, what was decided."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from sqlite3 import Row
from typing import Any

from server.store.database import Connection

# People in these stages may still answer, so what they were promised is set aside for them.
UNDER_WAY = ("consent", "instructions", "practice", "trials")
STILL_HERE = (*UNDER_WAY, "feedback")


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


_PARTICIPANT = ", ".join(field.name for field in fields(Participant))


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


def add_items(c: Connection, items: Sequence[tuple[int, str, str, str]]) -> None:
    """Write down the items that are not there yet."""
    c.executemany("INSERT OR IGNORE INTO items VALUES (?, ?, ?, ?)", items)


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


def exclusions_without_event(c: Connection) -> list[tuple[int, bool]]:
    """(number, whether excluded) of participants of whom the events say otherwise."""
    rows = c.execute(
        "SELECT p.id, p.excluded, coalesce((SELECT e.kind = 'exclude' FROM events e WHERE "
        "e.participant = p.id AND e.kind IN ('exclude', 'restore') ORDER BY e.id DESC LIMIT 1), 0) "
        "AS said FROM participants p WHERE p.excluded <> said ORDER BY p.id"
    )
    return [(row[0], bool(row[1])) for row in rows]


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


def last_event(c: Connection, kind: str) -> dict[str, Any] | None:
    """The detail of the newest event of a kind; None if there was none."""
    row = c.execute(
        "SELECT detail FROM events WHERE kind = ? ORDER BY id DESC LIMIT 1", (kind,)
    ).fetchone()
    found: dict[str, Any] | None = None if row is None else json.loads(row[0])
    return found
