"""Consistent copies of a study's database, whether or not it is being written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from server.store.sqlite.connection import create_private
from server.store.sqlite.errors import classified

# The newest commits are in the write-ahead log; its index is rebuilt when the copy is opened.
ENDS = ("", "-wal")
# File systems round times: two writes within one tick have the same time.
TICK_SECONDS = 0.05
# Pages copied between two syncs: half a megabyte.
PAGES = 128


def copy(path: Path, to: Path) -> None:
    """Copy the database at `path` consistently; nothing is written beside it.

    Not for a process that has the database open: closing the files here would release the locks
    that SQLite holds on them.
    """
    try:
        if not _at_rest(path, to):
            online(path, to)
    except sqlite3.Error as error:
        raise classified(error, path) from error


def _at_rest(path: Path, to: Path) -> bool:
    """Copy file by file; return False if they were written meanwhile (the copy is invalid)."""
    before = list(_states(path))
    age = time.time() - max(state[2] for state in before if state) / 1e9
    if 0 <= age < TICK_SECONDS:
        time.sleep(TICK_SECONDS)
    for end in ENDS:
        source, copied = _beside(path, end), _beside(to, end)
        copied.unlink(missing_ok=True)
        if source.exists():
            create_private(copied)
            shutil.copyfile(source, copied)
    return list(_states(path)) == before


def _states(path: Path) -> Iterator[tuple[int, int, int] | None]:
    for end in ENDS:
        try:
            status = _beside(path, end).stat()
        except FileNotFoundError:
            if not end:
                raise
            yield None
        else:
            yield status.st_ino, status.st_size, status.st_mtime_ns


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def online(path: Path, to: Path, pace: Callable[[], None] = lambda: None) -> None:
    """Copy a database that is being written to a single file, synced to disk.

    Writers do not wait: the state at the start is copied, however long it takes. `pace` is called
    after each small part; each part is synced, so that a commit never waits for much other data.
    """
    source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    with closing(source):
        # The open transaction pins one state; otherwise every commit would restart the copy.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        write_out(source, to, pace)


def write_out(
    source: sqlite3.Connection, to: Path, pace: Callable[[], None] = lambda: None
) -> None:
    """Like `online`, from a connection in a transaction, even if its file was deleted."""
    for end in ENDS:
        _beside(to, end).unlink(missing_ok=True)
    create_private(to)
    with closing(sqlite3.connect(to, isolation_level=None)) as target, to.open("rb+") as file:

        def synced(status: int, remaining: int, total: int) -> None:
            os.fsync(file.fileno())
            pace()

        # A new file that no other process uses needs no journal, and is synced here.
        for setting in ("journal_mode = off", "synchronous = off", "cache_size = -512"):
            target.execute(f"PRAGMA {setting}")
        source.backup(target, pages=PAGES, progress=synced)
        # Without a write-ahead log, so that it can be read on a read-only disk.
        target.execute("PRAGMA journal_mode = delete")
        os.fsync(file.fileno())
