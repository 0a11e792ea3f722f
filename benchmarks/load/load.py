"""Many participants at once over HTTP while the worker learns: how long does an answer take?

With `--beside REVISION` an older commit is measured in the same run, in turns with this one: on a
machine that others use as well, only such ratios mean something. With `--results FILE` rows are
kept there, and the page has those of earlier runs, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks.load.crowd import Crowd
from benchmarks.load.participants import ITEMS
from benchmarks.server import Serving, words_study
from benchmarks.tables import Page

HERE = Path(__file__).parents[2]
SETTLE_SECONDS = 5.0
# More than anybody answers within the time measured.
TRIALS = 500
LOOK_SECONDS = 0.25
TICKS = os.sysconf("SC_CLK_TCK")
HEADER = [
    "participants",
    "version",
    "answers/s",
    "errors",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "processor time per request, ms",
    "worker, cores",
    "participants, cores",
    "behind (median)",
    "fallbacks",
    "load average",
]


@dataclass(frozen=True)
class Measured:
    """What one run measured; `web` and `worker` are seconds of processor time."""

    millis: np.ndarray
    errors: list[str]
    seconds: float
    web: float
    worker: float
    participants: float
    behind: float
    fallbacks: float
    load: float

    @property
    def cost(self) -> float:
        """Milliseconds of the web processes' time per request."""
        return 1000 * self.web / max(1, len(self.millis))

    def row(self, participants: int, version: str) -> list[str]:
        """A row of the table."""
        return [
            str(participants),
            version,
            f"{len(self.millis) / self.seconds:.0f}",
            str(len(self.errors)),
            *(f"{np.percentile(self.millis, share):.1f}" for share in (50, 95, 99)),
            f"{self.cost:.2f}",
            f"{self.worker / self.seconds:.2f}",
            f"{self.participants / self.seconds:.2f}",
            f"{self.behind:.0f}",
            f"{100 * self.fallbacks:.2f} %",
            f"{self.load:.1f}",
        ]


def processor_seconds(pids: list[int]) -> float:
    """Processor time that these processes have used so far, with all their threads."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def measure(source: Path, participants: int, think: float, seconds: float, web: int) -> Measured:
    """Serve a fresh study, let the participants come, and sum up."""
    with tempfile.TemporaryDirectory() as home:
        folder = words_study(Path(home) / "load", ITEMS, TRIALS)
        server = Serving(str(folder), "--web", str(web), source=source)
        try:
            address = urlsplit(server.address())
            crowd = Crowd(address.hostname or "", address.port or 80, "load", participants, think)
            crowd.run(participants / crowd.per_second + SETTLE_SECONDS)
            serving = [server.process.pid, *server.children("server.processes.web_process")]
            learning = server.children("server.processes.worker_process")
            web_before, worker_before = map(processor_seconds, (serving, learning))
            own_before, behind = time.process_time(), []
            crowd.measuring, end = True, time.perf_counter() + seconds
            with contextlib.closing(sqlite3.connect(folder / "study.db")) as database:
                while time.perf_counter() < end:
                    crowd.run(LOOK_SECONDS)
                    behind.append(_behind(database))
            crowd.measuring = False
            web_seconds = processor_seconds(serving) - web_before
            worker_seconds = processor_seconds(learning) - worker_before
            own = time.process_time() - own_before
            # Replies to what was sent before the end.
            crowd.run(1.0)
            crowd.close()
        finally:
            server.stop()
        with contextlib.closing(sqlite3.connect(folder / "study.db")) as database:
            fallbacks = _fallbacks(database)
    for error in sorted(set(crowd.errors))[:5]:
        print(f"  {error} ({crowd.errors.count(error)} times)", file=sys.stderr)
    return Measured(
        1000 * np.array(crowd.seconds),
        crowd.errors,
        seconds,
        web_seconds,
        worker_seconds,
        own,
        float(np.median(behind)),
        fallbacks,
        os.getloadavg()[0],
    )


def _behind(database: sqlite3.Connection) -> int:
    """How many answers the worker has not yet processed."""
    (behind,) = database.execute(
        "SELECT (SELECT coalesce(max(seq), 0) FROM answers) - "
        "(SELECT coalesce(max(up_to_seq), 0) FROM steps)"
    ).fetchone()
    return int(behind)


def _fallbacks(database: sqlite3.Connection) -> float:
    """The share of the questions asked that were drawn because the queue was empty."""
    (share,) = database.execute(
        "SELECT avg(origin = 'fallback') FROM queries WHERE participant IS NOT NULL"
    ).fetchone()
    return float(share)


@contextlib.contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """An older commit in a folder of its own, with its kernels compiled; or a folder with it."""
    if Path(revision).is_dir():
        yield Path(revision).resolve()
        return
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "source"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), revision], check=True)
        try:
            warm = "from lore_active.warmup import warm; warm()"
            subprocess.run([sys.executable, "-c", warm], check=True, cwd=folder)
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def short_name(source: Path) -> str:
    """The commit that a folder has checked out."""
    command = ["git", "-C", str(source), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _cost(rows: list[list[str]], participants: str, version: str) -> float:
    """Mean processor time per request of a version."""
    place = HEADER.index("processor time per request, ms")
    return float(np.mean([float(row[place]) for row in rows if row[:2] == [participants, version]]))


def main() -> None:
    """Measure each number of participants and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--participants", type=int, nargs="+", default=[150, 500, 1000])
    parser.add_argument("--think", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--web", type=int, default=2, help="web processes")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--beside", metavar="REVISION", help="measure this commit as well, in turns"
    )
    parser.add_argument("--no-page", action="store_true", help="print only")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep rows, and add to them")
    chosen = parser.parse_args()
    page = Page("load", "Many participants at once", "make bench-load")
    page.text(
        f"Simulated participants over HTTP, {chosen.think:g} s per answer on average, "
        f"{ITEMS} items, {chosen.seconds:g} s measured after all have arrived, everything (server, "
        "worker, database with a sync for every commit, and the participants themselves) on one "
        "machine of two cores. Milliseconds from sending an answer to having received the next "
        "question. Processor time per request: of the web processes and the supervisor together. "
        "Behind: answers that the worker had not yet processed. Fallbacks: share of questions "
        "drawn at random because the queue was empty, since the beginning."
    )
    rows: list[list[str]] = []
    kept: Path | None = chosen.results
    if kept is not None and kept.exists():
        rows = json.loads(kept.read_text())
    with contextlib.ExitStack() as stack:
        sources = {"this one": HERE}
        if chosen.beside:
            older = stack.enter_context(checked_out(chosen.beside))
            sources = {short_name(older): older, **sources}
        for participants in chosen.participants:
            for _ in range(chosen.rounds):
                for version, source in sources.items():
                    found = measure(source, participants, chosen.think, chosen.seconds, chosen.web)
                    rows.append(found.row(participants, version))
                    print(rows[-1], flush=True)
                    if kept is not None:
                        kept.write_text(json.dumps(rows))
    rows.sort(key=lambda row: int(row[0]))
    page.table(HEADER, rows)
    for older_one in sorted({row[1] for row in rows} - {"this one"}):
        page.text(
            f"Processor time per request, compared with {older_one}: "
            + ", ".join(
                f"{_cost(rows, number, 'this one') / _cost(rows, number, older_one):.2f} with "
                f"{number} participants"
                for number in dict.fromkeys(row[0] for row in rows if row[1] == older_one)
            )
            + "."
        )
    if not chosen.no_page:
        page.write()


if __name__ == "__main__":
    main()
