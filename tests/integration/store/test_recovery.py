"""`lore-active recover`: what is left is put together, and exactly what is missing is named."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.reliability import file_damage
from benchmarks.reliability.file_damage import held, original, outcome
from benchmarks.server import COMMAND
from benchmarks.speed.collection import START
from server.collection.screens import CONTINUED
from server.collection.service import Service
from server.learning.worker import Worker
from server.store.database import Database
from server.store.recovery import backups, salvage
from server.store.recovery.pages import Column, Image, Log, _rising
from server.store.recovery.write_ahead import read_log
from server.store.sqlite.connection import connect
from server.study.lock import ProcessLock
from server.study.workspace import DATABASE, open_study
from tests.support.commands import run

PAGE = 4096
GOLDEN = Path(__file__).parents[2] / "golden" / "version-4.sql"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study of 400 answers as a crash leaves it, with a backup of the first 360."""
    return original(tmp_path_factory.mktemp("recover"), 400, trials=40, every=40)


@pytest.fixture
def folder(made, tmp_path):
    return Path(shutil.copytree(made.folder, tmp_path / "words"))


@pytest.fixture
def closed(folder):
    """The same, stopped as it should be: all of it in one file."""
    open_study(folder, lambda: START)[1].close()
    assert not (folder / f"{DATABASE}-wal").exists()
    return folder


def recover(folder, *more):
    return json.loads(run("recover", folder, "--yes", "--json", *more))


def pages_of(path, table):
    """The numbers of a table's pages that hold rows, about in the order in which they came."""
    owners = Image(path.read_bytes(), Log())._owners()
    return sorted(page for page, name in owners.items() if name == table)


def spoil(path, *pages):
    content = bytearray(path.read_bytes())
    for page in pages:
        content[(page - 1) * PAGE : page * PAGE] = bytes(PAGE)
    path.write_bytes(content)


def rows(folder, sql, *values):
    connection = sqlite3.connect(f"{(folder / DATABASE).as_uri()}?immutable=1", uri=True)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "study.lock"
    }


def numbers(found):
    return {number for first, last in found for number in range(first, last + 1)}


def without_backups(folder):
    shutil.rmtree(folder / "backups")


def goes_on(folder):
    """A worker takes in what is there, one answers, and a replay finds what was published."""
    now = START + 10**7
    study, database = open_study(folder, lambda: now)
    try:
        worker = Worker(database, study, lambda: now, time.perf_counter)
        worker.turn()
        service = Service(database, study, lambda: now)
        token = service.arrive({"participant_label": "after the recovery"}).token
        service.consent(token, True)
        stage = service.begin(token)
        while stage.kind in ("practice", "trial"):
            stage = service.answer(token, stage.trial.token, (0,))
            while stage.kind in CONTINUED:
                stage = service.rest(token, stage.done)
        worker.turn()
    finally:
        database.close()
    (model,) = rows(folder, "SELECT answers FROM models ORDER BY version DESC LIMIT 1")
    counted = rows(
        folder,
        "SELECT count(*) FROM answers a JOIN queries q ON q.id = a.query "
        "WHERE q.purpose NOT IN ('catch', 'practice') AND a.outcome = 'chosen'",
    )
    assert [model] == counted
    return json.loads(run("replay", folder, "--json"))


# ---- when there is nothing to do, or nobody may -------------------------------------------------


@pytest.mark.parametrize("crashed", [True, False])
def test_a_valid_database_is_left_alone(folder, crashed):
    if not crashed:
        open_study(folder, lambda: START)[1].close()
    before = digests(folder)
    assert recover(folder) == {"needed": False, "not_as_recorded": 0, "kept_in": None}
    assert "there is nothing to recover" in run("recover", folder, "--yes")
    assert digests(folder) == before


def change(path, timings):
    """A value that SQLite has no reason to doubt."""
    content = path.read_bytes()
    assert content.count(timings.encode()) == 1
    path.write_bytes(content.replace(timings.encode(), timings.replace("away", "AWAY").encode()))


def test_a_changed_value_that_no_backup_has_is_reported_and_kept(closed):
    ((timings,),) = rows(closed, "SELECT timings FROM answers WHERE seq = 399")
    change(closed / DATABASE, timings)
    found = recover(closed)
    assert not found["needed"] and found["not_as_recorded"] == 1
    assert "differ from the hash chain (1)" in run("recover", closed)


def test_a_changed_value_is_taken_from_the_backup(made, closed):
    ((timings,),) = rows(closed, "SELECT timings FROM answers WHERE seq = 7")
    change(closed / DATABASE, timings)
    found = recover(closed)
    assert found["complete"] and held(closed / DATABASE) == made.answers
    assert found["used"][1]["damage"] == "1 of its rows differs from the hash chain"
    assert json.loads(run("replay", closed, "--verify", "--json"))["mismatches"] == []


def test_nothing_happens_while_a_server_has_locked_the_study(closed):
    spoil(closed / DATABASE, *pages_of(closed / DATABASE, "answers")[:1])
    before, hold = digests(closed), ProcessLock(closed)
    assert "another lore-active process is using this study" in run(
        "recover", closed, "--yes", code=2
    )
    hold.release()
    assert digests(closed) == before


def test_nothing_happens_without_a_yes(closed):
    spoil(closed / DATABASE, *pages_of(closed / DATABASE, "answers")[:1])
    before = digests(closed)
    result = subprocess.run(
        [*COMMAND, "recover", str(closed)], capture_output=True, text=True, stdin=-3
    )
    assert result.returncode == 2 and "add --yes to confirm" in result.stderr
    assert "Sources:" in result.stdout
    assert recover(closed, "--dry-run")["kept_in"] is None
    assert digests(closed) == before


@pytest.mark.parametrize("content", [None, b"", b"no database at all"])
def test_where_nothing_is_left_it_says_so(closed, content):
    without_backups(closed)
    (closed / DATABASE).unlink()
    if content is None:
        assert "nothing can be recovered" in run("recover", closed, "--yes", code=2)
        return
    (closed / DATABASE).write_bytes(content)
    found = recover(closed)
    assert found["answers"] == 0 and not found["complete"]
    assert "there is no record of what was stored" in found["missing"]["unknown"]


def test_what_is_not_a_study_is_named(tmp_path):
    assert "contains no study.toml" in run("recover", tmp_path, "--yes", code=2)


# ---- what comes back ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "table", ["answers", "queries", "participants", "events", "steps", "items", "state", "chain"]
)
def test_with_a_backup_and_an_intact_rest_everything_is_back(made, closed, table):
    """A page that the backup has, too: nothing is lost, and everything is as it was recorded."""
    old = backups.every(closed)[-1]
    there = [one for one in pages_of(closed / DATABASE, table) if one in pages_of(old, table)]
    spoil(closed / DATABASE, there[0] if there else pages_of(closed / DATABASE, table)[0])
    before = (closed / DATABASE).read_bytes()
    found = recover(closed)
    assert held(closed / DATABASE) == made.answers
    assert backups.damage_in(closed / DATABASE) == ""
    # What was there before is kept, byte for byte.
    kept = Path(found["kept_in"])
    assert kept.parent == closed / "backups" and (kept / DATABASE).read_bytes() == before
    assert (kept / DATABASE).stat().st_mode & 0o777 == 0o600
    assert (closed / DATABASE).stat().st_mode & 0o777 == 0o600
    if table in ("answers", "queries", "items"):
        assert found["complete"] and found["chain_continues"]
        assert found["mended"]["steps_dropped"] == 0
        replayed = json.loads(run("replay", closed, "--verify", "--json"))
        assert replayed["mismatches"] == [] and replayed["periods"][-1] == "recovery"
        assert "Nothing is missing: every row" in run_text(found, closed)


def run_text(found, folder):
    """What the command says about the same damage, by its own words."""
    spoilt = Path(found["kept_in"]) / DATABASE
    shutil.copyfile(spoilt, folder / DATABASE)
    return run("recover", folder, "--dry-run")


def test_without_a_backup_exactly_what_is_lost_is_named(made, closed):
    without_backups(closed)
    pages = pages_of(closed / DATABASE, "answers")
    spoil(closed / DATABASE, pages[1], pages[3])
    text = run("recover", closed, "--dry-run")
    found = recover(closed)
    there = held(closed / DATABASE)
    lost = made.answers.keys() - there.keys()
    assert len(lost) > 20 and {seq: made.answers[seq] for seq in there} == there
    assert numbers(found["missing"]["answers"]) == lost
    of = found["missing"]["answers_of"]
    assert sum(of.values()) == len(lost)
    assert {int(one) for one in of} == {made.answers[seq][10] for seq in lost}
    first = min(lost)
    assert f"Missing: answers {first:,}–" in text and "P1 (" in text
    # The chain is intact, so it is known that nothing else is missing.
    assert found["missing"]["unknown"] == [] and found["missing"]["unconfirmed"] == 0
    replayed = goes_on(closed)
    named = {
        mismatch["row"] for mismatch in replayed["mismatches"] if mismatch["table"] == "answers"
    }
    assert named == lost and all(mismatch["step"] is None for mismatch in replayed["mismatches"])
    assert numbers(replayed["recovered"][0]["missing"]["answers"]) == lost
    assert "Recovered on 2026-" in run("replay", closed)


def test_what_was_lost_once_is_not_reported_again(closed):
    without_backups(closed)
    spoil(closed / DATABASE, pages_of(closed / DATABASE, "answers")[1])
    first = recover(closed)
    steps = rows(closed, "SELECT count(*) FROM steps")
    spoil(closed / DATABASE, pages_of(closed / DATABASE, "links")[0])
    second = recover(closed)
    assert first["missing"]["answers"] and "answers" not in second["missing"]
    assert rows(closed, "SELECT count(*) FROM steps") == steps


def test_the_journal_is_kept_as_far_as_it_is_whole_and_the_worker_goes_on(made, closed):
    """Questions are lost that the learner's own numbers follow from."""
    without_backups(closed)
    pages = pages_of(closed / DATABASE, "queries")
    spoil(closed / DATABASE, pages[len(pages) // 2])
    ((steps,),) = rows(closed, "SELECT max(id) FROM steps")
    found = recover(closed)
    assert 0 < found["mended"]["steps"] < steps
    assert found["mended"]["steps_dropped"] == steps - found["mended"]["steps"]
    # An answer without its question is no answer.
    lost = made.answers.keys() - held(closed / DATABASE).keys()
    assert lost and numbers(found["missing"]["answers"]) == lost
    replayed = goes_on(closed)
    assert all(mismatch["step"] is None for mismatch in replayed["mismatches"])
    assert replayed["models_checked"] >= found["mended"]["steps"] > 1


def test_answers_stay_when_who_gave_them_is_lost(made, closed):
    without_backups(closed)
    spoil(closed / DATABASE, *pages_of(closed / DATABASE, "participants"))
    found = recover(closed)
    assert held(closed / DATABASE) == made.answers
    participants = {row[10] for row in made.answers.values()}
    assert set(found["missing"]["identity_lost"]) == participants
    assert set(rows(closed, "SELECT DISTINCT stage, external FROM participants")) == {
        ("expired", None)
    }
    assert goes_on(closed)["models_checked"] > 1


def test_an_interrupted_participant_continues_after_their_last_answer(made, closed):
    """Their row is as old as the backup; their answers are newer."""
    old = {
        row[0]: row[1]
        for row in sqlite3.connect(backups.every(closed)[-1]).execute(
            "SELECT id, done FROM participants WHERE stage = 'trials'"
        )
    }
    newer = dict(rows(closed, "SELECT id, done FROM participants WHERE stage = 'trials'"))
    (who, *_) = [number for number in old if newer.get(number, 0) > old[number]]
    ((token,),) = rows(closed, "SELECT token FROM participants WHERE id = ?", who)
    spoil(closed / DATABASE, *pages_of(closed / DATABASE, "participants"))
    recover(closed)
    now = START + 200 * len(made.answers)
    study, database = open_study(closed, lambda: now)
    try:
        service = Service(database, study, lambda: now)
        stage = service.visit(token)
        assert stage.kind == "trial" and stage.done == newer[who]
        assert service.answer(token, stage.trial.token, (0,)).done == newer[who] + 1
    finally:
        database.close()


def test_pages_that_no_way_leads_to_are_read(made, closed):
    """The first page has the way to everything, and there is no backup."""
    without_backups(closed)
    spoil(closed / DATABASE, 1)
    found = recover(closed)
    assert held(closed / DATABASE) == made.answers
    assert found["complete"], found["missing"]


def test_a_lost_state_begins_paused(closed):
    without_backups(closed)
    spoil(closed / DATABASE, *pages_of(closed / DATABASE, "state"))
    found = recover(closed)
    assert found["mended"]["state_lost"] and found["missing"]["state"] == [[1, 1]]
    assert rows(closed, "SELECT status FROM state") == [("paused",)]


# ---- the log ------------------------------------------------------------------------------------


def test_commits_after_a_damaged_part_of_the_log_are_used(made, folder):
    """SQLite itself would use nothing after it, without a word."""
    without_backups(folder)
    log = folder / f"{DATABASE}-wal"
    content = bytearray(log.read_bytes())
    (newest,) = struct.unpack_from("=I", (folder / f"{DATABASE}-shm").read_bytes(), 16)
    middle = 32 + (24 + PAGE) * (newest // 2)
    for at in range(middle + 100, middle + 200):
        content[at] ^= 0xFF
    log.write_bytes(content)
    with sqlite3.connect(shutil.copytree(folder, folder.parent / "as-sqlite") / DATABASE) as plain:
        ((by_sqlite,),) = plain.execute("SELECT count(*) FROM answers")
    found = recover(folder)
    assert found["answers"] > by_sqlite
    assert any("1 of its" in why and "damaged" in why for why in found["missing"]["unknown"])
    assert (Path(found["kept_in"]) / log.name).read_bytes() == bytes(content)
    assert not log.exists()


@pytest.mark.parametrize("left", [0, 32 + 3 * (24 + PAGE), 32 + 3 * (24 + PAGE) + 50])
def test_a_log_that_is_gone_or_cut_short_is_noticed(made, folder, left):
    log = folder / f"{DATABASE}-wal"
    whole = log.read_bytes()
    log.write_bytes(whole[:left])
    assert read_log(whole, (folder / f"{DATABASE}-shm").read_bytes()).lost == ""
    found = recover(folder)
    assert not found["complete"]
    assert any(f"{DATABASE}-wal" in why for why in found["missing"]["unknown"])


def test_a_database_that_is_gone_comes_from_the_backup_and_more_may_be_missing(made, closed):
    (closed / DATABASE).unlink()
    found = recover(closed)
    assert len(held(closed / DATABASE)) == made.backed_up
    name = backups.every(closed)[-1].name
    assert found["missing"]["unknown"] == [
        f"no file records what was stored since backups/{name} was made"
    ]
    (closed / DATABASE).unlink()
    assert "More may be missing: no file records" in run("recover", closed, "--dry-run")


# ---- other copies -------------------------------------------------------------------------------


def test_a_rescue_copy_is_put_back_in_place_of_what_replaced_it(made, closed):
    rescued = closed / "backups" / "rescued-20261116T031500Z.db"
    shutil.copyfile(closed / DATABASE, rescued)
    shutil.copyfile(backups.every(closed)[-1], closed / DATABASE)
    found = recover(closed)
    assert held(closed / DATABASE) == made.answers and found["complete"]
    assert found["used"][0]["name"] == "backups/rescued-20261116T031500Z.db"
    # It is no longer in the way of the next server.
    assert not rescued.exists() and (Path(found["kept_in"]) / rescued.name).exists()
    assert json.loads(run("replay", closed, "--verify", "--json"))["mismatches"] == []


def test_a_history_of_its_own_is_not_mixed_in(made, closed):
    """A participant went on with the backup: both have other answers under the same numbers."""
    rescued = closed / "backups" / "rescued-20261116T031500Z.db"
    shutil.copyfile(closed / DATABASE, rescued)
    shutil.copyfile(backups.every(closed)[-1], closed / DATABASE)
    goes_on(closed)
    other = held(closed / DATABASE)
    more = len(other) - made.backed_up
    found = recover(closed)
    if len(other) > len(made.answers):
        assert held(closed / DATABASE) == other
    else:
        assert held(closed / DATABASE) == made.answers
        (apart,) = found["apart"]
        assert apart == {"name": DATABASE, "first": made.backed_up + 1, "answers": more}
    assert not found["complete"]


def test_a_damaged_backup_is_passed_over(made, closed):
    good = backups.every(closed)[-1]
    bad = good.with_name("study-20990101T000000Z.db")
    bad.write_bytes(good.read_bytes()[:PAGE])
    spoil(closed / DATABASE, pages_of(closed / DATABASE, "answers")[0])
    found = recover(closed)
    assert held(closed / DATABASE) == made.answers
    assert [finding["name"] for finding in found["used"]] == [f"backups/{good.name}", DATABASE]


def test_an_older_version_without_a_chain(tmp_path):
    """Nothing recorded what was stored, so that it cannot be said that nothing is missing."""
    folder = tmp_path / "words"
    folder.mkdir()
    connection = sqlite3.connect(folder / DATABASE)
    connection.executescript(GOLDEN.read_text(encoding="utf-8"))
    connection.execute("PRAGMA journal_mode = wal")
    items = connection.execute("SELECT key, content FROM items ORDER BY id").fetchall()
    ((answers,),) = connection.execute("SELECT count(*) FROM answers")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    (folder / "stimuli").mkdir()
    for key, content in items:
        (folder / "stimuli" / f"{key}.txt").write_text(content)
    (folder / "study.toml").write_text('title = "Words"\n')
    spoil(folder / DATABASE, *pages_of(folder / DATABASE, "heartbeat"))
    found = recover(folder)
    assert found["answers"] == answers and not found["complete"]
    assert "there is no record of what was stored" in found["missing"]["unknown"]
    assert backups.damage_in(folder / DATABASE) == ""


# ---- at random ----------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", file_damage.HARMS, ids=lambda one: one.__name__)
def test_whatever_is_damaged_the_report_of_it_is_true(made, harm):
    """`make bench-reliability` does the same a hundred times with a larger study."""
    rng = np.random.default_rng([7, file_damage.HARMS.index(harm)])
    for file, backup in ((DATABASE, True), (DATABASE, False), (f"{DATABASE}-wal", False)):
        with tempfile.TemporaryDirectory() as home:
            found = outcome(made, Path(home), harm, file, backup, rng)
        assert not found.error, found
        assert (found.without_names, found.invented, found.altered) == (0, 0, 0), found
        assert not found.false_nothing, found


# ---- parts --------------------------------------------------------------------------------------


def test_every_table_has_its_rule(tmp_path):
    Database(tmp_path / DATABASE, lambda: 0).close()
    connection = connect(tmp_path / DATABASE)
    there = {
        row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    }
    connection.close()
    assert there == {*salvage.ORDER, *salvage.REMADE}, "say what a recovery does with a new table"


VALUES = st.tuples(
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
    st.floats(allow_nan=False),
    st.text(max_size=9000),
    st.binary(max_size=9000),
)


@settings(max_examples=40)
@given(st.lists(VALUES, max_size=30))
def test_pages_hold_what_sqlite_says(rows):
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "some.db"
        connection = sqlite3.connect(path)
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, x REAL NOT NULL, "
            "s TEXT NOT NULL, b BLOB NOT NULL) STRICT"
        )
        connection.executemany("INSERT INTO t (n, x, s, b) VALUES (?, ?, ?, ?)", rows)
        connection.commit()
        expected = dict(enumerate(rows, 1))
        connection.close()
        shape = (
            Column("INTEGER", False, True),
            Column("INTEGER", False, False),
            *(Column(kind, True, False) for kind in ("REAL", "TEXT", "BLOB")),
        )
        image = Image(path.read_bytes(), Log())
        places = image.places({"t": shape})["t"]
        assert {row: image.values(place)[1:] for row, place in places.items()} == expected


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        ([], []),
        ([1, 2, 3], [1, 2, 3]),
        ([1, 999, 3, 4], [1, 3, 4]),
        ([5, 1, 6, 7], [5, 6, 7]),
        ([1, 2, 2, 3], [1, 2, 3]),
    ],
)
def test_a_number_out_of_order_is_not_believed(cells, kept):
    found = _rising([(cell, at) for at, cell in enumerate(cells)])
    assert [row for row, _ in found][-2:] == kept[-2:] and len(found) == len(kept)


def test_a_schema_that_is_not_even_text_is_called_damaged_and_recovered(made, closed):
    """SQLite quotes the damage in its message, which Python cannot decode."""
    content = (closed / DATABASE).read_bytes()
    assert b"late INTEGER NOT NULL" in content
    spoilt = content.replace(b"late INTEGER NOT NULL", b"late INTEGER NOT \xc3ULL")
    (closed / DATABASE).write_bytes(spoilt)
    result = subprocess.run(
        [*COMMAND, "serve", "--port", "0", str(closed)], capture_output=True, text=True
    )
    assert result.returncode == 2 and f"lore-active recover {closed}" in result.stderr, (
        result.stderr
    )
    assert recover(closed)["complete"] and held(closed / DATABASE) == made.answers
