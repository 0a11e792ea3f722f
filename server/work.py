"""The worker process: turns the worker while its parent lives, and says how it is."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click
from threadpoolctl import threadpool_limits

from lore_active.warming import warm
from server.children import stop_signal
from server.clock import now
from server.opening import open_study
from server.store import learning
from server.store.database import StoreTrouble
from server.worker import Worker

IDLE_SECONDS = 0.1
BEAT_MS = 2000


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Learn from the answers of this study; for the supervisor."""
    stop = stop_signal()
    if hasattr(os, "nice"):
        # People who wait for a page come first.
        os.nice(10)
    study, database = open_study(folder, now)
    pid = os.getpid()
    database.write(lambda c: learning.beat(c, now(), pid, "starting"))
    with threadpool_limits(1):
        warm()
        worker = Worker(database, study, now, time.perf_counter)
        database.write(lambda c: learning.beat(c, now(), pid, "waiting", ""))
        beaten = now()
        while not stop.is_set():
            try:
                worked = worker.turn()
            except StoreTrouble as error:
                print(f"The worker waits: {error}", file=sys.stderr, flush=True)
                stop.wait(1.0)
                continue
            if now() - beaten > BEAT_MS:
                doing = "learning" if worked else "waiting"
                database.write(lambda c, doing=doing: learning.beat(c, now(), pid, doing))  # type: ignore[misc]
                beaten = now()
            if not worked:
                stop.wait(IDLE_SECONDS)
    database.write(lambda c: learning.beat(c, now(), pid, "stopped"))
    database.close()
    sys.exit(0)


if __name__ == "__main__":
    main()
