"""The worker process: runs the worker as long as its parent lives, with a heartbeat."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from pathlib import Path

import click
from threadpoolctl import threadpool_limits

from lore_active.errors import LoreError
from lore_active.warmup import warm
from server.clock import now
from server.learning.worker import PAUSE_SECONDS, Worker
from server.processes import logs
from server.processes.lifetime import TOLD_WHY, stop_signal
from server.store import heartbeat
from server.store.database import Database
from server.store.sqlite.errors import StoreError
from server.store.sqlite.files import FileIds
from server.study.config import LoadedStudy
from server.study.workspace import open_study

logger = logging.getLogger(__name__)
BEAT_SECONDS = 2.0


class Heartbeat:
    """Stores every two seconds that this process is alive and what it is doing.

    It runs in its own thread, so that a worker in a long audit still has a heartbeat. `error` is
    None to leave the stored error message as it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.doing = "starting"
        self.error: str | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self.beat()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()
        self.beat()

    def beat(self) -> None:
        """Store one heartbeat; if the database is unavailable, the next one will be stored."""
        doing, error, pid = self.doing, self.error, os.getpid()
        with contextlib.suppress(StoreError):
            self._database.write(lambda c: heartbeat.beat(c, now(), pid, doing, error))

    def _run(self) -> None:
        while not self._closed.wait(BEAT_SECONDS):
            self.beat()


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--files", help="Ids of the open files.")
def main(folder: Path, files: str | None) -> None:
    """Fit models to the answers of this study; started by the supervisor."""
    logs.configure("worker")
    stop = stop_signal()
    try:
        study, database = open_study(folder, now, FileIds.parse(files) if files else None)
    except StoreError as error:
        logger.error("The worker cannot start: %s", error)
        sys.exit(TOLD_WHY)
    if hasattr(os, "nice"):
        # Pages that participants wait for have priority. Under Linux this concerns this thread and
        # those that it starts, not the writer: while it holds the database's lock, all wait for it.
        os.nice(10)
    with Heartbeat(database) as status:
        try:
            _work(study, database, status, stop)
            status.doing, code = "stopped", 0
        except Exception as error:
            logger.exception("The worker failed.")
            status.doing, status.error, code = "failed", _message(error), TOLD_WHY
    database.close()
    sys.exit(code)


def _work(study: LoadedStudy, database: Database, status: Heartbeat, stop: threading.Event) -> None:
    with threadpool_limits(1):
        warm()
        worker = Worker(database, study, now, time.perf_counter, background=True)
        logger.info("Learning for %s: %d answers so far.", study.name, worker.learner.counted)
        waiting_for = ""
        while not stop.is_set():
            try:
                worked = worker.turn()
            except StoreError as error:
                if error.name != waiting_for:
                    logger.warning("The worker is waiting: %s", error)
                waiting_for = error.name
                stop.wait(1.0)
                continue
            waiting_for = ""
            # Only now: the error that ended the last worker may end this one in its first turn.
            status.error = worker.error
            status.doing = "learning" if worked else "waiting"
            if not worked or not worker.published:
                stop.wait(PAUSE_SECONDS)


def _message(error: Exception) -> str:
    if isinstance(error, LoreError):
        return f"The worker failed: {error}"
    if isinstance(error, MemoryError):
        return "The worker ran out of memory."
    return f"The worker failed: {type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
