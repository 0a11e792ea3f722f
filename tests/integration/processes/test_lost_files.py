"""`lore-active serve` when its files vanish or are damaged, and when a web process hangs."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager

import pytest

from benchmarks.reliability.file_loss import (
    answered,
    delete,
    health,
    keep_old,
    lose_log,
    page,
    replace,
    under_load,
)
from benchmarks.reliability.process_kills import Client
from benchmarks.server import COMMAND, wait_until
from server.clock import now
from server.processes.child import WebChild
from server.processes.file_guard import FileGuard
from server.processes.supervisor import Supervisor
from server.store.database import Database
from tests.support.live_server import ENDLESS, write_study

posix = pytest.mark.skipif(os.name != "posix", reason="open files cannot be deleted there")


@pytest.fixture
def tmp_path(disk_path):
    return disk_path


def refused(folder):
    """What a server that will not start says about it."""
    result = subprocess.run(
        [*COMMAND, "serve", "--port", "0", str(folder)], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 2
    return result.stderr


@posix
@pytest.mark.parametrize(
    ("harm", "name"),
    [
        (delete, "study.db is gone"),
        (replace, "study.db was replaced"),
        (lose_log, "write-ahead log lost"),
    ],
)
def test_files_lost_while_serving(tmp_path, harm, name):
    folder = write_study(tmp_path / "words", ENDLESS)
    with under_load(folder) as load:
        server, address, participants = load.server, load.address, load.participants
        keep_old(folder)
        before = len(load.acknowledged())
        wait_until(lambda: len(load.acknowledged()) > before + 20)
        harm(folder)
        wait_until(lambda: all(participant.browser.status == 503 for participant in participants))
        acknowledged = load.acknowledged()
        wait_until(lambda: any("rescued-" in line for line in server.lines))
        # Nobody hears that anything was stored; everybody is told, and nothing is made again.
        assert page(f"{address}/s/words/")[0] == 503
        # Where the log was put aside, a process that looks later sees that first.
        names = (name, "write-ahead log lost")
        wait_until(lambda: health(address).get("error") in names)
        assert load.acknowledged() == acknowledged
        assert server.stop() != 0
    said = "\n".join(server.lines)
    assert f"{folder / 'study.db'}" in said and "No more answers are accepted" in said
    assert f"lore-active recover {folder}" in said
    assert "All answers are stored" not in said
    (rescued,) = (folder / "backups").glob("rescued-*.db")
    assert str(rescued) in said
    assert len(acknowledged) > 40
    assert acknowledged <= answered(rescued)
    if harm is replace:
        # The copy that came is as it came: nothing of ours was written into it.
        assert (folder / "study.db").read_bytes() == (tmp_path / "old.db").read_bytes()
        assert not (folder / "study.db-wal").exists()
        assert "answers that" in refused(folder) and "recover" in refused(folder)
    if harm is delete:
        assert not (folder / "study.db").exists()
        assert f"study.db is missing, but {rescued} exists" in refused(folder)
        assert not (folder / "study.db").exists()
    # What it says to do does it.
    subprocess.run([*COMMAND, "recover", "--yes", str(folder)], check=True, capture_output=True)
    assert acknowledged <= answered(folder / "study.db")
    guard = FileGuard(folder, now, print)
    assert guard.end() == ""


@posix
def test_a_database_that_comes_back_is_gone_on_with(tmp_path):
    folder = write_study(tmp_path / "words", ENDLESS)
    with under_load(folder) as load:
        server, participants = load.server, load.participants
        (folder / "study.db").rename(tmp_path / "away.db")
        wait_until(lambda: all(participant.browser.status == 503 for participant in participants))
        wait_until(lambda: any("rescued-" in line for line in server.lines))
        (tmp_path / "away.db").rename(folder / "study.db")
        before = [len(participant.acknowledged) for participant in participants]
        wait_until(
            lambda: all(
                len(participant.acknowledged) > count
                for participant, count in zip(participants, before, strict=True)
            )
        )
        wait_until(lambda: any("is available again" in line for line in server.lines))
        assert server.stop() == 0
    assert load.acknowledged() <= answered(folder / "study.db")
    assert server.lines[-1] == "Stopped. All answers are stored."


@posix
def test_an_older_copy_written_over_the_open_file_is_noticed(tmp_path):
    folder = write_study(tmp_path / "words", ENDLESS)
    with under_load(folder) as load:
        server, address = load.server, load.address
        keep_old(folder)
        # All that is stored is in the database itself, and so all of it is overwritten.
        before = len(load.acknowledged())
        wait_until(lambda: len(load.acknowledged()) > before + 100)
        with closing(sqlite3.connect(folder / "study.db", timeout=30)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copyfile(tmp_path / "old.db", folder / "study.db")
        wait_until(lambda: page(f"{address}/health")[0] == 503)
        wait_until(lambda: any("No more answers are accepted" in line for line in server.lines))
        assert server.stop() != 0
    assert "All answers are stored" not in "\n".join(server.lines)


def test_a_damaged_database_is_not_served(tmp_path):
    folder = write_study(tmp_path / "words", ENDLESS)
    path = folder / "study.db"
    database = Database(path, lambda: 1)
    for number in range(3000):
        database.writer.submit(
            lambda c, number=number: c.execute(
                "INSERT INTO events (at, who, kind, detail) VALUES (1, 'x', 'y', ?)",
                (json.dumps({"number": number, "text": "z" * 300}),),
            )
        )
    database.close()
    whole = path.read_bytes()
    assert len(whole) > 100 * 4096
    for harm in (
        whole[: 60 * 4096] + b"scribble" * 512 + whole[61 * 4096 :],
        whole[: len(whole) // 2],
        b"holiday photographs" * 1000,
    ):
        path.write_bytes(harm)
        said = refused(folder)
        assert said.count("\n") == 1
        assert str(path) in said and f"lore-active recover {folder}" in said
        assert path.read_bytes() == harm
    path.write_bytes(b"")
    path.with_name("study.db-wal").write_bytes(b"what is left of it" * 100)
    assert "is empty, but" in refused(folder)


@contextmanager
def supervised(folder, **options):
    """A supervisor in a thread, with one web process."""
    over, made, said = threading.Event(), queue.Queue(), []

    def serve():
        server = Supervisor([folder], "127.0.0.1", 0, 1, 0, 1, 0.0, said.append, **options)
        made.put(server)
        server.run(over)

    running = threading.Thread(target=serve)
    running.start()
    try:
        server = made.get(timeout=120)
        wait_until(lambda: "Press Ctrl-C to stop." in said, 120)
        yield server, said
    finally:
        over.set()
        running.join(60)


@posix
def test_a_web_process_that_hangs_is_started_again(tmp_path):
    folder = write_study(tmp_path / "words", ENDLESS)
    stop = threading.Event()
    with supervised(folder, web_patience=4.0) as (server, said):
        client = Client(server.address, "words", "p1", stop, pause=0.02)
        client.start()
        try:
            wait_until(lambda: len(client.acknowledged) > 5)
            # One that the supervisor has not heard of yet may only be slow to start.
            wait_until(lambda: server.web[0]._reported_at > 0)
            first = server.web[0].process.pid
            # A pause that is no more than that.
            os.kill(first, signal.SIGSTOP)
            os.kill(first, signal.SIGCONT)
            count = len(client.acknowledged)
            wait_until(lambda: len(client.acknowledged) > count)
            assert server.web[0].process.pid == first
            os.kill(first, signal.SIGSTOP)
            wait_until(lambda: server.web[0].process.pid != first, 120)
            count = len(client.acknowledged)
            wait_until(lambda: len(client.acknowledged) > count, 120)
        finally:
            stop.set()
    client.join(60)
    assert any("The web process did not respond for" in line for line in said)
    assert client.refused == 0
    assert set(client.acknowledged) <= answered(folder / "study.db")


PRETENDER = """
import json, socket, sys
listener = socket.socket(fileno=int(sys.argv[sys.argv.index("--probed") + 1]))
while True:
    line, _ = listener.accept()
    line.recv(10000)
    body = sys.argv[1].encode()
    line.sendall(b"HTTP/1.1 503 X\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
    line.close()
"""


@posix
@pytest.mark.parametrize(
    ("report", "hangs"),
    [
        ({"studies": [{"writer": "stuck", "for_seconds": 99.0}]}, True),
        ({"studies": [], "stalled_seconds": 99.0}, True),
        ({"studies": [{"writer": "failed", "for_seconds": 99.0}], "stalled_seconds": 0.0}, False),
    ],
)
def test_one_that_answers_but_does_nothing_else_hangs_and_one_with_a_full_disk_does_not(
    report, hangs
):
    command = [sys.executable, "-c", PRETENDER, json.dumps(report)]
    child = WebChild(command, (), ("", 0), patience=2.0)
    child.start()
    process = child.process
    try:
        wait_until(lambda: child._report == report)
        child.look_after()
        if hangs:
            assert process.wait(30) == -signal.SIGKILL
            assert "made no progress for 99 s" in child.look_after()
        else:
            assert process.poll() is None
    finally:
        child.close()
        child.process.kill()
        child.process.wait()
        child.end()


@posix
def test_a_web_process_that_cannot_open_its_database_says_so_until_it_can(tmp_path):
    folder = write_study(tmp_path / "words", ENDLESS)
    with supervised(folder) as (server, _):
        (folder / "study.db").rename(tmp_path / "away.db")
        server.web[0].process.kill()

        def closed():
            status, text = page(f"{server.address}/health")
            return status == 503 and "study.db is gone" in text

        wait_until(closed)
        status, text = page(f"{server.address}/s/words/")
        assert status == 503 and 'data-kind="trouble"' in text
        status, text = page(f"{server.address}/monitor/words/")
        assert status == 503 and "study.db was deleted or moved" in text
        assert page(f"{server.address}/s/others/")[0] == 404
        (tmp_path / "away.db").rename(folder / "study.db")
        wait_until(lambda: page(f"{server.address}/health")[0] == 200)
        assert page(f"{server.address}/s/words/")[0] == 200
