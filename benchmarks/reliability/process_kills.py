"""A server under load whose processes are killed again and again; counts what was lost."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.server import Serving, wait_until
from server.processes.bots import BotPage, Browser


class Client(threading.Thread):
    """Answers as fast as it can, or with pauses, and remembers what was acknowledged."""

    def __init__(
        self, address: str, study: str, label: str, stop: threading.Event, pause: float = 0.0
    ) -> None:
        super().__init__(daemon=True)
        self.browser = Browser(address, stop)
        self.link = f"/s/{study}/?participant_label={label}"
        self.over, self.pause = stop, pause
        self.acknowledged: list[str] = []
        # When each answer was sent, and how long it took until the next page was there.
        self.times: list[tuple[float, float]] = []
        self.refused = 0

    def run(self) -> None:
        """Take part until told to end."""
        try:
            page = BotPage(self.browser.get(self.link))
            while not self.over.is_set() and page.action is not None:
                fields = dict(page.fields)
                answering = page.action.endswith("/answer")
                fields["side" if answering else "agreed"] = "left" if answering else "yes"
                begun = time.perf_counter()
                html = self.browser.post(page.action, fields)
                if self.browser.status != 200:
                    self.refused += 1
                    return
                if answering:
                    self.acknowledged.append(fields["question"])
                    self.times.append((begun, time.perf_counter() - begun))
                page = BotPage(html)
                self.over.wait(self.pause)
        except InterruptedError:
            pass
        finally:
            self.browser.close()


@dataclass(frozen=True)
class Damage:
    """What the kills led to; all but the first three should be 0 or empty."""

    kills: int
    acknowledged: int
    stored: int
    lost: int
    doubled: int
    refused: int
    integrity: str
    rebuilt: bool


def kill_cycles(
    folder: Path, cycles: int, clients: int, say: Callable[[str], None] = lambda _: None
) -> Damage:
    """Kill web, worker, or both, `cycles` times, while clients answer; then look what is there."""
    server, stop, kills = Serving(str(folder)), threading.Event(), 0
    try:
        address = server.address()
        participants = [
            Client(address, folder.name, f"c{time.time_ns()}-{number}", stop)
            for number in range(clients)
        ]
        for participant in participants:
            participant.start()

        def answered() -> int:
            return sum(len(participant.acknowledged) for participant in participants)

        # A worker that never came to do anything would have nothing to lose.
        wait_until(lambda: last_step(folder) is not None)
        for cycle in range(cycles):
            before = answered()
            wait_until(lambda before=before: answered() > before + 5)  # type: ignore[misc]
            for what in (
                ["server.processes.web_process"],
                ["server.processes.worker_process"],
                ["server.processes.web_process", "server.processes.worker_process"],
            )[cycle % 3]:
                # A worker that died often may still be waiting for its next start.
                for number in server.children(what):
                    os.kill(number, signal.SIGKILL)
                    kills += 1
            if cycle % 10 == 9:
                say(f"{cycle + 1} cycles, {answered()} answers acknowledged")
        before = answered()
        wait_until(lambda: answered() > before + 20)
    finally:
        stop.set()
        server.stop()
    for participant in participants:
        participant.join(30)
    return _damage(folder, kills, participants)


def _damage(folder: Path, kills: int, participants: list[Client]) -> Damage:
    database = sqlite3.connect(folder / "study.db")
    integrity = database.execute("PRAGMA integrity_check").fetchone()[0]
    stored = [
        row[0]
        for row in database.execute(
            "SELECT q.token FROM answers a JOIN queries q ON q.id = a.query"
        )
    ]
    database.close()
    acknowledged = {token for participant in participants for token in participant.acknowledged}
    return Damage(
        kills=kills,
        acknowledged=len(acknowledged),
        stored=len(stored),
        lost=len(acknowledged - set(stored)),
        doubled=len(stored) - len(set(stored)),
        refused=sum(participant.refused for participant in participants),
        integrity=integrity,
        rebuilt=rebuilds(folder),
    )


def last_step(folder: Path) -> str | None:
    """The hash of what the worker published last, if it did."""
    database = sqlite3.connect(folder / "study.db")
    row = database.execute("SELECT hash FROM steps ORDER BY id DESC LIMIT 1").fetchone()
    database.close()
    return None if row is None else str(row[0])


def rebuilds(folder: Path) -> bool:
    """Whether a worker in a new process comes out at the published hash."""
    code = (
        "import sys, time; from pathlib import Path; from server.study.workspace import open_study;"
        "from server.learning.worker import Worker; from server.clock import now;"
        "from threadpoolctl import threadpool_limits\n"
        "with threadpool_limits(1):\n"
        "    study, database = open_study(Path(sys.argv[1]), now)\n"
        "    print(Worker(database, study, now, time.perf_counter).last.hash)"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, env=environment
    )
    return result.returncode == 0 and result.stdout.strip() == last_step(folder)
