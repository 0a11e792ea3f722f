"""A study's database as used by one process: reading, writing, and its open files."""

from __future__ import annotations

import contextlib
import ctypes
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from server.store.sqlite.connection import Connection, connect, create_private, for_reading
from server.store.sqlite.errors import Busy, Damaged, WrongFiles, classified
from server.store.sqlite.files import FileIds, OpenFiles
from server.store.sqlite.migration import migrate
from server.store.sqlite.writer import KNOCK_MS, Failure, Writer

__all__ = ["Connection", "Database", "connect", "create_private"]

Result = TypeVar("Result")

READ_SECONDS = 60.0


class Database:
    """Access of one process to a study's database.

    `read` runs on a connection of the calling thread, `write` on the single writer thread. When
    `write` returns, the data are on disk, in the file that the folder contains.

    `known` are the files that another process of this server has open: no other files are used or
    created then.
    """

    def __init__(self, path: Path, clock: Callable[[], int], known: FileIds | None = None) -> None:
        self.path = path
        self.files = OpenFiles(path)
        self._local = threading.local()
        self._shared_lock = threading.Lock()
        with contextlib.ExitStack() as stack:
            try:
                if known is None:
                    create_private(path)
                else:
                    self.files.expect(known)
                with contextlib.closing(connect(path, check=self.files.check)) as opening:
                    migrate(opening, path, clock())
                    writing = connect(path, KNOCK_MS, self.files.check)
                    stack.callback(writing.close)
                    # Opened now: once the file is deleted, no connection can be made any more.
                    self._shared = for_reading(connect(path, check=self.files.check))
                    stack.callback(self._shared.close)
                if known is None:
                    self.files.remember()
                self.files.check()
            except sqlite3.Error as error:
                raise classified(error, path) from error
            stack.pop_all()
        self._readers = [self._shared]
        self.writer = Writer(writing, self.files, clock)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` and return its result once it is durably stored."""
        return self.writer.write(work)

    @property
    def failure(self) -> Failure | None:
        """Why nothing can be stored, as far as this process knows; None if writing works."""
        return self.writer.failure

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` on one consistent state of the database."""
        try:
            connection = getattr(self._local, "connection", None)
            if connection is None:
                try:
                    connection = self._local.connection = self._reader()
                except WrongFiles:
                    return self.read_apart(work)
            return _consistent(connection, work)
        except sqlite3.Error as error:
            raise classified(error, self.path) from error

    def read_apart(self, work: Callable[[Connection], Result]) -> Result:
        """Like `read`, for large reads, one caller at a time.

        SQLite caches megabytes per connection: this way once, not for each thread.
        """
        if not self._shared_lock.acquire(timeout=READ_SECONDS):
            raise Busy.because(self.path, f"another read has not finished for {READ_SECONDS:.0f} s")
        try:
            return _consistent(self._shared, work)
        except sqlite3.Error as error:
            raise classified(error, self.path) from error
        finally:
            self._shared_lock.release()

    def _reader(self) -> Connection:
        connection = self.reader()
        self._readers.append(connection)
        return connection

    def reader(self) -> Connection:
        """Open a separate connection for long reads; the caller closes it."""
        self.files.check()
        return for_reading(connect(self.path, check=self.files.check))

    def damage(self) -> str:
        """Return what SQLite's quick check of the file finds wrong; empty if nothing."""
        return self.files.damage()

    def close(self) -> None:
        """Finish pending writes, then close the file."""
        ended = self.writer.close()
        failure = self.failure
        if failure is not None and isinstance(failure.error, (WrongFiles, Damaged)):
            self.abandon()
        elif ended:
            for connection in [*self._readers, *self.writer.connections()]:
                connection.close()

    def abandon(self) -> None:
        """Abandon wrong or damaged files without closing them.

        The last connection to close writes the log into the database and deletes it. Here that
        would mix two databases, and destroy what can still be read of one of them.
        """
        for connection in [*self._readers, *self.writer.connections()]:
            # SQLite has a setting for this, available in Python from 3.12 on. Until then, an extra
            # reference keeps the connection from being closed.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _consistent(connection: Connection, work: Callable[[Connection], Result]) -> Result:
    connection.execute("BEGIN")
    try:
        return work(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
