"""`lore-active serve` as its user runs it: killed, restarted, stopped, and left alone to finish."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest

from benchmarks.killing import kill_cycles
from benchmarks.serving import COMMAND, Serving, wait_until
from server.bots import Browser, Page
from tests.living import write_study

TOML = """
[session]
trials = 5000
practice = 0
break_every = 0
feedback = false
[budget]
answers = 10000000
"""


@pytest.fixture
def serving():
    started: list[Serving] = []

    def start(*arguments):
        started.append(Serving(*arguments))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def refused(folder):
    """What a server that will not start says about it."""
    told = subprocess.run(
        [*COMMAND, "serve", "--port", "0", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert told.returncode == 2
    return told.stderr


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds children through /proc")
def test_killing_web_worker_or_both_under_load_loses_nothing(tmp_path):
    folder = write_study(tmp_path / "words", TOML)
    damage = kill_cycles(folder, cycles=20, clients=8)
    assert damage.kills >= 20
    assert damage.acknowledged > 100
    assert (damage.lost, damage.doubled, damage.refused) == (0, 0, 0)
    assert damage.integrity == "ok"
    assert damage.rebuilt, "the rebuilt model does not have the published hash"
    database = sqlite3.connect(folder / "study.db")
    assert database.execute("SELECT restarts FROM heartbeat").fetchone()[0] >= 1
    database.close()


def test_a_second_server_of_the_same_study_is_refused(serving, tmp_path):
    folder = write_study(tmp_path / "words", TOML)
    server = serving(str(folder))
    server.address()
    # Nor can anybody let it in by deleting the lock file, as old advice on locks has it.
    (folder / "study.lock").unlink()
    assert "another lore-active server holds this study" in refused(folder)
    assert server.stop() == 0
    # Its children are gone too, and the study is free again.
    again = serving(str(folder))
    again.address()
    assert again.stop() == 0


def test_a_study_that_does_not_check_is_refused(tmp_path):
    folder = write_study(tmp_path / "words", "[session]\ntrails = 3\n")
    assert "session.trails" in refused(folder)


@pytest.mark.parametrize("secret", ["changeme", "short"])
def test_a_placeholder_for_a_password_refuses_to_start(tmp_path, monkeypatch, secret):
    folder = write_study(tmp_path / "words")
    monkeypatch.setenv("LORE_ACTIVE_PASSWORD", secret)
    said = refused(folder)
    assert said.startswith("lore-active: LORE_ACTIVE_PASSWORD: The password")
    assert secret not in said


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

    wait_until(lambda: state()[0] == "stopped")
    assert "settled at 2 dimensions" in state()[1]
    database.close()
