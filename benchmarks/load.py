"""Many participants at once over HTTP while the worker learns: how long does an answer take?"""

from __future__ import annotations

import argparse
import asyncio
import re
import sqlite3
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

from benchmarks.server import Serving, words_study
from benchmarks.tables import Page

ITEMS = 50


@dataclass
class Tally:
    """What the participants met with."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    lag_answers: list[int] = field(default_factory=list)
    measuring: bool = False


class Connection:
    """A kept connection, with as little work per request as can be."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    async def open(self) -> None:
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)

    async def request(
        self, method: str, path: str, fields: dict[str, str] | None = None, cookie: str = ""
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of the reply."""
        body = b"" if fields is None else urlencode(fields).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: {len(body)}\r\n"
        if fields is not None:
            head += "Content-Type: application/x-www-form-urlencoded\r\nHX-Request: true\r\n"
        if cookie:
            head += f"Cookie: {cookie}\r\n"
        self.writer.write(head.encode() + b"\r\n" + body)
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(raw[0].split()[1])
        headers = {
            name.lower(): value
            for name, _, value in (line.partition(": ") for line in raw[1:] if line)
        }
        text = b""
        if status not in (204, 304):
            text = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return status, headers, text.decode()


def form(html: str) -> tuple[str | None, dict[str, str]]:
    """Where the page's form goes, and its hidden fields."""
    action = re.search(r'<form[^>]* action="([^"]+)"', html)
    hidden = {}
    for tag in re.findall(r'<input[^>]*type="hidden"[^>]*>', html):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and value:
            hidden[name[1]] = value[1]
    return (None if action is None else action[1]), hidden


async def participant(
    address: str, number: int, think: float, tally: Tally, end: asyncio.Event, wait: float
) -> None:
    """One person: arrives, and answers with a second's thought until the end."""
    parts = urlsplit(address)
    rng = np.random.default_rng(number)
    await asyncio.sleep(wait)
    connection = Connection(parts.hostname or "127.0.0.1", parts.port or 80)
    try:
        await connection.open()
        _, headers, _ = await connection.request("GET", f"/s/load/?participant_label=p{number}")
        _, _, html = await connection.request("GET", urlsplit(headers["location"]).path)
        while not end.is_set():
            action, fields = form(html)
            if action is None:
                tally.errors.append("no form on the page")
                return
            answering = action.endswith("/answer")
            if answering:
                await asyncio.sleep(think * float(rng.uniform(0.5, 1.5)))
                fields["side"] = "left" if rng.random() < 0.5 else "right"
            else:
                fields["agreed"] = "yes"
            begun = time.perf_counter()
            status, _, html = await connection.request("POST", action, fields)
            if status != 200:
                tally.errors.append(f"status {status}")
                return
            if answering and tally.measuring:
                tally.seconds.append(time.perf_counter() - begun)
    except (OSError, asyncio.IncompleteReadError) as error:
        tally.errors.append(repr(error))
    finally:
        connection.writer.close()


async def watch(folder: Path, tally: Tally, end: asyncio.Event) -> None:
    """How many answers the worker is behind."""
    database = sqlite3.connect(folder / "study.db")
    while not end.is_set():
        (behind,) = database.execute(
            "SELECT (SELECT coalesce(max(seq), 0) FROM answers) - "
            "(SELECT coalesce(max(up_to_seq), 0) FROM steps)"
        ).fetchone()
        if tally.measuring:
            tally.lag_answers.append(behind)
        await asyncio.sleep(0.25)
    database.close()


async def run(address: str, folder: Path, people: int, think: float, seconds: float) -> Tally:
    """All participants for a while, once they have come: twenty a second, and five seconds more."""
    tally, end = Tally(), asyncio.Event()
    coming = people / 20
    tasks = [
        asyncio.create_task(participant(address, number, think, tally, end, number / 20))
        for number in range(people)
    ]
    tasks.append(asyncio.create_task(watch(folder, tally, end)))
    await asyncio.sleep(coming + 5.0)
    tally.measuring = True
    await asyncio.sleep(seconds)
    tally.measuring = False
    end.set()
    await asyncio.gather(*tasks)
    return tally


def measure(people: int, think: float, seconds: float) -> dict[str, float]:
    """Serve a fresh study, let the participants come, and sum up."""
    with tempfile.TemporaryDirectory() as home:
        folder = words_study(Path(home) / "load", ITEMS)
        server = Serving(str(folder))
        try:
            tally = asyncio.run(run(server.address(), folder, people, think, seconds))
        finally:
            server.stop()
        database = sqlite3.connect(folder / "study.db")
        (fallback,) = database.execute(
            "SELECT avg(origin = 'fallback') FROM queries WHERE participant IS NOT NULL"
        ).fetchone()
        database.close()
    for error in sorted(set(tally.errors))[:5]:
        print(f"  {error} ({tally.errors.count(error)} times)", file=sys.stderr)
    millis = 1000 * np.array(tally.seconds)
    return {
        "people": people,
        "answers": len(millis),
        "errors": len(tally.errors),
        "per_second": len(millis) / seconds,
        "p50": float(np.percentile(millis, 50)),
        "p95": float(np.percentile(millis, 95)),
        "p99": float(np.percentile(millis, 99)),
        "lag_median": float(np.median(tally.lag_answers)),
        "lag_most": float(np.max(tally.lag_answers)),
        "fallback": float(fallback),
    }


def main() -> None:
    """Measure each number of participants and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, nargs="+", default=[150, 500])
    parser.add_argument("--think", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    chosen = parser.parse_args()
    page = Page("load", "Many participants at once", "make bench-load")
    page.text(
        f"Simulated participants over HTTP, {chosen.think:g} s per answer on average, "
        f"{ITEMS} items, {chosen.seconds:g} s measured after warming up, everything (server, "
        "worker, database with a sync for every commit, and the participants themselves) on one "
        "machine of two cores. Milliseconds from sending an answer to receiving the next "
        "question. Behind: answers that the worker had not yet processed. Fallback: share of "
        "questions "
        "drawn at random because the queue was empty."
    )
    rows = []
    for people in chosen.people:
        one = measure(people, chosen.think, chosen.seconds)
        rows.append(
            [
                people,
                f"{one['per_second']:.0f}",
                f"{one['errors']:.0f}",
                *(f"{one[name]:.1f}" for name in ("p50", "p95", "p99")),
                f"{one['lag_median']:.0f}",
                f"{one['lag_most']:.0f}",
                f"{100 * one['fallback']:.1f} %",
            ]
        )
        print(rows[-1], flush=True)
    page.table(
        [
            "participants",
            "answers/s",
            "errors",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "behind (median)",
            "behind (most)",
            "fallback",
        ],
        rows,
    )
    page.write()


if __name__ == "__main__":
    main()
