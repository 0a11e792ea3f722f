"""`lore-active serve` as its user runs it: killed, restarted, stopped, and left alone to finish."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from server.bots import Browser, Page
from tests.living import write_study

TOML = """
[session]
trials = 400
practice = 0
break_every = 0
feedback = false
[budget]
answers = 100000
"""
CLIENTS = 8
COMMAND = [sys.executable, "-m", "server.commands"]


class Serving:
    """The command in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self.ready = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if "Ctrl-C" in line:
                self.ready.set()
        self.ready.set()

    def address(self) -> str:
        assert self.ready.wait(120)
        line = next(line for line in self.lines if "participants" in line)
        return line.split()[-1].split("/s/")[0]

    def child(self, what: str) -> int | None:
        """The process number of a child, from the system's list."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes().split(b"\0")
                    parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
                except OSError:
                    continue
                if int(parent) == self.process.pid and what.encode() in command:
                    return int(entry.name)
        return None

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self._reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code


@pytest.fixture
def serving():
    started: list[Serving] = []

    def start(*arguments):
        started.append(Serving(*arguments))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that in time")


class Client(threading.Thread):
    """Answers as fast as it can and remembers what was acknowledged."""

    def __init__(self, address: str, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.browser = Browser(address, stop)
        self.number = number
        self.over = stop
        self.acknowledged: list[str] = []

    def run(self) -> None:
        try:
            page = Page(self.browser.get(f"/s/words/?participant_label=c{self.number}"))
            while not self.over.is_set() and page.action is not None:
                fields = dict(page.fields)
                answering = page.action.endswith("/answer")
                if answering:
                    fields["side"] = "left"
                else:
                    fields["agreed"] = "yes"
                html = self.browser.post(page.action, fields)
                assert self.browser.status == 200
                if answering:
                    self.acknowledged.append(fields["question"])
                page = Page(html)
        except InterruptedError:
            pass
        finally:
            self.browser.close()


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds children through /proc")
def test_killing_web_worker_or_both_under_load_loses_nothing(serving, tmp_path):
    folder = write_study(tmp_path / "words", TOML)
    server = serving(str(folder))
    address = server.address()
    stop = threading.Event()
    clients = [Client(address, number, stop) for number in range(CLIENTS)]
    for client in clients:
        client.start()

    def answered():
        return sum(len(client.acknowledged) for client in clients)

    for cycle in range(20):
        before = answered()
        wait_until(lambda before=before: answered() > before + 5)
        for what in (["server.web"], ["server.work"], ["server.web", "server.work"])[cycle % 3]:
            number = server.child(what)
            if number is not None:
                os.kill(number, signal.SIGKILL)
    before = answered()
    wait_until(lambda: answered() > before + 20)
    stop.set()
    for client in clients:
        client.join(30)
    server.stop()
    database = sqlite3.connect(folder / "study.db")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    stored = [
        row[0]
        for row in database.execute(
            "SELECT q.token FROM answers a JOIN queries q ON q.id = a.query"
        )
    ]
    assert len(stored) == len(set(stored))
    acknowledged = {token for client in clients for token in client.acknowledged}
    assert acknowledged <= set(stored), "an acknowledged answer is gone"
    ((restarts,),) = database.execute("SELECT restarts FROM heartbeat").fetchall()
    assert restarts >= 1
    database.close()
    _rebuilds(folder)


def _rebuilds(folder):
    """A worker of a new process comes out at the published hash."""
    code = (
        "import sys, time; from pathlib import Path; from server.opening import open_study;"
        "from server.worker import Worker; from server.clock import now;"
        "from threadpoolctl import threadpool_limits\n"
        "with threadpool_limits(1):\n"
        "    study, database = open_study(Path(sys.argv[1]), now)\n"
        "    worker = Worker(database, study, now, time.perf_counter)\n"
        "    print(worker._last.hash)"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, env=environment
    )
    assert told.returncode == 0, told.stderr
    database = sqlite3.connect(folder / "study.db")
    ((published,),) = database.execute("SELECT hash FROM steps ORDER BY id DESC LIMIT 1").fetchall()
    database.close()
    assert told.stdout.strip() == published


def test_a_second_server_of_the_same_study_is_refused(serving, tmp_path):
    folder = write_study(tmp_path / "words", TOML)
    server = serving(str(folder))
    server.address()
    told = subprocess.run(
        [*COMMAND, "serve", "--port", "0", str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told.returncode == 2
    assert "another lore-active server holds this study" in told.stderr
    assert server.stop() == 0
    # Its children are gone too, and the study is free again.
    again = serving(str(folder))
    again.address()
    assert again.stop() == 0


def test_a_study_that_does_not_check_is_refused(tmp_path):
    folder = write_study(tmp_path / "words", "[session]\ntrails = 3\n")
    told = subprocess.run(
        [*COMMAND, "serve", "--port", "0", str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told.returncode == 2
    assert "session.trails" in told.stderr


def test_several_studies_in_one_server(serving, tmp_path):
    one = write_study(tmp_path / "one", TOML)
    two = write_study(tmp_path / "two", TOML)
    server = serving(str(one), str(two))
    address = server.address()
    browser = Browser(address, threading.Event())
    for name in ("one", "two"):
        assert Page(browser.get(f"/s/{name}/")).action is not None
    browser.close()
    assert sum("participants" in line for line in server.lines) == 2


def test_the_demo_reaches_its_stop_by_itself_at_the_rank_it_should(serving, tmp_path):
    folder = tmp_path / "colours"
    subprocess.run(
        [*COMMAND, "new", str(folder), "--demo", "colours", "--seed", "11"],
        check=True,
        capture_output=True,
    )
    server = serving(str(folder), "--bots", "20", "--think", "0.3", "--seed", "5")
    server.address()
    database = sqlite3.connect(folder / "study.db")

    def state():
        return database.execute("SELECT status, reason FROM state").fetchone()

    wait_until(lambda: state()[0] == "stopped", 120)
    assert "settled at 2 dimensions" in state()[1]
    database.close()
