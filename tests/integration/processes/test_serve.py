"""`lore-active serve` as its user runs it: killed, restarted, stopped, and left alone to finish."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.reliability.process_kills import kill_cycles
from benchmarks.server import COMMAND, Serving, wait_until
from server.cli.main import main
from server.processes.bots import BotPage, Browser
from tests.support.live_server import write_study

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
        started.append(Serving("--web", "1", *arguments))
        return started[-1]

    yield start
    for process in started:
        process.stop()


def refused(folder):
    """What a server that will not start says about it."""
    result = subprocess.run(
        [*COMMAND, "serve", "--web", "1", "--port", "0", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 2
    return result.stderr


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds children through /proc")
def test_killing_web_worker_or_both_under_load_loses_nothing(disk_path):
    folder = write_study(disk_path / "words", TOML)
    # Three of each kind; `make bench-reliability` has hundreds.
    damage = kill_cycles(folder, cycles=9, clients=8)
    assert damage.kills >= 9
    assert damage.acknowledged > 100
    assert (damage.lost, damage.doubled, damage.refused) == (0, 0, 0)
    assert damage.integrity == "ok"
    assert damage.rebuilt, "the rebuilt model does not have the published hash"
    database = sqlite3.connect(folder / "study.db")
    assert database.execute("SELECT restarts FROM heartbeat").fetchone()[0] >= 1
    database.close()


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds children through /proc")
def test_children_share_the_session_and_are_not_reached_by_ctrl_c(serving, tmp_path):
    server = serving(str(write_study(tmp_path / "words", TOML)))
    server.address()
    here = server.process.pid
    kinds = ("server.processes.web_process", "server.processes.worker_process")
    for child in [pid for kind in kinds for pid in server.children(kind)]:
        # Linux divides processor time by session first: in one of its own, the worker would get as
        # much as the pages that participants wait for, whatever its priority.
        assert os.getsid(child) == os.getsid(here)
        assert os.getpgid(child) == child != os.getpgid(here)
    (worker,) = server.children("server.processes.worker_process")
    wait_until(lambda: os.getpriority(os.PRIO_PROCESS, worker) > 0)


def test_a_second_server_of_the_same_study_is_refused(serving, tmp_path):
    folder = write_study(tmp_path / "words", TOML)
    server = serving(str(folder))
    server.address()
    # Nor can anybody let it in by deleting the lock file, as old advice on locks has it.
    (folder / "study.lock").unlink()
    assert "another lore-active process is using this study" in refused(folder)
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
        assert BotPage(browser.get(f"/s/{name}/")).action is not None
    browser.close()
    assert sum("participants" in line for line in server.lines) == 2


def test_the_demo_reaches_its_stop_by_itself_at_the_rank_it_should(serving, tmp_path):
    folder = tmp_path / "colours"
    subprocess.run(
        [*COMMAND, "new", str(folder), "--demo", "colours", "--seed", "11"],
        check=True,
        capture_output=True,
    )
    # On a busy machine bots answer faster than the model learns; the budget must not end the study.
    settings = folder / "study.toml"
    text = settings.read_text()
    assert text.count("\nanswers = 2000\n") == 1
    settings.write_text(text.replace("\nanswers = 2000\n", "\nanswers = 100000\n"))
    bots = ("--bots", "20", "--think", "0.3", "--seed", "5")
    server = serving(str(folder), "--in-study", *bots)
    address = server.address()
    database = sqlite3.connect(folder / "study.db")

    def stop():
        sql = "SELECT detail FROM events WHERE kind = 'simulated_stop'"
        return database.execute(sql).fetchone()

    wait_until(lambda: stop() is not None)
    assert "Two dimensions, settled." in stop()[0]
    assert database.execute("SELECT min(simulated) FROM participants").fetchone()[0] == 1
    assert database.execute("SELECT status FROM state").fetchone()[0] == "running"
    database.close()
    wait_until(lambda: any("the bots have finished" in line for line in server.lines))
    # People are let in as before.
    browser = Browser(address, threading.Event())
    assert BotPage(browser.get("/s/colours/")).action is not None
    browser.close()


def test_a_rehearsal_leaves_the_study_unchanged_and_keeps_human_answers(
    serving, tmp_path, monkeypatch
):
    folder = write_study(tmp_path / "words", "[session]\npractice = 0\n", items=6)
    before = {path.name for path in folder.iterdir()}
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    server = serving(str(folder), "--bots", "2", "--think", "0.01")
    address = server.address()
    (copy,) = temporary.glob("*/words/study.db")
    assert {path.name for path in folder.iterdir()} == before
    database = sqlite3.connect(copy)
    sql = "SELECT coalesce(sum(done * simulated), 0) FROM participants"
    wait_until(lambda: database.execute(sql).fetchone()[0] > 5)
    database.close()
    browser = Browser(address, threading.Event())
    page = BotPage(browser.get("/s/words/"))
    while page.action and not page.action.endswith("/answer"):
        page = BotPage(browser.post(page.action, {**page.fields, "agreed": "yes"}))
    browser.post(page.action, {**page.fields, "side": "left"})
    browser.close()
    assert server.stop() == 0
    said = "\n".join(server.lines)
    assert "take part in a copy of words, which is deleted afterwards" in said
    assert "Real participants answered in the rehearsal of words: 1 participant, 1 answer." in said
    kept = list((folder / "backups").glob("rehearsal-*.db"))
    assert len(kept) == 1 and str(kept[0]) in said
    database = sqlite3.connect(kept[0])
    # Anyone who tries out a rehearsal is shown beside the bots.
    sql = "SELECT count(*) FROM events WHERE kind = 'simulated_out'"
    assert database.execute(sql).fetchone()[0] == 0
    database.close()
    assert {path.name for path in folder.iterdir()} == before | {"backups"}
    assert list(temporary.iterdir()) == []


def test_a_rehearsal_that_is_kept(serving, tmp_path):
    folder = write_study(tmp_path / "words", TOML, items=6)
    kept = tmp_path / "tried"
    server = serving(str(folder), "--bots", "1", "--think", "0.01", "--keep", str(kept))
    server.address()
    assert server.stop() == 0
    assert (kept / "words" / "study.db").exists() and not (folder / "study.db").exists()
    again = subprocess.run(
        [*COMMAND, "serve", str(folder), "--bots", "1", "--keep", str(kept), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (
        again.returncode == 2 and "words already exists; --keep needs a new folder" in again.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--in-study"], "--in-study requires --bots"),
        (["--keep", "x"], "--keep requires --bots"),
        (["--bots", "1", "--keep", "x", "--in-study"], "cannot be used together"),
    ],
)
def test_options_of_rehearsals_that_do_not_go_together(tmp_path, arguments, said):
    folder = write_study(tmp_path / "words")
    result = CliRunner().invoke(main, ["serve", str(folder), *arguments])
    assert result.exit_code == 2 and said in result.output
