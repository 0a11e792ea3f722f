"""An hour of answers at a steady pace: what memory, descriptors, threads and the log come to."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from benchmarks.load.monitor_load import PASSWORD, monitor, signed_in
from benchmarks.load.participants import Connection, form
from benchmarks.server import Serving, words_study
from lore_active.simulation.observers import Observer, ObserverNoise, gaussian_space
from lore_active.types import Floats
from server.auth.passwords import set_password
from server.study.items.display import items_by_name
from server.study.loading import load

ITEMS, RANK, TRIALS = 100, 3, 200
EVERY_SECONDS = 10.0
KINDS = {"web": "server.processes.web_process", "worker": "server.processes.worker_process"}
ITEM = re.compile(r'data-item="([^"]+)"')


@dataclass
class Crowd:
    """What a steady stream of people met with."""

    acknowledged: int = 0
    finished: int = 0
    errors: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Sample:
    """One look at everything; megabytes where not said otherwise."""

    minute: float
    acknowledged: int
    finished: int
    errors: int
    behind: int
    steps: int
    load: float
    p50_ms: float
    p99_ms: float
    wal_most: float
    database: float
    processes: dict[str, dict[str, float]]


async def seat(
    address: str,
    number: int,
    space: Floats,
    names: dict[str, int],
    crowd: Crowd,
    end: asyncio.Event,
) -> None:
    """People one after the other, who together give one answer a second."""
    parts, participant = urlsplit(address), 0
    due = time.perf_counter()
    while not end.is_set():
        observer = Observer(space, ObserverNoise(), 1000 * number + participant)
        connection = Connection(parts.hostname or "127.0.0.1", parts.port or 80)
        try:
            await connection.open()
            label = f"seat{number}-{participant}"
            _, headers, _ = await connection.request("GET", f"/s/load/?participant_label={label}")
            _, _, html = await connection.request("GET", urlsplit(headers["location"]).path)
            while not end.is_set():
                action, fields = form(html)
                if action is None:
                    crowd.finished += 1
                    break
                answering = action.endswith("/answer")
                if answering:
                    due += 1.0
                    await asyncio.sleep(max(0.0, due - time.perf_counter()))
                    fields["side"] = _side(observer, names, html)
                else:
                    fields["agreed"] = "yes"
                begun = time.perf_counter()
                status, _, html = await connection.request("POST", action, fields)
                if status != 200:
                    crowd.errors.append(f"status {status}")
                    break
                if answering:
                    crowd.acknowledged += 1
                    crowd.seconds.append(time.perf_counter() - begun)
        except (OSError, asyncio.IncompleteReadError, KeyError) as error:
            crowd.errors.append(repr(error))
            await asyncio.sleep(1.0)
        finally:
            if hasattr(connection, "writer"):
                connection.writer.close()
        participant += 1


def _side(observer: Observer, names: dict[str, int], html: str) -> str:
    anchor, left, right = (names[name] for name in ITEM.findall(html)[:3])
    return observer.answer(anchor, left, right)


def usage(pid: int) -> dict[str, float]:
    """Memory in megabytes, open descriptors and threads of a process."""
    place = Path("/proc") / str(pid)
    status = (place / "status").read_text()
    held = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {
        "pid": pid,
        "rss": int(held["VmRSS"].split()[0]) / 1024,
        "fds": len(list((place / "fd").iterdir())),
        "threads": int(held["Threads"]),
    }


async def look(
    server: Serving,
    folder: Path,
    crowd: Crowd,
    minutes: float,
    keep: Callable[[dict[str, Any]], None],
) -> None:
    """Sample until the time is over; the log's size every half second."""
    database = sqlite3.connect(folder / "study.db")
    begun = time.monotonic()
    while time.monotonic() - begun < 60 * minutes:
        wal, before = 0, len(crowd.seconds)
        until = time.monotonic() + EVERY_SECONDS
        while time.monotonic() < until:
            wal = max(wal, _size(folder / "study.db-wal"))
            await asyncio.sleep(0.5)
        behind, steps = database.execute(
            "SELECT (SELECT coalesce(max(seq), 0) FROM answers) - coalesce(max(up_to_seq), 0), "
            "count(*) FROM steps"
        ).fetchone()
        millis = 1000 * np.array(crowd.seconds[before:] or [0.0])
        numbers = {"supervisor": server.process.pid}
        for name, kind in KINDS.items():
            for place, pid in enumerate(sorted(server.children(kind)), 1):
                numbers[f"{name} {place}"] = pid
        sample = Sample(
            minute=(time.monotonic() - begun) / 60,
            acknowledged=crowd.acknowledged,
            finished=crowd.finished,
            errors=len(crowd.errors),
            behind=behind,
            steps=steps,
            load=os.getloadavg()[0],
            p50_ms=float(np.percentile(millis, 50)),
            p99_ms=float(np.percentile(millis, 99)),
            wal_most=wal / 2**20,
            database=_size(folder / "study.db") / 2**20,
            processes={name: usage(pid) for name, pid in numbers.items()},
        )
        keep(asdict(sample))
    database.close()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


async def _run(
    server: Serving, folder: Path, minutes: float, rate: int, keep: Callable[[Any], None]
) -> Crowd:
    crowd, end, address = Crowd(), asyncio.Event(), server.address()
    cookie = await signed_in(address)
    space, names = gaussian_space(ITEMS, RANK, 1), items_by_name(load(folder))
    seats = []
    for number in range(rate):
        # One answer a second each, spread over the second.
        seats.append(asyncio.create_task(seat(address, number, space, names, crowd, end)))
        await asyncio.sleep(1.0 / rate)
    seats.append(asyncio.create_task(monitor(address, cookie, [True], [], end, 0.0)))
    await look(server, folder, crowd, minutes, keep)
    end.set()
    await asyncio.gather(*seats)
    return crowd


def soak(minutes: float, rate: int, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Serve a fresh study at a steady pace; `keep` gets every sample as it is taken."""
    with tempfile.TemporaryDirectory() as home:
        folder = words_study(Path(home) / "load", ITEMS, TRIALS)
        set_password(folder, PASSWORD)
        server = Serving(str(folder))
        try:
            crowd = asyncio.run(_run(server, folder, minutes, rate, keep))
        finally:
            server.stop()
        database = sqlite3.connect(folder / "study.db")
        integrity = database.execute("PRAGMA integrity_check").fetchone()[0]
        (stored,) = database.execute("SELECT count(*) FROM answers").fetchone()
        (restarts,) = database.execute(
            "SELECT coalesce(sum(restarts), 0) FROM heartbeat"
        ).fetchone()
        database.close()
    return {
        "minutes": minutes,
        "rate": rate,
        "acknowledged": crowd.acknowledged,
        "finished": crowd.finished,
        "stored": stored,
        "restarts": restarts,
        "integrity": integrity,
        "errors": sorted(
            {f"{error} ({crowd.errors.count(error)} times)" for error in crowd.errors}
        ),
    }


def runs(kept: list[dict[str, Any]]) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """(samples, what came of it) of every run that was finished: each starts at minute 0."""
    found, taken = [], []
    for record in kept:
        if "minute" not in record:
            found.append((taken, record))
            taken = []
        elif taken and record["minute"] < taken[-1]["minute"]:
            taken = [record]
        else:
            taken.append(record)
    return found
