"""Processes that should always be there: how each is started, and what tells that one hangs."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import Any

from server.processes.file_guard import FileGuard
from server.processes.lifetime import BACKLOG, TOLD_WHY, TRY_AGAIN
from server.store.sqlite.errors import StoreError

FIRST_PAUSE = 0.25
# Having lived this long, a process that dies was not dying all the time.
HEALTHY_SECONDS = 10.0
LISTEN_SECONDS = 5.0
# On a busy machine it takes long until a new process first answers.
START_SECONDS = 90.0
ASK_SECONDS = 5.0
KILLED = -9
# One thread for linear algebra; and few heaps: with one for each of the web's threads, every one
# would keep the room that the largest update of the monitor ever took.
QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


class Child:
    """A process that should always be there."""

    longest_pause = 30.0

    def __init__(
        self,
        name: str,
        command: list[str],
        keep: tuple[int, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.command, self.keep = name, command, keep
        self.environment = environment or {}
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.pause = FIRST_PAUSE
        self.again_at = 0.0
        # Why it was killed, if it was; empty otherwise.
        self.hung = ""

    def start(self) -> None:
        """Start it; its standard input stays open for as long as we live."""
        self.end()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            pass_fds=self.keep if os.name == "posix" else (),
            env={**os.environ, **QUIET, **self.environment},
            # Ctrl-C is for us alone: we end the children in order.
            start_new_session=True,
        )
        self.started = time.monotonic()
        self.hung = ""

    def end(self) -> None:
        """Ask it to end."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def hangs(self) -> str:
        """What tells that it will not go on by itself; empty if nothing does. Called often."""
        return ""

    def may_start(self) -> bool:
        """Whether there is any use in starting it again now."""
        return True

    def note_end(self, code: int) -> None:
        """Leave a note about its end for those who look at the study."""

    def look_after(self) -> str:
        """Kill it if it hangs, start it again if it has ended; what is to be said about that."""
        assert self.process is not None
        code = self.process.poll()
        if code is None:
            self.hung = self.hung or self.hangs()
            if self.hung:
                self.process.kill()
            return ""
        said = ""
        if self.again_at == 0.0:
            lived = time.monotonic() - self.started
            wait = FIRST_PAUSE if lived > HEALTHY_SECONDS else self.pause
            self.pause = min(2 * wait, self.longest_pause)
            self.again_at = time.monotonic() + wait
            why = self.hung or f"The {self.name} ended with code {code}."
            if code != TRY_AGAIN:
                when = f"in {wait:.1f} s" if self.may_start() else "when its files are back"
                said = f"{why} It is started again {when}."
            self.note_end(code)
        if time.monotonic() >= self.again_at and self.may_start():
            self.again_at = 0.0
            self.start()
        return said


class WorkerChild(Child):
    """A study's worker: it says every two seconds that it lives, in long audits too.

    One that has not for `patience` seconds hangs, perhaps in the middle of a write, which would
    keep everybody's answers waiting.
    """

    def __init__(self, guard: FileGuard, command: list[str], patience: float) -> None:
        super().__init__(f"worker of {guard.study.name}", command)
        self.guard, self.patience = guard, patience
        self._heard: tuple[int, int] | None = None
        self._heard_at = 0.0
        self._listen_at = 0.0

    def start(self) -> None:
        """Start it."""
        super().start()
        self._heard_at = time.monotonic()

    def hangs(self) -> str:
        """By a clock that never jumps."""
        now = time.monotonic()
        if now < self._listen_at:
            return ""
        self._listen_at = now + min(LISTEN_SECONDS, self.patience / 4)
        assert self.process is not None
        try:
            heard = self.guard.heard()
        except StoreError:
            # Whoever cannot listen must not judge.
            self._heard_at = now
            return ""
        # On a busy machine it may take long until a new worker is first heard of.
        if heard != self._heard or heard is None or heard[1] != self.process.pid:
            self._heard, self._heard_at = heard, now
        if now - self._heard_at <= self.patience:
            return ""
        if not self.guard.takes_writes():
            # Nor can it say that it lives.
            self._heard_at = time.monotonic()
            return ""
        return f"The {self.name} did not move for {self.patience:.0f} s."

    def may_start(self) -> bool:
        """Not on files that are not the study's."""
        return self.guard.error is None

    def note_end(self, code: int) -> None:
        """For the monitor."""
        if self.hung:
            why: str | None = f"The worker did not move for {self.patience:.0f} s."
        elif code == TOLD_WHY:
            why = None
        elif code == KILLED:
            why = "The worker was killed; the system may have run out of memory."
        else:
            why = f"The worker ended with code {code}."
        self.guard.note_restart(why)


class WebChild(Child):
    """A web process: asked every few seconds how it is, on a socket that no other one has.

    One that has not answered for `patience` seconds, or in which requests or commits have not moved
    for that long, hangs; a process that was stopped does, too.
    """

    # Without a web process nobody can answer, so none is ever away for long.
    longest_pause = FIRST_PAUSE

    def __init__(
        self,
        command: list[str],
        keep: tuple[int, ...],
        address: tuple[str, int],
        patience: float,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.patience = patience
        self._socket: socket.socket | None = None
        if os.name == "posix":
            self._socket = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
            os.set_inheritable(self._socket.fileno(), True)
            address = self._socket.getsockname()[:2]
            command = [*command, "--probed", str(self._socket.fileno())]
            keep = (*keep, self._socket.fileno())
        # Elsewhere a socket cannot be handed on, but there is only one web process.
        super().__init__("web process", command, keep, environment)
        self._address = address
        self._answered_at = 0.0
        self._report: dict[str, Any] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, name="probe", daemon=True)

    def start(self) -> None:
        """Start it."""
        super().start()
        self._report, self._answered_at = {}, 0.0
        if not self._thread.is_alive():
            self._thread.start()

    def hangs(self) -> str:
        """By its last answer, and by how long ago that was."""
        now, answered = time.monotonic(), self._answered_at
        if not answered:
            limit = max(START_SECONDS, self.patience)
            silent = now - self.started
        else:
            limit, silent = self.patience, now - answered
        if silent > limit:
            return f"The {self.name} did not answer for {silent:.0f} s."
        stuck = [float(self._report.get("stalled_seconds", 0.0))]
        for study in self._report.get("studies", []):
            if study.get("writer") == "stuck":
                stuck.append(float(study.get("for_seconds", 0.0)))
        if max(stuck) > self.patience:
            return f"The {self.name} has stored and answered nothing for {max(stuck):.0f} s."
        return ""

    def close(self) -> None:
        """Ask no more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(ASK_SECONDS + 1)
        if self._socket is not None:
            self._socket.close()

    def _ask_on(self) -> None:
        while not self._over.wait(min(LISTEN_SECONDS, self.patience / 4)):
            began, process = time.monotonic(), self.process
            report = self._ask()
            # An answer of the process before this one tells nothing about this one.
            if report is not None and process is self.process and began >= self.started:
                self._report, self._answered_at = report, time.monotonic()

    def _ask(self) -> dict[str, Any] | None:
        connection = http.client.HTTPConnection(*self._address, timeout=ASK_SECONDS)
        try:
            connection.request("GET", "/health")
            found = json.loads(connection.getresponse().read(100_000))
        except (OSError, ValueError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return found if isinstance(found, dict) else None
