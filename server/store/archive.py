"""SQL of exporting a whole study row by row, and of importing it again."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from typing import Any

from lore_active.errors import LoreError
from server.store.database import Connection
from server.store.sqlite.former_names import complete_row
from server.store.sqlite.item_lists import is_list
from server.store.sqlite.tables import CHAIN, SECRET, TABLES


class CannotPut(LoreError):
    """A row that violates the schema."""


# Tables in a log, in this order.
LOGGED = (*TABLES, *CHAIN)
PERSONAL = {"external": None, "entry": "{}", "agent": "", "feedback": ""}
# Columns that hold lists of items.
LISTS = ("options", "known", "chosen")
# Events whose detail contains link parameters of a participant.
NAMING_EVENTS = ("entry",)


def pseudonymised(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Remove what identifies a participant from a row."""
    if table == "participants":
        return {**row, **PERSONAL}
    if table == "events" and row["kind"] in NAMING_EVENTS:
        return {**row, "detail": "{}"}
    return row


def rows(c: Connection, table: str) -> Iterator[dict[str, Any]]:
    """Yield every row of a table, in order, without secrets."""
    assert table in LOGGED
    secret = SECRET.get(table)
    names = [name for name in columns(c, table) if name != secret]
    cursor = c.cursor()
    # Plain tuples are faster, and there may be millions.
    cursor.row_factory = None
    quoted = ", ".join(f'"{name}"' for name in names)
    for row in cursor.execute(f"SELECT {quoted} FROM {table} ORDER BY rowid"):
        yield dict(zip(names, row, strict=True))


def count(c: Connection, table: str) -> int:
    """Count the rows of a table."""
    assert table in LOGGED
    return int(c.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def columns(c: Connection, table: str) -> dict[str, str]:
    """Return the columns of a table, in order, with their types."""
    assert table in LOGGED
    return {row["name"]: row["type"] for row in c.execute(f"PRAGMA table_info({table})")}


def put(c: Connection, table: str, row: dict[str, Any]) -> None:
    """Insert a row, with new secret tokens; raise CannotPut if it violates the schema."""
    assert table in LOGGED
    values = dict(row)
    for name in LISTS:
        if isinstance(values.get(name), str) and not is_list(values[name]):
            raise CannotPut(f"{name} is not a list of items.")
    try:
        values = complete_row(c, table, values)
    except (sqlite3.Error, OverflowError, TypeError, UnicodeEncodeError) as error:
        raise CannotPut(f"{error}.") from error
    if table == "participants" or (table == "queries" and values.get("participant") is not None):
        values["token"] = secrets.token_urlsafe(18)
    names = ", ".join(f'"{name}"' for name in values)
    marks = ", ".join("?" for _ in values)
    try:
        c.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(values.values()))
    except (sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError) as error:
        raise CannotPut(f"{error}.") from error
    except (OverflowError, TypeError, UnicodeEncodeError) as error:
        raise CannotPut(f"{error}.") from error
