"""Errors of a study's database, each with its meaning and advice."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Self

from lore_active.errors import LoreError

# With less free space than this, a disk error most likely means a full disk.
MIN_FREE_BYTES = 2**20
RECOVER = "With the server stopped, run `lore-active recover FOLDER`, then start it again."


class StoreError(LoreError):
    """The database cannot be read or written; nothing was stored.

    `name` is for pages and programs, `meaning` and `advice` are sentences without paths; `str()`
    contains all of it, with SQLite's own message.
    """

    name = "database error"
    meaning = "The database reported an error."
    advice = "Try again; if the problem persists, check the output of the server."

    @classmethod
    def because(cls, path: Path, detail: str) -> Self:
        """Create the error with file, detail, meaning and advice."""
        advice = cls.advice.replace("FOLDER", str(path.parent))
        return cls(f"{path}: {detail.rstrip('.')}. {cls.meaning} {advice}")


class Busy(StoreError):
    """Another program holds the lock."""

    name = "database busy"
    meaning = "The database is busy: another program is writing to it."
    advice = "Try again; if the problem persists, close other programs that have study.db open."


class DiskFull(StoreError):
    """No space is left."""

    name = "disk full"
    meaning = "The disk is full: answers cannot be stored."
    advice = "Free some space on the study's disk; answers are then stored again."


class ReadOnly(StoreError):
    """The file, the folder or the disk is read-only."""

    name = "read-only"
    meaning = "The database is read-only: answers cannot be stored."
    advice = (
        "Give the user who runs the server write access to study.db and its folder, and make sure "
        "that the disk is not mounted read-only; answers are then stored again."
    )


class DiskError(StoreError):
    """The system could not read or write the file."""

    name = "disk error"
    meaning = "The system reported a disk error: answers cannot be stored."
    advice = "Check the disk, its quota and the system log."


class Damaged(StoreError):
    """The file is not a valid SQLite database."""

    name = "database damaged"
    meaning = "The database file is damaged."
    advice = RECOVER


class CannotOpen(StoreError):
    """The file cannot be opened."""

    name = "database cannot be opened"
    meaning = "The database file cannot be opened."
    advice = "Make sure that study.db exists and that the user who runs the server can read it."


class WrongFiles(StoreError):
    """The files in the folder are not the open ones; base class of the three below."""

    name = "database files changed"
    meaning = "The database files were changed by another program."
    advice = RECOVER


class FileGone(WrongFiles):
    """The database was deleted or moved."""

    name = "study.db is gone"
    meaning = "study.db was deleted or moved while the server was running."
    advice = f"If you moved it, move it back. {RECOVER}"


class FileReplaced(WrongFiles):
    """The database was replaced by another file."""

    name = "study.db was replaced"
    meaning = "study.db was replaced or overwritten while the server was running."


class LogLost(WrongFiles):
    """The write-ahead log or its index is missing, replaced or truncated."""

    name = "write-ahead log lost"
    meaning = "study.db-wal or study.db-shm, which belong to study.db, were deleted or changed."


class WriterFailed(StoreError):
    """The writer thread failed or does not respond."""

    name = "writer not responding"
    meaning = "The part of the server that stores answers does not respond."
    advice = "It is restarted automatically; if that does not help, restart the server."


_BY_CODE: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_BUSY: Busy,
    sqlite3.SQLITE_LOCKED: Busy,
    sqlite3.SQLITE_FULL: DiskFull,
    sqlite3.SQLITE_READONLY: ReadOnly,
    sqlite3.SQLITE_PERM: ReadOnly,
    sqlite3.SQLITE_IOERR: DiskError,
    sqlite3.SQLITE_CORRUPT: Damaged,
    sqlite3.SQLITE_NOTADB: Damaged,
    sqlite3.SQLITE_CANTOPEN: CannotOpen,
}


def classified(error: sqlite3.Error, path: Path) -> StoreError:
    """Convert an SQLite error, keeping its message."""
    code = getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR
    kind = _BY_CODE.get(code & 0xFF, StoreError)
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        kind = FileReplaced
    elif kind is DiskError and no_room(path):
        # SQLite has a code for a full disk, but cannot use it if the system reports that late.
        kind = DiskFull
    named = kind.because(path, str(error))
    named.__cause__ = error
    return named


def no_room(path: Path) -> bool:
    """Return whether the disk of a file is full or nearly full."""
    try:
        return shutil.disk_usage(path.parent).free < MIN_FREE_BYTES
    except OSError:
        return False
