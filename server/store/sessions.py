"""SQL of one participant's session: the participant, and their answers in order."""

from __future__ import annotations

from dataclasses import dataclass

from server.store.database import Connection
from server.store.summaries import (
    ANSWERS,
    AnswerRow,
    EventRow,
    ParticipantSummary,
    all_events,
    answer_row,
)

# Decisions about a participant; other events contain names or links.
DECISIONS = ("exclude", "restore")


@dataclass(frozen=True)
class StoredSession:
    """Everything stored about a participant's session, without practice."""

    participant: ParticipantSummary
    finished_at: int | None
    answers: list[AnswerRow]
    decisions: list[EventRow]


def session(c: Connection, participant: int) -> StoredSession | None:
    """Return a participant's session; None if there is no such participant."""
    row = c.execute(
        "SELECT id, external, stage, trials, done, excluded, feedback, arrived_at, seen_at, "
        "simulated, finished_at FROM participants WHERE id = ?",
        (participant,),
    ).fetchone()
    if row is None:
        return None
    rows = c.execute(ANSWERS + "AND q.participant = ? ORDER BY a.seq", (participant,))
    return StoredSession(
        ParticipantSummary(*row[:-1]),
        row[-1],
        [answer_row(answer) for answer in rows],
        [event for event in all_events(c, participant) if event.kind in DECISIONS],
    )
