"""SQL of access: experimenters' sessions, view-only links, failed sign-ins."""

from __future__ import annotations

from dataclasses import dataclass

from server.store.database import Connection


@dataclass(frozen=True)
class SessionRow:
    """Session of a signed-in experimenter."""

    who: str
    csrf: str
    lock: str
    created_at: int
    seen_at: int


@dataclass(frozen=True)
class Link:
    """A view-only link."""

    id: int
    label: str
    created_by: str
    created_at: int
    revoked_at: int | None


def add_session(c: Connection, hashed: str, who: str, csrf: str, lock: str, now: int) -> None:
    """Store a new session."""
    c.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", (hashed, who, csrf, lock, now, now))


def session(c: Connection, hashed: str) -> SessionRow | None:
    """Return the session with this token hash."""
    row = c.execute(
        "SELECT who, csrf, lock, created_at, seen_at FROM sessions WHERE hash = ?", (hashed,)
    ).fetchone()
    return None if row is None else SessionRow(*row)


def touch_session(c: Connection, hashed: str, now: int) -> None:
    """Record that a session is in use."""
    c.execute("UPDATE sessions SET seen_at = ? WHERE hash = ?", (now, hashed))


def end_session(c: Connection, hashed: str) -> None:
    """Delete a session."""
    c.execute("DELETE FROM sessions WHERE hash = ?", (hashed,))


def end_old_sessions(c: Connection, created_before: int, seen_before: int) -> None:
    """Delete expired sessions."""
    c.execute(
        "DELETE FROM sessions WHERE created_at < ? OR seen_at < ?", (created_before, seen_before)
    )


def add_link(c: Connection, hashed: str, label: str, who: str, now: int) -> int:
    """Store a new view-only link; return its number."""
    cursor = c.execute(
        "INSERT INTO links (hash, label, created_by, created_at) VALUES (?, ?, ?, ?)",
        (hashed, label, who, now),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def link_is_good(c: Connection, hashed: str) -> bool:
    """Return whether the link exists and has not been revoked."""
    row = c.execute("SELECT 1 FROM links WHERE hash = ? AND revoked_at IS NULL", (hashed,))
    return row.fetchone() is not None


def links(c: Connection) -> list[Link]:
    """List all links, newest first."""
    rows = c.execute(
        "SELECT id, label, created_by, created_at, revoked_at FROM links ORDER BY id DESC"
    )
    return [Link(*row) for row in rows]


def revoke_link(c: Connection, number: int, now: int) -> bool:
    """Revoke a link; return whether there was one to revoke."""
    cursor = c.execute(
        "UPDATE links SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (now, number)
    )
    return cursor.rowcount == 1


def failures(c: Connection, address: str) -> tuple[int, int]:
    """Return (failed sign-ins from this address, time of the last one)."""
    row = c.execute(
        "SELECT failures, last_at FROM attempts WHERE address = ?", (address,)
    ).fetchone()
    return (0, 0) if row is None else (row[0], row[1])


def set_failures(c: Connection, address: str, count: int, now: int) -> None:
    """Store the number of failed sign-ins from this address."""
    c.execute("INSERT OR REPLACE INTO attempts VALUES (?, ?, ?)", (address, count, now))


def forget_failures(c: Connection, before: int, address: str = "") -> None:
    """Delete old failed sign-ins, and all from an address that signed in."""
    c.execute("DELETE FROM attempts WHERE last_at < ? OR address = ?", (before, address))
