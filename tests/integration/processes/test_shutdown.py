"""SIGTERM with answers in flight: what was acknowledged is stored, every request is answered."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading

import pytest

from benchmarks.reliability.shutdown import end_rounds
from benchmarks.server import wait_until
from server.processes import web_process
from server.processes.listener import listen, stop_new_connections
from tests.support.live_server import ENDLESS, write_study

REQUEST = b"POST /answer HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nleft"


def test_no_answer_and_no_participant_is_lost(disk_path):
    """`make bench-reliability` does 100 such rounds."""
    found = end_rounds(write_study(disk_path / "words", ENDLESS), rounds=2, visitors=12, seed=1)
    assert found.acknowledged >= 24 and found.lost == 0
    assert found.dropped == {}
    assert found.codes == {0: 2}
    # Everybody came to the end of it: by a refusal, or a page that says so.
    assert found.turned_away + found.unavailable == 24


class Ending:
    """A web process's own loop in a thread, around an application of one line."""

    def __init__(self):
        self.listener = listen("127.0.0.1", 0)
        self.place = self.listener.getsockname()
        self.stop, self.go_on, self.began = (threading.Event() for _ in range(3))
        self.go_on.set()
        self.served = []
        self._thread = threading.Thread(
            target=web_process.run, args=(self.application, self.listener, self.stop)
        )

    def application(self, environ, start_response):
        body = environ["wsgi.input"].read()
        self.began.set()
        self.go_on.wait(30)
        self.served.append(body)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    def start(self):
        self._thread.start()

    def ended(self):
        self._thread.join(30)
        return not self._thread.is_alive()


@pytest.fixture
def server():
    made = Ending()
    yield made
    made.stop.set()
    made.go_on.set()
    assert made.ended()


@contextlib.contextmanager
def connected(server):
    with socket.create_connection(server.place, timeout=30) as connection:
        yield connection


def answer(connection):
    """A whole response: its head, and what follows."""
    received = b""
    while not _whole(received):
        part = connection.recv(4096)
        assert part, f"closed after {received!r}"
        received += part
    return received.decode()


def _whole(received):
    """The head may come alone, before its body."""
    head, end, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)^content-length: *(\d+)", head, re.MULTILINE)
    return bool(end) and len(body) >= (int(length[1]) if length else 0)


def is_closed(connection):
    return connection.recv(100) == b""


def test_a_connection_in_the_accept_queue_is_served(server):
    """Connected, and the request sent, before anybody accepted the connection."""
    with connected(server) as connection:
        connection.sendall(REQUEST)
        server.stop.set()
        server.start()
        assert "200 OK" in (output := answer(connection)) and "Connection: close" in output
        assert is_closed(connection)
    assert server.ended()
    assert server.served == [b"left"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(server.place, timeout=30)


def test_half_a_request_is_waited_for(server, monkeypatch):
    # On a machine that has much else to do, the other half may come late.
    monkeypatch.setattr(web_process, "PARTIAL_SECONDS", 20.0)
    monkeypatch.setattr(web_process, "DRAIN_SECONDS", 25.0)
    server.start()
    with connected(server) as connection:
        connection.sendall(REQUEST[:-4])
        server.stop.set()
        wait_until(lambda: server.listener.fileno() == -1)
        connection.sendall(REQUEST[-4:])
        assert "200 OK" in (output := answer(connection)) and "Connection: close" in output
    assert server.served == [b"left"]


def test_an_incomplete_request_does_not_delay_shutdown(server, monkeypatch):
    monkeypatch.setattr(web_process, "PARTIAL_SECONDS", 0.1)
    monkeypatch.setattr(web_process, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(web_process, "DRAIN_SECONDS", 1000.0)
    server.start()
    with connected(server) as connection:
        connection.sendall(REQUEST[:-4])
        server.stop.set()
        assert "503 Service Unavailable" in answer(connection)
        assert is_closed(connection)
    assert server.ended()


def test_a_connection_that_is_kept_may_ask_once_more(server, monkeypatch):
    monkeypatch.setattr(web_process, "IDLE_SECONDS", 20.0)
    monkeypatch.setattr(web_process, "DRAIN_SECONDS", 25.0)
    server.start()
    with connected(server) as kept, connected(server) as idle:
        for connection in (kept, idle):
            connection.sendall(REQUEST)
            assert "Connection: close" not in answer(connection)
        server.stop.set()
        wait_until(lambda: server.listener.fileno() == -1)
        kept.sendall(REQUEST)
        assert "Connection: close" in answer(kept)
        assert is_closed(kept)
        # The last one that might ask goes away: nothing is left to wait for.
        idle.close()
        assert server.ended()


def test_an_idle_connection_is_closed(server):
    server.start()
    with connected(server) as connection:
        connection.sendall(REQUEST)
        answer(connection)
        server.stop.set()
        assert is_closed(connection)


def test_a_request_that_takes_too_long_is_asked_to_try_again(server, monkeypatch):
    monkeypatch.setattr(web_process, "DRAIN_SECONDS", 0.1)
    monkeypatch.setattr(web_process, "THREADS_END_SECONDS", 0.1)
    server.go_on.clear()
    server.start()
    with connected(server) as connection:
        connection.sendall(REQUEST)
        assert server.began.wait(30)
        server.stop.set()
        output = answer(connection)
        assert "503 Service Unavailable" in output and "Connection: close" in output
        assert "Retry-After" in output and "X-Content-Type-Options: nosniff" in output
        assert is_closed(connection)
    assert server.ended()


@pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")
def test_no_connection_joins_the_queue_before_it_is_closed():
    listener = listen("127.0.0.1", 0)
    place = listener.getsockname()
    early = socket.create_connection(place, timeout=30)
    stop_new_connections(listener)
    late = socket.socket()
    late.settimeout(0.1)
    with pytest.raises(TimeoutError):
        late.connect(place)
    accepted, _ = listener.accept()
    early.sendall(b"x")
    assert accepted.recv(1) == b"x"
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place, timeout=30)
    for one in (early, late, accepted):
        one.close()


SIGNALLED = """
import os, signal
from server.processes.lifetime import set_by_signals
stop = set_by_signals()
# As it is for a moment whenever a request begins to wait.
with stop._cond:
    os.kill(os.getpid(), signal.SIGTERM)
    os.getpid()
print(stop.wait(60))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_signal_that_arrives_as_a_wait_begins_does_not_end_it():
    result = subprocess.run(
        [sys.executable, "-c", SIGNALLED], capture_output=True, text=True, timeout=120
    )
    assert result.stdout == "True\n", result.stderr
