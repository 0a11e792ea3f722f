"""The thread that writes: grouped commits, each checked before anybody hears of it.

Requests that wait while another commit goes to disk are committed together, each in a savepoint of
its own. Whatever happens to the thread or to the files, everybody who waits hears of it in time.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from server.store.hash_chain.recorder import Recorder
from server.store.sqlite.connection import BUSY_SECONDS, Connection, connect
from server.store.sqlite.errors import (
    CannotOpen,
    DiskFull,
    FileReplaced,
    StoreError,
    WriterFailed,
    classified,
    no_room,
)
from server.store.sqlite.files import OpenFiles

Result = TypeVar("Result")

# SQLite waits longer and longer for a lock, and so would lose every race against a busy writer;
# writers therefore knock often, and rest a moment between commits that follow each other closely.
KNOCK_MS = 3
REST_SECONDS = 0.003
MAX_TOGETHER = 128
# Imports are one long write. Whoever serves people sets `patience` to what they can wait.
PATIENCE_SECONDS = 3600.0


@dataclass(eq=False)
class _Request:
    work: Callable[[Connection], Any]
    future: Future[Any]


@dataclass(frozen=True)
class Failure:
    """Why nothing can be stored, and since when on the monotonic clock."""

    error: StoreError
    since: float


class Writer:
    """Runs requests on the one connection that writes.

    `failure` says why the last commit failed, None if it did not; `written_at` is when the last one
    succeeded and `busy_since` when the present one began, both on the monotonic clock.
    """

    def __init__(self, connection: Connection, files: OpenFiles, clock: Callable[[], int]) -> None:
        self.path, self.files, self._clock = files.path, files, clock
        self.patience = PATIENCE_SECONDS
        self.failure: Failure | None = None
        self.written_at = float("-inf")
        self.busy_since: float | None = None
        self._connection: Connection | None = connection
        self._recorder: Recorder | None = Recorder(connection)
        # Whoever waits stays in here until they have been told.
        self._waiting: deque[_Request] = deque()
        self._news = threading.Condition()
        self._batch: list[_Request] = []
        self._newest = 0
        self._ended = False
        self._thread = threading.Thread(target=self._write_all, name="writer", daemon=True)
        self._thread.start()

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` and return its result once it is safely on disk."""
        future = self.submit(work)
        try:
            return future.result(self.patience)
        except TimeoutError:
            unstored = future.cancel()
            if future.done() and not unstored:
                # In the last moment; or the work itself has run out of some time of its own.
                return future.result()
            told = f"no answer within {self.patience:g} s" + "; nothing was stored" * unstored
            raise WriterFailed.because(self.path, told) from None

    @property
    def recorder(self) -> Recorder:
        """What records in the hash chain, for work that is under way on the writer's connection."""
        assert self._recorder is not None
        return self._recorder

    def submit(self, work: Callable[[Connection], Result]) -> Future[Result]:
        """Have `work` done without waiting for it."""
        future: Future[Result] = Future()
        with self._news:
            if self._ended:
                raise CannotOpen.because(self.path, "it was closed")
            self._waiting.append(_Request(work, future))
            self._news.notify()
        return future

    def probe(self) -> None:
        """Commit something that changes nothing, to find out whether that can be done."""

        def work(c: Connection) -> None:
            if no_room(self.path):
                # What little is committed here may still fit into the log as it is.
                raise DiskFull.because(self.path, "there is no room left")
            version = c.execute("PRAGMA user_version").fetchone()[0]
            # It takes pages that are not there yet, as answers do, and gives them back.
            c.execute("SAVEPOINT probe")
            c.execute("CREATE TABLE probe AS SELECT zeroblob(65536)")
            c.execute("ROLLBACK TO probe")
            c.execute("RELEASE probe")
            c.execute(f"PRAGMA user_version = {int(version)}")

        self.write(work)

    def close(self) -> bool:
        """Finish what is waiting; False if it hangs in the middle of something."""
        with self._news:
            self._ended = True
            self._news.notify()
        self._thread.join(self.patience)
        return not self._thread.is_alive()

    def connections(self) -> list[Connection]:
        """The connection that it writes on, if it has one."""
        return [] if self._connection is None else [self._connection]

    def _write_all(self) -> None:
        """The writer's life: whatever happens, those who wait hear of it, and it goes on."""
        going = True
        while going:
            try:
                going = self._write_some()
            except BaseException as error:
                with contextlib.suppress(BaseException):
                    self._give_up(error)

    def _write_some(self) -> bool:
        """Wait for requests and commit them together; False once there will be no more."""
        self.busy_since = None
        with self._news:
            while not self._waiting and not self._ended:
                self._news.wait()
            self._batch = list(islice(self._waiting, MAX_TOGETHER))
        if not self._batch:
            return False
        self.busy_since = time.monotonic()
        self._commit(self._batch)
        self._dismiss()
        if self._waiting:
            time.sleep(REST_SECONDS)
        return True

    def _dismiss(self) -> None:
        """Those of this batch have been told and no longer wait."""
        with self._news:
            while self._waiting and self._waiting[0] in self._batch:
                self._waiting.popleft()
            self._batch = []

    def _commit(self, batch: list[_Request]) -> None:
        outcomes: list[tuple[_Request, Any, BaseException | None]] = []
        self.files.check_all()
        connection, recorder = self._ready()
        self._begin(connection)
        if newest_answer(connection) < self._newest:
            raise FileReplaced.because(self.path, "answers are missing that were stored")
        for request in batch:
            if request.future.set_running_or_notify_cancel():
                outcomes.append(self._run(connection, request))
        recorder.append(self._clock())
        newest = newest_answer(connection)
        connection.execute("COMMIT")
        self.files.check_all()
        self._newest = newest
        failures = [error for _, _, error in outcomes if isinstance(error, StoreError)]
        self._note(failures[0] if failures else None)
        for request, result, failure in outcomes:
            if failure is None:
                request.future.set_result(result)
            else:
                request.future.set_exception(failure)

    def _ready(self) -> tuple[Connection, Recorder]:
        """The connection with what records its changes; made again if they were dropped."""
        if self._connection is None or self._recorder is None:
            self._drop_connection()
            connection = connect(self.path, KNOCK_MS, self.files.check)
            try:
                self._recorder = Recorder(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection, self._recorder

    def _give_up(self, error: BaseException) -> None:
        """Take back what was begun, and tell everybody who waits for it."""
        try:
            connection = self._connection
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except BaseException:
            self._drop_connection()
        if isinstance(error, sqlite3.Error):
            told: StoreError = classified(error, self.path)
        elif isinstance(error, StoreError):
            told = error
        else:
            # Nobody knows in what state it left the connection.
            self._drop_connection()
            told = WriterFailed.because(self.path, f"{type(error).__name__} {error}")
            told.__cause__ = error
        self._note(told)
        for request in self._batch:
            with contextlib.suppress(InvalidStateError):
                request.future.set_exception(told)
        self._dismiss()

    def _drop_connection(self) -> None:
        connection, self._connection, self._recorder = self._connection, None, None
        with contextlib.suppress(sqlite3.Error):
            if connection is not None:
                connection.close()

    def _note(self, error: StoreError | None) -> None:
        now = time.monotonic()
        if error is None:
            self.failure, self.written_at = None, now
        else:
            before = self.failure
            same = before is not None and before.error.name == error.name
            self.failure = Failure(error, before.since if before and same else now)

    def _begin(self, connection: Connection) -> None:
        give_up = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if (
                    error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
                    or time.monotonic() > give_up
                ):
                    raise

    def _run(
        self, connection: Connection, request: _Request
    ) -> tuple[_Request, Any, BaseException | None]:
        connection.execute("SAVEPOINT request")
        try:
            result = request.work(connection)
            connection.execute("RELEASE request")
            return request, result, None
        except Exception as error:
            if not connection.in_transaction:
                # A full disk takes the whole transaction back, the others' work with it.
                raise
            connection.execute("ROLLBACK TO request")
            connection.execute("RELEASE request")
            if isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError:
                return request, None, classified(error, self.path)
            return request, None, error


def newest_answer(c: Connection) -> int:
    """The number of the last answer. It never falls: answers are not deleted.

    Where it does, an older copy was written over the file, which keeps its name and its inode.
    """
    return int(c.execute("SELECT coalesce(max(seq), 0) FROM answers").fetchone()[0])
