"""Studies, logs and snapshots of earlier versions open, verify and go on."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from lore_active.learner import snapshot
from server.store import journal
from server.store.database import Database
from server.store.hash_chain import verification as chain_verification
from server.store.recovery.pages import Image
from server.store.recovery.write_ahead import Log
from server.study.workspace import open_study
from tests.golden.make import BOTS, ITEMS, PARTICIPANTS
from tests.support.commands import run
from tests.support.open_study import Desk, simulated_numbers

GOLDEN = sorted(one.parent for one in Path(__file__).parent.glob("*/study.toml"))

# Of a version that did not mark simulated participants yet.
UNMARKED = "0.1-format-5"
# Of versions whose events had other names.
FORMER_EVENTS = (UNMARKED, "0.1-format-7")
# Of the first version in which questions had one id.
ONE_ID = "0.1-format-9"


@pytest.fixture(params=GOLDEN, ids=lambda one: one.name)
def golden(request):
    return request.param


@pytest.fixture
def folder(golden, tmp_path):
    """The study as the earlier version left it."""
    home = tmp_path / "words"
    shutil.copytree(golden / "stimuli", home / "stimuli")
    shutil.copy(golden / "study.toml", home)
    with closing(sqlite3.connect(home / "study.db")) as database:
        database.executescript(gzip.decompress((golden / "study.sql.gz").read_bytes()).decode())
    return home


def whole(path):
    """What the hash chain of a study's database tells, and who is marked as simulated."""
    database = Database(path / "study.db", lambda: 2_000_000_000_000)
    try:
        found = database.read(chain_verification.verify)
        return found, simulated_numbers(database)
    finally:
        database.close()


def verified(path):
    found = json.loads(run("replay", path, "--verify", "--json"))
    assert found["mismatches"] == []
    assert found["models_checked"] > 10 and found["decisions_checked"] > 10
    assert found["rows_checked"] > 100
    return found


def test_there_is_something_to_try():
    assert GOLDEN


@pytest.fixture(scope="module")
def counts():
    """Counts of each study as the earlier version left it, once it has been verified."""
    return {}


def test_the_study_verifies_as_it_is_and_after_migration(folder, golden, counts):
    before = verified(folder)
    counts[golden.name] = before["counts"]
    _, database = open_study(folder, lambda: 2_000_000_000_000)
    database.close()
    after = verified(folder)
    assert after["counts"] == before["counts"]
    assert after["counts"]["fitted"] > 50


def test_its_hash_chain_is_complete_and_records_the_schema_change(folder, golden):
    found, _ = whole(folder)
    assert found.differences == []
    assert found.periods[0] == "new"
    if golden.name == UNMARKED:
        assert set(found.periods[1:]) == {"schema"}


def test_bots_that_were_not_marked_then_are_not_marked_now(folder, golden, counts):
    _, bots = whole(folder)
    found = counts.get(golden.name) or verified(folder)["counts"]
    if golden.name == UNMARKED:
        assert bots == []
        assert (found["simulated"], found["simulated_left_out"]) == (0, 0)
        assert found["answers"] == 24 * (PARTICIPANTS - 1) + 9
    else:
        assert bots == [*range(1, BOTS + 1)]
        assert (found["simulated"], found["simulated_left_out"]) == (0, 24 * BOTS)


@pytest.fixture
def log(golden, tmp_path):
    file = tmp_path / "log.jsonl"
    file.write_bytes(gzip.decompress((golden / "log.jsonl.gz").read_bytes()))
    return file


def test_its_log_verifies(log):
    verified(log)


def test_its_log_becomes_a_study_whose_hash_chain_is_complete(log, golden, tmp_path):
    run("import", log, tmp_path / "again")
    found, _ = whole(tmp_path / "again")
    assert found.differences == []
    assert found.periods[0] == "new"
    if golden.name == UNMARKED:
        assert found.periods == ["new", "schema"]


def test_report_export_and_what_if_work(folder, tmp_path):
    run("export", folder, "--format", "all", "--out", tmp_path / "export")
    run("report", folder, "--out", tmp_path / "report.html")
    report = json.loads(run("replay", folder, "--what-if", "exclude=P1", "--json"))
    assert report


def test_it_goes_on(folder, golden):
    desk = Desk(folder)
    desk.now = 2_000_000_000_000
    stage = desk.new_participant(PROLIFIC_PID="later")
    while stage.kind in ("practice", "trial"):
        desk.wait(900)
        stage = desk.answer(stage)
    desk.worker().turn()
    assert desk.rows("SELECT max(id) FROM participants") == [(PARTICIPANTS + 1,)]
    # Questions have one id now, and stored ones keep the number that the learner gave them.
    ((numbered, new),) = desk.rows(
        "SELECT count(learner), count(*) - count(learner) FROM queries "
        "WHERE purpose NOT IN ('catch', 'practice')"
    )
    assert (numbered > 100) == (golden.name != ONE_ID) and new > 10
    desk.close()
    verified(folder)


def test_a_worker_continues_from_the_snapshot_with_the_ids_of_the_database(folder):
    desk = Desk(folder)
    worker = desk.worker()
    saved = desk.database.read(journal.snapshot)
    last, replayer = worker.rebuild.replayed(saved)
    assert last == worker.last and saved[0] <= last.id
    answers = [answer for answer in replayer.learner.answers if answer.question is not None]
    assert [
        (answer.question, answer.anchor, answer.nearer, answer.farther, int(answer.participant))
        for answer in answers
    ] == desk.rows(
        "SELECT q.id, q.anchor, a.chosen ->> 0, "
        "q.options ->> (a.chosen ->> 0 = q.options ->> 0), q.participant FROM answers a "
        "JOIN queries q ON q.id = a.query WHERE q.purpose NOT IN ('catch', 'practice') "
        "ORDER BY a.seq"
    )
    desk.close()


def test_it_is_recovered_when_it_is_damaged(folder):
    """Tables are found on the pages of a file in which they still have their former names."""
    path, page = folder / "study.db", 4096
    owners = Image(path.read_bytes(), Log())._owners()
    spoilt = max(number for number, table in owners.items() if table == "answers")
    content = bytearray(path.read_bytes())
    content[(spoilt - 1) * page : spoilt * page] = bytes(page)
    path.write_bytes(content)
    found = json.loads(run("recover", folder, "--yes", "--json"))
    assert set(found["missing"]) >= {"answers"} and "imported_answers" not in found["missing"]
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM imported_answers").fetchone() == (2,)
        assert database.execute("SELECT sum(practice_done) FROM participants").fetchone()[0] > 0


def test_imports_and_what_the_worker_decided_are_read_by_their_current_names(folder, golden):
    assert "import" in {event["kind"] for event in events(folder)}
    with closing(sqlite3.connect(folder / "study.db")) as database:
        # As stored: rows are never rewritten.
        kinds = {row[0] for row in database.execute("SELECT kind FROM events")}
    assert ("prior" if golden.name in FORMER_EVENTS else "import") in kinds


def events(folder):
    run("export", folder, "--format", "csv", "--out", folder.parent / "csv")
    lines = (folder.parent / "csv" / "events.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_snapshot_goes_on_where_it_was(golden):
    document = json.loads((golden / "snapshot.json").read_text())
    with np.load(golden / "snapshot.npz") as arrays:
        learner = snapshot.load(document, dict(arrays))
    assert learner.n_objects == ITEMS and learner.estimate.answers == 120
    rank = learner.estimate.rank
    learner.audit()
    assert learner.estimate.rank == rank
    assert len(learner.ask(3)) == 3


def test_questions_and_answers_are_as_they_were_in_the_form_of_all_kinds(folder):
    """Nothing that was stored changes; options and choices are added."""
    with closing(sqlite3.connect(folder / "study.db")) as database:
        asked = database.execute(
            "SELECT id, anchor, left, right, nearer, participant, slot FROM queries ORDER BY id"
        ).fetchall()
        given = database.execute(
            "SELECT a.seq, a.side, CASE a.side WHEN 'left' THEN q.left WHEN 'right' THEN q.right "
            "END FROM answers a JOIN queries q ON q.id = a.query ORDER BY a.seq"
        ).fetchall()
    _, opened = open_study(folder, lambda: 2_000_000_000_000)
    opened.close()
    with closing(sqlite3.connect(folder / "study.db")) as database:
        now = database.execute(
            "SELECT id, anchor, left, right, nearer, participant, slot, options, known, key "
            "FROM queries ORDER BY id"
        ).fetchall()
        assert [row[:7] for row in now] == asked
        for _, anchor, left, right, nearer, *_, options, known, key in now:
            assert json.loads(options) == [left, right]
            assert known == (None if nearer is None else f"[{nearer}]")
            assert json.loads(key) == [anchor, *sorted((left, right))]
        answers = database.execute(
            "SELECT seq, side, outcome, chosen FROM answers ORDER BY seq"
        ).fetchall()
        assert [row[:2] for row in answers] == [row[:2] for row in given]
        for (_, side, item), (*_, outcome, chosen) in zip(given, answers, strict=True):
            if item is None:
                assert (outcome, chosen) == (side, None)
            else:
                assert (outcome, chosen) == ("chosen", f"[{item}]")
        assert database.execute("SELECT kind FROM state").fetchone() == ("triplet",)
