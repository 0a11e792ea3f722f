"""The hash chain names every row that was changed past the program, and only those."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from server.collection.screens import CONTINUED
from server.exports import log
from server.store import collection
from server.store.database import Database
from server.store.hash_chain import recorder
from server.store.hash_chain import records as chain
from server.store.hash_chain import verification as chain_verification
from server.store.sqlite import migration
from tests.support.commands import run
from tests.support.open_study import Desk, Respondent, response

TOML = """
[session]
trials = 12
practice = 1
catch = 0.2
break_every = 0
feedback = false
"""
ITEMS = 6
GOLDEN = Path(__file__).parents[2] / "golden" / "version-4.sql"
DAY = "1970-01-12"  # of the desk's clock


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A study of three people, the third still in the middle of it."""
    desk = Desk(tmp_path_factory.mktemp("chain") / "words", TOML, items=ITEMS)
    worker, participant = desk.worker(), Respondent(ITEMS, 2)
    worker.turn()
    for number in range(3):
        stage = desk.new_participant(PROLIFIC_PID=f"person-{number}")
        while stage.kind in ("practice", "trial") and (number < 2 or stage.done < 6):
            following = desk.service.answer(
                stage.participant,
                stage.trial.token,
                response(participant.side(stage)),
                rt_ms=700.0 + stage.done,
            )
            stage = following
            while stage.kind in CONTINUED:
                stage = desk.service.rest(stage.participant, stage.done)
            desk.now += 700
            if stage.done % 4 == 0:
                worker.turn()
    desk.control.exclude("Ada", 2, "too fast")
    worker.turn()
    desk.close()
    return desk.folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "words")


def replayed(path, code=0, *more):
    return json.loads(run("replay", path, "--verify", "--json", *more, code=code))


def named(found):
    """(table, row, what) of what is wrong with rows; models that come out otherwise left out."""
    return [
        (finding["table"], finding["row"], finding["what"])
        for finding in found["mismatches"]
        if not finding["step"]
    ]


def attack(folder, *statements):
    """Do to the file what our own connections refuse."""
    raw = sqlite3.connect(folder / "study.db")
    raw.execute("PRAGMA ignore_check_constraints = ON")
    for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        raw.execute(statement)
    raw.commit()
    raw.close()


def one(folder, sql):
    raw = sqlite3.connect(folder / "study.db")
    (found,) = raw.execute(sql).fetchone()
    raw.close()
    return found


def swap(table, key, a, b):
    return [
        f"UPDATE {table} SET {key} = -1 WHERE {key} = {a}",
        f"UPDATE {table} SET {key} = {a} WHERE {key} = {b}",
        f"UPDATE {table} SET {key} = {b} WHERE {key} = -1",
    ]


CATCH = (
    "SELECT seq FROM answers JOIN queries q ON q.id = query WHERE purpose = 'catch' "
    "ORDER BY seq LIMIT 1"
)
LAST = "SELECT max(seq) FROM answers"
FLIP = (
    "UPDATE answers SET chosen = (SELECT json_array(value) FROM queries q, json_each(q.options) "
    "WHERE q.id = query AND value <> chosen ->> 0) WHERE seq = {}"
)
CHANGED = rf"was changed outside lore-active after {DAY} \(chain record \d+\)\."
ATTACKS = {
    "catch answer flipped": ("answers", CATCH, [FLIP], CHANGED),
    "last answer flipped": ("answers", LAST, [FLIP], CHANGED),
    "response time changed": (
        "answers",
        "SELECT 7",
        ["UPDATE answers SET rt_ms = rt_ms + 0.001 WHERE seq = {}"],
        CHANGED,
    ),
    "text that is no text": (
        "events",
        "SELECT 1",
        ["UPDATE events SET who = CAST(X'ff' AS TEXT) WHERE id = {}"],
        CHANGED,
    ),
    "comment added": (
        "participants",
        "SELECT 1",
        ["UPDATE participants SET feedback = 'I liked it' WHERE id = {}"],
        CHANGED,
    ),
    "participant deleted": (
        "participants",
        "SELECT 2",
        ["DELETE FROM participants WHERE id = {}"],
        rf"was deleted outside lore-active after {DAY}",
    ),
    "state deleted": (
        "state",
        "SELECT 1",
        ["DELETE FROM state WHERE id = {}"],
        rf"was deleted outside lore-active after {DAY}",
    ),
    "ids of answers swapped": (
        "answers",
        "SELECT 5",
        swap("answers", "seq", 5, 9),
        r"row 5 and row 9 were swapped outside lore-active",
    ),
    "ids of participants swapped": (
        "participants",
        "SELECT 1",
        swap("participants", "id", 1, 3),
        r"row 1 and row 3 were swapped outside lore-active",
    ),
    "answer renumbered": (
        "answers",
        "SELECT 5000",
        ["UPDATE answers SET seq = {} WHERE seq = 4"],
        r"row 5000 was row 4, and was renumbered outside lore-active",
    ),
    "event added": (
        "events",
        "SELECT 77",
        ["INSERT INTO events (id, at, who, kind) VALUES ({}, 5, 'Ada', 'note')"],
        r"was added outside lore-active\.",
    ),
    "known answer of a catch changed": (
        "queries",
        "SELECT query FROM answers WHERE seq = (" + CATCH + ")",
        [
            "UPDATE queries SET known = json_array(options ->> (known ->> 0 = options ->> 0)) "
            "WHERE id = {}"
        ],
        CHANGED,
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_each_change_past_the_program_is_named_and_nothing_else(folder, name):
    table, row, statements, what = ATTACKS[name]
    number = one(folder, row)
    attack(folder, *(statement.format(number) for statement in statements))
    found = named(replayed(folder, 1))
    assert [(table, number)] == [(where, at) for where, at, _ in found], found
    assert re.search(what, found[0][2]), found
    assert found[0][2].startswith(f"{table} row {number} ")


def test_without_its_state_a_study_is_neither_begun_again_nor_exported(folder):
    attack(folder, "DELETE FROM state")
    for command in ("serve", "export", "report"):
        said = run(command, folder, code=2)
        assert "the row of the table `state` is missing" in said and "recover" in said
    run("recover", folder, "--yes")
    assert one(folder, "SELECT status FROM state") == "paused"
    run("export", folder)


def test_undecodable_text_does_not_block_the_rest(folder):
    attack(folder, "UPDATE answers SET timings = CAST(X'7bff7d' AS TEXT) WHERE seq = 7")
    run("export", folder, "--format", "all")
    run("report", folder)


def test_an_untouched_study_matches(folder):
    found = replayed(folder)
    assert found["mismatches"] == [] and found["rows_before"] == 0 and found["periods"] == ["new"]
    rows = sum(one(folder, f"SELECT count(*) FROM {table}") for table in chain.TABLES)
    assert found["rows_checked"] == rows > 100
    assert found["records_checked"] == one(folder, "SELECT max(id) FROM chain") > 50
    assert f"{rows} stored rows match the hash chain" in run("replay", folder)


def test_swapped_rows_are_recognised_across_participants(folder):
    """Rows of two participants have two salts."""
    attack(
        folder,
        "UPDATE answers SET seq = -seq WHERE seq IN (2, 20)",
        "UPDATE answers SET seq = 22 + seq WHERE seq < 0",
    )
    (found,) = named(replayed(folder, 1))
    assert "answers row 2 and row 20 were swapped" in found[2]


def test_an_exclusion_without_an_event_is_named_for_what_it_is(folder):
    attack(folder, "UPDATE participants SET excluded = 1 - excluded WHERE id IN (1, 2)")
    found = named(replayed(folder, 1))
    assert [row for _, row, _ in found] == [1, 2, 1, 2]
    assert "DIFFERS participants row 1 is excluded" in run("replay", folder, "--verify", code=1)
    assert [what for _, _, what in found[2:]] == [
        "participants row 1 is excluded, but no event records that.",
        "participants row 2 is not excluded, but the last event says that it is.",
    ]


def test_three_rows_in_turn_are_named(folder):
    attack(
        folder,
        "UPDATE answers SET seq = seq + 1000 WHERE seq IN (3, 4, 5)",
        "UPDATE answers SET seq = CASE seq WHEN 1003 THEN 4 WHEN 1004 THEN 5 ELSE 3 END "
        "WHERE seq > 1000",
    )
    found = named(replayed(folder, 1))
    assert [(row, what.partition(";")[0]) for _, row, what in found] == [
        (3, "answers row 3 has the values of row 5"),
        (4, "answers row 4 has the values of row 3"),
        (5, "answers row 5 has the values of row 4"),
    ]


def goes_on(folder):
    """The third participant comes back, and gives two more answers."""
    desk = Desk(folder)
    ((token,),) = desk.rows("SELECT token FROM participants WHERE id = 3")
    stage = desk.service.visit(token)
    for _ in range(2):
        stage = desk.answer(stage)
    desk.close()


def test_a_change_is_named_though_the_program_has_written_that_row_since(folder):
    attack(folder, "UPDATE participants SET entry = '{}' WHERE id = 3")
    goes_on(folder)
    ((table, row, what),) = named(replayed(folder, 1))
    assert (table, row) == ("participants", 3)
    assert "was changed outside lore-active after" in what and "and before" in what


def test_an_answer_deleted_is_named_though_another_has_its_number(folder):
    last = one(folder, LAST)
    attack(folder, f"DELETE FROM answers WHERE seq = {last}")
    goes_on(folder)
    found = named(replayed(folder, 1))
    assert [(table, row) for table, row, _ in found] == [("answers", last)]
    assert "was deleted outside lore-active after" in found[0][2]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE steps SET pending = 'x' WHERE id = 2",
        "DELETE FROM steps WHERE id = 2",
    ],
)
def test_a_journal_that_cannot_be_read_any_more_does_not_end_it(folder, statement):
    attack(folder, statement)
    found = replayed(folder, 1)
    assert named(found)[0][:2] == ("steps", 2)
    assert any("cannot" in finding["what"] for finding in found["mismatches"])
    assert "DIFFERS steps row 2 was" in run("replay", folder, "--verify", code=1)


def test_a_step_with_undecodable_text_is_named_and_the_others_are_recomputed(folder):
    attack(folder, "UPDATE steps SET work = CAST(X'ff' AS TEXT) WHERE id = 2")
    found = replayed(folder, 1)
    assert named(found)[0][:2] == ("steps", 2)
    assert found["models_checked"] > 1


def test_a_column_that_was_removed_is_named(folder):
    attack(folder, "ALTER TABLE answers DROP COLUMN timings")
    ((_, _, what),) = named(replayed(folder, 1))
    assert "columns of tables were added or removed outside lore-active before" in what


def test_a_column_that_was_added_is_named_and_hides_nothing(folder):
    attack(folder, "ALTER TABLE answers ADD COLUMN mood TEXT", FLIP.format(5))
    for _ in range(2):
        altered, flipped = named(replayed(folder, 1))
        assert "columns of tables were added or removed" in altered[2]
        assert flipped[:2] == ("answers", 5)
        goes_on(folder)


def test_rows_put_back_as_they_were_match_again(folder):
    attack(folder, *swap("answers", "seq", 5, 9))
    attack(folder, *swap("answers", "seq", 5, 9))
    assert replayed(folder)["mismatches"] == []


# ---- the chain itself ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "what"),
    [
        (["UPDATE chain SET day = day + 1 WHERE id = 20"],
         ["chain record 20, or the one before it, was changed."]),
        (["UPDATE chain SET hash = zeroblob(16) WHERE id = 20"],
         ["chain record 20, or the one before it, was changed.",
          "chain record 21, or the one before it, was changed."]),
        (["DELETE FROM chain WHERE id = 20"], ["chain record 20 is missing."]),
        (["DELETE FROM chain WHERE id BETWEEN 20 AND 22"], ["chain records 20 to 22 are missing."]),
        (["DELETE FROM chain WHERE id = (SELECT max(id) FROM chain)"],
         ["chain record {last} is missing."]),
        (["DELETE FROM chain WHERE id = 1"], ["chain record 1 is missing."]),
        (["UPDATE chain_head SET last = last - 1"],
         ["chain_head says that the chain ends with record {before}, not {last}."]),
        (["DELETE FROM chain_head"],
         ["chain_head: the row that records the end of the chain is missing."]),
        (["UPDATE chain SET note = '{{' WHERE id = 1"],
         ["chain record 1, or the one before it, was changed."]),
        (["UPDATE chain SET entries = X'ff' WHERE id = 20"],
         ["chain record 20, or the one before it, was changed."]),
        (["DROP TABLE chain"], ["the tables of the chain are missing."]),
    ],
)  # fmt: skip
def test_damage_to_the_chain_itself_is_named(folder, statements, what):
    last = one(folder, "SELECT max(id) FROM chain")
    attack(folder, *(statement.replace("{{", "{") for statement in statements))
    reader = sqlite3.connect(f"file:{folder / 'study.db'}?mode=ro", uri=True)
    found = chain_verification.verify(reader).differences
    reader.close()
    assert [finding.what for finding in found if finding.table in ("chain", "chain_head")] == [
        one.format(last=last, before=last - 1) for one in what
    ]
    # No row is accused without saying that the chain itself may be to blame.
    others = [finding for finding in found if finding.table not in ("chain", "chain_head")]
    assert all("missing or changed" in other.what for other in others)


@pytest.mark.parametrize(
    "statements",
    [
        ["DELETE FROM chain_head"],
        ["DELETE FROM chain", "DELETE FROM chain_head"],
        ["DELETE FROM chain"],
        ["UPDATE chain SET note = '{}' WHERE id = 1"],
    ],
)
def test_a_removed_hash_chain_is_started_again_and_reported(folder, statements):
    attack(folder, FLIP.format(5), *statements)
    goes_on(folder)
    found = replayed(folder, 1)
    assert any("was started again on" in what for _, _, what in named(found))
    # From there on it covers everything again.
    attack(folder, FLIP.format(6))
    assert ("answers", 6) in [(table, row) for table, row, _ in named(replayed(folder, 1))]


def test_an_edited_chain_head_does_not_stop_answers(folder):
    attack(folder, "UPDATE chain_head SET last = 3, hash = zeroblob(16)")
    goes_on(folder)
    (_, row, what), *_ = named(replayed(folder, 1))
    assert what == f"chain record {row}, or the one before it, was changed."


def test_the_end_cut_off_with_the_rows_it_recorded_is_named(folder):
    """Set back to an earlier state, with everything that was recorded since."""
    before = shutil.copytree(folder, folder.parent / "before")
    goes_on(folder)
    last = one(folder, "SELECT max(id) FROM chain")
    raw = sqlite3.connect(folder / "study.db")
    raw.execute("ATTACH ? AS old", (str(before / "study.db"),))
    for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")
    for table in (*chain.TABLES, "chain"):
        raw.execute(f"DELETE FROM main.{table}")
        raw.execute(f"INSERT INTO main.{table} SELECT * FROM old.{table}")
    raw.commit()
    raw.close()
    found = named(replayed(folder, 1))
    assert len(found) == 1 and found[0][2].endswith(f"{last} are missing.")


def test_a_recomputed_hash_chain_does_not_continue_an_earlier_log(folder, tmp_path):
    run("export", folder, "--format", "log", "--out", tmp_path / "kept")
    kept = tmp_path / "kept" / "words.log.jsonl"
    earlier = replayed(folder)["last_hash"]
    goes_on(folder)
    for said in (kept, earlier):
        assert replayed(folder, 0, "--continues", said)["mismatches"] == []
    attack(folder, FLIP.format(one(folder, CATCH)), "DELETE FROM chain", "DELETE FROM chain_head")
    raw = sqlite3.connect(folder / "study.db", isolation_level=None)
    chain.begin_period(raw, 1_000_000_000, chain.NEW)
    raw.close()
    assert replayed(folder)["mismatches"] == []
    for said in (kept, earlier):
        assert (
            f"does not contain {earlier}"
            in replayed(folder, 1, "--continues", said)["mismatches"][0]["what"]
        )


@pytest.mark.parametrize("said", ["nonsense", "abcd", "", "0" * 31 + "g"])
def test_what_is_not_a_hash_is_refused(folder, said):
    output = run("replay", folder, "--verify", "--continues", said, code=2)
    assert "must be a log, or the last hash of a chain" in output


# ---- recording ----------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path):
    opened = Database(tmp_path / "study.db", lambda: 5)
    yield opened
    opened.close()


def add_event(kind):
    return lambda c: collection.add_event(c, kind, "test", 5)


def records(database):
    return database.read(lambda c: c.execute("SELECT count(*) FROM chain").fetchone()[0])


def verified(database):
    return database.read(chain_verification.verify)


def test_what_was_rolled_back_is_not_recorded(database):
    def fail(c):
        collection.add_event(c, "lost", "test", 5)
        raise ValueError("no")

    before = records(database)
    with pytest.raises(ValueError, match="no"):
        database.write(fail)
    assert records(database) == before
    database.write(lambda c: None)
    assert records(database) == before
    assert verified(database).differences == []


def test_many_who_write_at_once_leave_one_chain(database):
    other = Database(database.path, lambda: 5)

    def some(opened, failing):
        for number in range(30):

            def work(c, number=number):
                collection.add_event(c, "kept", "test", number)
                if failing and number % 3 == 0:
                    raise ValueError("no")

            with contextlib.suppress(ValueError):
                opened.write(work)

    threads = [
        threading.Thread(target=some, args=(opened, failing))
        for opened in (database, other)
        for failing in (False, True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    found = verified(database)
    assert found.differences == []
    assert found.rows == 2 * 30 + 2 * 20
    assert found.last_hash


def test_a_row_that_comes_and_goes_in_one_commit_leaves_nothing(database):
    def work(c):
        number = collection.add_event(c, "kept", "test", 5)
        c.execute("DELETE FROM events WHERE id = ?", (number,))

    before = records(database)
    database.write(work)
    assert records(database) == before
    database.write(add_event("kept"))
    database.write(lambda c: c.execute("UPDATE events SET id = 9"))
    database.write(lambda c: c.execute("DELETE FROM events"))
    assert verified(database).differences == []
    assert verified(database).rows == 0


def test_a_great_many_rows_are_recorded_in_parts(database, monkeypatch):
    monkeypatch.setattr(recorder, "MAX_ENTRIES", 10)
    before = records(database)

    def work(c):
        for number in range(25):
            collection.add_participant(c, f"token {number}", None, {}, "", 5, number)
            collection.add_event(c, "many", "test", 5, number + 1)

    database.write(work)
    assert records(database) == before + 5
    assert verified(database).differences == [] and verified(database).rows == 50


# ---- older databases, later ones ----------------------------------------------------------------


@pytest.fixture
def old(tmp_path):
    raw = sqlite3.connect(tmp_path / "study.db")
    raw.executescript(GOLDEN.read_text())
    raw.close()
    return tmp_path / "study.db"


def test_a_database_from_before_the_chain_is_covered_from_its_first_opening(old):
    opened = Database(old, lambda: 1_800_000_000_000)
    found = verified(opened)
    assert (found.rows, found.rows_before, found.periods) == (99, 99, ["upgrade"])
    assert found.covered_from == 1_800_000_000_000 and found.differences == []
    opened.write(add_event("kept"))
    opened.close()
    attack(old.parent, FLIP.format(3))
    opened = Database(old, lambda: 1_900_000_000_000)
    found = verified(opened)
    opened.close()
    assert (found.rows, found.rows_before) == (99, 99)
    assert [difference.what for difference in found.differences] == [
        "answers row 3 was changed outside lore-active after 2027-01-15 (chain record 1)."
    ]


def test_a_database_from_before_the_chain_that_cannot_be_written_is_reported(old):
    reader = sqlite3.connect(f"file:{old}?mode=ro", uri=True)
    found = chain_verification.verify(reader)
    reader.close()
    assert found == chain_verification.Verified()


def test_a_later_migration_is_recorded_and_hides_nothing(database, monkeypatch):
    for kind in ("one", "two", "three"):
        database.write(add_event(kind))
    database.close()
    attack(database.path.parent, "UPDATE events SET who = 'another' WHERE id = 2")
    known = migration._migrations()
    later = (
        known[-1][0] + 1,
        "later",
        "ALTER TABLE events ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm';\n"
        "UPDATE events SET kind = 'new' WHERE id = 1;\n",
    )
    monkeypatch.setattr(migration, "_migrations", lambda: [*known, later])
    opened = Database(database.path, lambda: 5)
    found = verified(opened)
    assert found.periods == ["new", "schema"] and found.rows == 2
    assert [difference.what for difference in found.differences] == [
        "events row 2 was changed or deleted outside lore-active before 1970-01-01 (chain record "
        f"{found.records})."
    ]
    opened.write(add_event("four"))
    opened.close()
    attack(database.path.parent, "UPDATE events SET mood = 'wild' WHERE id = 3")
    opened = Database(database.path, lambda: 5)
    assert [difference.row for difference in verified(opened).differences] == [2, 3]
    opened.close()


# ---- logs ---------------------------------------------------------------------------------------


def exported(folder, to, *more):
    run("export", folder, "--format", "log", "--out", to, *more)
    return to / "words.log.jsonl"


def test_a_log_of_a_changed_database_says_so_with_the_line(folder, tmp_path):
    assert replayed(exported(folder, tmp_path / "before"))["rows_checked"] > 100
    attack(folder, FLIP.format(5))
    path = exported(folder, tmp_path / "after")
    found = replayed(path, 1)
    ((table, row, what),) = named(found)
    assert (table, row) == ("answers", 5) and "was changed outside" in what
    (line,) = (finding["line"] for finding in found["mismatches"] if not finding["step"])
    assert '"kind":"answers","row":{"seq":5,' in path.read_text().splitlines()[line - 1]


def test_a_pseudonymised_log_is_not_called_changed(folder, tmp_path):
    path = exported(folder, tmp_path / "out", "--pseudonyms")
    assert '"kind":"chain"' not in path.read_text()
    found = replayed(path)
    assert found["mismatches"] == [] and found["periods"] == ["pseudonyms"]
    assert found["rows_checked"] == 0 and found["covered_from"] is None
    assert "Stored rows were not verified: a pseudonymised log" in run("replay", path)
    assert "without a hash chain" in run("replay", folder, "--continues", path, code=2)


def test_an_imported_log_continues_its_chain(folder, tmp_path):
    path, there = exported(folder, tmp_path / "out"), tmp_path / "there"
    run("import", path, there)
    shutil.copy(folder / "study.toml", there)
    shutil.copytree(folder / "stimuli", there / "stimuli")
    before = replayed(folder)
    assert replayed(there)["last_hash"] == before["last_hash"]
    goes_on(there)
    found = replayed(there, 0, "--continues", path)
    assert found["mismatches"] == [] and found["records_checked"] > before["records_checked"]
    attack(there, FLIP.format(5))
    assert [row for _, row, _ in named(replayed(there, 1))] == [5]


def test_a_log_from_before_the_chain_is_read_and_covered_from_then_on(folder, tmp_path):
    lines, before = [], ""
    for number, raw in enumerate(exported(folder, tmp_path / "out").read_bytes().splitlines()):
        event = json.loads(raw)
        if event["kind"] in ("chain", "chain_head"):
            continue
        if number == 0:
            event["row"]["format"] = 1
            del event["row"]["pseudonyms"]
        body = {"line": len(lines) + 1, "kind": event["kind"], "row": event["row"]}
        line, before = log._hashed(json.dumps(body, separators=(",", ":")).encode(), before)
        lines.append(line)
    path = tmp_path / "old.jsonl"
    path.write_bytes(b"".join(lines))
    found = replayed(path)
    assert found["mismatches"] == [] and found["covered_from"] is None
    assert "written before the hash chain was introduced" in run("replay", path)
    there = tmp_path / "there"
    run("import", path, there)
    shutil.copy(folder / "study.toml", there)
    shutil.copytree(folder / "stimuli", there / "stimuli")
    rows = one(there, "SELECT count(*) FROM answers")
    assert replayed(there)["rows_before"] > rows
    attack(there, FLIP.format(5))
    assert [row for _, row, _ in named(replayed(there, 1))] == [5]


# ---- erasing ------------------------------------------------------------------------------------


def salts(folder):
    raw = sqlite3.connect(folder / "study.db")
    found = dict(raw.execute("SELECT participant, salt FROM chain_salts"))
    raw.close()
    return found


def test_erasing_leaves_a_chain_that_matches_and_no_salt_to_guess_with(folder):
    before = salts(folder)
    raw = sqlite3.connect(folder / "study.db")
    columns = chain.quoted(chain.layout(raw)["participants"])
    values = raw.execute(f"SELECT {columns} FROM participants WHERE id = 2").fetchone()
    raw.close()
    digest = chain.digest(before[2], "participants", values)
    assert digest in (folder / "study.db").read_bytes()
    run("forget", folder, "person-1", "--answers", "--yes")
    left = (folder / "study.db").read_bytes()
    # The digest stays, since hashes rest on it; but anyone who guesses the row cannot rebuild it.
    assert digest in left and before[2] not in left
    assert {number: salt for number, salt in salts(folder).items() if number != 2} == {
        number: salt for number, salt in before.items() if number != 2
    }
    found = replayed(folder)
    assert found["mismatches"] == [] and found["periods"] == ["new"]
    goes_on(folder)
    assert replayed(folder)["mismatches"] == []
    attack(folder, "UPDATE answers SET rt_ms = 1 WHERE seq IN (5, 20)")
    assert [row for _, row, _ in named(replayed(folder, 1))] == [5, 20]


def test_no_earlier_copy_without_the_participant_has_their_salt(folder, tmp_path):
    log_before = exported(folder, tmp_path / "before")
    desk = Desk(folder)
    desk.new_participant(PROLIFIC_PID="person-late")
    desk.close()
    late = salts(folder)[4]
    assert len(set(salts(folder).values())) == 5
    assert base64.b64encode(late) not in log_before.read_bytes()
    assert base64.b64encode(late) in exported(folder, tmp_path / "after").read_bytes()


def test_erasing_hides_nothing_that_was_changed_before(folder):
    own = one(
        folder,
        "SELECT min(seq) FROM answers a JOIN queries q ON q.id = query WHERE participant = 2",
    )
    attack(
        folder,
        FLIP.format(1),
        FLIP.format(own),
        "DELETE FROM answers WHERE seq = 7",
        "INSERT INTO events (id, at, who, kind, participant) VALUES (77, 5, 'Ada', 'note', 2)",
    )
    before = {(table, row) for table, row, _ in named(replayed(folder, 1))}
    assert before == {("answers", 1), ("answers", own), ("answers", 7), ("events", 77)}
    for _ in range(2):
        run("forget", folder, "2", "--yes")
        assert {(table, row) for table, row, _ in named(replayed(folder, 1))} == before


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE chain_salts SET salt = zeroblob(32) WHERE participant = 2",
         r"chain_salts row 2 was changed .*Rows about participant 2 cannot be compared\."),
        ("DELETE FROM chain_salts WHERE participant = 3",
         r"chain_salts row 3 was deleted .*Rows about participant 3 cannot be compared\."),
        ("UPDATE chain_salts SET salt = zeroblob(32) WHERE participant = 0",
         r"chain_salts row 0 was changed .*Rows about no participant cannot be compared\."),
    ],
)  # fmt: skip
def test_a_salt_that_was_changed_is_named_and_no_row_accused(folder, statement, what):
    attack(folder, statement)
    ((_, _, found),) = named(replayed(folder, 1))
    assert re.fullmatch(what, found)
    goes_on(folder)
    found = named(replayed(folder, 1))
    assert {table for table, _, _ in found} == {"chain_salts"}, found
