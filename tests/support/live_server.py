"""A real server on 127.0.0.1 for tests: real HTTP, real SQLite, the real worker on request."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path

from waitress import wasyncore

from server.app import create_app
from server.learning.worker import Worker
from server.processes.http_server import serving

# A study that goes on for as long as a test does.
ENDLESS = """
[session]
trials = 5000
rush_ms = 0
practice = 0
break_every = 0
feedback = false
[budget]
answers = 10000000
"""


def now() -> int:
    return int(time.time() * 1000)


class Clock:
    """A clock that a test moves on; between that it stands still, or runs as the true one does."""

    def __init__(self, running: bool = False) -> None:
        self._running = running
        self._ms = 0 if running else now()

    def __call__(self) -> int:
        return self._ms + (now() if self._running else 0)

    def wait(self, ms: float) -> None:
        """Let time pass."""
        self._ms += ceil(ms)


def write_study(folder: Path, toml: str = "", items: int = 12) -> Path:
    """A study of words; `toml` is appended to its title and seed."""
    (folder / "stimuli").mkdir(parents=True)
    for number in range(items):
        (folder / "stimuli" / f"word{number:02d}.txt").write_text(f"word {number}")
    (folder / "study.toml").write_text(f'title = "Words"\nseed = 3\n{toml}')
    return folder


class LiveServer:
    """The application behind waitress, in a thread."""

    def __init__(
        self,
        *folders: Path,
        clock: Callable[[], int] = now,
        proxy: str = "",
        bots_secret: str = "",
    ) -> None:
        self.app = create_app(list(folders), clock, bots_secret=bots_secret)
        self.studies = self.app.extensions["studies"]
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = int(listener.getsockname()[1])
        self.address = f"http://127.0.0.1:{self.port}"
        self._server = serving(self.app, listener, proxy)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def worker(self, name: str) -> Worker:
        """A worker for one of the studies; call its `turn` when something should be learnt."""
        served = self.studies[name]
        return Worker(served.database, served.study, now, time.perf_counter)

    def _run(self) -> None:
        # Waitress's own `run` ends only with the process.
        while not self._closing.is_set():
            self._server._map.turn(0.1)

    def close(self) -> None:
        self._closing.set()
        self._server.trigger.pull_trigger()
        self._thread.join(5)
        self._server.task_dispatcher.shutdown()
        wasyncore.close_all(self._server._map)
        for served in self.studies.values():
            served.database.close()
