"""Answers over real HTTP: many at once, the same one many times, and a database with errors."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest

from server.processes.bots import BotPage, Browser
from tests.support.live_server import LiveServer, write_study

TOML = """
[session]
trials = 40
rush_ms = 0
practice = 0
break_every = 0
feedback = false
"""


@pytest.fixture
def server(tmp_path):
    opened = LiveServer(write_study(tmp_path / "words", TOML))
    opened.browsers = []
    yield opened
    for window in opened.browsers:
        window.close()
    opened.close()


def browser(server):
    server.browsers.append(Browser(server.address, threading.Event()))
    return server.browsers[-1]


def new_participant(server):
    """A page with the first question."""
    own = browser(server)
    page = BotPage(own.get("/s/words/"))
    page = BotPage(own.post(page.action, {**page.fields, "agreed": "yes"}))
    return own, BotPage(own.post(page.action, page.fields))


def rows(server, sql):
    database = server.studies["words"].database
    return database.read(lambda c: [tuple(row) for row in c.execute(sql)])


def test_the_same_answer_fifty_times_at_once_for_a_hundred_questions(server):
    pool = ThreadPoolExecutor(50)
    browsers = [browser(server) for _ in range(50)]
    replies, parsed = 0, cache(BotPage)
    for _ in range(5):
        _, page = new_participant(server)
        for _ in range(20):
            fields = {**page.fields, "side": "left"}

            def send(own, page=page, fields=fields):
                following = parsed(own.post(page.action, fields))
                return own.status, following.fields.get("question"), following.action

            outcomes = set(pool.map(send, browsers))
            replies += 50
            assert len(outcomes) == 1, outcomes
            ((status, question, action),) = outcomes
            assert status == 200
            page.fields["question"], page.action = question, action
    pool.shutdown()
    assert replies == 5_000
    assert rows(server, "SELECT count(*), count(DISTINCT query) FROM answers") == [(100, 100)]


def test_a_database_locked_for_ten_seconds_asks_to_try_again(server):
    own, page = new_participant(server)
    database = server.studies["words"].database
    other = sqlite3.connect(database.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(10.0, other.close)
    release.start()
    status, _, text = own._once(
        "POST", server.address + page.action, f"question={page.fields['question']}&side=left"
    )
    assert status == 503
    assert "try again" in text.lower()
    # Trying again, as the page does, succeeds once the lock is gone; the answer is there once.
    own.post(page.action, {**page.fields, "side": "left"})
    assert own.status == 200
    assert rows(server, "SELECT count(*) FROM answers") == [(1,)]
    release.join()


@pytest.mark.parametrize("limit", ["PRAGMA max_page_count = {pages}", "PRAGMA query_only = 1"])
def test_a_full_or_read_only_database_never_acknowledges(server, limit):
    own, page = new_participant(server)
    database = server.studies["words"].database
    undo = {"1": "PRAGMA max_page_count = 1000000", "0": "PRAGMA query_only = 0"}
    connection = database.writer._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(limit.format(pages=pages))
    much = '&side=left&timings={"x":"' + "y" * 4000 + '"}'
    body = f"question={page.fields['question']}{much}"
    refused = 0
    # An answer may still fit into pages that are there already.
    for _ in range(10):
        status, _, text = own._once("POST", server.address + page.action, body)
        if status == 503:
            refused += 1
            break
        assert status == 200
        body = f"question={BotPage(text).fields['question']}{much}"
    assert refused
    acknowledged = rows(server, "SELECT count(*) FROM answers")
    for statement in undo.values():
        connection.execute(statement)
    status, _, text = own._once("POST", server.address + page.action, body)
    assert status == 200
    ((count,),) = acknowledged
    assert rows(server, "SELECT count(*) FROM answers") == [(count + 1,)]


def test_malformed_requests_get_an_error_page(server):
    own, page = new_participant(server)
    for path, body, expected in [
        ("/s/nowhere/", None, 404),
        ("/s/words/p/nonsense", None, 404),
        (page.action, "side=up", 400),
        (page.action, "question=x&side=left", 404),
        (page.action, "side=left&timings=" + "x" * 300_000, 413),
        ("/s/words/stimulus/../../study.toml", None, 404),
    ]:
        method = "GET" if body is None else "POST"
        status, headers, text = own._once(method, server.address + path, body)
        assert status == expected, (path, status)
        assert "Traceback" not in text
        assert headers["x-content-type-options"] == "nosniff"
        own.close()
