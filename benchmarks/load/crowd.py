"""A crowd of simulated participants over HTTP in one loop, for as little processor time as can be.

Participants share the machine with the server that is measured, so what they cost is missing there.
"""

from __future__ import annotations

import heapq
import json
import random
import re
import select
import socket
import time
from dataclasses import dataclass, field
from urllib.parse import quote_plus

RECEIVE_BYTES = 1 << 16
POLL_SECONDS = 0.05
ACTION = re.compile(rb'<form[^>]* action="([^"]+)"')
HIDDEN = re.compile(rb'<input type="hidden" name="([^"]+)" value="([^"]*)"')
LOCATION = re.compile(rb"\r\nlocation: ([^\r]+)", re.IGNORECASE)
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


def _timings() -> str:
    """What the page of a trial measures, as it sends it."""
    measured = {
        "rt_ms": 912.4,
        "onset_at": 1790000000000.5,
        "response_at": 1790000000912.9,
        "away": [],
        "background": "#d9d9d9",
        "viewport": [1280, 720, 1],
        "pointer": "mouse",
    }
    return quote_plus(json.dumps(measured))


TIMINGS = _timings()


@dataclass
class Crowd:
    """Participants of one study, who arrive one after another and answer until `run` ends.

    `seconds` are the times from sending an answer to having received the next question, of the
    answers sent while `measuring`.
    """

    host: str
    port: int
    study: str
    participants: int
    think: float
    per_second: float = 20.0
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    measuring: bool = False

    def __post_init__(self) -> None:
        self._poll = select.epoll()
        self._rng = random.Random(1)
        now = time.perf_counter()
        arriving = [(now + number / self.per_second, number) for number in range(self.participants)]
        self._due: list[tuple[float, int]] = arriving
        self._participants = [_Participant(self, number) for number in range(self.participants)]
        self._by_socket: dict[int, _Participant] = {}

    def run(self, seconds: float) -> None:
        """Let the participants act for a while."""
        end = time.perf_counter() + seconds
        while (now := time.perf_counter()) < end:
            while self._due and self._due[0][0] <= now:
                self._participants[heapq.heappop(self._due)[1]].act()
            soonest = min(self._due[0][0] if self._due else end, end)
            for number, _ in self._poll.poll(max(0.0, min(POLL_SECONDS, soonest - now))):
                self._by_socket[number].receive()

    def close(self) -> None:
        """Disconnect all participants."""
        for participant in self._participants:
            participant.close()
        self._poll.close()

    def connect(self, participant: _Participant) -> socket.socket:
        """Open a participant's connection, which is kept."""
        connection = socket.create_connection((self.host, self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._by_socket[connection.fileno()] = participant
        self._poll.register(connection.fileno(), select.EPOLLIN)
        return connection

    def disconnect(self, connection: socket.socket) -> None:
        """Close a participant's connection."""
        self._by_socket.pop(connection.fileno(), None)
        self._poll.unregister(connection.fileno())
        connection.close()

    def again(self, number: int, answering: bool) -> None:
        """Let a participant act again, after some thought if it is about an answer."""
        wait = self.think * self._rng.uniform(0.5, 1.5) if answering else 0.0
        heapq.heappush(self._due, (time.perf_counter() + wait, number))

    def side(self) -> str:
        """One of the two options, by chance."""
        return "left" if self._rng.random() < 0.5 else "right"


class _Participant:
    """One participant: a connection, the request to send next and what has arrived of a reply."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self._crowd, self._number = crowd, number
        self._socket: socket.socket | None = None
        self._received = b""
        self._sent_at = 0.0
        self._answering = False
        self._counted = False
        self._next = self._head("GET", f"/s/{crowd.study}/?participant_label=p{number}", "", "")

    def _head(self, method: str, path: str, more: str, body: str) -> bytes:
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {self._crowd.host}\r\n{more}"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()

    def act(self) -> None:
        """Send what comes next."""
        try:
            if self._socket is None:
                self._socket = self._crowd.connect(self)
            self._sent_at, self._counted = time.perf_counter(), self._crowd.measuring
            self._socket.sendall(self._next)
        except OSError as error:
            self._fail(repr(error))

    def receive(self) -> None:
        """Take what has arrived; if the reply is complete, prepare the next request."""
        assert self._socket is not None
        try:
            new = self._socket.recv(RECEIVE_BYTES)
        except OSError as error:
            return self._fail(repr(error))
        if not new:
            return self._fail("the connection was closed")
        self._received += new
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return None
        length = LENGTH.search(self._received, 0, end)
        if length is None or len(self._received) < end + 4 + int(length[1]):
            return None
        reply, self._received = self._received, b""
        if self._answering and self._counted:
            self._crowd.seconds.append(time.perf_counter() - self._sent_at)
        return self._plan(int(reply[9:12]), reply, end)

    def _plan(self, status: int, reply: bytes, end: int) -> None:
        if status == 303 and (found := LOCATION.search(reply, 0, end + 2)):
            path = found[1].decode()
            self._next = self._head("GET", path[path.index("/s/") :], "", "")
            return self._crowd.again(self._number, False)
        action = ACTION.search(reply, end)
        if status != 200 or action is None:
            return self._fail(f"status {status}, {'no' if action is None else 'a'} form")
        address = action[1].decode()
        fields = [f"{name.decode()}={value.decode()}" for name, value in HIDDEN.findall(reply, end)]
        self._answering = address.endswith("/answer")
        if self._answering:
            fields += [f"timings={TIMINGS}", f"side={self._crowd.side()}"]
        else:
            fields.append("agreed=yes")
        kind = "Content-Type: application/x-www-form-urlencoded\r\nHX-Request: true\r\n"
        self._next = self._head("POST", address, kind, "&".join(fields))
        return self._crowd.again(self._number, self._answering)

    def _fail(self, why: str) -> None:
        """Note the error; this participant does not come back."""
        self._crowd.errors.append(why)
        self.close()

    def close(self) -> None:
        """Disconnect."""
        if self._socket is not None:
            self._crowd.disconnect(self._socket)
            self._socket = None
