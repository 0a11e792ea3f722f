"""The web process: the application served by waitress, with a graceful shutdown."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import click
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask

from lore_active.errors import LoreError
from server.app import create_app
from server.clock import now
from server.collection import simulated
from server.processes.lifetime import BACKLOG, TRY_AGAIN, stop_signal
from server.store.sqlite.files import FileIds
from server.study.workspace import open_database
from server.views.headers import CLOSED, SAFE
from server.views.health import STALLED
from server.views.studies import Unopened

# Requests take milliseconds; more threads would only wait for the same lock.
THREADS = 16
HEALTH_THREADS = 2
CONNECTIONS = 2000
# At shutdown: how long to serve requests (the database gives up sooner), to wait for the rest of a
# partial request, to accept connections under way, and to keep idle ones. The supervisor kills a
# process that takes longer than all of these together.
DRAIN_SECONDS = 8.0
PARTIAL_SECONDS = 2.0
ACCEPT_SECONDS = 0.3
IDLE_SECONDS = 0.4
THREADS_END_SECONDS = 1.0
# How often to retry a database that could not be opened.
TRY_AGAIN_SECONDS = 5.0
# A request releases the interpreter lock often, for SQLite and the disk; while the monitor's
# figures are computed, it waits up to this long each time to get it back.
SWITCH_SECONDS = 0.002
LENGTH = re.compile(rb"^content-length[ \t]*:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
CODING = re.compile(rb"^transfer-encoding[ \t]*:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
HOST = re.compile(rb"^host[ \t]*:", re.IGNORECASE | re.MULTILINE)
MAX_DIGITS = 20
UNAVAILABLE = (
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n"
    "Retry-After: 3\r\n" + "".join(f"{name}: {value}\r\n" for name, value in SAFE.items()) + "\r\n"
).encode()


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
        header: bytes = super().build_response_header()
        return header

    def get_environment(self) -> dict[str, Any]:
        environment: dict[str, Any] = super().get_environment()
        environment[STALLED] = self.channel.server.task_dispatcher.stalled()
        return environment


class _Channel(HTTPChannel):  # type: ignore[misc]
    task_class = _Task
    error_task_class = _SafeError
    parser_class = _StrictParser

    def service(self) -> None:
        super().service()
        self.server.task_dispatcher.moved_at = time.monotonic()


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
    channels: dict[int, Any] = {}
    if probed is not None:
        _server(app, probed, "", channels, dispatcher)
    return _server(app, listener, proxy, channels, dispatcher)


def _server(
    app: Any,
    listener: socket.socket,
    proxy: str,
    channels: dict[int, Any],
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
        asyncore_use_poll=True,
        clear_untrusted_proxy_headers=True,
        expose_tracebacks=False,
        ident="lore-active",
        **trust,
    )
    server.channel_class = _Channel
    server.draining = False
    return server


def run(
    app: Any,
    listener: socket.socket,
    stop: threading.Event,
    proxy: str = "",
    probed: socket.socket | None = None,
) -> None:
    """Serve until `stop` is set; every connection made by then gets a response."""
    sys.setswitchinterval(SWITCH_SECONDS)
    server = serving(app, listener, proxy, probed)
    channels: dict[int, Any] = server._map
    while not stop.is_set():
        wasyncore.loop(timeout=0.2, map=channels, use_poll=True, count=1)
    _drain(server, channels)
    server.task_dispatcher.shutdown(timeout=THREADS_END_SECONDS)
    wasyncore.close_all(channels)


def _drain(server: Any, channels: dict[int, Any]) -> None:
    """Serve pending requests; each response announces that the connection is closed after it.

    A browser keeps its connection, and may have sent its next request when the shutdown starts;
    another may be about to connect. So idle connections are kept, and new ones accepted, briefly.
    """
    server.draining = True
    begun, accepting = time.monotonic(), True
    while (since := time.monotonic() - begun) < DRAIN_SECONDS:
        if accepting and since > ACCEPT_SECONDS:
            accepting = False
            _accept_last(server, channels)
        remaining = [channel for channel in channels.values() if isinstance(channel, HTTPChannel)]
        finished = not accepting and (since > IDLE_SECONDS or not remaining)
        if finished and not any(_asked(channel) for channel in remaining):
            break
        if since > PARTIAL_SECONDS and not any(_busy(channel) for channel in remaining):
            break
        wasyncore.loop(timeout=0.02, map=channels, use_poll=True, count=1)
    for channel in list(channels.values()):
        if isinstance(channel, HTTPChannel) and _asked(channel):
            _refuse(channel)


def _accept_last(server: Any, channels: dict[int, Any]) -> None:
    """Accept every connection in the queue, then stop listening."""
    waiting = -1
    while waiting != len(channels):
        waiting = len(channels)
        server.handle_accept()
    wasyncore.dispatcher.close(server)


def _busy(channel: Any) -> bool:
    """Return whether a complete request is pending, or a response not fully sent."""
    return bool(channel.requests or channel.total_outbufs_len)


def _asked(channel: Any) -> bool:
    """Return whether any part of an unanswered request has arrived."""
    if _busy(channel) or channel.request is not None:
        return True
    try:
        return bool(channel.socket.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


def _refuse(channel: Any) -> None:
    """Respond that the server is unavailable, unless part of the response was already sent."""
    if channel.total_outbufs_len:
        return
    with contextlib.suppress(OSError):
        channel.socket.send(UNAVAILABLE)
        channel.socket.shutdown(socket.SHUT_WR)
        # Unread data would make the system reset the connection, and the response would be lost.
        while channel.socket.recv(1 << 16):
            pass


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--socket", "number", type=int, help="File descriptor of a listening socket.")
@click.option(
    "--probed", "probe_number", type=int, help="File descriptor of a second one, for /health."
)
@click.option("--files", multiple=True, help="For each folder, the ids of the open files.")
@click.option("--host", default="127.0.0.1")
@click.option("--port", type=int, default=0)
@click.option("--proxy", default="")
def main(
    folders: tuple[Path, ...],
    number: int | None,
    probe_number: int | None,
    files: tuple[str, ...],
    host: str,
    port: int,
    proxy: str,
) -> None:
    """Serve these studies; started by the supervisor."""
    if number is None:
        listener = socket.create_server((host, port), backlog=BACKLOG)
    else:
        listener = socket.socket(fileno=number)
    probed = None if probe_number is None else socket.socket(fileno=probe_number)
    stop = stop_signal()
    # Requests that wait briefly are normal.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    file_ids = [FileIds.parse(unopened) for unopened in files]
    app = create_app(list(folders), now, file_ids, True, simulated.take_secret())
    closed = app.extensions["unopened"].values()
    for unopened in closed:
        print(unopened.error, file=sys.stderr, flush=True)
    if closed:
        threading.Thread(target=_retry, args=(list(closed), stop), daemon=True).start()
    run(app, listener, stop, proxy, probed)
    for served in app.extensions["studies"].values():
        served.database.close()
    sys.exit(TRY_AGAIN if closed else 0)


def _retry(closed: list[Unopened], stop: threading.Event) -> None:
    """End the process, so that it is restarted, once an unavailable database can be opened."""
    while not stop.wait(TRY_AGAIN_SECONDS):
        for unopened in closed:
            with contextlib.suppress(LoreError):
                open_database(unopened.study, now, unopened.files).close()
                stop.set()


if __name__ == "__main__":
    main()
