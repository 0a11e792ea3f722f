"""SQL of one participant's session: who they are, and their answers in order."""

from __future__ import annotations

from dataclasses import dataclass

from server.store.database import Connection
from server.store.summaries import ANSWERS, AnswerRow, EventRow, Person, all_events

# What is decided about a participant; the other events name those who decided, or links.
DECISIONS = ("exclude", "restore")


@dataclass(frozen=True)
class StoredSession:
    """All that is stored about one participant's session, practice left out."""

    person: Person
    finished_at: int | None
    answers: list[AnswerRow]
    decisions: list[EventRow]


def session(c: Connection, participant: int) -> StoredSession | None:
    """A participant's session; None if there is no such participant."""
    row = c.execute(
        "SELECT id, external, stage, trials, done, excluded, feedback, arrived_at, seen_at, "
        "simulated, finished_at FROM participants WHERE id = ?",
        (participant,),
    ).fetchone()
    if row is None:
        return None
    rows = c.execute(ANSWERS + "AND q.participant = ? ORDER BY a.seq", (participant,))
    return StoredSession(
        Person(*row[:-1]),
        row[-1],
        [AnswerRow(*one) for one in rows],
        [one for one in all_events(c, participant) if one.kind in DECISIONS],
    )
