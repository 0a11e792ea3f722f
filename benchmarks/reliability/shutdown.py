"""A server that is told to end (SIGTERM) while answers are in flight: is any lost, or dropped?"""

from __future__ import annotations

import http.client
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.server import Serving
from server.processes.bots import BotPage

PATIENCE_SECONDS = 60.0


@dataclass
class Ended:
    """What became of all requests of some rounds; the last three should be empty or 0."""

    rounds: int = 0
    acknowledged: int = 0
    unavailable: int = 0
    turned_away: int = 0
    slowest_seconds: float = 0.0
    lost: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    codes: Counter[int] = field(default_factory=Counter)

    def figures(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**vars(self), "dropped": dict(self.dropped), "codes": dict(self.codes)}


class Visitor(threading.Thread):
    """Answers without pause until it is turned away; a connection for all requests, or for each."""

    def __init__(self, address: str, study: str, label: str, keep: bool) -> None:
        super().__init__(daemon=True)
        self._host = address.removeprefix("http://")
        self._link = f"/s/{study}/?participant_label={label}"
        self._keep = keep
        self._cookie = ""
        self._connection: http.client.HTTPConnection | None = None
        self.acknowledged: list[str] = []
        self.unavailable = 0
        self.turned_away = 0
        self.dropped: list[str] = []

    def run(self) -> None:
        """Take part for as long as there is an answer."""
        html = self._request("GET", self._link, {})
        while html is not None:
            page = BotPage(html)
            if page.action is None:
                return
            fields = dict(page.fields)
            answering = page.action.endswith("/answer")
            fields["side" if answering else "agreed"] = "left" if answering else "yes"
            html = self._request("POST", page.action, fields)
            if html is not None and answering:
                self.acknowledged.append(fields["question"])

    def _request(self, method: str, path: str, fields: dict[str, str]) -> str | None:
        """The page, with redirects followed; None if there will be no more."""
        for _ in range(5):
            reply = self._once(method, path, fields)
            if reply is None:
                return None
            status, location, html = reply
            if status in (302, 303):
                method, path, fields = "GET", location, {}
                continue
            if status == 503:
                self.unavailable += 1
                return None
            if status != 200:
                self.dropped.append(f"status {status}")
                return None
            return html
        raise AssertionError("too many redirects")

    def _once(self, method: str, path: str, fields: dict[str, str]) -> tuple[int, str, str] | None:
        connection = self._connection
        if connection is None:
            connection = http.client.HTTPConnection(self._host, timeout=PATIENCE_SECONDS)
            try:
                connection.connect()
            except ConnectionRefusedError:
                self.turned_away += 1
                return None
            except OSError as error:
                self.dropped.append(f"connecting: {type(error).__name__}")
                return None
        reused = "kept" if self._connection is not None else "new"
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": self._cookie}
        try:
            connection.request(method, path, urlencode(fields) if fields else None, headers)
            reply = connection.getresponse()
            html = reply.read().decode()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self.dropped.append(f"{reused} connection: {type(error).__name__}")
            return None
        if cookie := reply.headers.get("Set-Cookie"):
            self._cookie = cookie.partition(";")[0]
        closing = (reply.headers.get("Connection") or "").lower() == "close"
        if self._keep and not closing:
            self._connection = connection
        else:
            connection.close()
            self._connection = None
        return reply.status, reply.headers.get("Location", ""), html


def end_rounds(
    folder: Path,
    rounds: int,
    visitors: int,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
) -> Ended:
    """Start a server, let people answer, end it at a random moment; again and again."""
    rng, found = random.Random(seed), Ended()
    for number in range(rounds):
        server = Serving(str(folder))
        address = server.address()
        participants = [
            Visitor(address, folder.name, f"r{time.time_ns()}-{one}", keep=one % 2 == 0)
            for one in range(visitors)
        ]
        for participant in participants:
            participant.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while sum(len(one.acknowledged) for one in participants) < visitors:
            assert time.monotonic() < deadline, "nobody could answer"
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.4))
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        for participant in participants:
            participant.join(PATIENCE_SECONDS)
            if participant.is_alive():
                found.dropped["no reply at all"] += 1
        server.process.wait(PATIENCE_SECONDS)
        found.codes[server.stop()] += 1
        found.slowest_seconds = max(found.slowest_seconds, time.monotonic() - begun)
        _add(found, folder, participants)
        say(f"{number + 1} rounds, {found.acknowledged} answers, dropped: {dict(found.dropped)}")
    return found


def _add(found: Ended, folder: Path, participants: list[Visitor]) -> None:
    connection = sqlite3.connect(folder / "study.db")
    stored = {
        row[0]
        for row in connection.execute(
            "SELECT q.token FROM answers a JOIN queries q ON q.id = a.query"
        )
    }
    connection.close()
    acknowledged = {token for participant in participants for token in participant.acknowledged}
    found.rounds += 1
    found.acknowledged += len(acknowledged)
    found.lost += len(acknowledged - stored)
    found.unavailable += sum(participant.unavailable for participant in participants)
    found.turned_away += sum(participant.turned_away for participant in participants)
    for participant in participants:
        found.dropped.update(participant.dropped)
