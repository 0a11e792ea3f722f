"""One server per study: a lock that the system releases when its holder is gone."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from lore_active.errors import LoreError
from server.store.sqlite.connection import create_private

if os.name == "posix":
    import fcntl

FILE = "study.lock"


class StudyLocked(LoreError):
    """Another server has this study open."""


class ProcessLock:
    """Holds a study's folder.

    The lock is on the folder itself, which cannot be deleted or replaced without its contents. A
    lock file comes on top, held by SQLite's own locks, which work on every system: it is all there
    is on Windows, where nobody can delete it while it is held, and where a file system has no locks
    on folders.
    """

    def __init__(self, folder: Path) -> None:
        with contextlib.ExitStack() as stack:
            self._hold_folder(folder, stack)
            path = folder / FILE
            create_private(path)
            connection = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
            stack.callback(connection.close)
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise _held(folder) from error
            self._held = stack.pop_all()

    def _hold_folder(self, folder: Path, stack: contextlib.ExitStack) -> None:
        if os.name != "posix":
            return
        handle = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _held(folder) from error
        except OSError:
            # Some file systems over a network lock only what is open for writing.
            pass

    def release(self) -> None:
        """Let others have it."""
        self._held.close()


def _held(folder: Path) -> StudyLocked:
    return StudyLocked(
        f"{folder}: another lore-active server holds this study. Stop that one first."
    )
