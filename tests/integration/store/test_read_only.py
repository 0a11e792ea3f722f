"""Commands that only read: no byte of the study changes, and it may lie on a read-only medium."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

from server.cli.main import main
from server.store.recovery import copies
from server.store.sqlite import migration
from server.store.sqlite.former_names import current_column
from server.study.workspace import DATABASE, reading
from tests.support.live_server import now
from tests.support.open_study import Desk, Respondent

ITEMS = 8
TOML = """
[session]
trials = 30
practice = 1
break_every = 0
"""
# (command, whether it takes where to write, and how)
READING = {
    "check": ["check", "{study}", "--json"],
    "export": ["export", "{study}", "--format", "all", "--out", "{out}/export"],
    "report": ["report", "{study}", "--out", "{out}/report.html"],
    "replay": ["replay", "{study}", "--verify"],
    "what-if": ["replay", "{study}", "--what-if", "stopping.audits=1"],
    "compare": ["compare", "{study}", "--methods", "lore", "--folds", "2", "--json"],
    "plan": ["plan", "--from", "{study}", "--ranks", "1", "--runs", "1", "--jobs", "1"],
    "fit": ["fit", "{study}/pilot.csv", "--out", "{out}/fit"],
    "import --dry-run": ["import", "{study}/pilot.csv", "{study}", "--dry-run"],
    "import --undo --dry-run": ["import", "{study}/first.csv", "{study}", "--undo", "--dry-run"],
}
CAP_DAC_OVERRIDE, PR_CAPBSET_DROP = 1, 24
# What earlier versions stored of triplets, from what is stored now.
TRIPLETS = {
    ("queries", "left"): "options ->> 0",
    ("queries", "right"): "options ->> 1",
    ("queries", "nearer"): "known ->> 0",
    ("answers", "side"): "CASE WHEN outcome <> 'chosen' THEN outcome WHEN chosen ->> 0 = "
    "(SELECT options ->> 0 FROM new.queries q WHERE q.id = query) THEN 'left' ELSE 'right' END",
}


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A study that was stopped as it should be."""
    home = tmp_path_factory.mktemp("read")
    desk = Desk(home / "words", TOML, items=ITEMS)
    worker, participant = desk.worker(), Respondent(ITEMS, 2)
    worker.turn()
    for number in range(4):
        stage = desk.new_participant(PROLIFIC_PID=f"person{number}")
        while stage.kind in ("practice", "trial"):
            stage = desk.answer(stage, participant.side(stage))
        worker.turn()
    for name, rows in (("first", "word00,word01,word02"), ("pilot", "word02,word01,word00")):
        (desk.folder / f"{name}.csv").write_text(f"anchor,nearer,farther\n{rows}\n")
    desk.close()
    result = CliRunner().invoke(main, ["import", str(desk.folder / "first.csv"), str(desk.folder)])
    assert result.exit_code == 0, result.output
    return desk.folder


def crashed(folder, to):
    """A copy whose last commits are still in the write-ahead log, as a loss of power leaves it."""
    shutil.copytree(folder, to)
    desk = Desk(to)
    stage = desk.new_participant(PROLIFIC_PID="in the log")
    desk.answer(desk.answer(stage))
    for end in ("", "-wal"):
        shutil.copyfile(to / f"{DATABASE}{end}", to.parent / f"kept{end}")
    desk.close()
    for end in ("", "-wal"):
        shutil.move(to.parent / f"kept{end}", to / f"{DATABASE}{end}")
    assert (to / f"{DATABASE}-wal").stat().st_size > 0
    return to


def older(folder, to):
    """A copy in the format of an earlier version: without the tables of imported answers."""
    shutil.copytree(folder, to)
    (to / DATABASE).unlink()
    connection = sqlite3.connect(to / DATABASE)
    connection.execute(
        "CREATE TABLE migrations "
        "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"
    )
    for number, name, script in migration._migrations():
        if number < 4:
            connection.executescript(script)
            connection.execute("INSERT INTO migrations VALUES (?, ?, 0)", (number, name))
    connection.commit()
    connection.execute("ATTACH ? AS new", (str(folder / DATABASE),))
    tables = connection.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'")
    for (name,) in tables.fetchall():
        if name != "migrations":
            columns = [row[1] for row in connection.execute(f"PRAGMA main.table_info({name})")]
            held = ", ".join(f'"{column}"' for column in columns)
            now = ", ".join(
                TRIPLETS.get((name, column), f'"{current_column(name, column)}"')
                for column in columns
            )
            connection.execute(f"INSERT INTO main.{name} ({held}) SELECT {now} FROM new.{name}")
    # What they imported is of the newer format.
    connection.execute("DELETE FROM events WHERE kind = 'import'")
    connection.commit()
    connection.execute("PRAGMA journal_mode = wal")
    connection.close()
    return to


def every_file(folder):
    """Content and time of last change of everything in a folder, and of the folder itself."""
    found = {".": folder.stat().st_mtime_ns}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[name] = (path.stat().st_mtime_ns, path.stat().st_mode, content)
    return found


def filled(arguments, folder, out):
    return [argument.format(study=folder, out=out) for argument in arguments]


@pytest.mark.parametrize("name", READING)
def test_nothing_in_the_folder_changes(closed, tmp_path, name):
    before = every_file(closed)
    result = CliRunner().invoke(main, filled(READING[name], closed, tmp_path))
    assert result.exit_code == 0, (result.output, result.exception)
    assert every_file(closed) == before


@pytest.mark.parametrize("state", [crashed, older])
@pytest.mark.parametrize("name", ["export", "replay", "report"])
def test_nor_where_the_database_would_have_to_be_migrated(closed, tmp_path, state, name):
    folder = state(closed, tmp_path / "words")
    before = every_file(folder)
    result = CliRunner().invoke(main, filled(READING[name], folder, tmp_path))
    assert result.exit_code == 0, (result.output, result.exception)
    assert every_file(folder) == before


def test_what_is_still_in_the_log_is_read(closed, tmp_path):
    def answers(folder):
        with reading(folder, now) as (_, found):
            return found.read(lambda c: c.execute("SELECT count(*) FROM answers").fetchone()[0])

    assert answers(crashed(closed, tmp_path / "words")) == answers(closed) + 2


def without_override():
    """Even an administrator then keeps to the modes of files."""
    if os.geteuid() == 0:
        assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="modes and capabilities are Linux's here")
@pytest.mark.parametrize("state", [None, crashed, older])
def test_a_read_only_medium_is_enough(closed, tmp_path, state):
    """All commands in a process that can write nowhere in the study's folder."""
    folder = tmp_path / "medium" / "words"
    (tmp_path / "medium").mkdir()
    if state is None:
        shutil.copytree(closed, folder)
    else:
        state(closed, folder)
    for path in [*folder.rglob("*"), folder, folder.parent]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = every_file(folder)
    out = tmp_path / "out"
    out.mkdir()
    wanted = {name: filled(READING[name], folder, out) for name in READING}
    if state is older:
        del wanted["import --undo --dry-run"]  # nothing was imported
    wanted |= {
        "where": ["export", str(folder), "--json"],
        "report where": ["report", str(folder), "--json"],
        "nowhere": ["export", str(folder)],
    }
    code = (
        "import json, sys; from click.testing import CliRunner; from server.cli.main import main\n"
        "import os\n"
        "def outcome(name, command):\n"
        "    os.chdir(sys.argv[1] if name == 'nowhere' else sys.argv[2])\n"
        "    result = CliRunner().invoke(main, command)\n"
        "    return [result.exit_code, result.output]\n"
        "commands = json.load(sys.stdin).items()\n"
        "print(json.dumps({name: outcome(name, command) for name, command in commands}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, folder, out],
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        preexec_fn=without_override,
        check=True,
    )
    report = json.loads(done.stdout)
    code, message = report.pop("nowhere")
    assert code == 2 and "choose a place with --out" in message
    assert {name: one for name, one in report.items() if one[0] != 0} == {}
    # Without --out, results go to the current folder: the study's own cannot take them.
    assert (out / "words-export" / "csv" / "answers.csv").exists()
    assert json.loads(report["report where"][1])["file"] == "words-report.html"
    assert (out / "words-report.html").exists()
    assert every_file(folder) == before


def test_a_copy_of_a_database_that_is_being_written_is_consistent(tmp_path):
    path = tmp_path / "busy.db"
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute(
        "CREATE TABLE pairs (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, fill BLOB)"
    )
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
        "INSERT INTO pairs SELECT i, 0, 0, zeroblob(1000) FROM n"
    )
    over = threading.Event()

    def write():
        while not over.is_set():
            # All rows have the same numbers after every commit.
            connection.execute("UPDATE pairs SET a = a + 1, b = b - 1")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        # In a process of its own, as the commands are.
        code = (
            "import sys; from pathlib import Path; from server.store.recovery import copies\n"
            "for number in range(5):\n"
            "    copies.copy(Path(sys.argv[1]), Path(sys.argv[2] + str(number)))"
        )
        subprocess.run([sys.executable, "-c", code, path, tmp_path / "copy"], check=True)
    finally:
        over.set()
        writer.join()
    for number in range(5):
        copied = sqlite3.connect(tmp_path / f"copy{number}")
        assert copied.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert len(copied.execute("SELECT DISTINCT a, b FROM pairs").fetchall()) == 1
        copied.close()
    connection.close()


def test_a_database_that_others_replace_meanwhile_is_copied_again(tmp_path):
    path = tmp_path / "one.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    assert copies._at_rest(path, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "copy.db").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("content", [b"", b"this is no database" * 300])
def test_what_is_not_a_database_is_named(closed, tmp_path, content):
    folder = tmp_path / "words"
    shutil.copytree(closed, folder)
    (folder / DATABASE).write_bytes(content)
    result = CliRunner().invoke(main, ["export", str(folder), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert str(folder / DATABASE) in result.output and "\n" not in result.output.strip()
    if content:
        assert f"lore-active recover {folder}`" in result.output
    assert (folder / DATABASE).read_bytes() == content
