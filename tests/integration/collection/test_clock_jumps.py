"""The machine's clock jumps: nothing is lost, nobody is shut out for good, nothing breaks."""

from __future__ import annotations

import threading
import time

import pytest

from server.auth.passwords import set_password
from server.auth.sessions import FREE_FAILURES, Access, Refused, SignedIn
from server.collection.screens import Rejected
from server.learning.verification import verify
from server.monitor.feed import Feed
from server.processes.bots import BotPage, Browser
from server.store import journal
from tests.support.live_server import LiveServer, write_study
from tests.support.open_study import Desk, Respondent

TOML = """
[session]
trials = 12
practice = 1
break_every = 5
feedback = false
idle_minutes = 30
[completion]
code = "DONE"
[budget]
answers = 36
"""
SECOND, HOUR, DAY = 1000, 3_600_000, 86_400_000
YEAR = 365 * DAY
JUMPS = [-2 * SECOND, HOUR, -HOUR, DAY, -2 * DAY, YEAR, -YEAR, -YEAR, 2 * YEAR]


@pytest.fixture
def desk(tmp_path):
    opened = Desk(tmp_path / "words", TOML, items=10)
    opened.now = 50 * YEAR
    yield opened
    opened.close()


def test_a_session_over_http_outlives_every_jump(tmp_path):
    clock = [50 * YEAR]
    server = LiveServer(write_study(tmp_path / "words", TOML), clock=lambda: clock[0])
    browser = Browser(server.address, threading.Event())
    try:
        page, answered = BotPage(browser.get("/s/words/?participant_label=p1")), []
        for turn in range(40):
            if page.action is None:
                break
            fields = {**page.fields, "agreed": "yes", "side": "left"}
            if page.action.endswith("/answer"):
                answered.append(fields["question"])
            html = browser.post(page.action, fields)
            assert browser.status == 200, html
            page = BotPage(html)
            clock[0] += JUMPS[turn % len(JUMPS)]
            # Loading the page again after a jump is as good.
            if turn % 3 == 0:
                page = BotPage(browser.get("/s/words/?participant_label=p1"))
        assert "DONE" in html
        database = server.studies["words"].database
        stored = database.read(
            lambda c: c.execute("SELECT count(*), count(DISTINCT query) FROM answers").fetchone()
        )
        assert tuple(stored) == (len(set(answered)), 13)
    finally:
        browser.close()
        server.close()


def test_worker_and_monitor_go_on_and_the_journal_comes_out_again(desk):
    desk.control.extend("test", 5000, 0)
    worker, participant = desk.worker(), Respondent(10, 2)
    watch = Feed(desk.database, desk.study, desk.clock)
    total = 0
    for jump in JUMPS:
        stage = desk.new_participant()
        while stage.kind in ("practice", "trial"):
            stage = desk.answer(stage, participant.side(stage))
            desk.now += SECOND
        desk.now += jump
        total += 12
        worker.turn()
        watch.update(True)
        # At once, not when the clock has caught up.
        assert watch._data["where"]["answers"] == total
    assert worker.learner.counted > 80
    assert verify(desk.database, desk.study, time.perf_counter).mismatches == []


def test_forward_no_active_participant_loses_their_quota(desk):
    """Everybody seems to have been away, and the budget is full to the last answer."""
    stages = [desk.new_participant(participant_label=f"p{number}") for number in range(3)]
    assert desk.service.arrive({"participant_label": "p4"}) == Rejected("full", "", "")
    desk.now += DAY
    for stage in stages:
        while stage.kind in ("practice", "trial"):
            stage = desk.answer(stage)
        assert stage.kind == "finished"
    assert desk.rows("SELECT count(*) FROM answers") == [(39,)]


def test_back_unused_quota_is_released_before_the_clock_has_caught_up(desk):
    desk.now += YEAR
    gone = [desk.new_participant(participant_label=f"p{number}") for number in range(3)]
    desk.now -= YEAR
    stage = desk.new_participant(participant_label="p4")
    assert stage.kind == "practice"
    # Those who are not gone after all are welcome while there is room.
    assert desk.answer(gone[0]).kind == "trial"
    # A few seconds back, as when clocks are put right, change nothing.
    desk.new_participant(participant_label="p5")
    desk.now -= 5 * SECOND
    assert desk.service.arrive({"participant_label": "p6"}) == Rejected("full", "", "")


def test_back_questions_of_those_who_left_can_be_asked_again(desk):
    desk.now += YEAR
    stage = desk.new_participant()
    while stage.kind == "practice":
        stage = desk.answer(stage)
    out = desk.database.read(lambda c: journal.out(c, desk.now, 10**9))
    assert out
    desk.now -= YEAR
    assert desk.database.read(lambda c: journal.out(c, desk.now, 10**9)) == []
    # And an answer that comes all the same is stored.
    assert desk.answer(stage).done == 1


def test_back_sign_in_does_not_wait_and_no_session_outlasts_its_time(desk):
    set_password(desk.folder, "a good password for this")
    access = Access(desk.database, desk.folder, desk.clock)
    desk.now += YEAR
    for _ in range(FREE_FAILURES + 1):
        assert isinstance(access.sign_in("wrong", "x", "10.0.0.1"), Refused)
    inside = access.sign_in("a good password for this", "x", "10.0.0.2")
    assert isinstance(inside, SignedIn)
    assert access.session(inside.token) is not None
    desk.now -= YEAR
    assert isinstance(access.sign_in("a good password for this", "x", "10.0.0.1"), SignedIn)
    assert access.session(inside.token) is None
