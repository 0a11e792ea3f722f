"""SQL of erasing a participant: what identifies them, and on request their answers."""

from __future__ import annotations

import sqlite3
from dataclasses import fields

from server.store.collection import STILL_HERE, Participant
from server.store.database import Connection, Database
from server.store.sqlite.errors import StoreError

DAY_MS = 86_400_000
_PARTICIPANT = ", ".join(field.name for field in fields(Participant))


def everybody(c: Connection) -> list[Participant]:
    """List all participants with all their data."""
    rows = c.execute(f"SELECT {_PARTICIPANT} FROM participants ORDER BY id")
    return [Participant(*row) for row in rows]


def given_by(c: Connection, number: int) -> int:
    """Count the stored answers of a participant, including practice and skipped ones."""
    row = c.execute(
        "SELECT count(*) FROM answers a JOIN queries q ON q.id = a.query WHERE q.participant = ?",
        (number,),
    ).fetchone()
    return int(row[0])


def erase_participant(c: Connection, number: int, token: str, now: int) -> None:
    """Erase everything that identifies a participant; `token` replaces the one in their links.

    Times are truncated to the day: exact times would identify them to the recruitment site.
    """
    c.execute(
        "UPDATE participants SET token = :token, external = NULL, entry = '{}', agent = '', "
        f"feedback = '', stage = CASE WHEN stage IN {STILL_HERE!r} THEN 'expired' ELSE stage END, "
        "arrived_at = arrived_at - arrived_at % :day, seen_at = seen_at - seen_at % :day, "
        "consented_at = consented_at - consented_at % :day, "
        "finished_at = coalesce(finished_at, :now) - coalesce(finished_at, :now) % :day "
        "WHERE id = :id",
        {"token": token, "day": DAY_MS, "now": now, "id": number},
    )
    c.execute(
        "UPDATE queries SET created_at = created_at - created_at % :day, "
        "leased_at = leased_at - leased_at % :day, expires_at = expires_at - expires_at % :day "
        "WHERE participant = :id",
        {"day": DAY_MS, "id": number},
    )
    c.execute(
        "UPDATE events SET detail = '{}' WHERE participant = ? AND kind <> 'forget'", (number,)
    )
    _change_answers(c, "timings = NULL, received_at = received_at - received_at % :day", number)


def erase_answers(c: Connection, number: int) -> None:
    """Replace a participant's answers by skips, so that only their number remains."""
    gone = "outcome = 'skip', chosen = NULL, side = iif(side IS NULL, NULL, 'skip')"
    _change_answers(c, f"{gone}, rt_ms = NULL, late = 0", number)


def _change_answers(c: Connection, assignments: str, number: int) -> None:
    """Change answers, which triggers forbid everywhere else: they are dropped and restored."""
    triggers = c.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'answers'"
    ).fetchall()
    for trigger in triggers:
        c.execute(f"DROP TRIGGER {trigger['name']}")
    c.execute(
        f"UPDATE answers SET {assignments} WHERE query IN "
        "(SELECT id FROM queries WHERE participant = :id)",
        {"day": DAY_MS, "id": number},
    )
    for trigger in triggers:
        c.execute(trigger["sql"])


def drop_snapshot(c: Connection) -> None:
    """Delete the learner's copy of all answers; a restarted worker rebuilds it."""
    c.execute("DELETE FROM snapshot")


def erased(c: Connection) -> list[tuple[int, int, bool]]:
    """Return (participant, time, whether their answers were erased) of all erasures."""
    rows = c.execute(
        "SELECT participant, at, max(json_extract(detail, '$.answers') = 'erased') FROM events "
        "WHERE kind = 'forget' GROUP BY participant ORDER BY participant"
    )
    return [(row[0], row[1], bool(row[2])) for row in rows]


def answers_gone(c: Connection) -> int:
    """Return the last exclusion of a participant whose answers were erased; 0 if there is none.

    Models fitted since then never used those answers.
    """
    row = c.execute(
        "SELECT coalesce(max(e.id), 0) FROM events e JOIN events f ON f.participant = "
        "e.participant AND f.kind = 'forget' AND e.id < f.id "
        "AND json_extract(f.detail, '$.answers') = 'erased' WHERE e.kind = 'exclude'"
    ).fetchone()
    return int(row[0])


def compact(database: Database) -> None:
    """Rewrite the file without deleted data, and empty the write-ahead log."""
    connection = database.reader()
    try:
        connection.execute("VACUUM")
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.Error as error:
        raise StoreError(
            f"The data were erased, but traces may remain in {database.path}: {error}. "
            "Run the same command again."
        ) from error
    finally:
        connection.close()
    if busy:
        raise StoreError(
            f"The data were erased, but traces may remain in {database.path.name}-wal: another "
            "program has the database open. Close it and run the same command again."
        )
