"""Connections to a study's SQLite file: safe settings, and files that are their owner's alone."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from lore_active.errors import LoreError

Connection = sqlite3.Connection

BUSY_SECONDS = 5.0
PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: a commit that was acknowledged survives a loss of power
    "foreign_keys": 1,
    "journal_size_limit": 16 * 2**20,
    "secure_delete": 1,  # what is deleted is overwritten
    "trusted_schema": 0,  # a study's file may come from somebody else
    "temp_store": 2,  # MEMORY: what people are and say is in no other file
}


class NotSafe(LoreError):
    """SQLite would not take a setting that durability rests on."""


def connect(
    path: Path,
    wait_ms: int = int(BUSY_SECONDS * 1000),
    check: Callable[[], object] = lambda: None,
) -> Connection:
    """A connection with every safety setting on, and asserted; the file must be there.

    SQLite would make one that is not: an empty study in place of one that was deleted. `check` is
    called once the file is open, but before its log is: it raises if that is not the right file,
    which would otherwise be mixed with a log that is not its own.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.row_factory = sqlite3.Row
    try:
        check()
        for name, wanted in {**PRAGMAS, "busy_timeout": wait_ms}.items():
            connection.execute(f"PRAGMA {name} = {wanted}")
            found = connection.execute(f"PRAGMA {name}").fetchone()[0]
            if found != wanted:
                raise NotSafe(f"{path}: SQLite has {name} = {found!r}, but {wanted!r} is needed.")
    except BaseException:
        connection.close()
        raise
    return connection


def for_reading(connection: Connection) -> Connection:
    """The connection, which then reads text in which a byte was damaged, too.

    Such a row is not as the hash chain recorded it, and is named by who verifies; it must not keep
    anybody from all the others.
    """
    connection.text_factory = any_text
    return connection


def any_text(raw: bytes) -> str:
    """Text as it was stored, with marks in place of what is not UTF-8."""
    return raw.decode("utf-8", "replace")


def read_only(path: Path, check: Callable[[], object] = lambda: None) -> Connection:
    """A connection that changes nothing, also when it is closed; `check` as above.

    It leaves nothing beside a file that has no log: that must be at rest.
    """
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)
    try:
        check()
    except BaseException:
        connection.close()
        raise
    return connection


def create_private(path: Path) -> None:
    """A new file is its owner's alone, and so are its log and index; an old one keeps its mode."""
    # Where no file can be made, SQLite says why.
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
