"""Processes kept running by the supervisor: how each is started, and when it is taken to hang."""

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
# A process that ran for this long did not fail at its start.
HEALTHY_SECONDS = 10.0
CHECK_SECONDS = 5.0
# On a busy machine a new process takes long until its first response.
START_SECONDS = 90.0
PROBE_SECONDS = 5.0
KILLED = -9
# One thread for linear algebra, and few heaps: if each web thread had its own, each would keep as
# much memory as the largest update of the monitor ever needed.
QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


class Child:
    """A process that is restarted whenever it ends or hangs."""

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
        """Start it; its standard input stays open for as long as this process lives."""
        self.end()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            pass_fds=self.keep if os.name == "posix" else (),
            env={**os.environ, **QUIET, **self.environment},
            # Only this process handles Ctrl-C, and ends the children in order. They stay in its
            # session: Linux shares processor time among sessions first (autogroups), and priorities
            # count only within each.
            process_group=0,
        )
        self.started = time.monotonic()
        self.hung = ""

    def end(self) -> None:
        """Ask it to end."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def hangs(self) -> str:
        """Return why it is taken to hang, or an empty string. Called often."""
        return ""

    def may_start(self) -> bool:
        """Return whether it makes sense to start it again now."""
        return True

    def note_end(self, code: int) -> None:
        """Record its end for the monitor."""

    def look_after(self) -> str:
        """Kill it if it hangs, restart it if it has ended; return a message about that."""
        assert self.process is not None
        code = self.process.poll()
        if code is None:
            self.hung = self.hung or self.hangs()
            if self.hung:
                self.process.kill()
            return ""
        message = ""
        if self.again_at == 0.0:
            uptime = time.monotonic() - self.started
            wait = FIRST_PAUSE if uptime > HEALTHY_SECONDS else self.pause
            self.pause = min(2 * wait, self.longest_pause)
            self.again_at = time.monotonic() + wait
            why = self.hung or f"The {self.name} ended with code {code}."
            if code != TRY_AGAIN:
                when = f"in {wait:.1f} s" if self.may_start() else "once its files are back"
                message = f"{why} Restarting {when}."
            self.note_end(code)
        if time.monotonic() >= self.again_at and self.may_start():
            self.again_at = 0.0
            self.start()
        return message


class WorkerChild(Child):
    """A study's worker, which writes a heartbeat every two seconds, even in long audits.

    Without one for `patience` seconds it is taken to hang, perhaps in the middle of a write, which
    would block all answers.
    """

    def __init__(self, guard: FileGuard, command: list[str], patience: float) -> None:
        super().__init__(f"worker of {guard.study.name}", command)
        self.guard, self.patience = guard, patience
        self._last_heartbeat: tuple[int, int] | None = None
        self._last_heartbeat_at = 0.0
        self._check_at = 0.0

    def start(self) -> None:
        """Start it, and reset what was known about its predecessor."""
        super().start()
        self._last_heartbeat_at = time.monotonic()

    def hangs(self) -> str:
        """Judge by the time since its last heartbeat, on the monotonic clock."""
        now = time.monotonic()
        if now < self._check_at:
            return ""
        self._check_at = now + min(CHECK_SECONDS, self.patience / 4)
        assert self.process is not None
        try:
            heartbeat = self.guard.heard()
        except StoreError:
            # Without reading the heartbeat, nothing can be concluded.
            self._last_heartbeat_at = now
            return ""
        # On a busy machine a new worker may take long until its first heartbeat.
        if (
            heartbeat != self._last_heartbeat
            or heartbeat is None
            or heartbeat[1] != self.process.pid
        ):
            self._last_heartbeat, self._last_heartbeat_at = heartbeat, now
        if now - self._last_heartbeat_at <= self.patience:
            return ""
        if not self.guard.takes_writes():
            # Then the worker cannot write its heartbeat, either.
            self._last_heartbeat_at = time.monotonic()
            return ""
        return f"The {self.name} sent no heartbeat for {self.patience:.0f} s."

    def may_start(self) -> bool:
        """Refuse while the study's files are missing or replaced."""
        return self.guard.error is None

    def note_end(self, code: int) -> None:
        """Record for the monitor why it ended, unless it did so itself."""
        if self.hung:
            why: str | None = f"The worker sent no heartbeat for {self.patience:.0f} s."
        elif code == TOLD_WHY:
            why = None
        elif code == KILLED:
            why = "The worker was killed; the system may have run out of memory."
        else:
            why = f"The worker ended with code {code}."
        self.guard.note_restart(why)


class WebChild(Child):
    """A web process, whose health is probed every few seconds on a socket of its own.

    It is taken to hang (as a suspended process does) if it has not responded for `patience`
    seconds, or if no request or commit has made progress for that long.
    """

    # Without a web process no participant can answer, so it is restarted at once.
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
        # On other systems sockets cannot be passed on, but there is only one web process.
        super().__init__("web process", command, keep, environment)
        self._address = address
        self._reported_at = 0.0
        self._report: dict[str, Any] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._probe_repeatedly, name="probe", daemon=True)

    def start(self) -> None:
        """Start it, and reset what was known about its predecessor."""
        super().start()
        self._report, self._reported_at = {}, 0.0
        if not self._thread.is_alive():
            self._thread.start()

    def hangs(self) -> str:
        """Judge by its last health report, and by how long ago that was."""
        now, reported = time.monotonic(), self._reported_at
        if not reported:
            limit = max(START_SECONDS, self.patience)
            silent = now - self.started
        else:
            limit, silent = self.patience, now - reported
        if silent > limit:
            return f"The {self.name} did not respond for {silent:.0f} s."
        stuck = [float(self._report.get("stalled_seconds", 0.0))]
        for study in self._report.get("studies", []):
            if study.get("writer") == "stuck":
                stuck.append(float(study.get("for_seconds", 0.0)))
        if max(stuck) > self.patience:
            return f"The {self.name} has made no progress for {max(stuck):.0f} s."
        return ""

    def close(self) -> None:
        """Stop probing."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(PROBE_SECONDS + 1)
        if self._socket is not None:
            self._socket.close()

    def _probe_repeatedly(self) -> None:
        while not self._closed.wait(min(CHECK_SECONDS, self.patience / 4)):
            began, process = time.monotonic(), self.process
            report = self._probe()
            # A report of the previous process says nothing about this one.
            if report is not None and process is self.process and began >= self.started:
                self._report, self._reported_at = report, time.monotonic()

    def _probe(self) -> dict[str, Any] | None:
        connection = http.client.HTTPConnection(*self._address, timeout=PROBE_SECONDS)
        try:
            connection.request("GET", "/health")
            report = json.loads(connection.getresponse().read(100_000))
        except (OSError, ValueError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return report if isinstance(report, dict) else None
