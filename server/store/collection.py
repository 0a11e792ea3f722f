"""SQL of data collection: the study's items and state, participants, and events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from sqlite3 import Row
from typing import Any

from server.store.database import Connection

# From this event on, answers of simulated participants are left out of the model.
SIMULATED_OUT = "simulated_out"
# The stopping rule was met with simulated answers in the model: no more bots are admitted.
SIMULATED_STOP = "simulated_stop"
# The study is a rehearsal or demo; the detail says which, and whether it is kept.
REHEARSAL = "rehearsal"
# Participants in these stages may still answer, so their trials are reserved.
UNDER_WAY = ("consent", "instructions", "practice", "trials")
STILL_HERE = (*UNDER_WAY, "feedback")


@dataclass(frozen=True)
class StudyState:
    """Settings that the experimenter can change while the study runs."""

    status: str
    reason: str
    budget_answers: int
    budget_participants: int
    trials: int
    seed: int
    kind: str


@dataclass(frozen=True)
class Participant:
    """A participant; `simulated` if it is a bot."""

    id: int
    token: str
    external: str | None
    entry: str
    agent: str
    stage: str
    trials: int
    done: int
    practice_done: int
    break_done: int
    visit: int
    excluded: int
    feedback: str
    arrived_at: int
    seen_at: int
    consented_at: int | None
    finished_at: int | None
    simulated: int


_STATE = ", ".join(field.name for field in fields(StudyState))
_PARTICIPANT = ", ".join(field.name for field in fields(Participant))


def _one(row: Row | None, kind: type[Any]) -> Any:
    return None if row is None else kind(*row)


def begin_study(
    c: Connection, items: Sequence[tuple[int, str, str, str]], state: Mapping[str, Any]
) -> None:
    """Store the items and the initial state of a study."""
    c.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", items)
    c.execute(
        "INSERT INTO state "
        "VALUES (1, 'running', '', :answers, :participants, :trials, :seed, :kind)",
        state,
    )


def add_items(c: Connection, items: Sequence[tuple[int, str, str, str]]) -> None:
    """Store the items that are missing."""
    c.executemany("INSERT OR IGNORE INTO items VALUES (?, ?, ?, ?)", items)


def items(c: Connection) -> list[tuple[int, str, str, str]]:
    """Return (number, key, kind, content) of every item."""
    return [tuple(row) for row in c.execute("SELECT * FROM items ORDER BY id")]


def has_begun(c: Connection) -> bool:
    """Return whether this is a study's database, even if its state is lost."""
    return bool(c.execute("SELECT EXISTS (SELECT 1 FROM items)").fetchone()[0])


def has_questions(c: Connection) -> bool:
    """Return whether any question was asked or is ready."""
    return bool(c.execute("SELECT EXISTS (SELECT 1 FROM queries)").fetchone()[0])


def state(c: Connection) -> StudyState | None:
    """Return the study's state; None before it has started."""
    row = c.execute(f"SELECT {_STATE} FROM state").fetchone()
    current: StudyState | None = _one(row, StudyState)
    return current


def set_state(c: Connection, **changes: Any) -> None:
    """Change the study's state."""
    assert set(changes) <= {field.name for field in fields(StudyState)}
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    c.execute(f"UPDATE state SET {assignments}", changes)


def set_content(c: Connection, item: int, content: str) -> None:
    """Update an item whose file has changed."""
    c.execute("UPDATE items SET content = ? WHERE id = ?", (content, item))


# ---- participants -------------------------------------------------------------------------------


def participant(c: Connection, token: str) -> Participant | None:
    """Return the participant with this token."""
    row = c.execute(f"SELECT {_PARTICIPANT} FROM participants WHERE token = ?", (token,)).fetchone()
    who: Participant | None = _one(row, Participant)
    return who


def participant_by_id(c: Connection, number: int) -> Participant | None:
    """Return the participant with this number."""
    row = c.execute(f"SELECT {_PARTICIPANT} FROM participants WHERE id = ?", (number,)).fetchone()
    who: Participant | None = _one(row, Participant)
    return who


def participant_known_as(c: Connection, external: str) -> Participant | None:
    """Return the participant with this recruitment id."""
    row = c.execute(
        f"SELECT {_PARTICIPANT} FROM participants WHERE external = ?", (external,)
    ).fetchone()
    who: Participant | None = _one(row, Participant)
    return who


def add_participant(
    c: Connection,
    token: str,
    external: str | None,
    entry: Mapping[str, str],
    agent: str,
    trials: int,
    now: int,
    simulated: bool = False,
) -> Participant:
    """Add a participant, at the consent page; `simulated` can never be changed."""
    text = json.dumps(entry, ensure_ascii=False)
    c.execute(
        "INSERT INTO participants (token, external, entry, agent, stage, trials, arrived_at, "
        "seen_at, simulated) VALUES (?, ?, ?, ?, 'consent', ?, ?, ?, ?)",
        (token, external, text, agent, trials, now, now, int(simulated)),
    )
    added = participant(c, token)
    assert added is not None
    return added


_FIXED = {"id", "token", "simulated"}
_CHANGEABLE = frozenset(field.name for field in fields(Participant)) - _FIXED


def change_participant(c: Connection, number: int, **changes: Any) -> Participant:
    """Set some of a participant's fields; return the updated participant."""
    assert _CHANGEABLE.issuperset(changes)
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    row = c.execute(
        f"UPDATE participants SET {assignments} WHERE id = :id RETURNING {_PARTICIPANT}",
        {**changes, "id": number},
    ).fetchone()
    changed: Participant = _one(row, Participant)
    assert changed is not None
    return changed


def reserved_trials(
    c: Connection, since: int, until: int, simulated: bool, but: int = 0
) -> tuple[int, int]:
    """Return (answers given or reserved, participants who count towards the budget).

    For participants not seen between `since` and `until` their answers count, but nothing is
    reserved. Simulated participants count only if `simulated`, since they do not use up the budget
    of real ones. `but` omits one participant.
    """
    row = c.execute(
        f"SELECT coalesce(sum(CASE WHEN stage IN {UNDER_WAY!r} "
        "AND seen_at BETWEEN :since AND :until THEN max(trials, done) ELSE done END), 0), "
        f"count(*) FILTER (WHERE done > 0 OR stage NOT IN ('declined', 'expired') "
        f"AND (stage NOT IN {UNDER_WAY!r} OR seen_at BETWEEN :since AND :until)) "
        "FROM participants WHERE id <> :but AND simulated <= :simulated",
        {"since": since, "until": until, "but": but, "simulated": int(simulated)},
    ).fetchone()
    return int(row[0]), int(row[1])


def max_reserved_trials(c: Connection, after: int, up_to: int) -> int:
    """Return the maximum number of answers reserved for participants with these numbers."""
    row = c.execute(
        "SELECT coalesce(sum(max(trials, done)), 0) FROM participants "
        "WHERE id > ? AND id <= ? AND simulated = 0",
        (after, up_to),
    ).fetchone()
    return int(row[0])


def participants_with_answers(c: Connection) -> int:
    """Count participants with answers who are neither simulated nor excluded."""
    row = c.execute(
        "SELECT count(*) FROM participants WHERE done > 0 AND simulated = 0 AND excluded = 0"
    ).fetchone()
    return int(row[0])


def newest_participant(c: Connection) -> int:
    """Return the highest participant number; 0 if there is none."""
    return int(c.execute("SELECT coalesce(max(id), 0) FROM participants").fetchone()[0])


def under_way(c: Connection, since: int, until: int) -> int:
    """Count participants under way who were seen between these times."""
    row = c.execute(
        f"SELECT count(*) FROM participants WHERE stage IN {UNDER_WAY!r} "
        "AND seen_at BETWEEN ? AND ?",
        (since, until),
    ).fetchone()
    return int(row[0])


def exclusions_without_event(c: Connection) -> list[tuple[int, bool]]:
    """Return (number, excluded) of participants whose exclusion contradicts the events."""
    rows = c.execute(
        "SELECT p.id, p.excluded, coalesce((SELECT e.kind = 'exclude' FROM events e WHERE "
        "e.participant = p.id AND e.kind IN ('exclude', 'restore') ORDER BY e.id DESC LIMIT 1), 0) "
        "AS said FROM participants p WHERE p.excluded <> said ORDER BY p.id"
    )
    return [(row[0], bool(row[1])) for row in rows]


# ---- simulated participants ---------------------------------------------------------------------


def simulated_out(c: Connection) -> int | None:
    """Return the event since which simulated answers are left out; None while they count."""
    return _simulated_event(c, SIMULATED_OUT)


def simulated_in(c: Connection, up_to_event: int) -> bool:
    """Return whether a model fitted as of this event includes simulated answers."""
    out = simulated_out(c)
    if out is not None and out <= up_to_event:
        return False
    row = c.execute("SELECT 1 FROM participants WHERE simulated = 1 AND done > 0 LIMIT 1")
    return row.fetchone() is not None


def simulated_stopped(c: Connection) -> bool:
    """Return whether no more simulated participants are admitted."""
    return _simulated_event(c, SIMULATED_STOP) is not None


def _simulated_event(c: Connection, kind: str) -> int | None:
    # Both kinds are named so that SQLite uses the partial index.
    row = c.execute(
        "SELECT min(id) FROM events WHERE kind IN ('simulated_out', 'simulated_stop') AND kind = ?",
        (kind,),
    ).fetchone()
    return None if row[0] is None else int(row[0])


def leave_simulated_out(c: Connection, now: int) -> None:
    """Leave out simulated answers once a real participant has answered."""
    some = "EXISTS (SELECT 1 FROM participants WHERE simulated = {} {})"
    both = c.execute(f"SELECT {some.format(1, '')} AND {some.format(0, 'AND done > 0')}").fetchone()
    # In a rehearsal, answers of real participants and bots are shown together.
    if both[0] and simulated_out(c) is None and last_event(c, REHEARSAL) is None:
        reason = "Real participants have answered: simulated ones are left out from now on."
        add_event(c, SIMULATED_OUT, "lore-active", now, reason=reason)


# ---- events -------------------------------------------------------------------------------------


def add_event(
    c: Connection, kind: str, who: str, now: int, participant: int | None = None, **detail: Any
) -> int:
    """Store an event; return its number."""
    cursor = c.execute(
        "INSERT INTO events (at, who, kind, participant, detail) VALUES (?, ?, ?, ?, ?)",
        (now, who, kind, participant, json.dumps(detail, ensure_ascii=False)),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def events_about(c: Connection, participant: int, kind: str) -> list[dict[str, Any]]:
    """List the details of a participant's events of a kind, oldest first."""
    rows = c.execute(
        "SELECT detail FROM events WHERE participant = ? AND kind = ? ORDER BY id",
        (participant, kind),
    )
    return [json.loads(row[0]) for row in rows]


def last_event(c: Connection, kind: str) -> dict[str, Any] | None:
    """Return the detail of the newest event of a kind; None if there is none."""
    row = c.execute(
        "SELECT detail FROM events WHERE kind = ? ORDER BY id DESC LIMIT 1", (kind,)
    ).fetchone()
    detail: dict[str, Any] | None = None if row is None else json.loads(row[0])
    return detail
