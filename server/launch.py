"""The supervisor: starts web, workers and bots, again when they die, and ends them cleanly."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lore_active.errors import LoreError
from server import passwords
from server.backing import Backups
from server.children import TOLD_WHY
from server.clock import now
from server.holding import Hold
from server.listening import CannotListen, listen, stop_new_connections
from server.opening import DATABASE, open_study
from server.store import learning
from server.store.database import Database, StoreTrouble, glance

POLL_SECONDS = 0.1
FIRST_PAUSE = 0.25
# Having lived this long, a child that dies was not dying all the time.
HEALTHY_SECONDS = 10.0
END_SECONDS = 12.0
# A worker says every two seconds that it lives, in long audits too; one that has not for this long
# hangs, perhaps in the middle of a write, which would keep everybody's answers waiting.
PATIENCE_SECONDS = 60.0
LISTEN_SECONDS = 5.0
KILLED = -9
# One thread for linear algebra; and few heaps: with one for each of the web's threads, every one
# would keep the room that the largest update of the monitor ever took.
QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


class DidNotStart(LoreError):
    """The web process did not answer."""


@dataclass
class Child:
    """A process that should always be there."""

    name: str
    command: list[str]
    folder: Path | None = None
    keep: tuple[int, ...] = ()
    longest_pause: float = 30.0
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    again_at: float = 0.0
    heard: tuple[int, int] | None = None
    heard_at: float = 0.0
    listen_at: float = 0.0
    hung: bool = False

    def start(self) -> None:
        """Start it; its standard input stays open for as long as we live."""
        self.end()
        environment = {**os.environ, **QUIET}
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            pass_fds=self.keep if os.name == "posix" else (),
            env=environment,
            # Ctrl-C is for us alone: we end the children in order.
            start_new_session=True,
        )
        self.started = self.heard_at = time.monotonic()
        self.hung = False

    def end(self) -> None:
        """Ask it to end."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()


class Supervisor:
    """Web, one worker per study and perhaps bots, kept alive."""

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
    ) -> None:
        self.say = say
        self.folders = folders
        self.patience = patience
        self.holds: list[Hold] = []
        self.names: list[str] = []
        self.backups: list[Backups] = []
        secret = os.environ.pop(passwords.VARIABLE, None)
        for folder in folders:
            # Everything that is wrong with a study is said before anything starts.
            study, database = open_study(folder, now)
            database.close()
            passwords.prepare(study.folder, secret)
            self.holds.append(Hold(study.folder))
            self.names.append(study.name)
            minutes = study.settings.storage.backup_minutes
            self.backups.append(Backups(study.folder, study.name, minutes, say))
        try:
            self.listener = listen(host, port)
        except CannotListen:
            for hold in self.holds:
                hold.release()
            raise
        self.port = int(self.listener.getsockname()[1])
        self.host = host
        python = [sys.executable, "-m"]
        paths = [str(folder) for folder in folders]
        command = [*python, "server.web", *paths, "--proxy", proxy]
        keep: tuple[int, ...] = ()
        if os.name == "posix":
            number = self.listener.fileno()
            os.set_inheritable(number, True)
            command += ["--socket", str(number)]
            keep = (number,)
        else:
            # Here a socket cannot be handed on, so there is one web process that makes its own.
            self.listener.close()
            command += ["--host", host, "--port", str(self.port)]
            web = 1
        # Without a web process nobody can answer, so none is ever away for long.
        self.children = [
            Child("web", command, keep=keep, longest_pause=FIRST_PAUSE) for _ in range(web)
        ]
        for folder, name in zip(folders, self.names, strict=True):
            work = [*python, "server.work", str(folder)]
            self.children.append(Child(f"worker of {name}", work, folder=folder))
        self.bots = [
            Child(
                f"bots of {name}",
                [
                    *python,
                    "server.bots",
                    str(folder),
                    self.address,
                    f"--bots={bots}",
                    f"--seed={seed}",
                    f"--think={think}",
                ],
            )
            for folder, name in zip(folders, self.names, strict=True)
            if bots
        ]

    @property
    def address(self) -> str:
        """Where the server answers."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "localhost", "") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set."""
        try:
            for child in self.children:
                child.start()
            self._wait_for_web(stop)
            for folder, name in zip(self.folders, self.names, strict=True):
                self.say(f"{name}")
                self.say(f"  participants  {self.address}/s/{name}/")
                self.say(f"  monitor       {self.address}/monitor/{name}/")
                if not passwords.exists(folder):
                    self.say(f"  no password   set one with: lore-active password {folder}")
            for child in self.bots:
                child.start()
            self.say("Ctrl-C stops the server.")
            while not stop.wait(POLL_SECONDS):
                for child in self.children:
                    self._look_after(child)
                for backup in self.backups:
                    backup.poll()
        finally:
            self._end()

    def _look_after(self, child: Child) -> None:
        assert child.process is not None
        code = child.process.poll()
        if code is None:
            if child.folder is not None and self._hangs(child, child.folder):
                child.hung = True
                child.process.kill()
            return
        if child.again_at == 0.0:
            lived = time.monotonic() - child.started
            wait = FIRST_PAUSE if lived > HEALTHY_SECONDS else child.pause
            child.pause = min(2 * wait, child.longest_pause)
            child.again_at = time.monotonic() + wait
            self.say(f"The {child.name} ended with code {code}; starting it again in {wait:.1f} s.")
            if child.folder is not None:
                _note_restart(child.folder, self._why(child, code))
        if time.monotonic() >= child.again_at:
            child.again_at = 0.0
            child.start()

    def _hangs(self, child: Child, folder: Path) -> bool:
        """Whether a worker has shown no sign of life for too long, by a clock that never jumps."""
        now = time.monotonic()
        if now < child.listen_at:
            return False
        child.listen_at = now + min(LISTEN_SECONDS, self.patience / 4)
        try:
            heard = glance(folder / DATABASE, learning.heard)
        except StoreTrouble:
            # Whoever cannot listen must not judge.
            child.heard_at = now
            return False
        assert child.process is not None
        # On a busy machine it may take long until a new worker is first heard of.
        if heard != child.heard or heard is None or heard[1] != child.process.pid:
            child.heard, child.heard_at = heard, now
        return now - child.heard_at > self.patience

    def _why(self, child: Child, code: int) -> str | None:
        if child.hung:
            return f"The worker did not move for {self.patience:.0f} s."
        if code == TOLD_WHY:
            return None
        if code == KILLED:
            return "The worker was killed; the system may have run out of memory."
        return f"The worker ended with code {code}."

    def _wait_for_web(self, stop: threading.Event) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not stop.is_set():
            try:
                with urllib.request.urlopen(f"{self.address}/health", timeout=5) as reply:
                    if reply.status == 200:
                        return
            except OSError:
                web = self.children[0].process
                if web is not None and web.poll() is not None:
                    break
                time.sleep(0.1)
        if not stop.is_set():
            raise DidNotStart(f"The web server did not answer at {self.address}.")

    def _end(self) -> None:
        if os.name == "posix":
            # The web processes hold it, too, and accept what is in its queue before they end.
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
        for backup in self.backups:
            backup.end()
        for hold in self.holds:
            hold.release()


def _note_restart(folder: Path, trouble: str | None) -> None:
    """Leave a note for the monitor; a database that cannot be written now must not stop us."""
    try:
        database = Database(folder / DATABASE, now)
        database.write(lambda c: learning.note_restart(c, now(), trouble))
        database.close()
    except LoreError:
        pass
