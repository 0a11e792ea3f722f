"""How long a report of a big study takes, and how large it is."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.load import monitor
from benchmarks.tables import Page
from server.exports import log
from server.report.report import report as make_report
from server.store import summaries
from server.store.database import Database
from server.study.workspace import open_study

ROUNDS = 5
SIZES = ((10_000, 3), (10_000, 10), (50_000, 3))


def seconds(action: Callable[[], object]) -> float:
    """Of the processor, the median of some rounds: what others do on the machine is not counted."""
    found = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        action()
        found.append(time.process_time() - begun)
    return float(np.median(found))


def read_all(database: Database) -> int:
    """Every answer, as the report reads them first."""
    last = 0
    while rows := database.read(partial(summaries.answers_after, seq=last)):
        last = rows[-1].seq
    return last


def measure(answers: int, rank: int) -> list[object]:
    """One study's row."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "big"
        study, database, clock = monitor.big_study(folder, rank, answers)
        made = make_report(database, study, lambda: clock[0])
        whole = seconds(lambda: make_report(database, study, lambda: clock[0]))
        reading = seconds(lambda: read_all(database))
        written = Path(home) / "big.log.jsonl"
        written.write_bytes(b"".join(log.lines(database, study)))
        database.close()
        opening = seconds(lambda: open_study(folder, lambda: clock[0])[1].close())
        loads = iter(range(ROUNDS))

        def load() -> None:
            log.load(written, Path(home) / f"{next(loads)}.db", lambda: clock[0])[1].close()

        loading = seconds(load)
    return [
        f"{answers:,}",
        rank,
        f"{opening + whole:.2f}",
        f"{loading + whole:.2f}",
        f"{whole / reading:.1f}",
        f"{len(made.page.encode()) / 1e6:.2f}",
    ]


def main() -> None:
    """Measure and write the page."""
    page = Page("report", "Time and size of a report", "make bench-report")
    page.text(
        f"Studies of {monitor.ITEMS} items with {monitor.FITS} models. Seconds of processor time "
        "from opening the folder, or reading the log, to the finished page (medians of "
        f"{ROUNDS}); the time for the page itself, divided by the time for reading all answers "
        "from the database; megabytes of the file. The target for 10,000 answers is 10 s and 3 MB."
    )
    page.table(
        ["answers", "rank", "s from a folder", "s from a log", "× reading answers", "MB"],
        [measure(*size) for size in SIZES],
    )
    page.write()


if __name__ == "__main__":
    main()
