"""A study's SQLite file, as one process uses it: reading, writing, and the files it has open."""

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
    """One process's way to a study's file.

    `read` runs on a connection of the calling thread, `write` on the one thread that writes. A
    write has happened, on disk and in the file that the folder has, when `write` returns.

    `known` are the files that another process of ours has open: no others are then used, and none
    is made.
    """

    def __init__(self, path: Path, clock: Callable[[], int], known: FileIds | None = None) -> None:
        self.path = path
        self.files = OpenFiles(path)
        self._local = threading.local()
        self._one_at_a_time = threading.Lock()
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
                    # Now: once the file has lost its name, no connection can be made any more.
                    self._apart = for_reading(connect(path, check=self.files.check))
                    stack.callback(self._apart.close)
                if known is None:
                    self.files.remember()
                self.files.check()
            except sqlite3.Error as error:
                raise classified(error, path) from error
            stack.pop_all()
        self._readers = [self._apart]
        self.writer = Writer(writing, self.files, clock)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` and return its result once it is safely on disk."""
        return self.writer.write(work)

    @property
    def failure(self) -> Failure | None:
        """Why nothing can be stored, as far as this process knows; None if all is well."""
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
        """The same for reading much, one caller at a time.

        SQLite keeps megabytes of what a connection has read: here once, not for each thread.
        """
        if not self._one_at_a_time.acquire(timeout=READ_SECONDS):
            raise Busy.because(self.path, f"a reader has not ended for {READ_SECONDS:.0f} s")
        try:
            return _consistent(self._apart, work)
        except sqlite3.Error as error:
            raise classified(error, self.path) from error
        finally:
            self._one_at_a_time.release()

    def _reader(self) -> Connection:
        connection = self.reader()
        self._readers.append(connection)
        return connection

    def reader(self) -> Connection:
        """A connection of the caller's own, for reading long; the caller closes it."""
        self.files.check()
        return for_reading(connect(self.path, check=self.files.check))

    def damage(self) -> str:
        """What SQLite's quick check of the whole file finds wrong; empty if nothing."""
        return self.files.damage()

    def close(self) -> None:
        """Finish what is waiting, then let go of the file."""
        ended = self.writer.close()
        failure = self.failure
        if failure is not None and isinstance(failure.error, (WrongFiles, Damaged)):
            self.abandon()
        elif ended:
            for connection in [*self._readers, *self.writer.connections()]:
                connection.close()

    def abandon(self) -> None:
        """Let go of files that are not as they should be, without closing them.

        The last one to close a database writes its log into it and deletes the log. Here that would
        mix two databases, and destroy what could still be read of one of them.
        """
        for connection in [*self._readers, *self.writer.connections()]:
            # SQLite has a setting for this, which Python can reach from 3.12 on. Until then: what
            # is never given back is never closed.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _consistent(connection: Connection, work: Callable[[Connection], Result]) -> Result:
    connection.execute("BEGIN")
    try:
        return work(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
