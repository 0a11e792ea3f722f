"""Participants over HTTP with and without monitors open, in turns, in one running study."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

from benchmarks.load.participants import ITEMS, Connection, Counts, participant
from benchmarks.server import Serving, words_study
from server.auth.passwords import set_password

PASSWORD = "a password for measuring"
EVERY = 3.0


async def signed_in(address: str) -> str:
    """The cookie of an experimenter."""
    parts = urlsplit(address)
    connection = Connection(parts.hostname or "", parts.port or 80)
    await connection.open()
    _, headers, html = await connection.request("GET", "/monitor/")
    cookie = headers["set-cookie"].split(";")[0]
    found = re.search(r'name="csrf" value="([^"]+)"', html)
    assert found
    form = {"csrf": found[1], "study": "load", "password": PASSWORD}
    connection.writer.close()
    # The reply sets two cookies, of which the connection above would keep one.
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    body = urlencode(form).encode()
    writer.write(
        f"POST /monitor/sign-in HTTP/1.1\r\nHost: {parts.netloc}\r\nCookie: {cookie}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    reply = (await reader.read()).decode("latin-1")
    writer.close()
    cookie = re.search(r"lore_monitor_load=[^;]+", reply)
    assert cookie, reply[:500]
    return cookie[0]


async def monitor(
    address: str,
    cookie: str,
    watching: list[bool],
    seen: list[int],
    end: asyncio.Event,
    wait: float,
) -> None:
    """One open monitor: asks again and again, and takes what is new."""
    parts = urlsplit(address)
    connection = Connection(parts.hostname or "", parts.port or 80)
    await connection.open()
    version = ""
    await asyncio.sleep(wait)
    while not end.is_set():
        if watching[0]:
            extra = f"\r\nAccept-Encoding: gzip\r\nIf-None-Match: {version}"
            status, headers = await fetched(connection, cookie + extra)
            if status == 200:
                version = headers["etag"]
                seen.append(1)
        await asyncio.sleep(EVERY)
    connection.writer.close()


async def fetched(connection: Connection, cookie: str) -> tuple[int, dict[str, str]]:
    """Ask for the data; packed text is read and thrown away."""
    head = f"GET /monitor/load/data HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n"
    connection.writer.write(head.encode())
    raw = (await connection.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(raw[0].split()[1])
    headers = {
        name.lower(): value for name, _, value in (line.partition(": ") for line in raw[1:] if line)
    }
    if status == 200:
        await connection.reader.readexactly(int(headers["content-length"]))
    return status, headers


async def run(
    address: str, participants: int, seconds: float, rounds: int, monitors: int
) -> dict[bool, tuple[Counts, int]]:
    """Stretches without and with monitors, in turns."""
    cookie, end, watching, seen = await signed_in(address), asyncio.Event(), [False], []
    counts = {False: Counts(), True: Counts()}
    current = Counts()
    tasks = [
        asyncio.create_task(
            participant(address, number, 1.0, current, end, 4 * number / participants)
        )
        for number in range(participants)
    ]
    tasks += [
        asyncio.create_task(
            monitor(address, cookie, watching, seen, end, EVERY * number / monitors)
        )
        for number in range(monitors)
    ]
    await asyncio.sleep(12)
    for turn in range(2 * rounds):
        # First without, then with; then with, then without: what drifts falls on both.
        watching[0] = turn % 4 in (1, 2)
        await asyncio.sleep(2 * EVERY)
        current.seconds, current.measuring = [], True
        await asyncio.sleep(seconds)
        current.measuring = False
        counts[watching[0]].seconds += current.seconds
        print(f"  {'with' if watching[0] else 'without'}: {len(current.seconds)} answers, p99 "
              f"{1000 * np.percentile(current.seconds, 99):.1f} ms", flush=True)  # fmt: skip
    end.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    for count in counts.values():
        count.errors = current.errors
    return {watched: (count, len(seen)) for watched, count in counts.items()}


def compared(participants: int, seconds: float, rounds: int, monitors: int) -> list[list[object]]:
    """Rows of the table."""
    with tempfile.TemporaryDirectory() as home:
        folder = words_study(Path(home) / "load", ITEMS)
        set_password(folder, PASSWORD)
        server = Serving(str(folder))
        try:
            found = asyncio.run(run(server.address(), participants, seconds, rounds, monitors))
        finally:
            server.stop()
    rows: list[list[object]] = []
    for watched, (counts, updates) in found.items():
        millis = 1000 * np.array(counts.seconds)
        rows.append(
            [
                monitors if watched else 0,
                len(millis),
                len(counts.errors),
                *(f"{np.percentile(millis, share):.1f}" for share in (50, 95, 99)),
                updates if watched else 0,
            ]
        )
    return rows
