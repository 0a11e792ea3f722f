"""What goes wrong with the worker or with stored rows is said, and nobody who answers notices."""

from __future__ import annotations

import io
import json
import os
import queue
import signal
import sqlite3
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.reliability.process_kills import Client
from benchmarks.server import wait_until
from server.learning.rebuild import CannotRebuild
from server.learning.state_hash import NotANumber
from server.learning.verification import verify
from server.monitor.feed import Feed
from server.processes.supervisor import Supervisor
from server.store import journal
from tests.support.live_server import write_study
from tests.support.open_study import Respondent, desk_fixture

TOML = """
[session]
trials = 40
practice = 0
break_every = 0
feedback = false
[budget]
answers = 5000
"""
ITEMS = 10
# In place of a worker, so that what was noted about the last one stays.
WAIT = "import sys; sys.stdin.read()"
# The worker's process with less memory than its libraries take.
SHORT_OF_MEMORY = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_AS, (2**27, 2**27))
runpy.run_module("server.processes.worker_process", run_name="__main__", alter_sys=True)
"""


desk = desk_fixture(TOML, ITEMS)


def collect(desk, worker, answers, every=10):
    """One person's answers, the worker turning now and then."""
    participant, stage = Respondent(ITEMS, 1, noise=0.0), desk.new_participant()
    for count in range(answers):
        stage = desk.answer(stage, participant.side(stage))
        desk.now += 1000
        if count % every == every - 1:
            worker.turn()
    return stage


def damaged(desk, *statements):
    """Do to the file what our own connections refuse."""
    raw = sqlite3.connect(desk.folder / "study.db")
    raw.execute("PRAGMA ignore_check_constraints = ON")
    raw.execute("DROP TRIGGER answers_are_not_changed")
    for statement in statements:
        raw.execute(statement)
    raw.execute(
        "CREATE TRIGGER answers_are_not_changed BEFORE UPDATE ON answers "
        "BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END"
    )
    raw.commit()
    raw.close()


def shown(desk):
    """What the monitor shows now."""
    watch = Feed(desk.database, desk.study, desk.clock)
    watch.update(True)
    return watch._data


def test_invalid_rows_are_quarantined_and_named_and_the_rest_is_used(desk):
    worker = desk.worker()
    collect(desk, worker, 40)
    collect(desk, worker, 18, every=100)
    ((last,),) = desk.rows("SELECT max(up_to_query) FROM steps")
    ((question, answer),) = desk.rows(
        "SELECT q.id, seq FROM queries q JOIN answers ON query = q.id "
        "WHERE q.id > ? AND purpose = 'random' AND origin <> 'learner' LIMIT 1",
        last,
    )
    ((neither,),) = desk.rows("SELECT max(seq) FROM answers WHERE seq <> ?", answer)
    damaged(
        desk,
        f"UPDATE queries SET anchor = 7777 WHERE id = {question}",
        f"UPDATE answers SET chosen = '[]' WHERE seq = {neither}",
    )
    before = worker.learner.counted
    assert worker.turn()
    assert worker.learner.counted > before + 10
    assert f"Question {question} cannot be used: it has items (7777, " in worker.error
    unusable = [("answer", number) for number in sorted((answer, neither))]
    assert left_out(desk) == [("question", question), *unusable]
    # The study goes on, a restarted worker leaves the same rows out, and so does a replay.
    collect(desk, worker, 10)
    assert desk.worker().last == worker.last
    found = verify(desk.database, desk.study, time.perf_counter).mismatches
    assert [(finding.table, finding.row, finding.step) for finding in found] == [
        ("queries", question, None),
        ("answers", neither, None),
    ]
    # The monitor does not stumble over items that do not exist.
    assert shown(desk)["where"]["answers"] == 68
    # An answer to what the learner never asked.
    ((last,),) = desk.rows("SELECT max(up_to_query) FROM steps")
    collect(desk, worker, 18, every=100)
    ((answer, question),) = desk.rows(
        "SELECT seq, query FROM answers JOIN queries q ON q.id = query "
        "WHERE q.id > ? AND purpose = 'random' AND origin <> 'learner' LIMIT 1",
        last,
    )
    damaged(desk, f"UPDATE queries SET origin = 'learner' WHERE id = {question}")
    assert worker.turn()
    assert left_out(desk)[3:] == [("answer", answer)]


def left_out(desk):
    """What was left out, in order: (question or answer, number)."""
    rows = desk.rows("SELECT detail FROM events WHERE kind = 'quarantine' ORDER BY id")
    details = [json.loads(detail) for (detail,) in rows]
    return [next((k, v) for k, v in detail.items() if k != "reason") for detail in details]


def test_a_damaged_snapshot_is_rebuilt(desk, caplog):
    worker = desk.worker()
    collect(desk, worker, 30)
    step, document, arrays = desk.database.read(journal.snapshot)
    assert worker.rebuild.replayed((step, document, arrays))[0] == worker.last
    held = dict(np.load(io.BytesIO(arrays)))
    held["acquisition_embedding"] = np.full_like(held["acquisition_embedding"], np.nan)
    packed = io.BytesIO()
    np.savez(packed, **held)
    noise = np.random.default_rng(1).bytes(len(arrays))
    cut = document[: len(document) // 2]
    for harm in ((cut, arrays), (document, noise), (document, packed.getvalue())):
        desk.database.write(lambda c, harm=harm: journal.save_snapshot(c, step, *harm))
        again = desk.worker()
        assert again.last == worker.last
        assert np.isfinite(again.learner.model.acquisition.embedding).all()
        assert "The snapshot cannot be used" in caplog.text
        caplog.clear()


def test_a_model_of_no_numbers_is_never_published_and_the_next_worker_goes_on(desk):
    worker = desk.worker()
    collect(desk, worker, 40)
    good = worker.last
    model = worker.learner.model
    nonsense = replace(
        model.acquisition, embedding=np.full_like(model.acquisition.embedding, np.nan)
    )
    worker.learner._models.current = replace(model, acquisition=nonsense)
    collect(desk, worker, 1, every=100)
    with pytest.raises(NotANumber, match="not finite"):
        worker.turn()
    assert desk.rows("SELECT max(id) FROM steps") == [(good.id,)]
    again = desk.worker()
    assert again.last == good
    collect(desk, again, 20)
    assert again.last.version > good.version


def test_a_damaged_model_in_the_database_is_named_by_the_monitor(desk):
    worker = desk.worker()
    collect(desk, worker, 40, every=20)
    collect(desk, worker, 40, every=20)
    assert shown(desk)["machine"]["error"] == ""
    ((rank,),) = desk.rows("SELECT rank FROM models ORDER BY version DESC LIMIT 1")
    assert rank
    for what, harm in (
        ("not finite", np.full((ITEMS, rank), np.nan).tobytes()),
        ("bytes", np.zeros(ITEMS * rank).tobytes()[:-3]),
    ):
        damaged(
            desk,
            f"UPDATE models SET embedding = x'{harm.hex()}' "
            "WHERE version = (SELECT max(version) FROM models)",
        )
        found = shown(desk)
        assert what in found["machine"]["error"]
        assert found["map"]["positions"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="limits another process's memory")
def test_hanging_or_out_of_memory_the_worker_is_restarted_while_participants_answer(tmp_path):
    folder = write_study(tmp_path / "words", TOML.replace("40", "5000"), items=20)
    over, stop, made = threading.Event(), threading.Event(), queue.Queue()

    def serve():
        server = Supervisor([folder], "127.0.0.1", 0, 1, 0, 1, 0.0, lambda _: None, patience=8.0)
        made.put(server)
        server.run(over)

    running = threading.Thread(target=serve)
    running.start()
    server = made.get(timeout=300)
    raw = sqlite3.connect(folder / "study.db", timeout=60)
    participants: list[Client] = []
    try:
        client = Client(server.address, "words", "p1", stop, pause=0.05)
        participants.append(client)
        client.start()

        def health():
            return raw.execute("SELECT pid, restarts, error, doing FROM heartbeat").fetchone()

        def steps():
            return raw.execute("SELECT count(*) FROM steps").fetchone()[0]

        def worker():
            child = server.children[-1].process
            return None if child is None or child.poll() is not None else child.pid

        wait_until(lambda: steps() > 3)
        # A pause that is no more than that: it goes on where it was.
        pid = worker()
        os.kill(pid, signal.SIGSTOP)
        answered = len(client.acknowledged)
        wait_until(lambda: len(client.acknowledged) > answered + 20)
        os.kill(pid, signal.SIGCONT)
        seen = steps()
        wait_until(lambda: steps() > seen)
        assert (worker(), health()[1]) == (pid, 0)
        # One that never ends.
        child = server.children[-1]
        command, child.command = child.command, [sys.executable, "-c", WAIT]
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: health()[1] == 1)
        assert "sent no heartbeat for 8 s" in health()[2]
        answered = len(client.acknowledged)
        wait_until(lambda: len(client.acknowledged) > answered + 20)
        seen, child.command = steps(), command
        wait_until(lambda: worker() not in (None, pid))
        os.kill(worker(), signal.SIGKILL)
        wait_until(lambda: steps() > seen and health()[2] == "")
        # The system takes it, as it does when memory runs out; then there is too little to start.
        child.command = [sys.executable, "-c", WAIT]
        pid = worker()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: health()[1] == 3)
        assert "killed; the system may have run out of memory" in health()[2]
        child.command = [sys.executable, "-c", SHORT_OF_MEMORY, *command[3:]]
        wait_until(lambda: worker() not in (None, pid))
        os.kill(worker(), signal.SIGKILL)
        # Which of its many small allocations fails first is not in our hands.
        wait_until(lambda: health()[1] > 4 and health()[2].startswith("The worker "))
        seen, child.command = steps(), command
        wait_until(lambda: steps() > seen and health()[2] == "")
        assert client.refused == 0
    finally:
        stop.set()
        over.set()
        running.join(30)
        raw.close()
        for participant in participants:
            participant.join(10)


def test_a_worker_that_cannot_go_on_says_which_row_is_to_blame(desk):
    worker = desk.worker()
    collect(desk, worker, 30)
    ((number,),) = desk.rows(
        "SELECT min(id) FROM queries WHERE origin <> 'learner' AND purpose = 'random'"
    )
    damaged(
        desk,
        "DELETE FROM snapshot",
        f"UPDATE queries SET anchor = 4444 WHERE id = {number}",
    )
    with pytest.raises(CannotRebuild, match=rf"Question {number} cannot be used.*4444"):
        desk.worker()
    # People are served all the same.
    assert desk.new_participant().kind == "trial"
