"""A study's log cut or spoilt as a loss of power might leave it: what does the database hold?"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.reliability.process_kills import Client
from benchmarks.server import Serving, wait_until, words_study
from server.store.database import Database

HEADER, FRAME = 32, 24
# Pages of 4096 bytes; ours is a log that nothing has been copied back from yet.
MIN_FRAMES = 60
HARMS = ("cut", "zeros", "noise", "flip")
# Where the spoilt copies are opened; nothing there need survive.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
Rows = list[tuple[int, str, str]]


@dataclass(frozen=True)
class Copy:
    """A study's files at one moment of its life, and the answers acknowledged by then."""

    folder: Path
    log: bytes
    acknowledged: frozenset[str]


def frames(folder: Path) -> tuple[int, int, int]:
    """(frames in the log, those already copied to the database, page size), from its index."""
    index = (folder / "study.db-shm").read_bytes()[:136]
    (page,) = struct.unpack_from("=H", index, 14)
    (newest,) = struct.unpack_from("=I", index, 16)
    (copied,) = struct.unpack_from("=I", index, 96)
    return newest, copied, page


def taken(folder: Path, to: Path, acknowledged: Callable[[], frozenset[str]]) -> Copy | None:
    """Copy a study whose processes stand still; None where its log is too short to tell much.

    What has been copied from the log to the database was synced before, so that no loss of power
    takes it out of the log again: only logs of which nothing has been copied are cut anywhere.
    """
    newest, copied, page = frames(folder)
    if copied or newest < MIN_FRAMES:
        return None
    to.mkdir()
    shutil.copyfile(folder / "study.db", to / "study.db")
    # The rest of the file is of an earlier round.
    log = (folder / "study.db-wal").read_bytes()[: HEADER + newest * (FRAME + page)]
    return Copy(to, log, acknowledged())


def spoilt(log: bytes, harm: str, at: int, rng: np.random.Generator) -> bytes:
    """The log as it might be found: ending at `at`, or with other bytes from there, or one."""
    if harm == "flip":
        return log[:at] + bytes([log[at] ^ int(rng.integers(1, 256))]) + log[at + 1 :]
    rest = len(log) - at
    tail = {"cut": b"", "zeros": bytes(rest), "noise": rng.bytes(rest)}[harm]
    return log[:at] + tail


def held(path: Path) -> tuple[Rows, list[str]]:
    """The answers in a database that our own code opens, and everything that is wrong with it."""
    database = Database(path, lambda: 0)
    try:
        return database.read(lambda c: (_answers(c), _wrongs(c)))
    finally:
        database.close()


def _answers(c: sqlite3.Connection) -> Rows:
    rows = c.execute(
        "SELECT a.seq, q.token, coalesce(a.chosen, a.outcome) FROM answers a "
        "JOIN queries q ON q.id = a.query ORDER BY seq"
    )
    return [(row[0], row[1], row[2]) for row in rows]


def _wrongs(c: sqlite3.Connection) -> list[str]:
    wrongs = [row[0] for row in c.execute("PRAGMA integrity_check") if row[0] != "ok"]
    wrongs += [f"foreign key: {tuple(row)}" for row in c.execute("PRAGMA foreign_key_check")]
    torn = c.execute(
        "SELECT p.id FROM participants p WHERE p.done <> (SELECT count(*) FROM answers a "
        "JOIN queries q ON q.id = a.query WHERE q.participant = p.id AND q.slot >= 0)"
    )
    return wrongs + [f"participant {row[0]}: half an answer" for row in torn]


def cut_at_random(copy: Copy, times: int, rng: np.random.Generator) -> dict[str, Any]:
    """Spoil the copy's log again and again; counts what should never happen.

    Each time the database must open, be valid, and hold the first answers of the whole log: no
    gaps, none changed, and the more of them the later the log is spoilt.
    """
    (copy.folder / "study.db-wal").write_bytes(copy.log)
    with TemporaryDirectory(dir=MEMORY) as home:
        whole, wrongs = held(_placed(copy, copy.log, Path(home)))
    lost = len(copy.acknowledged - {token for _, token, _ in whole})
    places = sorted(int(at) for at in rng.integers(0, len(copy.log), times))
    problems, kept, minimum, shorter = list(wrongs), 0, len(whole), 0
    for number, at in enumerate(places):
        log = spoilt(copy.log, HARMS[number % len(HARMS)], at, rng)
        with TemporaryDirectory(dir=MEMORY) as home:
            try:
                found, wrongs = held(_placed(copy, log, Path(home)))
            except Exception as error:
                problems.append(f"{HARMS[number % len(HARMS)]} at {at}: {error!r}")
                continue
        problems += wrongs
        if found != whole[: len(found)] or len(found) < kept:
            problems.append(f"{HARMS[number % len(HARMS)]} at {at}: no beginning of the answers")
        kept, minimum = max(kept, len(found)), min(minimum, len(found))
        shorter += len(found) < len(whole)
    return {
        "cuts": times,
        "answers": len(whole),
        "fewest": minimum,
        "shorter": shorter,
        "acknowledged": len(copy.acknowledged),
        "lost": lost,
        "problems": problems,
    }


def _placed(copy: Copy, log: bytes, home: Path) -> Path:
    shutil.copyfile(copy.folder / "study.db", home / "study.db")
    (home / "study.db-wal").write_bytes(log)
    return home / "study.db"


def cuts_under_load(copies: int, times: int, seed: int) -> Iterator[dict[str, Any]]:
    """Copies of a study taken while people answer and the worker learns; then each cut often."""
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as home:
        for copy in _live_copies(Path(home), copies, rng):
            yield cut_at_random(copy, times, rng)


def _live_copies(home: Path, copies: int, rng: np.random.Generator) -> list[Copy]:
    folder, stop = words_study(home / "words", 30), threading.Event()
    server = Serving(str(folder))
    participants: list[Client] = []
    found: list[Copy] = []
    try:
        address = server.address()
        participants = [Client(address, "words", f"person{n}", stop, 0.03) for n in range(6)]
        for participant in participants:
            participant.start()

        def acknowledged() -> frozenset[str]:
            return frozenset(
                token for participant in participants for token in list(participant.acknowledged)
            )

        for number in range(copies):
            more = len(acknowledged()) + int(rng.integers(50, 300))
            wait_until(lambda more=more: len(acknowledged()) > more, 300)  # type: ignore[misc]
            found.append(_live_copy(server, folder, home / f"copy{number}", acknowledged, rng))
    finally:
        stop.set()
        server.stop()
        for participant in participants:
            participant.join(30)
    return found


def _live_copy(
    server: Serving,
    folder: Path,
    to: Path,
    acknowledged: Callable[[], frozenset[str]],
    rng: np.random.Generator,
) -> Copy:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        time.sleep(float(rng.uniform(0.05, 0.6)))
        running = [
            *server.children("server.processes.web_process"),
            *server.children("server.processes.worker_process"),
        ]
        for pid in running:
            os.kill(pid, signal.SIGSTOP)
        try:
            copy = taken(folder, to, acknowledged)
        finally:
            for pid in running:
                os.kill(pid, signal.SIGCONT)
        if copy is not None:
            return copy
    raise AssertionError("the log was never long enough to be cut")
