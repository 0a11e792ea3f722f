"""Ten thousand people within a minute: is everybody let in, or told calmly to try again?"""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from benchmarks.load.participants import Connection, form
from benchmarks.server import Serving, words_study

# Anyone who has not got a page by then has closed the window.
PATIENCE = 120.0
MAX_TRIES = 20


@dataclass
class Met:
    """What the participants who arrived met with."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    again: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)


async def new_participant(address: str, number: int, due: float, met: Met) -> None:
    """One person with a link of their own: the first page, however often they must try."""
    await asyncio.sleep(max(0.0, due - time.perf_counter()))
    try:
        async with asyncio.timeout(PATIENCE):
            for _ in range(MAX_TRIES):
                if await _came(address, number, met):
                    met.seconds.append(time.perf_counter() - due)
                    return
                met.again += 1
                await asyncio.sleep(1.0)
        met.lost.append("too many tries")
    except TimeoutError:
        met.lost.append("no page in time")


async def _came(address: str, number: int, met: Met) -> bool:
    parts = urlsplit(address)
    connection = Connection(parts.hostname or "127.0.0.1", parts.port or 80)
    path = f"/s/load/?participant_label=person{number}"
    try:
        await connection.open()
        for _ in range(3):
            status, headers, html = await connection.request("GET", path)
            met.statuses[status] += 1
            if status not in (301, 302, 303):
                return status == 200 and form(html)[0] is not None
            path = urlsplit(headers["location"]).path
        return False
    except (OSError, asyncio.IncompleteReadError) as error:
        met.refused[type(error).__name__] += 1
        return False
    finally:
        if hasattr(connection, "writer"):
            connection.writer.close()


async def _run(address: str, participants: int, seconds: float) -> tuple[Met, float]:
    rng, met, begun = np.random.default_rng(1), Met(), time.perf_counter() + 1.0
    due = np.sort(rng.uniform(0.0, seconds, participants))
    await asyncio.gather(
        *(new_participant(address, number, begun + float(at), met) for number, at in enumerate(due))
    )
    return met, time.perf_counter() - begun


def _cpu_seconds(pid: int) -> float:
    """What a process has used of the processors so far."""
    fields = (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def arrivals(participants: int, seconds: float) -> dict[str, Any]:
    """Let that many people come within that many seconds to a fresh study, and sum up."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as home:
        folder = words_study(Path(home) / "load", 50, 100)
        server = Serving(str(folder))
        try:
            met, took = asyncio.run(_run(server.address(), participants, seconds))
            work = sum(_cpu_seconds(pid) for pid in server.children("server.processes.web_process"))
        finally:
            server.stop()
        database = sqlite3.connect(folder / "study.db")
        (stored,) = database.execute("SELECT count(*) FROM participants").fetchone()
        database.close()
    return {
        "participants": participants,
        "seconds": seconds,
        "took": took,
        "served": len(met.seconds),
        "stored": stored,
        "lost": len(met.lost),
        "again": met.again,
        "errors": sum(count for status, count in met.statuses.items() if status == 500),
        "cpu_ms": 1000 * work / max(1, stored),
        "load": os.getloadavg()[0],
        "statuses": dict(met.statuses),
        "refused": dict(met.refused),
        "p50": float(np.percentile(met.seconds or [0.0], 50)),
        "p99": float(np.percentile(met.seconds or [0.0], 99)),
    }
