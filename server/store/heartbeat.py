"""SQL of the worker's heartbeat: that it is alive, what it is doing, why it was restarted."""

from __future__ import annotations

import json
from dataclasses import dataclass

from server.store.database import Connection
from server.store.journal import SET_BACK_MS

RECENT_STEPS = 60


@dataclass(frozen=True)
class MachineRow:
    """State of the worker and its queue."""

    beat_at: int | None
    doing: str
    restarts: int
    error: str
    up_to_seq: int
    ready: int
    out: int
    fallback: int
    seconds: dict[str, float]


def beat(c: Connection, now: int, pid: int, doing: str, error: str | None = None) -> None:
    """Store a heartbeat; an `error` of None keeps the last error message."""
    c.execute(
        "INSERT INTO heartbeat (id, at, pid, doing, error) VALUES (1, :at, :pid, :doing, "
        "coalesce(:error, '')) ON CONFLICT (id) DO UPDATE SET at = :at, pid = :pid, "
        "doing = :doing, error = coalesce(:error, error)",
        {"at": now, "pid": pid, "doing": doing, "error": error},
    )


def note_restart(c: Connection, now: int, error: str | None) -> None:
    """Record a restart of the worker; an `error` of None keeps the worker's own message."""
    c.execute(
        "INSERT INTO heartbeat (id, at, pid, doing, restarts, error) VALUES (1, :at, 0, "
        "'restarting', 1, coalesce(:error, '')) ON CONFLICT (id) DO UPDATE SET "
        "restarts = restarts + 1, doing = 'restarting', error = coalesce(:error, error)",
        {"at": now, "error": error},
    )


def heard(c: Connection) -> tuple[int, int] | None:
    """Return (time, process) of the worker's last heartbeat."""
    row = c.execute("SELECT at, pid FROM heartbeat").fetchone()
    return None if row is None else (row[0], row[1])


def machine(c: Connection, now: int) -> MachineRow:
    """Return the worker's state, its queue, and the latest duration of each kind of work."""
    beat = c.execute("SELECT at, doing, restarts, error FROM heartbeat").fetchone()
    ready = c.execute(
        "SELECT count(*) FROM queries WHERE participant IS NULL AND withdrawn IS NULL"
    ).fetchone()[0]
    out = c.execute(
        "SELECT count(*) FROM queries q LEFT JOIN answers a ON a.query = q.id "
        "WHERE q.participant IS NOT NULL AND q.expires_at > ? AND q.leased_at <= ? "
        "AND a.seq IS NULL",
        (now, now + SET_BACK_MS),
    ).fetchone()[0]
    # Only the newest questions: older ones say nothing about the present.
    fallback = c.execute(
        "SELECT count(*) FROM (SELECT origin, participant FROM queries ORDER BY id DESC LIMIT 500) "
        "WHERE origin = 'fallback'"
    ).fetchone()[0]
    up_to = 0
    seconds: dict[str, float] = {}
    for row in c.execute(
        "SELECT up_to_seq, seconds FROM steps ORDER BY id DESC LIMIT ?", (RECENT_STEPS,)
    ):
        up_to = max(up_to, row[0])
        seconds = {**json.loads(row[1]), **seconds}
    at, doing, restarts, error = beat or (None, "", 0, "")
    return MachineRow(at, doing, restarts, error, up_to, ready, out, fallback, seconds)
