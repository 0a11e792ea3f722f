"""Connections to a study's SQLite file: safe settings and private files."""

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
    "synchronous": 2,  # FULL: an acknowledged commit survives a power failure
    "foreign_keys": 1,
    "journal_size_limit": 16 * 2**20,
    # Pages of the log after which it is written into the database: about that size. Pages that were
    # changed many times meanwhile, as most are in a crowd, are written once.
    "wal_autocheckpoint": 4000,
    "secure_delete": 1,  # deleted data are overwritten
    "trusted_schema": 0,  # a study's file may be untrusted
    "temp_store": 2,  # MEMORY: no personal data in other files
}


class NotSafe(LoreError):
    """SQLite did not accept a setting required for durability."""


def connect(
    path: Path,
    wait_ms: int = int(BUSY_SECONDS * 1000),
    check: Callable[[], object] = lambda: None,
) -> Connection:
    """Open a connection with all safety settings verified; the file must exist.

    SQLite would create a missing file: an empty study in place of a deleted one. `check` is called
    when the file is open, but its log is not: it raises if it is not the right file, which would
    otherwise be mixed with the log of another.
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
                raise NotSafe(f"{path}: SQLite has {name} = {found!r}, but {wanted!r} is required.")
    except BaseException:
        connection.close()
        raise
    return connection


def for_reading(connection: Connection) -> Connection:
    """Make a connection read invalid UTF-8 as well, and return it.

    Such a row differs from the hash chain and is reported by the verification; it must not block
    access to all others.
    """
    connection.text_factory = any_text
    return connection


def any_text(raw: bytes) -> str:
    """Decode text, with replacement characters for invalid UTF-8."""
    return raw.decode("utf-8", "replace")


def read_only(path: Path, check: Callable[[], object] = lambda: None) -> Connection:
    """Open a connection that changes nothing, even when closed; `check` as above.

    It creates no files beside a database without a log, which must not be in use.
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
    """Create a file that only its owner can read, as its log and index; keep existing files."""
    # If the file cannot be created, SQLite reports why.
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
