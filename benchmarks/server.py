"""A server in a process of its own, on a study of words, for benchmarks and tests."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

COMMAND = [sys.executable, "-m", "server.cli.main"]


class Serving:
    """`lore-active serve` in a process of its own; `source` is a folder with another version."""

    def __init__(self, *arguments: str, source: Path | None = None) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # A module is looked for in the current folder first.
            cwd=source,
        )
        self.lines: list[str] = []
        self.ready = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if "Ctrl-C" in line:
                self.ready.set()
        self.ready.set()

    def address(self) -> str:
        """Where it answers, once it does."""
        assert self.ready.wait(300)
        line = next(line for line in self.lines if "participants" in line)
        return line.split()[-1].split("/s/")[0]

    def children(self, what: str) -> list[int]:
        """The process numbers of the children of a kind, from the system's list."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes().split(b"\0")
                    parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
                except OSError:
                    continue
                if int(parent) == self.process.pid and what.encode() in command:
                    found.append(int(entry.name))
        return found

    def stop(self) -> int:
        """End it as Ctrl-C does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


def wait_until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Wait for something to become true, but not for ever."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that in time")


SETTINGS = """title = "Words"
seed = 1
[session]
trials = {trials}
rush_ms = 0
practice = {practice}
break_every = 0
feedback = false
[budget]
answers = 10000000
[stopping]
min_answers = 9000000
"""


def words_study(folder: Path, items: int, trials: int = 5000, practice: int = 0) -> Path:
    """A study of words that goes on for ever."""
    (folder / "stimuli").mkdir(parents=True)
    for number in range(items):
        (folder / "stimuli" / f"word{number:03d}.txt").write_text(f"word {number}")
    (folder / "study.toml").write_text(SETTINGS.format(trials=trials, practice=practice))
    return folder
