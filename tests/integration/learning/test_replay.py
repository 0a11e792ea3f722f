"""A study that went through everything comes out again, to the last bit, in another process."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest

from benchmarks.server import COMMAND, Serving, wait_until
from server.clock import now
from server.collection.controls import Control
from server.processes.bots import run_bots
from server.study.loading import load
from server.study.workspace import open_study
from tests.support.commands import run
from tests.support.kinds import KINDS
from tests.support.live_server import write_study

BOTS, FEW_BOTS = 20, 4
TOML = """
[session]
trials = 24
practice = 0
break_every = 0
feedback = false
[budget]
answers = 100000
[stopping]
min_answers = 90000
"""


@pytest.fixture
def tmp_path(disk_path):
    return disk_path


def lore_active(*arguments: object) -> str:
    """What the command prints, in a process of its own."""
    result = subprocess.run(
        [*COMMAND, *(str(argument) for argument in arguments)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds children through /proc")
def test_twenty_bots_kills_exclusions_and_a_pause_replay_without_a_mismatch(tmp_path):
    folder = write_study(tmp_path / "words", TOML, items=9)
    server, over = Serving(str(folder)), threading.Event()
    try:
        bots = threading.Thread(
            target=run_bots, args=(load(folder), server.address(), BOTS, 1, 0.4, over)
        )
        _, database = open_study(folder, now)
        control, watch = Control(database, now), sqlite3.connect(folder / "study.db")

        def count(sql):
            return watch.execute(sql).fetchone()[0]

        def grown(sql, by):
            start = count(sql)
            wait_until(lambda: count(sql) >= start + by)

        answers, models = "SELECT count(*) FROM answers", "SELECT count(*) FROM models"
        bots.start()
        grown(models, 2)
        for what in ("server.processes.worker_process", "server.processes.web_process"):
            for number in server.children(what):
                os.kill(number, signal.SIGKILL)
            grown(answers, 40)
        grown(models, 2)
        control.exclude("test", 3, "too fast")
        grown(models, 1)
        control.pause("test")
        for number in server.children("server.processes.worker_process"):
            os.kill(number, signal.SIGKILL)
        control.resume("test")
        grown(answers, 40)
        control.restore("test", 3, "a mistake")
        grown(models, 2)
    finally:
        over.set()
        server.stop()
    bots.join(30)
    assert count("SELECT count(DISTINCT participant) FROM queries") >= BOTS
    assert count("SELECT count(*) FROM steps WHERE up_to_event >= 4")
    models_made, steps = count(models), count("SELECT count(*) FROM steps")
    given = count(answers)
    watch.close()
    database.close()
    lore_active("export", folder, "--format", "log", "--out", tmp_path)
    found = json.loads(lore_active("replay", tmp_path / "words.log.jsonl", "--verify", "--json"))
    assert found["mismatches"] == []
    assert found["fingerprint_match"] is True
    assert found["models_checked"] == found["decisions_checked"] == models_made >= 7
    assert found["questions_checked"] > steps
    # Anyone who was killed, web or worker: every row is as the chain has it, in folder and log.
    there = json.loads(lore_active("replay", folder, "--verify", "--json"))
    assert there["mismatches"] == [] and there["periods"] == ["new"]
    assert there["rows_checked"] == found["rows_checked"] > 2 * given


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds children through /proc")
@pytest.mark.parametrize("label", [kind for kind in KINDS if kind != "triplet"])
def test_bots_and_kills_replay_without_a_mismatch_with_every_kind(tmp_path, label):
    settings = KINDS[label] + TOML.replace("practice = 0", "practice = 1")
    folder = write_study(tmp_path / "words", settings, items=8)
    server, over = Serving("--web", "1", str(folder)), threading.Event()
    try:
        bots = threading.Thread(
            target=run_bots, args=(load(folder), server.address(), FEW_BOTS, 1, 0.1, over)
        )
        _, database = open_study(folder, now)
        database.close()
        watch = sqlite3.connect(folder / "study.db")

        def count(what):
            return watch.execute(f"SELECT count(*) FROM {what}").fetchone()[0]

        bots.start()
        wait_until(lambda: count("models") >= 1)
        for what in ("server.processes.worker_process", "server.processes.web_process"):
            killed = server.children(what)
            assert killed, f"{what} does not run"
            for number in killed:
                os.kill(number, signal.SIGKILL)
            wait_until(lambda what=what, killed=killed: set(server.children(what)) - set(killed))
            start = count("answers")
            wait_until(lambda start=start: count("answers") >= start + 15)
        made = count("models")
        wait_until(lambda: count("models") > made)
    finally:
        over.set()
        server.stop()
    bots.join(30)
    known = watch.execute(
        "SELECT count(*), sum(EXISTS (SELECT 1 FROM json_each(a.chosen) "
        "WHERE value = q.known ->> 0)) FROM answers a JOIN queries q ON q.id = a.query "
        "WHERE q.known IS NOT NULL"
    ).fetchone()
    watch.close()
    assert known[0] >= 4 and known[1] >= 0.7 * known[0]
    found = json.loads(run("replay", folder, "--verify", "--json"))
    assert found["mismatches"] == [] and found["fingerprint_match"] is True
    assert found["models_checked"] >= 2 and found["questions_checked"] > 10
