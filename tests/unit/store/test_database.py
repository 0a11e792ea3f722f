"""The database: safe settings, migrations, grouped commits, and answers that stay."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from server.store import collection, journal, models
from server.store.database import Database, connect
from server.store.journal import Step
from server.store.sqlite import migration
from server.store.sqlite import writer as module
from server.store.sqlite.connection import PRAGMAS
from server.store.sqlite.errors import StoreError
from server.store.sqlite.migration import NewerDatabase


@pytest.fixture
def database(tmp_path):
    opened = Database(tmp_path / "study.db", lambda: 5)
    yield opened
    opened.close()


def test_every_connection_is_safe(database):
    fresh = connect(database.path)
    found = {name: fresh.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}
    assert found["journal_mode"] == "wal"
    assert found["synchronous"] == 2
    assert found["foreign_keys"] == 1
    assert fresh.execute("PRAGMA busy_timeout").fetchone()[0] == 5000
    fresh.close()


def test_migrations_are_recorded_and_not_repeated(tmp_path):
    for _ in range(2):
        opened = Database(tmp_path / "study.db", lambda: 5)
        rows = opened.read(lambda c: c.execute("SELECT number, name FROM migrations").fetchall())
        assert tuple(rows[0]) == (1, "schema")
        assert len({row[0] for row in rows}) == len(rows)
        opened.close()


def test_a_migration_that_fails_leaves_nothing(tmp_path, monkeypatch):
    broken = [(1, "half", "CREATE TABLE one (x);\nCREATE TABLE one (x);\n")]
    monkeypatch.setattr(migration, "_migrations", lambda: broken)
    with pytest.raises(StoreError, match="already exists"):
        Database(tmp_path / "study.db", lambda: 5)
    found = sqlite3.connect(tmp_path / "study.db")
    names = {row[0] for row in found.execute("SELECT name FROM sqlite_master")}
    assert "one" not in names
    found.close()


def test_a_database_of_a_newer_version_is_refused_untouched(tmp_path):
    Database(tmp_path / "study.db", lambda: 5).close()
    raw = sqlite3.connect(tmp_path / "study.db")
    raw.execute("INSERT INTO migrations VALUES (999, 'future', 0)")
    raw.commit()
    raw.close()
    with pytest.raises(NewerDatabase, match=r"999.*update lore-active"):
        Database(tmp_path / "study.db", lambda: 5)


def test_a_file_that_is_not_a_database_is_named(tmp_path):
    (tmp_path / "study.db").write_bytes(b"holiday photographs" * 100)
    with pytest.raises(StoreError, match=r"study\.db"):
        Database(tmp_path / "study.db", lambda: 5)


def add_event(kind):
    return lambda c: (
        c.execute("INSERT INTO events (at, who, kind) VALUES (0, 'test', ?)", (kind,)).lastrowid
    )


def count_events(database):
    return database.read(lambda c: c.execute("SELECT count(*) FROM events").fetchone()[0])


def test_one_failure_does_not_spoil_its_neighbours(database):
    def fail(c):
        add_event("lost")(c)
        raise ValueError("no")

    outcomes: list[object] = []

    def run(work):
        try:
            outcomes.append(database.write(work))
        except ValueError as error:
            outcomes.append(error)

    threads = [
        threading.Thread(target=run, args=(fail if number % 3 == 0 else add_event("kept"),))
        for number in range(60)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(outcome, ValueError) for outcome in outcomes) == 20
    assert count_events(database) == 40
    kinds = database.read(lambda c: {row[0] for row in c.execute("SELECT kind FROM events")})
    assert kinds == {"kept"}


def test_what_write_returned_is_there_for_others(database):
    database.write(add_event("kept"))
    other = sqlite3.connect(database.path)
    assert other.execute("SELECT count(*) FROM events").fetchone()[0] == 1
    other.close()


def test_a_locked_database_is_an_error_and_nothing_is_stored(database, monkeypatch):
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.1)
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        database.write(add_event("lost"))
    other.execute("ROLLBACK")
    other.close()
    assert count_events(database) == 0
    database.write(add_event("kept"))
    assert count_events(database) == 1


def test_requests_that_come_while_others_hold_the_lock_share_the_next_commit(database):
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    first = database.writer.submit(add_event("kept"))
    while database.writer.busy_since is None:
        pass
    later = [database.writer.submit(add_event("kept")) for _ in range(5)]
    (before,) = other.execute("SELECT count(*) FROM chain").fetchone()
    other.execute("ROLLBACK")
    for future in [first, *later]:
        future.result(60)
    assert count_events(database) == 6
    # One record for each commit.
    assert other.execute("SELECT count(*) FROM chain").fetchone()[0] == before + 1
    other.close()


def test_threads_let_a_transaction_go_first_and_do_not_wait_without_one(database, monkeypatch):
    monkeypatch.setattr(module, "YIELD_SECONDS", 60.0)
    begun, finish, waited = threading.Event(), threading.Event(), threading.Event()

    def slow(c):
        begun.set()
        assert finish.wait(60)

    def wait():
        database.writer.let_go_first()
        waited.set()

    future = database.writer.submit(slow)
    assert begun.wait(60)
    thread = threading.Thread(target=wait)
    thread.start()
    assert not waited.is_set()
    finish.set()
    thread.join(60)
    assert waited.is_set()
    future.result(60)

    def fail(c):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        database.write(fail)
    # Whatever became of the transaction, it is over.
    database.writer.let_go_first()


def test_a_full_disk_is_an_error_for_all_who_share_the_commit(database):
    pages = database.write(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    database.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone()[0])

    def too_much(c):
        c.execute("INSERT INTO events (at, who, kind) VALUES (0, 'test', ?)", ("x" * 100_000,))

    with pytest.raises(StoreError, match="full"):
        database.write(too_much)
    assert count_events(database) == 0
    database.write(lambda c: c.execute("PRAGMA max_page_count = 100000").fetchone()[0])
    database.write(too_much)
    assert count_events(database) == 1


def test_threads_that_read_apart_share_one_connection(database):
    database.write(add_event("seen"))
    apart, own = [], []

    def look():
        own.append(database.read(lambda c: c))
        apart.append(database.read_apart(lambda c: (c, c.in_transaction)))
        assert database.read_apart(lambda c: c.execute("SELECT kind FROM events").fetchone()[0])

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(own)) == 8 and len(set(apart)) == 1
    assert apart[0][1] and apart[0][0] not in own
    with pytest.raises(StoreError):
        database.read_apart(lambda c: c.execute("SELECT nothing FROM nowhere"))
    assert database.read_apart(lambda c: c.execute("SELECT 1").fetchone()[0]) == 1


def test_a_rule_is_overruled_by_reopening_what_it_called_settled(database):
    def step(number, at, settled):
        def work(c):
            journal.add_step(c, Step(number, at, 0, 0, 0, "audit", 0, (), number, "", {}))
            models.add_decision(c, number, settled, settled, 2, "", "[]")

        database.write(work)

    def reopen(at):
        database.write(lambda c: collection.add_event(c, "reopen", "someone", at))

    def overruled():
        return database.read(models.overruled)

    step(1, 100, True)
    assert not overruled()
    reopen(200)
    assert overruled()
    step(2, 300, False)
    assert overruled()  # However the decision varies from then on.
    step(3, 400, True)
    assert overruled()
    step(4, 500, False)
    reopen(600)
    assert not overruled()  # There was no settled rank to be overruled any more.
