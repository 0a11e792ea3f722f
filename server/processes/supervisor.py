"""The supervisor: starts, restarts and ends the web, worker and bot processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from shlex import quote

from lore_active.errors import LoreError
from server.auth import passwords
from server.clock import now
from server.collection import simulated
from server.processes.backup_process import Backups
from server.processes.child import Child, WebChild, WorkerChild
from server.processes.file_guard import FileGuard, FilesLost
from server.processes.listener import listen, stop_new_connections
from server.processes.rehearsal import Purpose
from server.status.contents import study_contents

POLL_SECONDS = 0.1
END_SECONDS = 12.0
START_SECONDS = 60.0
# A worker without a heartbeat, or a web process without a response, for this long is taken to hang.
PATIENCE_SECONDS = 60.0
WEB_PATIENCE_SECONDS = 30.0


class DidNotStart(LoreError):
    """The web process did not respond."""


class Supervisor:
    """Keeps web processes, one worker per study and perhaps bots running."""

    def __init__(
        self,
        folders: list[Path],
        host: str,
        port: int,
        web: int,
        bots: int,
        seed: int,
        think: float,
        say: Callable[[str], None],
        proxy: str = "",
        patience: float = PATIENCE_SECONDS,
        web_patience: float = WEB_PATIENCE_SECONDS,
        rehearsal: Purpose | None = None,
    ) -> None:
        self.say = say
        self.guards: list[FileGuard] = []
        self.backups: list[Backups] = []
        password = os.environ.pop(passwords.VARIABLE, None)
        with ExitStack() as stack:
            for folder in folders:
                # Problems with a study are reported before anything starts.
                guard = FileGuard(folder, now, say)
                stack.callback(guard.end)
                self.guards.append(guard)
                if rehearsal is not None:
                    guard.database.write(lambda c: rehearsal.note(c, now()))
                passwords.prepare(guard.study.folder, password)
                study, minutes = guard.study, guard.study.settings.storage.backup_minutes
                self.backups.append(Backups(study.folder, study.name, minutes, say, guard.files))
            self.listener = listen(host, port)
            stack.pop_all()
        self.port = int(self.listener.getsockname()[1])
        self.host = host
        python = [sys.executable, "-m"]
        command = [*python, "server.processes.web_process", *map(str, folders), "--proxy", proxy]
        for guard in self.guards:
            command += ["--files", str(guard.files)]
        keep: tuple[int, ...] = ()
        if os.name == "posix":
            number = self.listener.fileno()
            os.set_inheritable(number, True)
            command += ["--socket", str(number)]
            keep = (number,)
        else:
            # Sockets cannot be passed on here, so a single web process opens its own.
            self.listener.close()
            command += ["--host", host, "--port", str(self.port)]
            web = 1
        secret = simulated.environment(simulated.new_secret() if bots else "")
        self.web = [
            WebChild(command, keep, (self.reached, self.port), web_patience, secret)
            for _ in range(web)
        ]
        self.workers = [
            WorkerChild(
                guard,
                [
                    *python,
                    "server.processes.worker_process",
                    str(folder),
                    "--files",
                    str(guard.files),
                ],
                patience,
            )
            for folder, guard in zip(folders, self.guards, strict=True)
        ]
        self.children: list[Child] = [*self.web, *self.workers]
        self.bots = [
            Child(
                f"bots of {guard.study.name}",
                [
                    *python,
                    "server.processes.bots",
                    str(folder),
                    self.address,
                    f"--bots={bots}",
                    f"--seed={seed}",
                    f"--think={think}",
                ],
                environment=secret,
            )
            for folder, guard in zip(folders, self.guards, strict=True)
            if bots
        ]

    @property
    def reached(self) -> str:
        """The host name by which this machine reaches the server."""
        return "127.0.0.1" if self.host in ("0.0.0.0", "::", "localhost", "") else self.host

    @property
    def address(self) -> str:
        """URL of the server."""
        host = self.reached
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set; then raise FilesLost if a study's files were lost."""
        try:
            for child in self.children:
                child.start()
            self._wait_for_web(stop)
            for guard in self.guards:
                name = guard.study.name
                self.say(f"{name}")
                self.say(f"  participants  {self.address}/s/{name}/")
                self.say(f"  monitor       {self.address}/monitor/{name}/")
                self.say(f"  data          {self._data(guard)}")
                if not passwords.exists(guard.study.folder):
                    folder = guard.study.folder
                    self.say(
                        f"  password      not set; set one with: lore-active password {folder}"
                    )
            for child in self.bots:
                child.start()
            self.say("Press Ctrl-C to stop.")
            while not stop.wait(POLL_SECONDS):
                self._look_after()
        finally:
            lost = self._end()
        if lost:
            raise FilesLost(" ".join(lost))

    def _data(self, guard: FileGuard) -> str:
        held = guard.database.read(lambda c: study_contents(c, guard.study, now()))
        if held.answers and held.simulated == held.answers and not self.bots:
            folder = guard.study.folder
            return f"{held} (`lore-active reset {quote(str(folder))}` clears them)"
        return str(held)

    def _look_after(self) -> None:
        for child in self.children:
            if message := child.look_after():
                self.say(message)
        for guard, backup in zip(self.guards, self.backups, strict=True):
            guard.poll()
            if guard.error is None:
                backup.poll()

    def _wait_for_web(self, stop: threading.Event) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and not stop.is_set():
            try:
                urllib.request.urlopen(f"{self.address}/health", timeout=5).close()
                return
            except urllib.error.HTTPError as error:
                # It responds; it reports its own problems.
                error.close()
                return
            except OSError:
                web = self.children[0].process
                if web is not None and web.poll() is not None:
                    break
                time.sleep(0.1)
        if not stop.is_set():
            raise DidNotStart(f"The web server did not respond at {self.address}.")

    def _end(self) -> list[str]:
        """End all processes in order; return messages about lost files."""
        if os.name == "posix":
            # The web processes also have it open, and empty its queue before they end.
            stop_new_connections(self.listener)
            self.listener.close()
        for child in [*self.bots, *self.children]:
            child.end()
        deadline = time.monotonic() + END_SECONDS
        for child in [*self.bots, *self.children]:
            if child.process is None:
                continue
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()
        for web in self.web:
            web.close()
        for backup in self.backups:
            backup.end()
        messages = [(guard.study.name, guard.end()) for guard in self.guards]
        return [f"{name}: {lost}" for name, lost in messages if lost]
