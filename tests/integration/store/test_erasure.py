"""`lore-active forget`: the bytes are gone, the study still works, and what is left is told."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess

import pytest

from benchmarks.server import COMMAND
from server.collection.screens import CONTINUED
from server.exports import log
from server.maintenance import erasure
from server.study.lock import ProcessLock
from tests.support.commands import run
from tests.support.open_study import Desk, Respondent, response

TOML = """
[session]
trials = 16
practice = 1
break_every = 0
feedback = true
"""
ITEMS = 8
NAME, SESSION = "5f3aSECRETPERSON", "sess-UNIQUE-77"
AGENT = "Mozilla/5.0 (unique to this person)"
WORDS = "please call me at home, my name is Jane"
REASON = "the one who wrote to us from home"
TRACES = [one.encode() for one in (NAME, SESSION, AGENT, WORDS, REASON)]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A study in which the second of four people has left all the traces that one can leave."""
    desk = Desk(tmp_path_factory.mktemp("forget") / "words", TOML, items=ITEMS)
    worker, participant = desk.worker(), Respondent(ITEMS, 2)
    worker.turn()
    for number in range(3):
        entry = {"PROLIFIC_PID": f"person-{number}", "STUDY_ID": "the-same-study"}
        if number == 1:
            entry |= {"PROLIFIC_PID": NAME, "SESSION_ID": SESSION}
        came = desk.service.arrive(entry, agent=AGENT if number == 1 else "a browser")
        desk.service.visit(came.token)
        desk.service.consent(came.token, True)
        stage = desk.service.begin(came.token)
        if number == 1:
            # Another assignment for the same person: the old parameters go into an event.
            desk.service.arrive({**entry, "assignmentId": "another-assignment"})
        while stage.kind in ("practice", "trial"):
            asked = stage.trial.token
            timings = {"onset_at": 1_700_000_000_123, "viewport": [1234, 777, 1]}
            stage = desk.service.answer(
                stage.participant,
                asked,
                response(participant.side(stage)),
                rt_ms=900.0,
                timings=timings,
            )
            while stage.kind in CONTINUED:
                stage = desk.service.rest(stage.participant, stage.done)
            desk.now += 700
        desk.service.feedback(came.token, WORDS if number == 1 else "")
        worker.turn()
        if number == 1:
            desk.control.exclude("Ada", 2, REASON)
            worker.turn()
            desk.control.restore("Ada", 2, REASON)
            worker.turn()
    desk.close()
    return desk.folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "words")


def reported(*arguments):
    return json.loads(run(*arguments, "--yes", "--json"))


def files_with(folder, traces):
    return {
        path.name
        for path in folder.rglob("*")
        if path.is_file() and any(trace in path.read_bytes() for trace in traces)
    }


def rows(folder, sql):
    connection = sqlite3.connect(folder / "study.db")
    found = connection.execute(sql).fetchall()
    connection.close()
    return found


def test_no_byte_of_the_participant_is_left(folder):
    ((token,),) = rows(folder, "SELECT token FROM participants WHERE id = 2")
    assert files_with(folder, TRACES) == {"study.db"}
    found = reported("forget", folder, NAME)
    assert found == {
        "participant": 2,
        "answers": 17,
        "answers_erased": False,
        "backups_removed": [],
        "new_backup": None,
        "still_in": [],
        "unsearched": [],
    }
    assert files_with(folder, [*TRACES, token.encode(), b"another-assignment"]) == set()
    # Nobody else lost anything.
    assert files_with(folder, [b"person-0"]) == {"study.db"}
    assert rows(folder, "SELECT count(*) FROM participants WHERE external IS NULL") == [(1,)]


def test_the_answers_stay_without_names_and_times_of_day(folder):
    before = rows(folder, "SELECT seq, query, outcome, chosen, rt_ms FROM answers")
    run("forget", folder, "2", "--yes")
    assert rows(folder, "SELECT seq, query, outcome, chosen, rt_ms FROM answers") == before
    own = "query IN (SELECT id FROM queries WHERE participant = 2)"
    assert rows(
        folder, f"SELECT DISTINCT timings, received_at % 86400000 FROM answers WHERE {own}"
    ) == [(None, 0)]
    assert rows(
        folder,
        "SELECT arrived_at % 86400000, seen_at % 86400000, consented_at % 86400000, "
        "finished_at % 86400000, stage FROM participants WHERE id = 2",
    ) == [(0, 0, 0, 0, "finished")]
    # Answers can be changed by nobody else, as before.
    connection = sqlite3.connect(folder / "study.db")
    for statement in ("UPDATE answers SET late = 1", "DELETE FROM answers"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


def test_replay_log_and_export_go_on_and_say_so(folder, tmp_path):
    run("forget", folder, f"PROLIFIC_PID={NAME}", "--yes")
    found = json.loads(run("replay", folder, "--verify", "--json"))
    assert found["mismatches"] == [] and found["erased"] == [2] and found["steps_erased"] == 0
    assert found["models_checked"] > 1 and found["fingerprint_match"]
    assert "Participants erased since then: 2." in run("replay", folder, "--verify")
    run("export", folder, "--format", "all", "--out", tmp_path / "out")
    assert files_with(tmp_path / "out", TRACES) == set()
    written = tmp_path / "out" / "log" / "words.log.jsonl"
    with written.open("rb") as file:
        events = [row for _, kind, row in log.read(file) if kind == "events"]
    assert any(row["kind"] == "forget" and row["participant"] == 2 for row in events)
    assert json.loads(run("replay", written, "--verify", "--json"))["erased"] == [2]


def test_with_their_answers_the_model_is_made_without_them(folder, tmp_path):
    found = reported("forget", folder, NAME, "--answers")
    assert found["answers"] == 17 and found["answers_erased"]
    own = "query IN (SELECT id FROM queries WHERE participant = 2)"
    assert rows(
        folder, f"SELECT DISTINCT outcome, chosen, rt_ms, timings FROM answers WHERE {own}"
    ) == [("skip", None, None, None)]
    assert rows(folder, "SELECT count(*) FROM snapshot") == [(0,)]
    ((counted,),) = rows(folder, "SELECT answers FROM models ORDER BY version DESC LIMIT 1")
    others = "participant <> 2 AND purpose NOT IN ('catch', 'practice')"
    assert [(counted,)] == rows(
        folder, f"SELECT count(*) FROM answers JOIN queries q ON q.id = query WHERE {others}"
    )
    # The last model never had them, so it comes out again, bit for bit; those before cannot.
    replayed = json.loads(run("replay", folder, "--verify", "--json"))
    assert replayed["mismatches"] == []
    assert replayed["models_checked"] >= 1 and replayed["steps_erased"] > 1
    assert "used answers that have been erased" in run("replay", folder, "--verify")
    # And the study can go on: with a new person, a worker, and a replay of all that.
    desk = Desk(folder)
    worker = desk.worker()
    stage, participant = desk.new_participant(PROLIFIC_PID="later"), Respondent(ITEMS, 2)
    while stage.kind in ("practice", "trial"):
        stage = desk.answer(stage, participant.side(stage))
    worker.turn()
    ((version,),) = desk.rows("SELECT max(version) FROM models")
    desk.close()
    again = json.loads(run("replay", folder, "--verify", "--json"))
    assert again["mismatches"] == []
    assert again["models_checked"] > replayed["models_checked"]
    assert version > 1


def test_forged_models_after_an_erasure_are_still_found(folder):
    run("forget", folder, NAME, "--answers", "--yes")
    connection = sqlite3.connect(folder / "study.db")
    connection.execute(
        "UPDATE models SET rank = rank + 1 WHERE version = (SELECT max(version) FROM models)"
    )
    connection.commit()
    connection.close()
    found = json.loads(run("replay", folder, "--verify", "--json", code=1))
    # By the chain, and by the model that comes out.
    assert [finding["table"] for finding in found["mismatches"]] == ["models", "models"]


def test_files_made_earlier_are_named(folder):
    run("export", folder, "--format", "csv")
    run("export", folder, "--format", "log", "--out", folder / "kept")
    (folder / "backup.zip").write_bytes(b"PK")
    found = reported("forget", folder, NAME)
    assert found["still_in"] == [
        "export/csv/events.jsonl",
        "export/csv/participants.csv",
        "kept/words.log.jsonl",
    ]
    assert found["unsearched"] == ["backup.zip"]
    spoken = run("forget", folder, "2", "--answers", "--yes")
    assert "export/csv/answers.csv" in spoken and "backup.zip" in spoken
    assert "Erase any other copies yourself" in spoken


def test_files_with_answers_are_named_in_every_format(folder):
    run("export", folder, "--format", "all")
    found = reported("forget", folder, "2", "--answers")
    wanted = {
        "csv/answers.csv",
        "triplettools/words_triplettools.csv",
        "salmon/words_responses.csv",
        "cblearn/words_triplets.npz",
        "psych-ds/data/study-words_task-answers_data.csv",
        "log/words.log.jsonl",
    }
    assert wanted <= {name.removeprefix("export/all/") for name in found["still_in"]}


def test_an_erased_participant_under_way_is_shown_out_and_their_link_is_dead(folder):
    desk = Desk(folder)
    stage = desk.new_participant(PROLIFIC_PID="in-the-middle")
    desk.answer(stage)
    desk.close()
    run("forget", folder, "in-the-middle", "--yes")
    desk = Desk(folder)
    with pytest.raises(Exception, match="This link belongs to no participant"):
        desk.service.visit(stage.participant)
    assert desk.rows("SELECT stage FROM participants WHERE id = 4") == [("expired",)]
    desk.close()


def test_a_study_that_is_being_served_is_left_alone(folder):
    hold = ProcessLock(folder)
    output = run("forget", folder, NAME, "--yes", code=2)
    assert "another lore-active process is using this study" in output
    hold.release()
    assert files_with(folder, TRACES) == {"study.db"}


def test_another_program_that_reads_the_database_is_reported(folder):
    reader = sqlite3.connect(folder / "study.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM participants").fetchone()
    assert "run the same command again" in run("forget", folder, "2", "--yes", code=2)
    reader.close()
    run("forget", folder, "2", "--yes")
    assert files_with(folder, TRACES) == set()


@pytest.mark.parametrize(
    ("called", "message"),
    [
        ("nobody", "There is no participant 'nobody'"),
        ("99", "There is no participant '99'"),
        ("", "There is no participant ''"),
        ("the-same-study", "There is no participant 'the-same-study'"),
    ],
)
def test_no_participant_is_erased_by_mistake(folder, called, message):
    assert message in run("forget", folder, called, "--yes", code=2)


def test_a_name_that_looks_like_a_number_is_asked_back(folder):
    desk = Desk(folder)
    desk.service.arrive({"survey_code": "2"})
    desk.close()
    assert "'2' matches more than one participant" in run("forget", folder, "2", "--yes", code=2)
    assert reported("forget", folder, "#2")["participant"] == 2
    assert reported("forget", folder, "survey_code=2")["participant"] == 4


def test_without_a_terminal_yes_is_required(folder):
    result = subprocess.run(
        [*COMMAND, "forget", str(folder), "2"], capture_output=True, text=True, stdin=-3
    )
    assert result.returncode == 2
    assert "add --yes" in result.stderr
    assert files_with(folder, TRACES) == {"study.db"}


def test_traces_are_found_across_the_parts_of_a_big_file(tmp_path, monkeypatch):
    monkeypatch.setattr(erasure, "CHUNK", 64)
    path = tmp_path / "big"
    for at in range(50, 80):
        path.write_bytes(b"x" * at + b"secret person" + b"y" * 100)
        assert erasure._holds(path, [b"secret person", b"z"])
    path.write_bytes(b"x" * 500)
    assert not erasure._holds(path, [b"secret person"])
