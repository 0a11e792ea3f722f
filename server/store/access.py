"""SQL of access: experimenters' sessions, links for looking, wrong passwords."""

from __future__ import annotations

from dataclasses import dataclass

from server.store.database import Connection


@dataclass(frozen=True)
class SessionRow:
    """An experimenter who is signed in."""

    who: str
    csrf: str
    lock: str
    created_at: int
    seen_at: int


@dataclass(frozen=True)
class Link:
    """A link for looking only."""

    id: int
    label: str
    created_by: str
    created_at: int
    revoked_at: int | None


def add_session(c: Connection, hashed: str, who: str, csrf: str, lock: str, now: int) -> None:
    """Somebody has signed in."""
    c.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", (hashed, who, csrf, lock, now, now))


def session(c: Connection, hashed: str) -> SessionRow | None:
    """The session with this token's hash."""
    row = c.execute(
        "SELECT who, csrf, lock, created_at, seen_at FROM sessions WHERE hash = ?", (hashed,)
    ).fetchone()
    return None if row is None else SessionRow(*row)


def touch_session(c: Connection, hashed: str, now: int) -> None:
    """It is in use."""
    c.execute("UPDATE sessions SET seen_at = ? WHERE hash = ?", (now, hashed))


def end_session(c: Connection, hashed: str) -> None:
    """They have signed out."""
    c.execute("DELETE FROM sessions WHERE hash = ?", (hashed,))


def end_old_sessions(c: Connection, created_before: int, seen_before: int) -> None:
    """Forget those that have run out."""
    c.execute(
        "DELETE FROM sessions WHERE created_at < ? OR seen_at < ?", (created_before, seen_before)
    )


def add_link(c: Connection, hashed: str, label: str, who: str, now: int) -> int:
    """A new link for looking; gives its number."""
    cursor = c.execute(
        "INSERT INTO links (hash, label, created_by, created_at) VALUES (?, ?, ?, ?)",
        (hashed, label, who, now),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def link_is_good(c: Connection, hashed: str) -> bool:
    """Whether there is such a link and nobody has revoked it."""
    row = c.execute("SELECT 1 FROM links WHERE hash = ? AND revoked_at IS NULL", (hashed,))
    return row.fetchone() is not None


def links(c: Connection) -> list[Link]:
    """All links, newest first."""
    rows = c.execute(
        "SELECT id, label, created_by, created_at, revoked_at FROM links ORDER BY id DESC"
    )
    return [Link(*row) for row in rows]


def revoke_link(c: Connection, number: int, now: int) -> bool:
    """The link leads nowhere any more; tells whether there was one to revoke."""
    cursor = c.execute(
        "UPDATE links SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (now, number)
    )
    return cursor.rowcount == 1


def failures(c: Connection, address: str) -> tuple[int, int]:
    """(wrong passwords from there, when the last one came)."""
    row = c.execute(
        "SELECT failures, last_at FROM attempts WHERE address = ?", (address,)
    ).fetchone()
    return (0, 0) if row is None else (row[0], row[1])


def set_failures(c: Connection, address: str, count: int, now: int) -> None:
    """So many wrong passwords came from there."""
    c.execute("INSERT OR REPLACE INTO attempts VALUES (?, ?, ?)", (address, count, now))


def forget_failures(c: Connection, before: int, address: str = "") -> None:
    """Forget old wrong passwords, and all from an address that knew the right one."""
    c.execute("DELETE FROM attempts WHERE last_at < ? OR address = ?", (before, address))
