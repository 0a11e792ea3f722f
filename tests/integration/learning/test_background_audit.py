"""Audits beside the worker's turns: nobody waits for them, and a replay gives the same state."""

from __future__ import annotations

import threading
import time

from server.learning import trajectories, what_if
from server.learning.state_hash import state_hash
from server.learning.verification import verify
from server.learning.worker import Worker
from server.store import summaries
from tests.support.open_study import LONG_STUDY, Respondent, desk_fixture

ITEMS = 10


desk = desk_fixture(LONG_STUDY, ITEMS)


def worker_of(desk):
    return Worker(desk.database, desk.study, desk.clock, time.perf_counter, background=True)


def held_up(worker):
    """Make the next audits wait for the event that is returned."""
    gate = threading.Event()

    def mapper(function, parts):
        assert gate.wait(60)
        return map(function, parts)

    worker.learner.mapper = mapper
    return gate


def collect(desk, worker, participants):
    """Participants answer; the audit under way is waited for after every second of them."""
    answers = Respondent(ITEMS, 2)
    for number in range(participants):
        stage, count = desk.new_participant(), 0
        while stage.kind == "trial":
            stage = desk.answer(stage, answers.side(stage))
            desk.now += 1000
            count += 1
            if count % 5 == 0:
                worker.turn()
        if number % 2:
            finish(worker)


def finish(worker):
    """Let the audit under way end, and be taken in."""
    if worker._audit is not None:
        worker._audit._thread.join()
        assert worker.turn()


def test_questions_are_selected_while_an_audit_runs(desk):
    worker = worker_of(desk)
    collect(desk, worker, 2)
    known = desk.rows("SELECT max(id) FROM steps")[0][0]
    gate = held_up(worker)
    collect(desk, worker, 1)
    gate.set()
    finish(worker)
    started = desk.rows("SELECT id, audit_of FROM steps WHERE work = 'audit' AND id > ?", known)
    assert started
    assert all(audit_of < step for step, audit_of in started)
    # Some were taken in after other steps had selected questions.
    (step, audit_of), *_ = started
    assert step - audit_of > 1
    assert desk.rows("SELECT sum(asked) FROM steps WHERE id > ? AND id < ?", audit_of, step) > [
        (0,)
    ]


def test_one_audit_at_a_time_also_before_there_is_a_model(desk):
    worker = worker_of(desk)
    gate = held_up(worker)
    collect(desk, worker, 1)
    first = worker._audit
    assert first is not None and not desk.rows("SELECT 1 FROM models")
    collect(desk, worker, 1)
    assert worker._audit is first
    gate.set()
    finish(worker)
    assert desk.rows("SELECT audit_of FROM steps WHERE work = 'audit'") == [(first.step,)]


def test_a_replay_comes_to_the_same_state(desk):
    worker = worker_of(desk)
    collect(desk, worker, 6)
    finish(worker)
    found = verify(desk.database, desk.study, time.perf_counter)
    assert found.mismatches == []
    assert found.models_identical == found.models_checked > 5
    again = worker_of(desk)
    assert state_hash(again.learner, []) == state_hash(worker.learner, [])


def test_what_if_has_the_same_audits_unless_other_answers_count(desk):
    worker = worker_of(desk)
    collect(desk, worker, 6)
    finish(worker)
    # The study's own setting: nothing may differ.
    people = desk.database.read(summaries.participants)
    change = what_if.read(["stopping.audits=40"], desk.study.settings, people)
    found = trajectories.what_if(desk.database, desk.study, change, time.perf_counter)
    assert len(found.original.points) > 5
    assert found.what_if == found.original


def test_an_audit_that_was_lost_with_its_worker_is_started_again(desk):
    worker = worker_of(desk)
    gate = held_up(worker)
    collect(desk, worker, 1)
    assert worker._audit is not None
    gate.set()
    again = worker_of(desk)
    assert again._audit is None
    desk.now += 1000
    again.turn()
    collect(desk, again, 1)
    finish(again)
    assert desk.rows("SELECT count(*) FROM models")[0][0] > 0
    assert verify(desk.database, desk.study, time.perf_counter).mismatches == []


def test_an_exclusion_ends_the_audit_of_answers_that_no_longer_count(desk):
    worker = worker_of(desk)
    collect(desk, worker, 4)
    finish(worker)
    gate = held_up(worker)
    stage, answers = desk.new_participant(), Respondent(ITEMS, 2, seed=9)
    for _ in range(39):
        stage = desk.answer(stage, answers.side(stage))
        desk.now += 1000
        worker.turn()
        if worker._audit is not None:
            break
    running = worker._audit
    assert running is not None
    desk.control.exclude("experimenter", 1, "as a test")
    running.pending.cancel()
    gate.set()
    worker.turn()
    assert running.finished
    finish(worker)
    assert verify(desk.database, desk.study, time.perf_counter).mismatches == []
