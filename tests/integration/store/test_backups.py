"""Rolling backups: whole or not there, of one moment, in nobody's way; and what erasing leaves."""

from __future__ import annotations

import json
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

from benchmarks.server import wait_until
from server.cli.main import main
from server.doctor import folder as export_folder
from server.processes.backup_process import Backups
from server.processes.supervisor import Supervisor
from server.store.recovery import backups
from server.study.workspace import DATABASE
from tests.support.open_study import Desk, Respondent, desk_fixture

TOML = """
[session]
trials = 60
practice = 0
break_every = 0
"""
ITEMS = 8
MINUTE = 60_000
ENTRY = "5f3a9c0d2b7e4f61"


desk = desk_fixture(TOML, ITEMS)


@pytest.fixture
def stage(desk):
    return desk.new_participant(PROLIFIC_PID="someone")


def answers(path):
    connection = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)
    try:
        return connection.execute("SELECT count(*) FROM answers").fetchone()[0]
    finally:
        connection.close()


def take(desk, **options):
    desk.now += MINUTE
    return backups.take(desk.database.path, desk.now, **options)


def test_a_backup_is_a_whole_database_for_its_owner_alone(desk, stage):
    desk.answer(desk.answer(stage))
    made = take(desk)
    assert made.parent == desk.folder / "backups" and made.name == "study-19700112T134740Z.db"
    assert backups.made_at(made) == desk.now
    assert made.stat().st_mode & 0o777 == 0o600
    assert made.parent.stat().st_mode & 0o777 == 0o700
    assert backups.damage_in(made) == "" and answers(made) == 2
    # One file, readable where nothing can be written beside it.
    assert [file.name for file in made.parent.iterdir()] == [made.name]


def test_only_when_something_changed_and_three_are_kept(desk, stage):
    kept = []
    for number in range(5):
        stage = desk.answer(stage)
        kept.append(take(desk))
        assert kept[-1] is not None and answers(kept[-1]) == number + 1
        # A worker that says that it lives changes nothing that a backup is for.
        desk.database.write(
            lambda c: c.execute("INSERT OR REPLACE INTO heartbeat VALUES (1, 5, 5, '', 0, '')")
        )
        assert take(desk) is None
    assert backups.every(desk.folder) == kept[-3:]
    desk.control.exclude("Ada", 1, "")
    assert take(desk) is not None


def test_a_clock_that_was_set_back_does_not_discard_the_newest_backup(desk, stage):
    kept = []
    for _ in range(5):
        stage = desk.answer(stage)
        desk.now -= 10 * MINUTE
        kept.append(take(desk))
    assert backups.every(desk.folder) == kept[-3:]
    assert answers(kept[-1]) == 5


def test_answers_are_stored_during_a_backup_which_is_consistent(desk, stage):
    """Collection goes on between any two parts of a backup, and the backup does not follow it."""
    parts = []

    def pace():
        nonlocal stage
        stage = desk.answer(stage)
        parts.append(desk.rows("SELECT count(*) FROM answers")[0][0])

    # Room enough for several parts.
    desk.database.write(
        lambda c: c.execute(
            "UPDATE participants SET feedback = hex(zeroblob(1000000)) WHERE id = 1"
        )
    )
    stage = desk.answer(stage)
    made = take(desk, pace=pace)
    assert len(parts) >= 4 and parts == list(range(2, len(parts) + 2))
    assert answers(made) == 1 and backups.damage_in(made) == ""


def test_an_interrupted_backup_leaves_nothing(desk, stage):
    def stop():
        raise KeyboardInterrupt

    desk.answer(stage)
    with pytest.raises(KeyboardInterrupt):
        take(desk, pace=stop)
    assert list((desk.folder / "backups").iterdir()) == []
    # Nor does one that was killed, once there is a next one.
    (desk.folder / "backups" / ".study-19700112T134740Z.db.part").write_bytes(b"half")
    made = take(desk)
    assert list((desk.folder / "backups").iterdir()) == [made]


def test_older_backups_are_deleted_but_one_stays(desk, stage):
    for _ in range(3):
        stage = desk.answer(stage)
        take(desk)
    kept = backups.every(desk.folder)
    desk.answer(stage)
    with pytest.raises(backups.BackupFailed, match="not enough space for a backup"):
        take(desk, free=lambda home: 1000)
    assert backups.every(desk.folder) == kept[-1:]
    plenty = 10**12
    made = take(desk, free=lambda home: plenty if len(backups.every(desk.folder)) < 2 else 0)
    assert backups.every(desk.folder) == [kept[-1], made]


def test_a_full_disk_is_reported_and_loses_no_answer(desk, stage):
    stage = desk.answer(stage)
    first = take(desk)
    stage = desk.answer(stage)

    def run(limit=None):
        def limited():
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        with subprocess.Popen(
            [sys.executable, "-m", "server.processes.backup_process", str(desk.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=limited,
        ) as process:
            said = process.stdout.read().strip()
            return process.wait(), said

    def problems():
        rows = desk.rows("SELECT detail FROM events WHERE kind = 'backup' ORDER BY id")
        return [json.loads(row[0])["problem"] for row in rows]

    connection = desk.database.reader()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    full = desk.database.path.stat().st_size // 2
    for _ in range(2):
        code, said = run(limit=full)
        assert code == 3 and str(desk.folder / "backups") in said, said
    # Once, not every few minutes.
    assert problems() == [said]
    assert backups.every(desk.folder) == [first]
    assert [file.name for file in first.parent.iterdir()] == [first.name]
    desk.answer(stage)
    assert run() == (0, "")
    assert problems()[1:] == [""]
    assert len(backups.every(desk.folder)) == 2


def test_a_damaged_database_never_replaces_a_good_backup(desk, stage):
    for _ in range(20):
        stage = desk.answer(stage)
    good = take(desk)
    desk.answer(stage)
    desk.close()
    content = bytearray((desk.folder / DATABASE).read_bytes())
    connection = sqlite3.connect(desk.folder / DATABASE)
    root = connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'one_query_per_slot'"
    )
    page = root.fetchone()[0]
    connection.close()
    content[(page - 1) * 4096 : page * 4096] = bytes(4096)
    (desk.folder / DATABASE).write_bytes(content)
    with pytest.raises(backups.BackupFailed, match=r"study\.db.* is damaged"):
        backups.take(desk.folder / DATABASE, desk.now + MINUTE)
    assert backups.every(desk.folder) == [good]
    (desk.folder / DATABASE).write_bytes(good.read_bytes())
    desk.open()


def test_an_older_copy_in_its_place_does_not_push_newer_backups_out(desk, stage):
    stage = desk.answer(stage)
    older = take(desk)
    desk.answer(stage)
    newer = take(desk)
    desk.close()
    shutil.copyfile(older, desk.folder / DATABASE)
    with pytest.raises(backups.BackupFailed, match=r"contains 1 answer, but .* contains 2"):
        backups.take(desk.folder / DATABASE, desk.now + MINUTE)
    assert backups.every(desk.folder) == [older, newer]
    desk.open()


def test_the_schedule_says_what_went_wrong_once_and_when_it_is_over(desk, stage):
    said = []
    schedule = Backups(desk.folder, "words", 1e-6, said.append)
    home = desk.folder / "backups"
    home.write_text("a file where the folder should be")

    def come_to(condition):
        def polled():
            schedule.poll()
            return condition()

        wait_until(polled)

    come_to(lambda: said)
    assert said[0].startswith("The backup of words failed: ") and str(home) in said[0]
    assert said[0].endswith("Collection continues.")
    home.unlink()
    come_to(lambda: backups.every(desk.folder) and len(said) > 1)
    assert said[1:] == ["Backups of words work again."]
    schedule.end()
    never = Backups(desk.folder, "words", 0, said.append)
    never.poll()
    assert never._process is None


def test_serve_makes_them_while_answers_come_in(tmp_path):
    desk = Desk(tmp_path / "words", TOML + "[storage]\nbackup_minutes = 7\n", items=ITEMS)
    desk.answer(desk.new_participant())
    desk.close()
    supervisor = Supervisor([desk.folder], "127.0.0.1", 0, 1, 0, 0, 1.0, print)
    assert [backup.minutes for backup in supervisor.backups] == [7]
    supervisor.backups[0].minutes = 1e-3
    stop = threading.Event()

    def watch():
        try:
            wait_until(lambda: bool(backups.every(desk.folder)))
        finally:
            stop.set()

    watching = threading.Thread(target=watch)
    watching.start()
    supervisor.run(stop)
    watching.join()
    assert supervisor.backups[0]._process is None
    assert answers(backups.every(desk.folder)[-1]) == 1


# ---- erasing ------------------------------------------------------------------------------------


def files_with(folder, trace):
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and trace in path.read_bytes()
    }


@pytest.fixture
def copied(tmp_path):
    """A study with three backups, of which the first is from before the person came."""
    desk = Desk(tmp_path / "words", TOML, items=ITEMS)
    participant, kept = Respondent(ITEMS, 2), []
    desk.answer(desk.new_participant(PROLIFIC_PID="another one"))
    kept.append(take(desk))
    stage = desk.new_participant(PROLIFIC_PID=ENTRY)
    for _ in range(2):
        stage = desk.answer(stage, participant.side(stage))
        kept.append(take(desk))
    desk.close()
    shutil.copyfile(kept[-1], kept[-1].with_name("rescued-20261116T031500Z.db"))
    damaged = kept[-1].parent / "damaged-20261116T031500Z"
    damaged.mkdir()
    (damaged / DATABASE).write_bytes(kept[-1].read_bytes()[4096:])
    return desk.folder, [record.relative_to(desk.folder).as_posix() for record in kept]


def forget(folder, *more):
    result = CliRunner().invoke(main, ["forget", str(folder), *more, "--yes", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_forget_reaches_every_copy_in_backups(copied):
    folder, kept = copied
    damaged = "backups/damaged-20261116T031500Z/study.db"
    rescued = "backups/rescued-20261116T031500Z.db"
    assert files_with(folder, ENTRY.encode()) == {"study.db", *kept[1:], damaged, rescued}
    report = forget(folder, ENTRY)
    assert set(report["backups_removed"]) == {*kept[1:], damaged, rescued}
    assert files_with(folder, ENTRY.encode()) == set()
    # The one from before they came is still good, and a new one was made.
    left = [file.relative_to(folder).as_posix() for file in backups.every(folder)]
    assert left == [kept[0], report["new_backup"]]
    assert answers(folder / report["new_backup"]) == 3
    assert not (folder / "backups" / "damaged-20261116T031500Z").exists()


def test_backups_from_after_an_erasure_stay_until_the_answers_go_too(copied):
    folder, _ = copied
    fresh = forget(folder, ENTRY)["new_backup"]
    assert forget(folder, "2")["backups_removed"] == []
    assert forget(folder, "2", "--answers")["backups_removed"] == [fresh]


def test_bytes_are_overwritten_before_a_copy_is_removed(copied, monkeypatch):
    folder, kept = copied
    held = {}
    unlink = type(folder).unlink

    def looked(path, *arguments, **options):
        if path.exists():
            held[path.relative_to(folder).as_posix()] = path.read_bytes()
        unlink(path, *arguments, **options)

    monkeypatch.setattr(type(folder), "unlink", looked)
    backups.erase(folder, 2, False)
    assert set(held) >= set(kept[1:])
    assert all(not any(content) for content in held.values())


# ---- the doctor ---------------------------------------------------------------------------------


def found(folder):
    return [one for one in export_folder.examine(folder) if one.check == "backups"]


def test_the_doctor_looks_at_backups(desk, stage):
    assert [finding.level for finding in found(desk.folder)] == ["ok"]
    desk.answer(stage)
    made = take(desk)
    (one,) = found(desk.folder)
    assert one.level == "ok" and "1 in backups/, the newest of 1970-01-12 13:47 UTC" in one.found
    shutil.copyfile(made, made.with_name("rescued-20261116T031500Z.db"))
    warned = found(desk.folder)[0]
    assert warned.level == "warning" and "lore-active recover" in warned.advice
    made.write_bytes(made.read_bytes()[:5000])
    assert found(desk.folder)[-1].level == "problem"
