"""Files that vanish, full disks, a writer that dies: nothing is acknowledged but what is kept."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server.store.database import Database, connect
from server.store.recovery import rescue
from server.store.sqlite import writer as module
from server.store.sqlite.errors import (
    Busy,
    CannotOpen,
    Damaged,
    DiskError,
    DiskFull,
    FileGone,
    FileReplaced,
    LogLost,
    ReadOnly,
    StoreError,
    WriterFailed,
)
from server.store.sqlite.files import FileIds

posix = pytest.mark.skipif(os.name != "posix", reason="open files cannot be deleted there")


@pytest.fixture
def database(tmp_path):
    opened = Database(tmp_path / "study.db", lambda: 5)
    opened.writer.patience = 20.0
    opened.write(add_event("first"))
    yield opened
    opened.close()


def add_event(kind):
    return lambda c: (
        c.execute("INSERT INTO events (at, who, kind) VALUES (0, 'test', ?)", (kind,)).lastrowid
    )


def kinds(database):
    return database.read(lambda c: [row[0] for row in c.execute("SELECT kind FROM events")])


def beside(database, end):
    return database.path.with_name(database.path.name + end)


# ---- files that are not the open ones any more --------------------------------------------------


@posix
@pytest.mark.parametrize(
    ("end", "error"),
    [("", FileGone), ("-wal", LogLost), ("-shm", LogLost)],
    ids=["db", "wal", "shm"],
)
def test_a_deleted_file_ends_every_acknowledgement_until_it_is_back(database, tmp_path, end, error):
    file, away = beside(database, end), tmp_path / "away"
    file.rename(away)
    for _ in range(2):
        with pytest.raises(error, match="recover"):
            database.write(add_event("lost"))
        assert database.failure.error.name == error.name
    # Neither a writer nor a reader in a new thread puts an empty file in its place.
    with ThreadPoolExecutor(4) as pool:
        assert set(map(tuple, pool.map(lambda _: kinds(database), range(8)))) == {("first",)}
    assert not file.exists()
    away.rename(file)
    database.write(add_event("second"))
    assert database.failure is None
    assert kinds(database) == ["first", "second"]


@posix
@pytest.mark.parametrize(
    ("end", "error"),
    [("", FileReplaced), ("-wal", LogLost), ("-shm", LogLost)],
    ids=["db", "wal", "shm"],
)
def test_a_copy_in_place_of_the_open_file_is_detected(database, tmp_path, end, error):
    file = beside(database, end)
    shutil.copy(file, tmp_path / "copy")
    (tmp_path / "copy").replace(file)
    with pytest.raises(error):
        database.write(add_event("lost"))
    assert kinds(database) == ["first"]


@posix
def test_inspecting_a_wrong_file_leaves_the_right_one_unchanged(database, tmp_path):
    """Replaced between a check and the opening of the file: its name alone must not do."""
    with contextlib.closing(sqlite3.connect(database.path)) as other:
        other.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
        other.execute(f"VACUUM INTO '{tmp_path / 'copy'}'")
    for number in range(20):
        database.write(add_event(f"{number}"))
    log = beside(database, "-wal").read_bytes()
    (tmp_path / "copy").replace(database.path)
    copied = database.path.read_bytes()
    for look in (
        database.damage,
        lambda: connect(database.path, check=database.files.check),
        lambda: Database(database.path, lambda: 5, database.files.ids),
    ):
        with pytest.raises(FileReplaced):
            look()
    assert beside(database, "-wal").read_bytes() == log
    assert database.path.read_bytes() == copied
    saved = rescue.save(database, 0)
    with contextlib.closing(sqlite3.connect(saved.path)) as kept:
        found = [row[0] for row in kept.execute("SELECT kind FROM events")]
    assert found == ["first", *map(str, range(20))]


@posix
def test_a_file_that_vanishes_in_the_middle_of_a_commit_is_noticed_before_the_answer(database):
    def work(c):
        add_event("lost")(c)
        database.path.unlink()

    with pytest.raises(FileGone):
        database.write(work)


@posix
def test_a_log_that_is_cut_short_is_noticed(database):
    for number in range(20):
        database.write(add_event(f"{number}"))
    assert beside(database, "-wal").stat().st_size > 10_000
    os.truncate(beside(database, "-wal"), 5000)
    for _ in range(2):
        with pytest.raises((LogLost, DiskError, Damaged)):
            database.write(add_event("lost"))


@posix
def test_a_log_whose_contents_are_all_in_the_database_may_become_shorter(database):
    other = connect(database.path)
    assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    other.close()
    assert beside(database, "-wal").stat().st_size == 0
    database.write(add_event("second"))
    assert kinds(database) == ["first", "second"]


@posix
def test_a_process_started_later_opens_no_other_files(database, tmp_path):
    known = FileIds.parse(str(database.files.ids))
    again = Database(database.path, lambda: 6, known)
    again.write(add_event("second"))
    again.close()
    database.path.rename(tmp_path / "away")
    with pytest.raises(FileGone):
        Database(database.path, lambda: 6, known)
    assert not database.path.exists()
    shutil.copy(tmp_path / "away", database.path)
    with pytest.raises(FileReplaced):
        Database(database.path, lambda: 6, known)


# ---- what SQLite reports, by name ---------------------------------------------------------------


def too_much(c):
    c.execute("INSERT INTO events (at, who, kind) VALUES (0, 'test', ?)", ("x" * 300_000,))


def test_full_read_only_and_busy_are_distinguished(database, monkeypatch):
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.1)
    pages = database.write(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    other = sqlite3.connect(database.path, isolation_level=None)
    states = [
        (DiskFull, f"PRAGMA max_page_count = {pages}", "PRAGMA max_page_count = 1000000"),
        (ReadOnly, "PRAGMA query_only = 1", "PRAGMA query_only = 0"),
    ]
    for error, begin, end in states:
        database.writer._connection.execute(begin)
        with pytest.raises(error):
            database.write(too_much)
        # A probe finds the same, and that it is over.
        with pytest.raises(error):
            database.writer.probe()
        assert database.failure.error.name == error.name
        database.writer._connection.execute(end)
        database.writer.probe()
        assert database.failure is None
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy, match="locked"):
        database.write(add_event("lost"))
    assert database.failure.error.name == "database busy"
    other.execute("ROLLBACK")
    other.close()
    database.write(too_much)
    assert database.failure is None
    assert len(kinds(database)) == 2


LIMITED = """
import resource, signal, sys
from pathlib import Path
from server.store.database import Database
database = Database(Path(sys.argv[1]), lambda: 5)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = Path(sys.argv[1] + "-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, resource.RLIM_INFINITY))
stored = 0
try:
    while stored < 1000:
        database.write(lambda c: c.execute(
            "INSERT INTO events (at, who, kind) VALUES (0, 'test', ?)", ("x" * 3000,)))
        stored += 1
except Exception as error:
    print(type(error).__name__, stored, database.failure.error.name)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
database.writer.probe()
count = lambda c: c.execute("SELECT count(*) FROM events").fetchone()[0]
print(database.failure, database.read(count))
database.close()
"""


@posix
def test_a_file_that_may_not_grow_is_an_error_of_the_disk_and_loses_nothing(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "study.db")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    name, stored, *failure = result.stdout.splitlines()[0].split(maxsplit=2)
    assert (name, failure) == ("DiskError", ["disk error"]), result.stderr
    assert 0 < int(stored) < 1000
    assert result.stdout.splitlines()[1] == f"None {stored}"


def test_a_damaged_file_is_called_that(tmp_path):
    path = tmp_path / "study.db"
    opened = Database(path, lambda: 5)
    for _ in range(40):
        opened.write(too_much)
    opened.close()
    assert path.stat().st_size > 10_000_000
    with path.open("r+b") as file:
        file.seek(4096 * 500)
        file.write(b"scribble" * 512 * 200)
    opened = Database(path, lambda: 5)
    assert opened.damage()
    with pytest.raises(Damaged, match="recover"):
        opened.write(
            lambda c: c.execute("SELECT count(*), max(length(kind)) FROM events").fetchone()
        )
        opened.write(too_much)
    opened.close()
    path.write_bytes(b"holiday photographs" * 100)
    with pytest.raises(Damaged, match=r"study\.db.*recover"):
        Database(path, lambda: 5)
    with pytest.raises(CannotOpen, match="elsewhere"):
        Database(tmp_path / "elsewhere" / "study.db", lambda: 5)


def test_every_named_error_says_what_it_means_and_what_to_do():
    found = [StoreError, *subclasses(StoreError)]
    assert len({finding.name for finding in found}) == len(found) >= 11
    for finding in found:
        output = str(finding.because(Path("words/study.db"), "disk I/O error"))
        assert finding.meaning in output and finding.advice.replace("FOLDER", "words") in output
        assert finding.meaning.endswith(".") and finding.advice.endswith(".")


def subclasses(cls):
    for subclass in cls.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


# ---- a writer that dies -------------------------------------------------------------------------


def closes_the_connection(c):
    c.close()


def takes_everything_back(c):
    c.execute("ROLLBACK")
    raise KeyError("and then that")


def runs_out_of_memory(c):
    raise MemoryError


def asks_to_exit(c):
    raise SystemExit(3)


@pytest.mark.parametrize(
    "work", [closes_the_connection, takes_everything_back, runs_out_of_memory, asks_to_exit]
)
def test_errors_in_the_writer_reach_every_caller_and_it_continues(database, work):
    begun, go = threading.Event(), threading.Event()

    def hold(c):
        begun.set()
        assert go.wait(20)

    with ThreadPoolExecutor(10) as pool:
        holding = pool.submit(database.write, hold)
        assert begun.wait(20)
        # They wait together, and share one commit with the one that goes wrong.
        waiting = [pool.submit(database.write, add_event("waits")) for _ in range(4)]
        waiting.insert(2, pool.submit(database.write, work))
        go.set()
        holding.result(20)
        outcomes = [future.exception(20) for future in waiting]
    assert outcomes[2] is not None
    stored = kinds(database).count("waits")
    assert stored == sum(outcome is None for outcome in outcomes)
    database.write(add_event("last"))
    assert database.failure is None
    assert kinds(database)[-1] == "last"


def test_an_exception_from_outside_does_not_end_the_writer(database):
    for _ in range(3):
        hit = ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(database.writer._thread.ident), ctypes.py_object(SystemExit)
        )
        assert hit == 1
        # It strikes when the thread next runs: anyone who is there then hears of it.
        with contextlib.suppress(WriterFailed):
            database.write(add_event("struck"))
        database.write(add_event("later"))
    assert kinds(database).count("later") == 3


def test_waiting_for_a_writer_is_bounded(database):
    begun, go = threading.Event(), threading.Event()

    def hang(c):
        begun.set()
        assert go.wait(20)

    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(database.write, hang)
        assert begun.wait(20)
        assert database.writer.busy_since is not None
        database.writer.patience = 0.2
        with pytest.raises(WriterFailed, match="nothing was stored"):
            database.write(add_event("not waited for"))
        database.writer.patience = 20.0
        go.set()
        hanging.result(20)
    database.write(add_event("second"))
    # What nobody waits for any more is not stored behind their backs.
    assert kinds(database) == ["first", "second"]


def test_a_closed_database_says_so(tmp_path):
    opened = Database(tmp_path / "study.db", lambda: 5)
    opened.close()
    with pytest.raises(CannotOpen, match="closed"):
        opened.write(add_event("late"))
