"""Every page can be used with the keyboard alone, and focus is never lost."""

from __future__ import annotations

import json
from itertools import cycle

from playwright.sync_api import expect

from server.collection.screens import CONTINUED
from tests.browser.participant_pages import WHOLE, Walk, rows
from tests.support.live_server import write_study
from tests.support.open_study import SIDES

FOCUS = "() => document.activeElement === document.body ? '' : document.activeElement.tagName"
RING = "() => getComputedStyle(document.activeElement).outlineStyle !== 'none'"


UNDERLINED = "() => getComputedStyle(document.activeElement).textDecorationLine !== 'none'"


def tab_to(walk: Walk, name: str) -> None:
    for _ in range(8):
        walk.page.keyboard.press("Tab")
        assert walk.page.evaluate(RING), "focus must be seen"
        words = walk.page.evaluate("() => document.activeElement.textContent")
        if name in words:
            return
    raise AssertionError(f"Tab does not reach {name}")


def test_a_whole_study_without_a_pointer(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    walk = Walk(window(), f"{server.address}/s/words/")
    keys = iter(["ArrowLeft", "1", "ArrowRight", "2", "3", "Enter", " ", "ArrowLeft"])
    continuing = cycle(["Enter", " "])
    while walk.kind != "finished":
        kind = walk.kind
        if kind == "consent":
            for key in ("Enter", " "):
                walk.page.keyboard.press(key)
            assert walk.kind == kind, "consent is given on purpose"
            tab_to(walk, "I agree")
            walk.answer(lambda: walk.page.keyboard.press("Enter"))
        elif kind in ("instructions", *CONTINUED):
            walk.answer(lambda: walk.page.keyboard.press(next(continuing)))
        elif kind == "feedback":
            walk.page.keyboard.press("Tab")
            walk.page.keyboard.type("all 1 2 3 well")
            walk.page.keyboard.press("Tab")
            walk.answer(lambda: walk.page.keyboard.press("Enter"))
        else:
            key = next(keys)
            if key in ("Enter", " "):
                tab_to(walk, "Right")
            walk.answer(lambda key=key: walk.page.keyboard.press(key))
        assert walk.page.evaluate(FOCUS) == "H1", "focus goes to the new page's heading"
        assert not walk.page.evaluate(UNDERLINED), "which does not look like a link"
    sides = [row[0] for row in rows(server, "words", f"{SIDES} ORDER BY seq")]
    assert sides == ["left", "left", "right", "right", "skip", "right", "right", "left"]
    kinds = rows(server, "words", "SELECT timings FROM answers")
    assert {json.loads(row[0])["pointer"] for row in kinds} == {"key"}
    assert rows(server, "words", "SELECT feedback FROM participants") == [("all 1 2 3 well",)]


def test_other_keys_answer_nothing(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", "[session]\npractice = 0\ntrials = 3\n"))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("trial")
    question = walk.question
    for key in ("Control+1", "Alt+1", "Shift+ArrowLeft", "x", "Enter", " ", "4"):
        walk.page.keyboard.press(key)
    assert walk.question == question
    walk.answer()
    assert walk.question != question
    assert rows(server, "words", "SELECT count(*) FROM answers") == [(1,)]


def test_a_screen_reader_hears_the_new_trial(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", "[session]\npractice = 0\ntrials = 9\n"))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("trial")
    for number in (1, 2):
        items = walk.page.locator("[data-item] .text").all_text_contents()
        said = f"{number} of 9. Compare with this {items[0]}. Left: {items[1]}. Right: {items[2]}"
        expect(walk.page.get_by_role("status").first).to_have_text(said)
        assert walk.page.get_by_role("button", name=f"Left: {items[1]}").is_visible()
        walk.answer()
