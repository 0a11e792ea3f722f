"""The worker process: turns the worker while its parent lives, and says how it is."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import traceback
from pathlib import Path

import click
from threadpoolctl import threadpool_limits

from lore_active.errors import LoreError
from lore_active.warmup import warm
from server.clock import now
from server.learning.worker import Worker
from server.processes.lifetime import TOLD_WHY, stop_signal
from server.store import heartbeat
from server.store.database import Database
from server.store.sqlite.errors import StoreError
from server.store.sqlite.files import FileIds
from server.study.config import LoadedStudy
from server.study.workspace import open_study

IDLE_SECONDS = 0.1
BEAT_SECONDS = 2.0


class Heartbeat:
    """Says every two seconds that this process is alive and what it does, however long that takes.

    A thread of its own: a worker in a long audit is heard of, one that hangs is not. `trouble` is
    None as long as what was written before should stand.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.doing = "starting"
        self.trouble: str | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name="pulse", daemon=True)

    def __enter__(self) -> Heartbeat:
        self.beat()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.beat()

    def beat(self) -> None:
        """Write it down once; a database that cannot take it now will take the next one."""
        doing, trouble, pid = self.doing, self.trouble, os.getpid()
        with contextlib.suppress(StoreError):
            self._database.write(lambda c: heartbeat.beat(c, now(), pid, doing, trouble))

    def _beat_on(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self.beat()


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--files", help="The files that are open.")
def main(folder: Path, files: str | None) -> None:
    """Learn from the answers of this study; for the supervisor."""
    stop = stop_signal()
    if hasattr(os, "nice"):
        # People who wait for a page come first.
        os.nice(10)
    try:
        study, database = open_study(folder, now, FileIds.parse(files) if files else None)
    except StoreError as error:
        print(f"The worker cannot begin: {error}", file=sys.stderr, flush=True)
        sys.exit(TOLD_WHY)
    with Heartbeat(database) as pulse:
        try:
            _work(study, database, pulse, stop)
            pulse.doing, code = "stopped", 0
        except Exception as error:
            traceback.print_exc()
            pulse.doing, pulse.trouble, code = "failed", _words(error), TOLD_WHY
    database.close()
    sys.exit(code)


def _work(study: LoadedStudy, database: Database, pulse: Heartbeat, stop: threading.Event) -> None:
    with threadpool_limits(1):
        warm()
        worker = Worker(database, study, now, time.perf_counter)
        waits_for = ""
        while not stop.is_set():
            try:
                worked = worker.turn()
            except StoreError as error:
                if error.name != waits_for:
                    print(f"The worker waits: {error}", file=sys.stderr, flush=True)
                waits_for = error.name
                stop.wait(1.0)
                continue
            waits_for = ""
            # Only now: whatever ended the last worker may end this one in its first turn.
            pulse.trouble = worker.trouble
            pulse.doing = "learning" if worked else "waiting"
            if not worked:
                stop.wait(IDLE_SECONDS)


def _words(error: Exception) -> str:
    if isinstance(error, LoreError):
        return f"The worker could not go on: {error}"
    if isinstance(error, MemoryError):
        return "The worker ran out of memory."
    return f"The worker could not go on: {type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
