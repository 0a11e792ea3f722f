"""SQL of taking a whole study out, row by row, and of putting it back."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from typing import Any

from lore_active.errors import LoreError
from server.store.database import Connection
from server.store.tables import CHAIN, SECRET, TABLES


class CannotPut(LoreError):
    """A row that no study can have."""


# What a log holds, in this order.
LOGGED = (*TABLES, *CHAIN)
PERSONAL = {"external": None, "entry": "{}", "agent": "", "feedback": ""}
# Events whose detail says by which links somebody came.
NAMING_EVENTS = ("entry",)


def nameless(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row without what tells who a participant is."""
    if table == "participants":
        return {**row, **PERSONAL}
    if table == "events" and row["kind"] in NAMING_EVENTS:
        return {**row, "detail": "{}"}
    return row


def rows(c: Connection, table: str) -> Iterator[dict[str, Any]]:
    """Every row of a table, in order, without secrets."""
    assert table in LOGGED
    secret = SECRET.get(table)
    names = [name for name in columns(c, table) if name != secret]
    cursor = c.cursor()
    # Plain tuples: there may be millions.
    cursor.row_factory = None
    held = ", ".join(f'"{name}"' for name in names)
    for row in cursor.execute(f"SELECT {held} FROM {table} ORDER BY rowid"):
        yield dict(zip(names, row, strict=True))


def count(c: Connection, table: str) -> int:
    """How many rows a table has."""
    assert table in LOGGED
    return int(c.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def columns(c: Connection, table: str) -> dict[str, str]:
    """The columns that a row of the table may have, in order, with their types."""
    assert table in LOGGED
    return {row["name"]: row["type"] for row in c.execute(f"PRAGMA table_info({table})")}


def put(c: Connection, table: str, row: dict[str, Any]) -> None:
    """Put a row back; doors get new keys. CannotPut if the row breaks the schema's rules."""
    assert table in LOGGED
    held = dict(row)
    if table == "participants" or (table == "queries" and held.get("participant") is not None):
        held["token"] = secrets.token_urlsafe(18)
    names = ", ".join(f'"{name}"' for name in held)
    marks = ", ".join("?" for _ in held)
    try:
        c.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(held.values()))
    except (sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError) as error:
        raise CannotPut(f"{error}.") from error
    except (OverflowError, TypeError, UnicodeEncodeError) as error:
        raise CannotPut(f"{error}.") from error
