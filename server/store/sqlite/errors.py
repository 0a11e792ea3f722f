"""What can be wrong with a study's database, by name, each with what it means and what to do."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Self

from lore_active.errors import LoreError

# With less than this left, an error of the disk is most likely a full one.
MIN_FREE_BYTES = 2**20
RECOVER = "With the server stopped, run `lore-active recover FOLDER`, then start it again."


class StoreError(LoreError):
    """The database cannot be read or written; what was to be stored was not.

    `name` is for pages and programs, `meaning` and `advice` are whole sentences without any path;
    `str()` has all of it, with SQLite's own message.
    """

    name = "database error"
    meaning = "The database reported an error."
    advice = "Try again; if it stays, look at the terminal of the server."

    @classmethod
    def because(cls, path: Path, detail: str) -> Self:
        """The error with the file, what was found there, what that means and what to do."""
        advice = cls.advice.replace("FOLDER", str(path.parent))
        return cls(f"{path}: {detail.rstrip('.')}. {cls.meaning} {advice}")


class Busy(StoreError):
    """Another program holds the lock."""

    name = "database busy"
    meaning = "The database is busy: another program is writing to it."
    advice = "Try again; if it stays, close other programs that have study.db open."


class DiskFull(StoreError):
    """No room for another page."""

    name = "disk full"
    meaning = "The disk is full: no answer can be stored."
    advice = "Free some space on the disk that holds the study; answers are then taken again."


class ReadOnly(StoreError):
    """The file, the folder or the disk takes no writes."""

    name = "read-only"
    meaning = "The database is read-only: no answer can be stored."
    advice = (
        "Let the user who runs the server write to study.db and its folder, and make sure that the "
        "disk is not mounted read-only; answers are then taken again."
    )


class DiskError(StoreError):
    """The system could not read or write the file."""

    name = "disk error"
    meaning = "The system reported an error of the disk: no answer can be stored."
    advice = "Look at the disk, its quota and the system's log."


class Damaged(StoreError):
    """The file is not a sound SQLite database."""

    name = "database damaged"
    meaning = "The database file is damaged."
    advice = RECOVER


class CannotOpen(StoreError):
    """The file cannot be opened."""

    name = "database cannot be opened"
    meaning = "The database file cannot be opened."
    advice = "Make sure that study.db exists and that the user who runs the server may read it."


class WrongFiles(StoreError):
    """The files in the folder are not those that are open; base of the three below."""

    name = "database files changed"
    meaning = "The database files were changed by another program."
    advice = RECOVER


class FileGone(WrongFiles):
    """The database has lost its name."""

    name = "study.db is gone"
    meaning = "study.db was deleted or moved while the study was being served."
    advice = f"If you moved it, move it back. {RECOVER}"


class FileReplaced(WrongFiles):
    """Another file has the database's name."""

    name = "study.db was replaced"
    meaning = "study.db was replaced or overwritten while the study was being served."


class LogLost(WrongFiles):
    """The write-ahead log or its index is gone, replaced or cut short."""

    name = "write-ahead log lost"
    meaning = "study.db-wal or study.db-shm, which belong to study.db, were deleted or changed."


class WriterFailed(StoreError):
    """The thread that writes gave up or does not answer."""

    name = "writer not responding"
    meaning = "The part of the server that stores answers does not respond."
    advice = "It is started again; if that does not help, restart the server."


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
    """The named error for one of SQLite's, with SQLite's message in it."""
    code = getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR
    kind = _BY_CODE.get(code & 0xFF, StoreError)
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        kind = FileReplaced
    elif kind is DiskError and no_room(path):
        # SQLite has a code of its own for a full disk, but not where the system tells it late.
        kind = DiskFull
    found = kind.because(path, str(error))
    found.__cause__ = error
    return found


def no_room(path: Path) -> bool:
    """Whether the disk that holds a file is full, or as good as full."""
    try:
        return shutil.disk_usage(path.parent).free < MIN_FREE_BYTES
    except OSError:
        return False
