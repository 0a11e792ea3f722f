"""Audio and video: played by keyboard, and played before they are judged."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.browser.participant_pages import Walk, rows
from tests.support.media import audio_clips, videos, write_media_study
from tests.support.open_study import SIDES

BARE = "[session]\npractice = 0\nbreak_every = 0\ntrials = 3\n"
TIMINGS = "SELECT timings FROM answers ORDER BY seq"


@pytest.fixture(params=["audio", "video"])
def files(request, chromium):
    if request.param == "audio":
        return audio_clips()
    names = ("a.webm", "b.webm", "c.webm", "d.webm")
    return dict(zip(names, videos(chromium, 4), strict=True))


def at_first_trial(walk: Walk) -> None:
    walk.press("I agree")
    walk.page.get_by_role("button", name="Begin").click()
    expect(walk.page.locator(".trial[data-state=viewing]")).to_be_visible()


def test_everything_is_played_once_by_keyboard_then_answered(window, serve, tmp_path, files):
    server = serve(write_media_study(tmp_path / "media", files, BARE))
    walk = Walk(window(), f"{server.address}/s/media/")
    at_first_trial(walk)
    assert walk.axe() == []
    hint = walk.page.get_by_text("Please play each of them once")
    expect(hint).to_be_visible()
    walk.page.keyboard.press("ArrowLeft")
    walk.page.locator("[value=left]").click()
    for button in walk.page.locator(".play").all():
        expect(hint).to_be_visible()
        for _ in range(6):
            walk.page.keyboard.press("Tab")
            if button.evaluate("(one) => one === document.activeElement"):
                break
        walk.page.keyboard.press("Enter")
        expect(button).to_have_attribute("data-played", "")
    expect(hint).to_be_hidden()
    heard = walk.page.locator("audio, video").first.get_attribute("aria-label")
    expect(walk.page.get_by_role("status").first).to_contain_text(f"{heard}. Left: words for")
    walk.page.keyboard.press("ArrowRight")
    expect(walk.page.get_by_text("2 of 3", exact=True)).to_be_visible()
    found = [json.loads(row[0]) for row in rows(server, "media", TIMINGS)]
    assert [finding["played"] for finding in found] == [{"anchor": 1, "left": 1, "right": 1}]
    assert walk.complaints == []


def test_the_whole_card_chooses_and_playing_again_does_not(window, serve, tmp_path):
    rules = "[trial]\nmust_play = false\n"
    server = serve(write_media_study(tmp_path / "media", audio_clips(), BARE + rules))
    walk = Walk(window(), f"{server.address}/s/media/")
    walk.until("trial")
    play = walk.page.locator(".option .play").first
    play.click()
    expect(play).to_have_attribute("data-played", "")
    assert rows(server, "media", "SELECT count(*) FROM answers") == [(0,)]
    walk.answer(lambda: walk.page.locator(".option").last.click(position={"x": 6, "y": 6}))
    assert rows(server, "media", SIDES) == [("right",)]


def test_media_that_cannot_be_played_block_no_participant(window, serve, tmp_path):
    server = serve(write_media_study(tmp_path / "media", audio_clips(), BARE))
    context = window()
    context.route("**/stimulus/*", lambda route: route.fulfill(body="no sound"))
    walk = Walk(context, f"{server.address}/s/media/")
    walk.until("trial")
    walk.page.keyboard.press("1")
    expect(walk.page.get_by_text("2 of 3", exact=True)).to_be_visible()
    found = json.loads(rows(server, "media", TIMINGS)[0][0])
    assert len(found["failed"]) == 3


def test_with_scripts_off_the_browsers_own_controls_are_there(window, serve, tmp_path):
    server = serve(write_media_study(tmp_path / "media", audio_clips(), BARE))
    page = window(java_script_enabled=False).new_page()
    page.goto(f"{server.address}/s/media/")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").click()
    assert page.locator("audio[controls]").count() == 3
    page.get_by_role("button", name="Left").click()
    assert rows(server, "media", "SELECT count(*) FROM answers") == [(1,)]
