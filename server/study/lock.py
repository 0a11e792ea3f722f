"""One server per study: a lock that the system releases when the process ends."""

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
    """Exclusive lock on a study's folder.

    The lock is on the folder itself, which cannot be deleted or replaced without its contents. In
    addition there is a lock file with SQLite's own locks, which work on every system: it is the
    only lock on Windows, where it cannot be deleted while in use, and on file systems that cannot
    lock folders.
    """

    def __init__(self, folder: Path) -> None:
        with contextlib.ExitStack() as stack:
            self._lock_folder(folder, stack)
            path = folder / FILE
            create_private(path)
            connection = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
            stack.callback(connection.close)
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise _locked(folder) from error
            self._held = stack.pop_all()

    def _lock_folder(self, folder: Path, stack: contextlib.ExitStack) -> None:
        if os.name != "posix":
            return
        handle = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _locked(folder) from error
        except OSError:
            # Some network file systems lock only files that are open for writing.
            pass

    def release(self) -> None:
        """Release the lock."""
        self._held.close()


def _locked(folder: Path) -> StudyLocked:
    return StudyLocked(f"{folder}: another lore-active process is using this study. Stop it first.")
