"""The web process: the application served by waitress, with a graceful shutdown."""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import click
from waitress import wasyncore
from waitress.channel import HTTPChannel

from lore_active.errors import LoreError
from server.app import create_app
from server.clock import now
from server.collection import simulated
from server.processes import logs
from server.processes.http_server import Connections, serving
from server.processes.lifetime import BACKLOG, TRY_AGAIN, stop_signal
from server.store.sqlite.files import FileIds
from server.study.workspace import open_database
from server.views.headers import SAFE
from server.views.studies import Unopened

logger = logging.getLogger(__name__)

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
UNAVAILABLE = (
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n"
    "Retry-After: 3\r\n" + "".join(f"{name}: {value}\r\n" for name, value in SAFE.items()) + "\r\n"
).encode()


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
    channels: Connections = server._map
    while not stop.is_set():
        channels.turn(0.2)
    _drain(server, channels)
    server.task_dispatcher.shutdown(timeout=THREADS_END_SECONDS)
    wasyncore.close_all(channels)


def _drain(server: Any, channels: Connections) -> None:
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
        channels.turn(0.02)
    for channel in list(channels.values()):
        if isinstance(channel, HTTPChannel) and _asked(channel):
            _refuse(channel)


def _accept_last(server: Any, channels: Connections) -> None:
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
    logs.configure("web")
    if number is None:
        listener = socket.create_server((host, port), backlog=BACKLOG)
    else:
        listener = socket.socket(fileno=number)
    probed = None if probe_number is None else socket.socket(fileno=probe_number)
    stop = stop_signal()
    file_ids = [FileIds.parse(unopened) for unopened in files]
    app = create_app(list(folders), now, file_ids, True, simulated.take_secret())
    closed = app.extensions["unopened"].values()
    for unopened in closed:
        logger.error("%s", unopened.error)
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
