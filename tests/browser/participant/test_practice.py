"""Practice feedback shows on the trial itself what most people choose."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.participant_pages import Walk, rows
from tests.support.live_server import write_study
from tests.support.media import audio_clips, images, write_media_study
from tests.support.open_study import SIDES

TOML = """
[session]
trials = 3
practice = 3
break_every = 0
[trial]
skip = true
"""
# Devices treat two taps in one place within this time as a double tap.
APART_MS = 1000
PHONE = {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True}


def stimuli(page: Page) -> list[str]:
    """What is compared, in order."""
    return page.locator(".triad img, .triad .text").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('src') || one.textContent)"
    )


def nearer(page: Page) -> str:
    """The side of the known answer: the item that is also the anchor."""
    anchor, left, _ = stimuli(page)
    return "left" if left == anchor else "right"


def marks(page: Page) -> dict[str, str]:
    """What is written on each option."""
    return {
        side: " ".join(page.locator(f".option.{side} .mark").all_text_contents())
        for side in ("left", "right")
    }


OTHER = {"left": "right", "right": "left"}


@pytest.mark.parametrize("kind", ["words", "images"])
@pytest.mark.parametrize("device", ["mouse", "touch", "keys"])
def test_the_choice_is_marked_on_the_trial(window, serve, tmp_path, device, kind):
    if kind == "words":
        server = serve(write_study(tmp_path / "study", TOML))
    else:
        server = serve(write_media_study(tmp_path / "study", images(), TOML))
    walk = Walk(window(**(PHONE if device == "touch" else {})), f"{server.address}/s/study/")
    page = walk.page

    def choose(side: str) -> None:
        target = page.locator(f".trial [value={side}]")
        keys = {"left": "1", "right": "2", "skip": "3"}
        if device == "keys":
            page.keyboard.press(keys[side])
        else:
            press(target)

    def press(target: Locator) -> None:
        if device == "touch":
            page.wait_for_timeout(APART_MS)
            target.tap()
        else:
            target.click()

    def carry_on() -> None:
        if device == "keys":
            page.keyboard.press("Enter")
        else:
            press(page.get_by_role("button", name="Continue"))

    walk.until("practice")
    for what, note in (
        ("right", "Yes, most people choose this one."),
        ("wrong", "Most people choose the other one."),
        ("skip", "Most people choose the one marked here."),
    ):
        assert walk.kind == "practice"
        shown, known = stimuli(page), nearer(page)
        side = {"right": known, "wrong": OTHER[known], "skip": "skip"}[what]
        walk.answer(lambda side=side: choose(side))
        assert walk.kind == "practice_feedback"
        assert stimuli(page) == shown, "the same trial"
        expected = {"left": "", "right": ""}
        if what != "right":
            expected[known] = "Most people's choice"
        if what != "skip":
            expected[side] = "Your choice"
        assert marks(page) == expected
        expect(page.locator(".note")).to_contain_text(note)
        expect(page.locator("#announcement")).to_contain_text(note)
        assert page.locator("[name=side]").count() == 0, "it is answered"
        assert walk.axe() == []
        walk.answer(carry_on)
    assert walk.kind == "ready" and walk.page.locator(".note").count() == 0
    assert walk.complaints == []
    assert rows(server, "study", "SELECT count(*) FROM answers") == [(3,)]


@pytest.mark.parametrize("scripts", [True, False])
def test_a_reload_shows_the_same_feedback(window, serve, tmp_path, scripts):
    server = serve(write_study(tmp_path / "words", TOML))
    page = window(java_script_enabled=scripts).new_page()
    page.goto(f"{server.address}/s/words/")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").click()
    for what in ("left", "skip"):
        ready = "[data-state=open] " if scripts else ""
        page.locator(f".trial{ready or ' '}[value={what}]").click()
        expect(page.locator("[data-kind=practice_feedback]")).to_be_visible()
        before = stimuli(page), marks(page), page.locator(".note").text_content()
        assert "ost people choose" in before[2]
        for _ in range(2):
            page.reload()
            assert before == (stimuli(page), marks(page), page.locator(".note").text_content())
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("[data-kind=practice]")).to_be_visible()
    assert rows(server, "words", SIDES) == [("left",), ("skip",)]


def test_audio_can_be_played_again(window, serve, tmp_path):
    toml = TOML.replace("skip = true", "skip = true\nmust_play = false")
    server = serve(write_media_study(tmp_path / "tones", audio_clips(), toml))
    walk = Walk(window(), f"{server.address}/s/tones/")
    walk.until("practice_feedback")
    assert walk.page.locator("audio[controls]").count() == 3
    assert walk.axe() == []
    walk.press("Continue")
    assert walk.kind == "practice"
