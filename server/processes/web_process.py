"""The web process: waitress around the application, with a clean end."""

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
from server.views.headers import SAFE, SHUT
from server.views.health import STALLED
from server.views.studies import Unopened

# A study's answers take milliseconds; threads beyond a few only wait for the same lock.
THREADS = 16
HEALTH_THREADS = 2
CONNECTIONS = 2000
# At the end: for how long requests are answered (the database gives up sooner), the rest of a
# partial request is awaited, connections that were begun are accepted, and idle ones are kept.
# The supervisor kills a process that takes longer than all this together.
DRAIN_SECONDS = 8.0
PARTIAL_SECONDS = 2.0
ACCEPT_SECONDS = 0.3
IDLE_SECONDS = 0.4
THREADS_END_SECONDS = 1.0
# How often it is tried again to open a database that could not be.
TRY_AGAIN_SECONDS = 5.0
# An answer gives up the interpreter often, for SQLite and the disk; while the monitor's figures are
# made it would wait this long each time to get it back.
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
    """What waitress answers by itself to what is no request; with headers as everything else."""

    def execute(self) -> None:
        self.response_headers.extend({**SAFE, "Content-Security-Policy": SHUT}.items())
        super().execute()


class _StrictParser(HTTPRequestParser):  # type: ignore[misc]
    """Refuses a request that a proxy in front might understand otherwise than waitress does: where
    it ends, and for which host it is."""

    def parse_header(self, header_plus: bytes) -> None:
        lengths, codings = LENGTH.findall(header_plus), CODING.findall(header_plus)
        if codings and (lengths or len(codings) > 1 or b"," in codings[0]):
            raise ParsingError("The length of the body is given in more than one way.")
        if any(len(length) > MAX_DIGITS for length in lengths):
            raise ParsingError("Content-Length is invalid")
        if len(HOST.findall(header_plus)) > 1:
            raise ParsingError("There is more than one Host.")
        super().parse_header(header_plus)
        # HTTP/1.0 has no Host; load balancers still use it to ask whether we are well.
        if self.version not in ("", "1.0") and not self.headers.get("HOST"):
            raise ParsingError("There is no Host.")


class _Task(WSGITask):  # type: ignore[misc]
    """Closes the connection after its answer once the server is to end, and says so."""

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
    """Hands requests to threads, and those for /health to threads of their own: they are answered
    even when every other one waits for the disk."""

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
        """For how many seconds requests have waited without a single one being finished."""
        return time.monotonic() - self.moved_at if self.queue else 0.0

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        self._express.shutdown(cancel_pending, timeout)
        return bool(super().shutdown(cancel_pending, timeout))


def serving(
    app: Any, listener: socket.socket, proxy: str = "", probed: socket.socket | None = None
) -> Any:
    """Waitress around the application.

    `proxy` is the address of a proxy that is believed about where a request came from and whether
    it came by TLS; nobody else is. `probed` is a second socket, on which the supervisor asks this
    process, and no other, how it is.
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
    """Serve until `stop` is set; every connection made by then gets its answer."""
    sys.setswitchinterval(SWITCH_SECONDS)
    server = serving(app, listener, proxy, probed)
    channels: dict[int, Any] = server._map
    while not stop.is_set():
        wasyncore.loop(timeout=0.2, map=channels, use_poll=True, count=1)
    _drain(server, channels)
    server.task_dispatcher.shutdown(timeout=THREADS_END_SECONDS)
    wasyncore.close_all(channels)


def _drain(server: Any, channels: dict[int, Any]) -> None:
    """Answer what has been asked; each answer says that the connection is closed after it.

    A browser keeps its connection, and may have sent its next request when we begin; another may be
    about to make one. For a moment idle connections are therefore kept, and new ones accepted.
    """
    server.draining = True
    begun, accepting = time.monotonic(), True
    while (since := time.monotonic() - begun) < DRAIN_SECONDS:
        if accepting and since > ACCEPT_SECONDS:
            accepting = False
            _accept_last(server, channels)
        left = [one for one in channels.values() if isinstance(one, HTTPChannel)]
        over = not accepting and (since > IDLE_SECONDS or not left)
        if over and not any(_asked(one) for one in left):
            break
        if since > PARTIAL_SECONDS and not any(_busy(one) for one in left):
            break
        wasyncore.loop(timeout=0.02, map=channels, use_poll=True, count=1)
    for channel in list(channels.values()):
        if isinstance(channel, HTTPChannel) and _asked(channel):
            _refuse(channel)


def _accept_last(server: Any, channels: dict[int, Any]) -> None:
    """Take every connection that is in the queue, then listen no more."""
    waiting = -1
    while waiting != len(channels):
        waiting = len(channels)
        server.handle_accept()
    wasyncore.dispatcher.close(server)


def _busy(channel: Any) -> bool:
    """Whether a whole request waits for its answer, or an answer to be sent."""
    return bool(channel.requests or channel.total_outbufs_len)


def _asked(channel: Any) -> bool:
    """Whether anything of a request has come that is not answered yet."""
    if _busy(channel) or channel.request is not None:
        return True
    try:
        return bool(channel.socket.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


def _refuse(channel: Any) -> None:
    """Time is up: say so, unless a part of the answer has been sent."""
    if channel.total_outbufs_len:
        return
    with contextlib.suppress(OSError):
        channel.socket.send(UNAVAILABLE)
        channel.socket.shutdown(socket.SHUT_WR)
        # What is left unread would make the system reset the connection, and the answer be lost.
        while channel.socket.recv(1 << 16):
            pass


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--socket", "number", type=int, help="File descriptor of a listening socket.")
@click.option("--probed", "probe_number", type=int, help="That of a second one, for /health.")
@click.option("--files", multiple=True, help="For each folder, the files that are open.")
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
    """Serve these studies; for the supervisor."""
    if number is None:
        listener = socket.create_server((host, port), backlog=BACKLOG)
    else:
        listener = socket.socket(fileno=number)
    probed = None if probe_number is None else socket.socket(fileno=probe_number)
    stop = stop_signal()
    # Requests that wait for a moment are no news.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    known = [FileIds.parse(one) for one in files]
    app = create_app(list(folders), now, known, True, simulated.take_secret())
    closed = app.extensions["unopened"].values()
    for one in closed:
        print(one.error, file=sys.stderr, flush=True)
    if closed:
        threading.Thread(target=_retry, args=(list(closed), stop), daemon=True).start()
    run(app, listener, stop, proxy, probed)
    for served in app.extensions["studies"].values():
        served.database.close()
    sys.exit(TRY_AGAIN if closed else 0)


def _retry(closed: list[Unopened], stop: threading.Event) -> None:
    """End the process, to be started again, once a database can be opened that could not be."""
    while not stop.wait(TRY_AGAIN_SECONDS):
        for one in closed:
            with contextlib.suppress(LoreError):
                open_database(one.study, now, one.files).close()
                stop.set()


if __name__ == "__main__":
    main()
