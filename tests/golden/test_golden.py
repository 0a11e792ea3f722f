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
from click.testing import CliRunner

from lore_active.learner import snapshot
from lore_active.reproducibility import fingerprint
from server.cli.main import main
from server.store import collection
from server.store.database import Database
from server.store.hash_chain import verification as chain_verification
from server.study.workspace import open_study
from tests.golden.make import BOTS, ITEMS, PARTICIPANTS
from tests.support.open_study import Desk

GOLDEN = sorted(one.parent for one in Path(__file__).parent.glob("*/study.toml"))

# Of a version that did not mark simulated participants yet.
UNMARKED = "0.1-format-5"


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


def run(*arguments):
    done = CliRunner().invoke(main, [str(one) for one in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def whole(path):
    """What the hash chain of a study's database tells, and who is marked as simulated."""
    database = Database(path / "study.db", lambda: 2_000_000_000_000)
    try:
        found = database.read(chain_verification.verify)
        return found, database.read(collection.simulated_numbers)
    finally:
        database.close()


def verified(path):
    found = json.loads(run("replay", path, "--verify", "--json"))
    assert found["mismatches"] == []
    assert found["models_checked"] > 10 and found["decisions_checked"] > 10
    assert found["rows_checked"] > 100
    if {environment(fingerprint())} == set(map(environment, fingerprints(path))):
        # Where only our own program has changed since, its numbers have not.
        assert found["models_identical"] == found["models_checked"]
    return found


def environment(line):
    """All of a fingerprint but our own version."""
    return line.split("; ", 1)[1]


def fingerprints(path):
    """What a study's or a log's models were made with."""
    if path.is_dir():
        with closing(sqlite3.connect(path / "study.db")) as database:
            return {row[0] for row in database.execute("SELECT fingerprint FROM models")}
    rows = (json.loads(line) for line in path.read_text().splitlines())
    return {row["row"]["fingerprint"] for row in rows if row["kind"] == "models"}


def test_there_is_something_to_try():
    assert GOLDEN


def test_the_study_verifies_as_it_is_and_after_migration(folder):
    before = verified(folder)
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
        assert found.periods == ["new", "schema"]


def test_bots_that_were_not_marked_then_are_not_marked_now(folder, golden):
    _, bots = whole(folder)
    counts = verified(folder)["counts"]
    if golden.name == UNMARKED:
        assert bots == []
        assert (counts["simulated"], counts["simulated_left_out"]) == (0, 0)
        assert counts["answers"] == 24 * (PARTICIPANTS - 1) + 9
    else:
        assert bots == [*range(1, BOTS + 1)]
        assert (counts["simulated"], counts["simulated_left_out"]) == (0, 24 * BOTS)


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
    told = json.loads(run("replay", folder, "--what-if", "exclude=P1", "--json"))
    assert told


def test_it_goes_on(folder):
    desk = Desk(folder)
    desk.now = 2_000_000_000_000
    stage = desk.newcomer(PROLIFIC_PID="later")
    while stage.kind in ("practice", "trial"):
        desk.wait(900)
        stage = desk.answer(stage)
    desk.worker().turn()
    assert desk.rows("SELECT max(id) FROM participants") == [(PARTICIPANTS + 1,)]
    desk.close()
    verified(folder)


def test_a_snapshot_goes_on_where_it_was(golden):
    document = json.loads((golden / "snapshot.json").read_text())
    with np.load(golden / "snapshot.npz") as arrays:
        learner = snapshot.load(document, dict(arrays))
    assert learner.n_objects == ITEMS and learner.estimate.answers == 120
    rank = learner.estimate.rank
    learner.audit()
    assert learner.estimate.rank == rank
    assert len(learner.ask(3)) == 3
