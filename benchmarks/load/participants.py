"""Simulated participants over HTTP as coroutines: kept connections, forms, one session each."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

import numpy as np

ITEMS = 50


@dataclass
class Counts:
    """What the participants met with."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
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
    address: str, number: int, think: float, counts: Counts, end: asyncio.Event, wait: float
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
                counts.errors.append("no form on the page")
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
                counts.errors.append(f"status {status}")
                return
            if answering and counts.measuring:
                counts.seconds.append(time.perf_counter() - begun)
    except (OSError, asyncio.IncompleteReadError) as error:
        counts.errors.append(repr(error))
    finally:
        connection.writer.close()
