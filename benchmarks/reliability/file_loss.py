"""Files taken away from under a server: what is acknowledged, what is kept, what is said."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability.process_kills import Client
from benchmarks.server import Serving, wait_until, words_study
from benchmarks.tables import Page

CLIENTS = 4


@dataclass(frozen=True)
class Load:
    """A server, where it answers, and participants who answer without end."""

    server: Serving
    address: str
    participants: list[Client]

    def acknowledged(self) -> set[str]:
        """The questions whose answers were acknowledged."""
        return {
            token for participant in self.participants for token in list(participant.acknowledged)
        }


@contextmanager
def under_load(folder: Path) -> Iterator[Load]:
    """A server that participants answer to."""
    server, stop = Serving(str(folder)), threading.Event()
    participants: list[Client] = []
    try:
        address = server.address()
        for number in range(CLIENTS):
            participants.append(Client(address, folder.name, f"p{number}", stop, pause=0.02))
            participants[-1].start()
        wait_until(lambda: all(len(participant.acknowledged) > 5 for participant in participants))
        yield Load(server, address, participants)
    finally:
        stop.set()
        server.stop()
        for participant in participants:
            participant.join(30)


def page(address: str) -> tuple[int, str]:
    """(status, text) of an address, whatever the status."""
    try:
        with urllib.request.urlopen(address, timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def health(address: str) -> dict[str, Any]:
    """What one of the web processes says about the study."""
    status, text = page(f"{address}/health")
    report: dict[str, Any] = json.loads(text)["studies"][0]
    assert status == (200 if report["writer"] == "ok" else 503)
    return report


def answered(path: Path) -> set[str]:
    """The tokens of all questions in a file that have an answer; empty if it cannot be read."""
    try:
        with closing(sqlite3.connect(path)) as database:
            rows = database.execute("SELECT token FROM queries q JOIN answers a ON a.query = q.id")
            return {row[0] for row in rows}
    except sqlite3.Error:
        return set()


def delete(folder: Path) -> None:
    """The database."""
    (folder / "study.db").unlink()


def replace(folder: Path) -> None:
    """As a sync tool does: `old.db` beside the folder is copied into it and moved over."""
    shutil.copy(folder.parent / "old.db", folder / "new")
    (folder / "new").replace(folder / "study.db")


def lose_log(folder: Path) -> None:
    """The write-ahead log."""
    (folder / "study.db-wal").unlink()


def keep_old(folder: Path) -> None:
    """A copy of the database as it is now, beside the folder."""
    with closing(sqlite3.connect(folder / "study.db", timeout=30)) as source:
        source.execute(f"VACUUM INTO '{folder.parent / 'old.db'}'")


HARMS: dict[str, Callable[[Path], None]] = {
    "`study.db` deleted": delete,
    "`study.db` replaced by an older copy": replace,
    "`study.db-wal` deleted": lose_log,
}


def loss(harm: Callable[[Path], None], seconds: float) -> dict[str, Any]:
    """Do harm after some seconds of load; what was acknowledged, and what became of it."""
    with tempfile.TemporaryDirectory() as home:
        folder = words_study(Path(home) / "words", 30)
        with under_load(folder) as load:
            keep_old(folder)
            time.sleep(seconds)
            harm(folder)
            began = time.monotonic()
            wait_until(
                lambda: all(participant.browser.status == 503 for participant in load.participants)
            )
            noticed = load.acknowledged()
            wait_until(lambda: any("rescued-" in line for line in load.server.lines))
            took = time.monotonic() - began
            time.sleep(2.0)
            later = len(load.acknowledged() - noticed)
            code = load.server.stop()
        (rescued,) = (folder / "backups").glob("rescued-*.db")
        lost = len(load.acknowledged() - answered(rescued))
    return {
        "acknowledged": len(noticed),
        "later": later,
        "lost": lost,
        "code": code,
        "seconds": took,
    }


def latencies(count: int) -> dict[str, list[float]]:
    """Milliseconds of /health while answers come in, while they cannot, and after a loss."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as home:
        folder = words_study(Path(home) / "words", 30)
        with under_load(folder) as load:
            found["answers come in"] = _timed(load.address, count)
            with closing(sqlite3.connect(folder / "study.db", isolation_level=None)) as other:
                other.execute("PRAGMA busy_timeout = 30000")
                other.execute("BEGIN IMMEDIATE")
                found["another program holds the lock"] = _timed(load.address, count)
            delete(folder)
            wait_until(lambda: health(load.address)["writer"] == "failed")
            found["`study.db` is gone"] = _timed(load.address, count)
    return found


def _timed(address: str, count: int) -> list[float]:
    """In a process of its own: the participants' threads would hold up the stopwatch."""
    probe = [
        sys.executable,
        "-m",
        "benchmarks.reliability.file_loss",
        "--probe",
        address,
        "--count",
        str(count),
    ]
    done = subprocess.run(probe, check=True, capture_output=True, text=True)
    times: list[float] = json.loads(done.stdout)
    return times


def _probe(address: str, count: int) -> None:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        page(f"{address}/health")
        times.append(1000 * (time.perf_counter() - began))
        time.sleep(0.05)
    print(json.dumps(times))


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=200, help="requests for /health in each state")
    parser.add_argument("--probe", metavar="URL", help="only time requests, and print them")
    chosen = parser.parse_args()
    if chosen.probe:
        _probe(chosen.probe, chosen.count)
        return
    rng = np.random.default_rng(1)
    table = Page(
        "losses", "Files deleted or replaced while the server runs", "make bench-reliability"
    )
    table.text(
        f"{CLIENTS} clients answer while a file of the study is deleted or replaced at a random "
        "moment. Acknowledged later: after every client had been shown a technical problem. "
        "Missing: acknowledged answers that are not in the copy that the server made in "
        "`backups/`. Seconds: until that copy was complete."
    )
    rows: list[list[object]] = []
    for name, harm in HARMS.items():
        done = [loss(harm, rng.uniform(0.5, 3.0)) for _ in range(chosen.rounds)]
        rows.append(
            [
                name,
                len(done),
                *(
                    sum(record[what] for record in done)
                    for what in ("acknowledged", "later", "lost")
                ),
                ", ".join(sorted({str(record["code"]) for record in done})),
                f"{max(record['seconds'] for record in done):.1f}",
            ]
        )
    names = (
        "rounds",
        "acknowledged",
        "acknowledged later",
        "missing",
        "exit codes",
        "most seconds",
    )
    table.table(["", *names], rows)
    table.text(
        f"Milliseconds of `/health`, {chosen.count} requests in each state, each on a new "
        f"connection; the load of the machine (two cores) was {os.getloadavg()[0]:.0f}."
    )
    table.table(
        ["", "median", "p99", "most"],
        [
            [name, *(f"{np.quantile(times, share):.0f}" for share in (0.5, 0.99, 1.0))]
            for name, times in latencies(chosen.count).items()
        ],
    )
    table.write()


if __name__ == "__main__":
    main()
