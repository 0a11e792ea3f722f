"""The loop over connections: requests in any order, slow readers, and idle connections."""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter
from typing import Any

import pytest

from benchmarks.server import wait_until
from server.processes import http_server
from server.processes.http_server import serving

LARGE = b"x" * 15_000_000
LOOP = "loop"


class Server:
    """A small application behind the HTTP server, in a thread; `/wait` waits for `released`."""

    def __init__(self) -> None:
        self.entered, self.released = threading.Event(), threading.Event()
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = listener.getsockname()[1]
        self._server = serving(self._application, listener)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=LOOP)
        self._thread.start()

    def _application(self, environ, start_response):
        path = environ["PATH_INFO"]
        if path == "/wait":
            self.entered.set()
            assert self.released.wait(60)
        body = {"/large": LARGE, "/nothing": b""}.get(path, path.encode())
        status = "204 No Content" if path == "/nothing" else "200 OK"
        start_response(status, [("Content-Length", str(len(body)))] if body else [])
        return [body]

    def _run(self) -> None:
        while not self._ended.is_set():
            self._server._map.turn(0.2)

    def channels(self) -> list[Any]:
        return list(self._server.active_channels.values())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def close(self) -> None:
        self.released.set()
        self._ended.set()
        self._thread.join()
        self._server.task_dispatcher.shutdown()
        http_server.wasyncore.close_all(self._server._map)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def read(connection: socket.socket) -> tuple[bytes, bytes]:
    """Header and body of one response, and nothing of the next."""
    header = b""
    while not header.endswith(b"\r\n\r\n"):
        new = connection.recv(1)
        assert new, header
        header += new
    length = re.search(rb"Content-Length: (\d+)", header)
    parts, missing = [], int(length[1]) if length else 0
    while missing:
        parts.append(connection.recv(missing))
        assert parts[-1]
        missing -= len(parts[-1])
    return header, b"".join(parts)


def test_requests_sent_ahead_are_answered_in_order(server):
    with server.connect() as connection:
        connection.sendall(get("/wait"))
        assert server.entered.wait(60)
        # Arrives while the first is being served, so it is not read before that one's response.
        connection.sendall(get("/second"))
        with server.connect() as other:
            other.sendall(get("/other"))
            assert read(other)[1] == b"/other"
        server.released.set()
        for expected in (b"/wait", b"/second"):
            assert read(connection)[1] == expected
        connection.sendall(get("/third"))
        assert read(connection)[1] == b"/third"


def test_a_slow_reader_gets_everything_and_can_go_on(server):
    with server.connect() as connection:
        connection.sendall(get("/large"))
        # The system's buffers are full, and the rest waits here.
        wait_until(lambda: any(c.total_outbufs_len for c in server.channels()))
        wait_until(lambda: all(not c.requests for c in server.channels()))
        header, body = read(connection)
        assert header.startswith(b"HTTP/1.1 200") and body == LARGE
        connection.sendall(get("/after"))
        assert read(connection)[1] == b"/after"


def test_header_and_body_are_sent_together(server, monkeypatch):
    sent: list[bytes] = []
    send = http_server.HTTPChannel.send

    def noted(channel, data, **how):
        sent.append(bytes(data))
        return send(channel, data, **how)

    monkeypatch.setattr(http_server.HTTPChannel, "send", noted)
    with server.connect() as connection:
        connection.sendall(get("/small"))
        assert read(connection)[1] == b"/small"
    assert len(sent) == 1
    assert sent[0].startswith(b"HTTP/1.1 200") and sent[0].endswith(b"\r\n\r\n/small")


def test_a_response_without_a_body_has_its_header(server):
    with server.connect() as connection:
        connection.sendall(get("/nothing"))
        header, body = read(connection)
        assert header.startswith(b"HTTP/1.1 204") and not body


def test_a_participant_who_leaves_during_a_request_is_forgotten(server):
    with server.connect() as connection:
        connection.sendall(get("/wait"))
        assert server.entered.wait(60)
    server.released.set()
    with server.connect() as other:
        wait_until(lambda: len(server.channels()) == 1)
        other.sendall(get("/again"))
        read(other)


def test_requests_do_not_look_at_idle_connections(server, monkeypatch):
    looks: Counter[int] = Counter()
    readable = http_server._Channel.readable

    def counted(channel):
        looks[id(channel)] += 1
        return readable(channel)

    idle = [server.connect() for _ in range(40)]
    for connection in idle:
        connection.sendall(get("/"))
        read(connection)
    monkeypatch.setattr(http_server._Channel, "readable", counted)
    monkeypatch.setattr(http_server, "EXAMINE_SECONDS", 3600.0)
    with server.connect() as busy:
        # The next examination of all was planned before.
        while server._server._map._examine_at < 3000 + http_server.time.monotonic():
            busy.sendall(get("/"))
            read(busy)
        looks.clear()
        for _ in range(50):
            busy.sendall(get("/"))
            read(busy)
    assert len(looks) == 1
    for connection in idle:
        connection.close()


TOO_LONG = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 3_000_000 + b"\r\n\r\n"


def test_the_response_to_a_request_that_is_too_long_is_not_lost(server):
    """Closing while some of the request is unread would reset the connection."""
    with server.connect() as connection:
        connection.sendall(TOO_LONG)
        header, _ = read(connection)
        assert header.startswith(b"HTTP/1.0 431 ")
        # The end, and no error.
        assert connection.recv(1) == b""
        connection.sendall(b"more")
        connection.shutdown(socket.SHUT_WR)
        wait_until(lambda: server.channels() == [])


class Overtaken(http_server._Channel):
    """The thread that serves ends while the loop sends the rest of the response."""

    def __init__(self, *args, **named):
        self.sending = threading.Event()
        super().__init__(*args, **named)

    def send(self, data, do_close=True):
        # As if the connection took no more than the header at first.
        full = not in_loop() and not data.startswith(b"HTTP/")
        return 0 if full else super().send(data, do_close)

    def write_soon(self, data):
        written = super().write_soon(data)
        if not data.startswith(b"HTTP/"):
            assert self.sending.wait(60)
        return written

    def _flush_exception(self, flush, do_close=True):
        if not in_loop():
            return super()._flush_exception(flush, do_close)
        with self.outbuf_lock:  # until the thread has left its part
            self.sending.set()
        flushed = super()._flush_exception(flush, do_close)
        wait_until(lambda: self.close_when_flushed)
        return flushed


def in_loop() -> bool:
    return threading.current_thread().name == LOOP


def test_nor_is_it_when_it_ends_while_it_is_sent(server):
    server._server.channel_class = Overtaken
    with server.connect() as connection:
        connection.sendall(TOO_LONG[:40_000])
        header, _ = read(connection)
        assert header.startswith(b"HTTP/1.0 431 ")
        assert connection.recv(1) == b""
        connection.shutdown(socket.SHUT_WR)
        wait_until(lambda: server.channels() == [])


def test_a_rejected_request_that_goes_on_is_cut_off(server, monkeypatch):
    monkeypatch.setattr(http_server, "LINGER_SECONDS", 0.0)
    with server.connect() as connection:
        connection.sendall(TOO_LONG[:40_000])
        assert read(connection)[0].startswith(b"HTTP/1.0 431 ")
        wait_until(lambda: server.channels() == [])
