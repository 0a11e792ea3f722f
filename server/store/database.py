"""A study's SQLite file: safe settings, migrations, reading, and writing with grouped commits."""

from __future__ import annotations

import contextlib
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from lore_active.errors import LoreError

Connection = sqlite3.Connection
Result = TypeVar("Result")

BUSY_SECONDS = 5.0
# SQLite waits longer and longer for a lock, and so would lose every race against a busy writer;
# writers therefore knock often, and rest a moment between commits that follow each other closely.
KNOCK_MS = 3
REST_SECONDS = 0.003
# Requests that wait while another commit goes to disk are committed together.
MOST_TOGETHER = 128
PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: a commit that was acknowledged survives a loss of power
    "foreign_keys": 1,
    "journal_size_limit": 16 * 2**20,
    "secure_delete": 1,  # what is deleted is overwritten
    "trusted_schema": 0,  # a study's file may come from somebody else
}


class StoreTrouble(LoreError):
    """The database cannot take this now (locked, full or read-only); nothing was stored."""


class NewerDatabase(LoreError):
    """The database was written by a newer version of lore-active."""


class NotSafe(LoreError):
    """SQLite would not take a setting that durability rests on."""


def connect(path: Path, wait_ms: int = int(BUSY_SECONDS * 1000)) -> Connection:
    """A connection with every safety setting on, and asserted."""
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    for name, wanted in {**PRAGMAS, "busy_timeout": wait_ms}.items():
        connection.execute(f"PRAGMA {name} = {wanted}")
        found = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if found != wanted:
            connection.close()
            raise NotSafe(f"{path}: SQLite has {name} = {found!r}, but {wanted!r} is needed.")
    return connection


def glance(path: Path, work: Callable[[Connection], Result]) -> Result:
    """Look into a database once, on a connection that is closed again."""
    try:
        connection = connect(path)
        try:
            return work(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreTrouble(f"{path}: {error}.") from error


def create_private(path: Path) -> None:
    """A new file is its owner's alone, and so are its log and index; an old one keeps its mode."""
    # Where no file can be made, SQLite says why.
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _migrations() -> list[tuple[int, str, str]]:
    """(number, name, SQL) of all there are, in order; the schema is number 1."""
    here = resources.files("server.store")
    found = [(1, "schema", (here / "schema.sql").read_text(encoding="utf-8"))]
    for file in (here / "migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, file.read_text(encoding="utf-8")))
    return sorted(found)


def _statements(script: str) -> list[str]:
    """The script's statements one by one: executescript would commit between them."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def migrate(connection: Connection, path: Path, now: int) -> None:
    """Bring the database to this version, each migration with its record in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migrations "
        "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"
    )
    connection.execute("COMMIT")
    known = _migrations()
    have = connection.execute("SELECT max(number) FROM migrations").fetchone()[0] or 0
    newest = known[-1][0]
    if have > newest:
        raise NewerDatabase(
            f"{path} has version {have}, but this lore-active knows versions up to {newest}. "
            "Please update lore-active; the file was not touched."
        )
    for number, name, script in known:
        connection.execute("BEGIN IMMEDIATE")
        try:
            done = connection.execute("SELECT 1 FROM migrations WHERE number = ?", (number,))
            if done.fetchone() is None:
                for statement in _statements(script):
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (number, name, now))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@dataclass
class _Request:
    work: Callable[[Connection], Any]
    future: Future[Any]


class Database:
    """One process's way to a study's file.

    `read` runs on a connection of the calling thread, `write` on the one thread that writes. A
    write has happened, on disk, when `write` returns; writes that wait for each other share one
    commit, each in a savepoint of its own.
    """

    def __init__(self, path: Path, clock: Callable[[], int]) -> None:
        self.path = path
        self._local = threading.local()
        self._readers: list[Connection] = []
        self._one_at_a_time = threading.Lock()
        self._apart: Connection | None = None
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        try:
            create_private(path)
            opening = connect(path)
            migrate(opening, path, clock())
            opening.close()
            self._connection = connect(path, KNOCK_MS)
        except sqlite3.Error as error:
            raise StoreTrouble(f"{path}: {error}.") from error
        self._thread = threading.Thread(target=self._write_all, name="writer", daemon=True)
        self._thread.start()

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` on one consistent state of the database."""
        try:
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self._reader()
            return _consistent(connection, work)
        except sqlite3.Error as error:
            raise StoreTrouble(f"The database cannot be read now: {error}.") from error

    def read_apart(self, work: Callable[[Connection], Result]) -> Result:
        """The same for reading much, one caller at a time.

        SQLite keeps megabytes of what a connection has read: here once, not for each thread.
        """
        try:
            with self._one_at_a_time:
                if self._apart is None:
                    self._apart = self._reader()
                return _consistent(self._apart, work)
        except sqlite3.Error as error:
            raise StoreTrouble(f"The database cannot be read now: {error}.") from error

    def _reader(self) -> Connection:
        connection = connect(self.path)
        self._readers.append(connection)
        return connection

    def reader(self) -> Connection:
        """A connection of the caller's own, for reading long; the caller closes it."""
        return connect(self.path)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` and return its result once it is safely on disk."""
        request = _Request(work, Future())
        self._queue.put(request)
        result: Result = request.future.result()
        return result

    def close(self) -> None:
        """Finish what is waiting, then let go of the file."""
        self._queue.put(None)
        self._thread.join()
        for connection in self._readers:
            connection.close()
        self._connection.close()

    def _write_all(self) -> None:
        ending = False
        while not ending:
            first = self._queue.get()
            batch = [] if first is None else [first]
            ending = first is None
            while not ending and len(batch) < MOST_TOGETHER and not self._queue.empty():
                more = self._queue.get()
                ending = more is None
                if more is not None:
                    batch.append(more)
            if batch:
                self._commit(batch)
                if not self._queue.empty():
                    time.sleep(REST_SECONDS)

    def _commit(self, batch: list[_Request]) -> None:
        outcomes: list[tuple[_Request, Any, BaseException | None]] = []
        connection = self._connection
        try:
            self._begin()
            for request in batch:
                outcomes.append(self._run(request))
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            trouble = StoreTrouble(f"The database cannot be written now: {error}.")
            trouble.__cause__ = error
            for request in batch:
                request.future.set_exception(trouble)
            return
        for request, result, failure in outcomes:
            if failure is None:
                request.future.set_result(result)
            else:
                request.future.set_exception(failure)

    def _begin(self) -> None:
        give_up = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if (
                    error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
                    or time.monotonic() > give_up
                ):
                    raise

    def _run(self, request: _Request) -> tuple[_Request, Any, BaseException | None]:
        connection = self._connection
        connection.execute("SAVEPOINT request")
        try:
            result = request.work(connection)
            connection.execute("RELEASE request")
            return request, result, None
        except BaseException as error:
            if not connection.in_transaction:
                # A full disk takes the whole transaction back, the others' work with it.
                raise
            connection.execute("ROLLBACK TO request")
            connection.execute("RELEASE request")
            if isinstance(error, sqlite3.OperationalError):
                error = StoreTrouble(f"The database cannot be written now: {error}.")
            return request, None, error


def _consistent(connection: Connection, work: Callable[[Connection], Result]) -> Result:
    connection.execute("BEGIN")
    try:
        return work(connection)
    finally:
        connection.execute("ROLLBACK")
