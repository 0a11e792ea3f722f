"""While nothing can be stored: /health and the monitor say why, and pages stay readable."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.server import wait_until
from server.auth.sessions import TOUCH_MS
from server.processes.bots import BotPage, Browser
from server.processes.http_server import THREADS
from server.status import health
from server.store.sqlite import writer
from tests.support.experimenter_client import (
    PASSWORD,
    Hand,
    csrf_token,
    guarded_study,
    post,
    sign_in,
)
from tests.support.live_server import LiveServer

TOML = """
[session]
trials = 400
rush_ms = 0
practice = 0
break_every = 0
feedback = false
[budget]
answers = 1000000
"""


class Site:
    """A study served over HTTP, a participant in the middle, an experimenter who is signed in."""

    def __init__(self, folder) -> None:
        self.clock = Hand()
        self.server = LiveServer(guarded_study(folder, TOML), clock=self.clock)
        self.database = self.server.studies["words"].database
        self.participant = Browser(self.server.address, threading.Event())
        page = BotPage(self.participant.get("/s/words/"))
        page = BotPage(self.participant.post(page.action, {**page.fields, "agreed": "yes"}))
        self.page = BotPage(self.participant.post(page.action, page.fields))
        self.experimenter = self.server.app.test_client()
        assert sign_in(self.experimenter, "words").status_code == 303

    def answer(self):
        """Send an answer once; gives the status and the page."""
        timings = json.dumps({"x": "y" * 4000})
        body = f"question={self.page.fields['question']}&side=left&timings={timings}"
        address = self.server.address + self.page.action
        status, _, text = self.participant._once("POST", address, body)
        if status == 200:
            self.page = BotPage(text)
        return status, text

    def stored(self):
        return self.database.read(lambda c: c.execute("SELECT count(*) FROM answers").fetchone()[0])

    def health(self):
        """(status, what it says) of /health."""
        try:
            with urllib.request.urlopen(f"{self.server.address}/health", timeout=60) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def shown(self):
        """What the monitor says about storage; its pages must be there."""
        assert self.experimenter.get("/monitor/words/").status_code == 200
        reply = self.experimenter.get("/monitor/words/data")
        assert reply.status_code == 200
        return reply.json["storage"]

    def close(self):
        self.participant.close()
        self.server.close()


@pytest.fixture
def site(tmp_path, monkeypatch):
    # What was found out is looked at again at once, instead of after some seconds.
    monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(health, "WAIT_SECONDS", 20.0)
    monkeypatch.setattr(writer, "BUSY_SECONDS", 0.2)
    opened = Site(tmp_path / "words")
    yield opened
    opened.close()


def full(site):
    connection = site.database.writer._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    return lambda: connection.execute("PRAGMA max_page_count = 1000000")


def read_only(site):
    connection = site.database.writer._connection
    connection.execute("PRAGMA query_only = 1")
    return lambda: connection.execute("PRAGMA query_only = 0")


def gone(site):
    away = site.database.path.rename(site.database.path.with_name("away.db"))
    return lambda: away.rename(site.database.path)


def locked(site):
    other = sqlite3.connect(site.database.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other.close


@pytest.mark.parametrize(
    ("harm", "name"),
    [
        (full, "disk full"),
        (read_only, "read-only"),
        (locked, "database busy"),
        pytest.param(
            gone,
            "study.db is gone",
            marks=pytest.mark.skipif(os.name != "posix", reason="an open file cannot be moved"),
        ),
    ],
)
def test_an_error_has_the_same_name_everywhere_and_clears_by_itself(site, harm, name, capfd):
    assert site.answer()[0] == 200
    assert site.health()[0] == 200
    assert site.shown() is None
    undo, acknowledged = harm(site), 1
    # Nobody has to answer for it to be noticed.
    status, said = site.health()
    assert (status, said["ok"]) == (503, False)
    assert said["studies"][0]["writer"] == "failed"
    assert said["studies"][0]["error"] == name
    assert "words" not in json.dumps(said)
    # Pages that are there already may still hold an answer or two.
    status, text = 200, ""
    while status == 200:
        status, text = site.answer()
        acknowledged += status == 200
        assert acknowledged < 50
    assert status == 503
    assert 'data-kind="trouble"' in text
    assert site.answer()[0] == site.answer()[0] == 503
    # Long since the session was last seen: that cannot be written down, and need not be.
    site.clock.ms += 10 * TOUCH_MS
    shown = site.shown()
    assert shown["name"] == name
    assert shown["meaning"].endswith(".") and shown["advice"].endswith(".")
    if harm is not full:  # there may still be room for a word
        refused = post(site.experimenter, "words", "control/pause")
        assert refused.status_code == 503
        assert shown["meaning"] in refused.json["problem"]
        assert "Nothing was changed" in refused.json["problem"]
        form = {"csrf": csrf_token(site.experimenter), "study": "words", "password": PASSWORD}
        entering = site.experimenter.post("/monitor/sign-in", data=form)
        assert entering.status_code == 503 and shown["meaning"] in entering.text
    assert site.stored() == acknowledged
    # Once on the terminal, not once for everybody who meets it.
    assert capfd.readouterr().err.count(shown["meaning"]) <= 2
    undo()
    assert site.health()[0] == 200
    assert site.answer()[0] == 200
    assert site.stored() == acknowledged + 1
    assert site.shown() is None


def test_health_and_pages_do_not_wait_for_a_writer_that_hangs(site, monkeypatch):
    monkeypatch.setattr(health, "STUCK_SECONDS", 0.0)
    monkeypatch.setattr(health, "WAIT_SECONDS", 0.02)
    begun, go = threading.Event(), threading.Event()

    def hang(c):
        begun.set()
        assert go.wait(60)

    site.clock.ms += 10 * TOUCH_MS
    with ThreadPoolExecutor(THREADS + 3) as pool:
        hanging = pool.submit(site.database.write, hang)
        assert begun.wait(20)
        # Every thread of the server waits for the writer, and two more requests for a thread.
        answers = [pool.submit(ask, site) for _ in range(THREADS + 2)]
        for _ in range(5):
            status, said = site.health()
            assert status == 503
            assert said["studies"][0]["writer"] == "stuck"
            assert said["studies"][0]["error"] == "writer not responding"
        # Not over HTTP, where all threads are taken: the page itself must not wait.
        assert site.shown()["name"] == "writer not responding"
        assert not any(answer.done() for answer in answers)
        go.set()
        hanging.result(20)
        assert {answer.result(60) for answer in answers} == {303}
    # Any commit that is under way counts as stuck here: one may be, for a moment.
    wait_until(lambda: site.health()[0] == 200)


def ask(site):
    """Come by the link as a participant new, which has to be stored; the status."""
    own = Browser(site.server.address, threading.Event())
    try:
        return own._once("GET", f"{site.server.address}/s/words/", None)[0]
    finally:
        own.close()


def test_the_monitor_shows_what_it_read_last_when_nothing_can_be_read(site):
    assert site.shown() is None
    site.database._shared.close()
    reply = site.experimenter.get("/monitor/words/data")
    assert reply.status_code == 200
    assert reply.json["storage"]["name"] == "database error"
    assert reply.json["where"]["answers"] == 0


def test_the_workers_heartbeat_is_shown(site):
    from server.store import heartbeat

    assert site.health()[1]["studies"][0] == {
        "writer": "ok",
        "worker": "unknown",
        "heartbeat_seconds": None,
    }
    site.database.write(lambda c: heartbeat.beat(c, site.clock.ms - 1500, 1, "waiting"))
    study = site.health()[1]["studies"][0]
    assert (study["worker"], study["heartbeat_seconds"]) == ("alive", 1.5)
    site.clock.ms += 61_000
    study = site.health()
    # A worker that is away keeps nobody from answering.
    assert study[0] == 200 and study[1]["studies"][0]["worker"] == "silent"
