"""`reset`, and what `check` and `serve` say that a study holds."""

from __future__ import annotations

import json
import sqlite3

import pytest

from server.status.contents import StudyContents, of_folder
from server.store.recovery import backups
from server.study.lock import ProcessLock
from tests.support.commands import run
from tests.support.open_study import Desk, Respondent, desk_fixture

TOML = "[session]\ntrials = 6\npractice = 0\nfeedback = false\n[budget]\nanswers = 18\n"


def answer(desk, simulated=False, **entry):
    participant, stage = Respondent(6, 2), desk.new_participant(simulated, **entry)
    while stage.kind == "trial":
        stage = desk.answer(stage, participant.side(stage))
        desk.now += 900


desk = desk_fixture(TOML, 6)


@pytest.fixture
def folder(tmp_path):
    """A study in which bots have answered, with a backup."""
    opened = Desk(tmp_path / "words", TOML, items=6)
    answer(opened, True, participant_label="bot-1")
    opened.close()
    backups.take(opened.folder / "study.db", 1_000_000_000)
    return opened.folder


# ---- what it holds ------------------------------------------------------------------------------


def test_a_study_says_what_it_holds(desk):
    def held():
        return str(of_folder(desk.folder, desk.clock))

    assert held() == "open; no answers yet"
    answer(desk, True, participant_label="bot-1")
    assert held() == "open; 6 simulated answers"
    desk.control.stop("Ada")
    assert held() == "stopped; 6 simulated answers"
    desk.control.reopen("Ada")
    desk.control.pause("Ada")
    assert held() == "paused; 6 simulated answers"
    desk.control.resume("Ada")
    answer(desk)
    assert held() == "open; 1 participant, 6 answers; 6 simulated ones left out"
    answer(desk)
    answer(desk)
    assert held() == "full; 3 participants, 18 answers; 6 simulated ones left out"


def test_numbers_are_written_for_readers():
    assert str(StudyContents("stopped", 40, 1600, 1600, 0)) == "stopped; 1,600 simulated answers"
    assert str(StudyContents("open", 12, 340, 0, 0)) == "open; 12 participants, 340 answers"
    assert str(StudyContents("open", 1, 1, 0, 0)) == "open; 1 participant, 1 answer"
    assert str(StudyContents("open", 52, 1940, 1600, 0)) == (
        "open; 52 participants, 1,940 answers, 1,600 of them simulated"
    )


def test_check_says_what_the_study_holds(folder):
    assert "Data: open; 6 simulated answers." in run("check", folder)
    (report,) = json.loads(run("check", folder, "--json"))["studies"]
    assert report["data"]["simulated"] == report["data"]["answers"] == 6
    (folder / "study.db").write_bytes(b"not a database at all" * 300)
    said = run("check", folder)
    assert "Warning: its data cannot be read:" in said


def test_check_of_a_study_that_has_not_begun_says_nothing_of_data(tmp_path):
    run("new", tmp_path / "tastes")
    assert "holds" not in run("check", tmp_path / "tastes")


# ---- reset --------------------------------------------------------------------------------------


def test_reset_clears_the_data_and_keeps_all_of_it(folder):
    settings = (folder / "study.toml").read_bytes()
    said = run("reset", folder, "--yes")
    (kept,) = (folder / "backups").iterdir()
    assert kept.name.startswith("before-reset-") and str(kept) in said
    assert not list(folder.glob("study.db*"))
    assert (folder / "study.toml").read_bytes() == settings
    database = sqlite3.connect(kept / "study.db")
    assert database.execute("SELECT count(*) FROM answers").fetchone()[0] == 6
    database.close()
    assert len(list(kept.glob("study-*.db"))) == 1
    # The study begins again, and nobody takes it for one that was lost.
    desk = Desk(folder)
    assert str(of_folder(folder, desk.clock)) == "open; no answers yet"
    answer(desk)
    desk.close()
    # And again: the first copy stays.
    report = json.loads(run("reset", folder, "--yes", "--json"))
    assert report["held"]["answers"] == 6 and report["kept"] != str(kept)
    assert len(list((folder / "backups").glob("before-reset-*"))) == 2


def test_what_was_reset_can_be_restored(folder):
    run("reset", folder, "--yes")
    (kept,) = (folder / "backups").iterdir()
    (kept / "study.db").rename(folder / "study.db")
    assert "6 simulated answers" in run("check", folder)


def test_reset_asks_first_and_needs_a_terminal_for_that(folder, monkeypatch):
    said = run("reset", folder, code=2)
    assert "Not an interactive terminal: add --yes to confirm." in said
    assert (folder / "study.db").exists()
    monkeypatch.setattr("server.cli.terminal.interactive", lambda: True)
    said = run("reset", folder, code=1, input="n\n")
    assert "open; 6 simulated answers" in said and (folder / "study.db").exists()
    run("reset", folder, input="y\n")
    assert not (folder / "study.db").exists()


def test_reset_is_refused_while_the_study_is_being_served(folder):
    hold = ProcessLock(folder)
    try:
        said = run("reset", folder, "--yes", code=2)
    finally:
        hold.release()
    assert "another lore-active process is using this study" in said
    assert (folder / "study.db").exists()


def test_reset_of_a_damaged_study_keeps_its_files_as_they_are(folder):
    damaged = b"not a database at all" * 300
    (folder / "study.db").write_bytes(damaged)
    run("reset", folder, "--yes")
    (kept,) = (folder / "backups").iterdir()
    assert (kept / "study.db").read_bytes() == damaged


@pytest.mark.parametrize("name", ["study.toml", "study.db"])
def test_reset_of_what_holds_no_data_says_so(folder, name):
    (folder / name).unlink()
    assert f"contains no {name}" in run("reset", folder, "--yes", code=2)
