"""The HTTP server: waitress with strict parsing, and a loop that does not look at idle connections.

Before each wait, waitress's own loop asks every connection what it is waiting for, and every
response wakes that loop. With hundreds of participants who think, this takes longer than the
responses. Here a selector remembers what each connection waits for, and the loop is woken only if
that changes.
"""

from __future__ import annotations

import contextlib
import re
import selectors
import socket
import threading
import time
from collections import deque
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask

from server.processes.lifetime import BACKLOG
from server.views.headers import CLOSED, SAFE
from server.views.health import STALLED

# Requests that wait for the disk share its next commit: with fewer threads, a crowd would wait for
# many commits in a row.
THREADS = 64
HEALTH_THREADS = 2
CONNECTIONS = 2000
# How often all connections are examined: those idle for too long are closed.
EXAMINE_SECONDS = 1.0
# After a rejected request: how long the rest of it is read and discarded.
LINGER_SECONDS = 2.0
# More than a system keeps for a connection.
MAX_DISCARDED = 8 * 1024 * 1024
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
LENGTH = re.compile(rb"^content-length[ \t]*:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
CODING = re.compile(rb"^transfer-encoding[ \t]*:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
HOST = re.compile(rb"^host[ \t]*:", re.IGNORECASE | re.MULTILINE)
MAX_DIGITS = 20


class Connections(dict[int, Any]):
    """Waitress's sockets by their descriptors: listening ones, connections, and its triggers.

    Only the thread that calls `turn` changes what is waited for. A thread that serves a request
    calls `wake` if its connection now waits for something else.
    """

    def __init__(self) -> None:
        super().__init__()
        self._selector = selectors.DefaultSelector()
        self._events: dict[int, int] = {}
        self._changed: deque[Any] = deque()
        self._examine_at = 0.0

    def __setitem__(self, number: int, channel: Any) -> None:
        super().__setitem__(number, channel)
        # Not asked what it waits for: it is still being initialised.
        channel.paused = False
        self._wait_for(number, READ)

    def __delitem__(self, number: int) -> None:
        super().__delitem__(number)
        self._wait_for(number, 0)
        del self._events[number]

    def turn(self, timeout: float) -> None:
        """Wait for at most `timeout` seconds, then handle the sockets that are ready."""
        if time.monotonic() >= self._examine_at:
            self._examine_at = time.monotonic() + EXAMINE_SECONDS
            for channel in list(self.values()):
                self._examine(channel)
        for key, ready in self._selector.select(timeout):
            channel = self.get(key.fd)
            if channel is None:
                continue
            if ready & WRITE:
                wasyncore.write(channel)
                self._examine(channel)
            if ready & READ:
                # Data that arrive during a request are read after it, as by waitress itself. They
                # rarely do, so a request alone does not change what is waited for.
                if not channel.readable():
                    self._examine(channel)
                    continue
                wasyncore.read(channel)
                if channel.accepting or channel.writable():
                    self._examine(channel)
        while self._changed:
            self._examine(self._changed.popleft())

    def wake(self, channel: Any) -> None:
        """Let the loop know that a connection now waits for something else, if it does."""
        if channel.paused or channel.writable():
            self._changed.append(channel)
            channel.server.trigger.pull_trigger()

    def _examine(self, channel: Any) -> None:
        number = channel._fileno
        if number not in self or self[number] is not channel:
            return
        # Set first: if its request ends now, either that is seen here, or this is seen there.
        channel.paused = True
        events = READ if channel.readable() else 0
        if channel.writable() and not channel.accepting:
            events |= WRITE
        self._wait_for(number, events)
        channel.paused = not events & READ

    def _wait_for(self, number: int, events: int) -> None:
        before = self._events.get(number, 0)
        if events == before:
            return
        if not before:
            self._selector.register(number, events)
        elif events:
            self._selector.modify(number, events)
        else:
            self._selector.unregister(number)
        self._events[number] = events


class _SafeError(ErrorTask):  # type: ignore[misc]
    """Responses of waitress itself to malformed requests, with the usual security headers."""

    def execute(self) -> None:
        self.response_headers.extend({**SAFE, "Content-Security-Policy": CLOSED}.items())
        super().execute()


class _StrictParser(HTTPRequestParser):  # type: ignore[misc]
    """Rejects requests that a proxy might interpret differently from waitress: where the body ends,
    and which host is meant."""

    def parse_header(self, header_plus: bytes) -> None:
        lengths, codings = LENGTH.findall(header_plus), CODING.findall(header_plus)
        if codings and (lengths or len(codings) > 1 or b"," in codings[0]):
            raise ParsingError("The length of the body is given in more than one way.")
        if any(len(length) > MAX_DIGITS for length in lengths):
            raise ParsingError("Content-Length is invalid")
        if len(HOST.findall(header_plus)) > 1:
            raise ParsingError("There is more than one Host.")
        super().parse_header(header_plus)
        # HTTP/1.0 has no Host; load balancers still use it for health checks.
        if self.version not in ("", "1.0") and not self.headers.get("HOST"):
            raise ParsingError("There is no Host.")


class _Task(WSGITask):  # type: ignore[misc]
    """Closes the connection after the response during shutdown, and announces that."""

    def build_response_header(self) -> bytes:
        if self.channel.server.draining:
            self.set_close_on_finish()
        self.channel.header = super().build_response_header()
        # Sent with the first part of the body.
        return b""

    def finish(self) -> None:
        super().finish()
        self.channel.write_header()

    def get_environment(self) -> dict[str, Any]:
        environment: dict[str, Any] = super().get_environment()
        environment[STALLED] = self.channel.server.task_dispatcher.stalled()
        return environment


class _Channel(HTTPChannel):  # type: ignore[misc]
    """A connection; the header of a response and the body that follows are sent together."""

    task_class = _Task
    error_task_class = _SafeError
    parser_class = _StrictParser
    header = b""
    paused = False
    close_when_flushed: bool
    will_close: bool
    # Whether a request was rejected that may not have been read to its end.
    rejected = False
    lingers_until = 0.0

    def service(self) -> None:
        _serving.channel = self
        self.rejected = self.requests[0].error is not None
        super().service()
        self.server.task_dispatcher.moved_at = time.monotonic()

    def write_soon(self, data: Any) -> int:
        if data == b"":
            # What the task sends in place of the header.
            return 0
        if self.header and isinstance(data, bytes):
            data, self.header = self.header + data, b""
        else:
            self.write_header()
        return int(super().write_soon(data))

    def write_header(self) -> None:
        """Send the header, if that has not been done."""
        header, self.header = self.header, b""
        if header:
            super().write_soon(header)

    def handle_write(self) -> None:
        """Send what is to be sent; after a rejected request, close only when the rest was read.

        Unread data would make the system reset the connection, and the response could be lost.
        """
        # Read first: a thread that finishes its request while this sends wakes the loop again.
        finished = self.close_when_flushed
        self._flush_exception(self._flush_some_if_lockable if self.requests else self._flush_some)
        if finished and not self.total_outbufs_len and not self.will_close:
            self.close_when_flushed = False
            if self.rejected:
                self.lingers_until = time.monotonic() + LINGER_SECONDS
                with contextlib.suppress(OSError):
                    self.socket.shutdown(socket.SHUT_WR)
            else:
                self.will_close = True
        if self.will_close:
            self.handle_close()

    def readable(self) -> bool:
        if self.lingers_until and time.monotonic() > self.lingers_until and not self.will_close:
            # What arrived while the machine stalled must not reset the connection either.
            with contextlib.suppress(OSError):
                self.socket.recv(MAX_DISCARDED)
            self.will_close = True
        return bool(super().readable())

    def received(self, data: bytes) -> bool:
        return False if self.lingers_until else bool(super().received(data))


# The connection whose request a thread serves.
_serving = threading.local()


class _Dispatcher(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Distributes requests to threads; /health has its own, so that it responds even when all the
    others wait for the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.moved_at = time.monotonic()
        self._express = ThreadedTaskDispatcher()
        self._express.set_thread_count(HEALTH_THREADS)

    def add_task(self, task: Any) -> None:
        if task.requests and getattr(task.requests[0], "path", "") == "/health":
            self._express.add_task(task)
            return
        if not self.queue:
            self.moved_at = time.monotonic()
        super().add_task(task)

    def stalled(self) -> float:
        """Return for how many seconds requests have waited without any being finished."""
        return time.monotonic() - self.moved_at if self.queue else 0.0

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        self._express.shutdown(cancel_pending, timeout)
        return bool(super().shutdown(cancel_pending, timeout))


def serving(
    app: Any, listener: socket.socket, proxy: str = "", probed: socket.socket | None = None
) -> Any:
    """Create the waitress server for the application.

    `proxy` is the address of the only proxy whose headers on client address and TLS are trusted.
    `probed` is a second socket, on which the supervisor probes this process and no other.
    """
    dispatcher = _Dispatcher()
    dispatcher.set_thread_count(THREADS)
    channels = Connections()
    if probed is not None:
        _server(app, probed, "", channels, dispatcher)
    return _server(app, listener, proxy, channels, dispatcher)


def _server(
    app: Any,
    listener: socket.socket,
    proxy: str,
    channels: Connections,
    dispatcher: _Dispatcher,
) -> Any:
    trust: dict[str, Any] = {}
    if proxy:
        trust = {
            "trusted_proxy": proxy,
            "trusted_proxy_headers": {"x-forwarded-for", "x-forwarded-proto"},
        }
    server = create_server(
        app,
        channels,
        _dispatcher=dispatcher,
        sockets=[listener],
        connection_limit=CONNECTIONS,
        channel_timeout=60,
        backlog=BACKLOG,
        max_request_header_size=32 * 1024,
        max_request_body_size=256 * 1024,
        clear_untrusted_proxy_headers=True,
        expose_tracebacks=False,
        ident="lore-active",
        **trust,
    )
    server.channel_class = _Channel
    # Called by waitress in the thread that serves a request.
    server.pull_trigger = lambda: channels.wake(_serving.channel)
    server.draining = False
    return server
