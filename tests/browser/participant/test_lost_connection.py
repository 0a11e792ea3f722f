"""A lost connection delays a participant but loses no answer."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from tests.browser.participant_pages import Walk, rows
from tests.support.live_server import write_study
from tests.support.open_study import SIDES

BARE = "[session]\npractice = 0\nbreak_every = 0\ntrials = 20\n"
COUNT = "SELECT count(*) FROM answers"


def at_a_trial(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", BARE))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("trial")
    return server, walk


def test_offline_in_the_middle_of_an_answer(window, serve, tmp_path):
    server, walk = at_a_trial(window, serve, tmp_path)
    banner = walk.page.locator("#connection")
    walk.page.context.set_offline(True)

    def answer() -> None:
        walk.page.keyboard.press("ArrowRight")
        expect(banner).to_be_visible()
        expect(banner).to_contain_text("The connection was lost")
        expect(walk.page.locator("[value=right][data-chosen]")).to_be_visible()
        assert walk.axe() == []
        walk.page.keyboard.press("ArrowLeft")
        walk.page.get_by_role("button", name="Try again").click()
        expect(banner).to_be_visible()
        assert rows(server, "words", COUNT) == [(0,)]
        walk.page.context.set_offline(False)

    walk.answer(answer)
    expect(banner).to_be_hidden()
    assert rows(server, "words", SIDES) == [("right",)]
    walk.answer()
    assert rows(server, "words", COUNT) == [(2,)]


def test_a_reply_that_got_lost_is_asked_for_again(window, serve, tmp_path):
    server, walk = at_a_trial(window, serve, tmp_path)
    lost = []

    def lose_the_reply(route) -> None:
        if len(lost) < 2:
            route.fetch()
            lost.append(rows(server, "words", COUNT))
            route.abort()
        else:
            route.continue_()

    walk.page.route("**/answer", lose_the_reply)
    walk.answer()
    assert lost == [[(1,)], [(1,)]], "it was stored, and stored once"
    assert walk.page.get_by_text("2 of 20", exact=True).is_visible()


def test_a_server_with_an_error_is_asked_again_and_the_studys_text_shown(window, serve, tmp_path):
    server, walk = at_a_trial(window, serve, tmp_path)
    asked = []

    def unavailable(route) -> None:
        asked.append(route)
        if len(asked) == 1:
            route.fulfill(status=503, body="busy")
        else:
            route.continue_()

    walk.page.route("**/answer", unavailable)

    def answer() -> None:
        walk.page.keyboard.press("1")
        expect(walk.page.locator("#connection")).to_contain_text("technical problem on our side")

    walk.answer(answer)
    assert rows(server, "words", COUNT) == [(1,)]


def test_an_answer_on_its_way_when_the_page_was_closed_is_not_lost(window, serve, tmp_path):
    server, walk = at_a_trial(window, serve, tmp_path)
    walk.page.context.set_offline(True)
    walk.page.keyboard.press("ArrowRight")
    expect(walk.page.locator("#connection")).to_be_visible()
    sent = walk.page.evaluate("() => document.querySelector('[name=timings]').value")
    walk.page.context.set_offline(False)
    walk.page.reload()
    expect(walk.page.get_by_text("2 of 20", exact=True)).to_be_visible()
    assert walk.stage
    ((side, timings),) = rows(server, "words", SIDES.replace(" FROM", ", timings FROM"))
    assert side == "right" and json.loads(timings) == json.loads(sent)
