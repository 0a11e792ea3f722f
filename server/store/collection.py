"""SQL of collecting: the study's items and state, its participants, what was decided."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from sqlite3 import Row
from typing import Any

from server.store.database import Connection

# From this event on, answers of simulated participants are left out of the model.
SIMULATED_OUT = "simulated_out"
# The stopping rule was met with simulated answers in the model: no more bots are let in.
SIMULATED_STOP = "simulated_stop"
# The study is a copy for trying out; the detail says what for, and whether it is kept.
REHEARSAL = "rehearsal"
# People in these stages may still answer, so what they were promised is set aside for them.
UNDER_WAY = ("consent", "instructions", "practice", "trials")
STILL_HERE = (*UNDER_WAY, "feedback")


@dataclass(frozen=True)
class StudyState:
    """What the experimenter can change while the study runs."""

    status: str
    reason: str
    budget_answers: int
    budget_participants: int
    trials: int
    seed: int


@dataclass(frozen=True)
class Participant:
    """Somebody taking part; `simulated` if that is a program."""

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
    simulated: int


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


def has_begun(c: Connection) -> bool:
    """Whether this is a study's database, even one that has lost its state."""
    return bool(c.execute("SELECT EXISTS (SELECT 1 FROM items)").fetchone()[0])


def state(c: Connection) -> StudyState | None:
    """The study's state; None before it has begun."""
    row = c.execute(
        "SELECT status, reason, budget_answers, budget_participants, trials, seed FROM state"
    ).fetchone()
    found: StudyState | None = _one(row, StudyState)
    return found


def set_state(c: Connection, **changes: Any) -> None:
    """Change the study's state."""
    assert set(changes) <= {field.name for field in fields(StudyState)}
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
    simulated: bool = False,
) -> Participant:
    """A new participant, at the consent page; who is simulated is so for good."""
    text = json.dumps(entry, ensure_ascii=False)
    c.execute(
        "INSERT INTO participants (token, external, entry, agent, stage, trials, arrived_at, "
        "seen_at, simulated) VALUES (?, ?, ?, ?, 'consent', ?, ?, ?, ?)",
        (token, external, text, agent, trials, now, now, int(simulated)),
    )
    found = participant(c, token)
    assert found is not None
    return found


def change_participant(c: Connection, number: int, **changes: Any) -> Participant:
    """Set some of a participant's fields; gives the participant as they now are."""
    fixed = {"id", "token", "simulated"}
    assert set(changes) <= {field.name for field in fields(Participant)} - fixed
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    c.execute(f"UPDATE participants SET {assignments} WHERE id = :id", {**changes, "id": number})
    found = participant_by_id(c, number)
    assert found is not None
    return found


def promised(
    c: Connection, since: int, until: int, simulated: bool, but: int = 0
) -> tuple[int, int]:
    """(answers given or set aside for people under way, participants who count).

    People who were not seen between `since` and `until` keep what they gave, but nothing is set
    aside for them any more. Simulated participants count only if `simulated`: they take nobody's
    place. `but` leaves one participant out.
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


def most_promised(c: Connection, after: int, up_to: int) -> int:
    """What would be promised to people of these numbers if every one of them were here."""
    row = c.execute(
        "SELECT coalesce(sum(max(trials, done)), 0) FROM participants "
        "WHERE id > ? AND id <= ? AND simulated = 0",
        (after, up_to),
    ).fetchone()
    return int(row[0])


def participants_with_answers(c: Connection) -> int:
    """How many people, neither simulated nor excluded, have answered a question that counts."""
    row = c.execute(
        "SELECT count(*) FROM participants WHERE done > 0 AND simulated = 0 AND excluded = 0"
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


# ---- simulated participants ---------------------------------------------------------------------


def simulated_numbers(c: Connection) -> list[int]:
    """The participants that are simulated."""
    return [row[0] for row in c.execute("SELECT id FROM participants WHERE simulated = 1")]


def simulated_out(c: Connection) -> int | None:
    """The event since which simulated answers are left out; None while they count."""
    return _simulated_event(c, SIMULATED_OUT)


def simulated_in(c: Connection, up_to_event: int) -> bool:
    """Whether a model that was made when there were these events has simulated answers in it."""
    out = simulated_out(c)
    if out is not None and out <= up_to_event:
        return False
    row = c.execute("SELECT 1 FROM participants WHERE simulated = 1 AND done > 0 LIMIT 1")
    return row.fetchone() is not None


def simulated_stopped(c: Connection) -> bool:
    """Whether no more simulated participants are let in."""
    return _simulated_event(c, SIMULATED_STOP) is not None


def _simulated_event(c: Connection, kind: str) -> int | None:
    # The kinds stand there so that SQLite uses the index of such events.
    row = c.execute(
        "SELECT min(id) FROM events WHERE kind IN ('simulated_out', 'simulated_stop') AND kind = ?",
        (kind,),
    ).fetchone()
    return None if row[0] is None else int(row[0])


def leave_simulated_out(c: Connection, now: int) -> None:
    """From the first answer of a person on, those of simulated participants count no more."""
    some = "EXISTS (SELECT 1 FROM participants WHERE simulated = {} {})"
    both = c.execute(f"SELECT {some.format(1, '')} AND {some.format(0, 'AND done > 0')}").fetchone()
    # Whoever tries out a rehearsal should see their answers beside those of the bots.
    if both[0] and simulated_out(c) is None and last_event(c, REHEARSAL) is None:
        reason = "People have answered: simulated participants are left out from now on."
        add_event(c, SIMULATED_OUT, "lore-active", now, reason=reason)


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


def events_about(c: Connection, participant: int, kind: str) -> list[dict[str, Any]]:
    """The details of a participant's events of a kind, oldest first."""
    rows = c.execute(
        "SELECT detail FROM events WHERE participant = ? AND kind = ? ORDER BY id",
        (participant, kind),
    )
    return [json.loads(row[0]) for row in rows]


def last_event(c: Connection, kind: str) -> dict[str, Any] | None:
    """The detail of the newest event of a kind; None if there was none."""
    row = c.execute(
        "SELECT detail FROM events WHERE kind = ? ORDER BY id DESC LIMIT 1", (kind,)
    ).fetchone()
    found: dict[str, Any] | None = None if row is None else json.loads(row[0])
    return found
