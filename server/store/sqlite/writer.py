"""The writer thread: grouped commits, each verified before it is acknowledged.

Requests that wait during a commit are then committed together, each in its own savepoint. Whatever
happens to the thread or the files, every caller gets a result or an error in time.
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

# SQLite backs off more and more while it waits for a lock, and would starve behind a busy writer;
# so writers retry often, and pause briefly after a commit if there are many requests. During the
# pause more of them gather, which then share a commit: a commit costs as much as an answer.
KNOCK_MS = 3
REST_SECONDS = 0.012
MAX_TOGETHER = 128
# Imports are one long write. The server sets `patience` to what participants can wait.
PATIENCE_SECONDS = 3600.0
# While this process holds the database's lock, everybody waits for it, in other processes too. Each
# statement gives the interpreter lock away; threads that make pages would take it, and the
# transaction would last several times as long. So they let it go first, for at most this long.
YIELD_SECONDS = 0.05


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
    """Runs requests on the single writing connection.

    `failure` is why the last commit failed, None if it succeeded; `written_at` is when the last one
    succeeded and `busy_since` when the current one started, both on the monotonic clock.
    """

    def __init__(self, connection: Connection, files: OpenFiles, clock: Callable[[], int]) -> None:
        self.path, self.files, self._clock = files.path, files, clock
        self.patience = PATIENCE_SECONDS
        self.failure: Failure | None = None
        self.written_at = float("-inf")
        self.busy_since: float | None = None
        self._connection: Connection | None = connection
        self._recorder: Recorder | None = Recorder(connection)
        # Requests stay in here until they have their result.
        self._waiting: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._batch: list[_Request] = []
        self._newest = 0
        self._ended = False
        # Not set while a transaction is under way.
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._write_all, name="writer", daemon=True)
        self._thread.start()

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` and return its result once it is durably stored."""
        future = self.submit(work)
        try:
            result = future.result(self.patience)
            self.let_go_first()
            return result
        except TimeoutError:
            unstored = future.cancel()
            if future.done() and not unstored:
                # It finished at the last moment, or the work itself raised TimeoutError.
                return future.result()
            detail = f"no response within {self.patience:g} s" + "; nothing was stored" * unstored
            raise WriterFailed.because(self.path, detail) from None

    def let_go_first(self) -> None:
        """Wait for the end of a transaction that is under way, which must not wait for others."""
        if not self._idle.is_set():
            self._idle.wait(YIELD_SECONDS)

    @property
    def recorder(self) -> Recorder:
        """The hash chain's recorder, for work running on the writer's connection."""
        assert self._recorder is not None
        return self._recorder

    def submit(self, work: Callable[[Connection], Result]) -> Future[Result]:
        """Queue `work` without waiting for it."""
        future: Future[Result] = Future()
        with self._changed:
            if self._ended:
                raise CannotOpen.because(self.path, "it was closed")
            self._waiting.append(_Request(work, future))
            self._changed.notify()
        return future

    def probe(self) -> None:
        """Commit without changing anything, to test whether writing works."""

        def work(c: Connection) -> None:
            if no_room(self.path):
                # This small commit might still fit into the existing log.
                raise DiskFull.because(self.path, "no space is left")
            version = c.execute("PRAGMA user_version").fetchone()[0]
            # Allocates new pages, as answers do, and releases them.
            c.execute("SAVEPOINT probe")
            c.execute("CREATE TABLE probe AS SELECT zeroblob(65536)")
            c.execute("ROLLBACK TO probe")
            c.execute("RELEASE probe")
            c.execute(f"PRAGMA user_version = {int(version)}")

        self.write(work)

    def close(self) -> bool:
        """Finish pending requests; return False if the writer hangs."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(self.patience)
        return not self._thread.is_alive()

    def connections(self) -> list[Connection]:
        """List the writing connection, if there is one."""
        return [] if self._connection is None else [self._connection]

    def _write_all(self) -> None:
        """Main loop: whatever happens, callers are notified, and the loop continues."""
        going = True
        while going:
            try:
                going = self._write_some()
            except BaseException as error:
                with contextlib.suppress(BaseException):
                    self._give_up(error)

    def _write_some(self) -> bool:
        """Wait for requests and commit them together; return False after `close`."""
        self.busy_since = None
        with self._changed:
            while not self._waiting and not self._ended:
                self._changed.wait()
            self._gather()
        if not self._batch:
            return False
        self.busy_since = time.monotonic()
        self._commit()
        crowded = len(self._batch) > 1
        self._dismiss()
        if crowded or self._waiting:
            time.sleep(REST_SECONDS)
        return True

    def _gather(self) -> None:
        """Take the requests that are waiting, in their order, into this batch."""
        self._batch = list(islice(self._waiting, MAX_TOGETHER))

    def _dismiss(self) -> None:
        """Remove this batch, whose callers have been notified, from the queue."""
        with self._changed:
            while self._waiting and self._waiting[0] in self._batch:
                self._waiting.popleft()
            self._batch = []

    def _commit(self) -> None:
        outcomes: list[tuple[_Request, Any, BaseException | None]] = []
        self.files.check_all()
        connection, recorder = self._ready()
        self._begin(connection)
        self._idle.clear()
        try:
            with self._changed:
                # More may have come while others held the lock.
                self._gather()
            if newest_answer(connection) < self._newest:
                raise FileReplaced.because(self.path, "answers that had been stored are missing")
            for request in self._batch:
                if request.future.set_running_or_notify_cancel():
                    outcomes.append(self._run(connection, request))
            recorder.append(self._clock())
            newest = newest_answer(connection)
        finally:
            self._idle.set()
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
        """Return the connection and its recorder; open them again if they were dropped."""
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
        """Roll back, and notify all callers of this batch."""
        try:
            connection = self._connection
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except BaseException:
            self._drop_connection()
        if isinstance(error, sqlite3.Error):
            named: StoreError = classified(error, self.path)
        elif isinstance(error, StoreError):
            named = error
        else:
            # The state of the connection is unknown.
            self._drop_connection()
            named = WriterFailed.because(self.path, f"{type(error).__name__} {error}")
            named.__cause__ = error
        self._note(named)
        for request in self._batch:
            with contextlib.suppress(InvalidStateError):
                request.future.set_exception(named)
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
                # A full disk rolls back the whole transaction, including other requests.
                raise
            connection.execute("ROLLBACK TO request")
            connection.execute("RELEASE request")
            if isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError:
                return request, None, classified(error, self.path)
            return request, None, error


def newest_answer(c: Connection) -> int:
    """Return the number of the last answer, which never decreases: answers are not deleted.

    If it does, the file was overwritten by an older copy, which keeps its name and inode.
    """
    return int(c.execute("SELECT coalesce(max(seq), 0) FROM answers").fetchone()[0])
