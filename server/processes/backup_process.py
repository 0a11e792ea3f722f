"""Backups of a running study: every few minutes, in a separate process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import click

from lore_active.errors import LoreError
from server.clock import now
from server.processes.lifetime import TOLD_WHY, stop_signal
from server.store import collection
from server.store.database import Database
from server.store.recovery import backups
from server.store.sqlite.files import FileIds, OpenFiles
from server.study.workspace import DATABASE

# Pause after each half megabyte: as long as copying it took, and at least this long.
REST_SECONDS = 0.004
# A backup that takes longer is taken to hang.
MAX_SECONDS = 3600.0
WHO = "backup"


class Backups:
    """Backup schedule of one study, run by the supervisor: `poll` never blocks."""

    def __init__(
        self,
        folder: Path,
        name: str,
        minutes: float,
        say: Callable[[str], None],
        files: FileIds | None = None,
    ) -> None:
        self.folder, self.name, self.minutes, self.say = folder, name, minutes, say
        self._files = [] if files is None else ["--files", str(files)]
        self._process: subprocess.Popen[str] | None = None
        self._began = time.monotonic()
        self._problem = ""

    def poll(self) -> None:
        """Start a backup if one is due, and report how the last one ended."""
        since = time.monotonic() - self._began
        if self._process is None:
            if self.minutes and since >= 60 * self.minutes:
                self._begin()
        elif self._process.poll() is not None:
            self._note(self._process)
            self._process = None
        elif since > MAX_SECONDS:
            self._process.kill()

    def end(self) -> None:
        """Abort a running backup: nothing may use the study once its lock is released."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _begin(self) -> None:
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "server.processes.backup_process",
                str(self.folder),
                *self._files,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _note(self, process: subprocess.Popen[str]) -> None:
        output = process.communicate()[0].strip()
        problem = ""
        if process.returncode:
            problem = output or f"The backup process ended with code {process.returncode}."
        if problem and problem != self._problem:
            self.say(f"The backup of {self.name} failed: {problem} Collection continues.")
        elif self._problem and not problem:
            self.say(f"Backups of {self.name} work again.")
        self._problem = problem


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--files", help="Ids of the open files.")
def main(folder: Path, files: str | None) -> None:
    """Back up this study once; started by the supervisor."""
    stop = stop_signal()
    if hasattr(os, "nice"):
        # Pages that participants wait for have priority.
        os.nice(10)
    path, known = folder / DATABASE, FileIds.parse(files) if files else None
    try:
        if known is not None:
            OpenFiles(path).expect(known)
        backups.take(path, now(), BackupPace(stop))
    except LoreError as error:
        print(error, flush=True)
        _note_outcome(path, known, str(error))
        sys.exit(TOLD_WHY)
    _note_outcome(path, known, "")


class BackupPace:
    """Pauses that leave disk and processor free at least half of the time."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._began = time.monotonic()

    def __call__(self) -> None:
        if self._stop.wait(max(REST_SECONDS, time.monotonic() - self._began)):
            # The server was stopped; its next run starts a new backup.
            sys.exit(0)
        self._began = time.monotonic()


def _note_outcome(path: Path, known: FileIds | None, problem: str) -> None:
    """Store an event for the monitor when backups start to fail, or work again."""
    # A full disk has already been reported.
    with (
        contextlib.suppress(LoreError),
        contextlib.closing(Database(path, now, known)) as database,
    ):
        last = database.read(lambda c: collection.last_event(c, WHO)) or {}
        if problem != last.get("problem", ""):
            database.write(lambda c: collection.add_event(c, WHO, WHO, now(), problem=problem))


if __name__ == "__main__":
    main()
