"""An answer counts once, and only when the trial has been seen."""

from __future__ import annotations

import json

from flask import request, request_started
from playwright.sync_api import expect

from tests.browser.monitor_pages import wait_for
from tests.browser.participant_pages import Walk, rows
from tests.support.live_server import write_study
from tests.support.media import images, write_media_study
from tests.support.open_study import SIDES

BARE = "[session]\npractice = 0\nbreak_every = 0\ntrials = 20\n"


def test_double_clicks_count_once(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", BARE))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("trial")
    for done in (1, 2, 3):
        walk.answer(lambda: walk.page.locator("[value=left]").click(click_count=3, delay=1))
        assert rows(server, "words", "SELECT count(*) FROM answers") == [(done,)]


def test_a_held_key_counts_once(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", BARE))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("trial")

    def hold() -> None:
        for _ in range(12):
            walk.page.keyboard.down("ArrowRight")

    walk.answer(hold)
    for _ in range(5):
        walk.page.keyboard.down("ArrowRight")
    question = walk.question
    walk.page.keyboard.up("ArrowRight")
    assert walk.question == question
    assert rows(server, "words", "SELECT count(*) FROM answers") == [(1,)]


def test_a_new_page_settles_before_its_buttons_can_be_pressed(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", BARE))
    walk = Walk(window(reduced_motion="reduce"), f"{server.address}/s/words/")
    assert walk.kind == "consent"
    # Inspected at the moment they appear, long before they accept responses.
    at_first = walk.page.evaluate(
        """() => new Promise((done) => {
          new MutationObserver(() => {
            const button = document.querySelector("#stage [data-kind=instructions] button");
            if (button) done(getComputedStyle(button).pointerEvents);
          }).observe(document.getElementById("stage"), {childList: true});
          document.querySelector("[value=yes]").click();
        })"""
    )
    assert at_first == "none"
    begin = walk.page.get_by_role("button", name="Begin")
    expect(begin).to_have_css("pointer-events", "auto")
    walk.press("Begin")
    assert walk.kind == "trial"


def test_it_does_so_without_scripts_too(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", BARE))
    page = window(java_script_enabled=False, reduced_motion="reduce").new_page()
    page.goto(f"{server.address}/s/words/")
    for button in ("[value=yes]", "[data-kind=instructions] button", ".trial [value=left]"):
        expect(page.locator(button)).to_have_css("animation-name", "settling")
        expect(page.locator(button)).to_have_css("animation-duration", "0.2s")
        page.locator(button).click()
    expect(page.get_by_text("2 of 20", exact=True)).to_be_visible()


# Synthetic browser events with a given time stamp; returns whether they were let through.
HAPPEN = """([which, events]) => events.map(([kind, about, time]) => {
  const Kind = kind.startsWith("key") ? KeyboardEvent : PointerEvent;
  const event = new Kind(kind, {bubbles: true, cancelable: true, ...about});
  Object.defineProperty(event, "timeStamp", {value: time ?? event.timeStamp});
  return document.querySelector(which).dispatchEvent(event);
})"""


def first_viewed(walk: Walk) -> float:
    """Begin, and wait for the trial; returns when it became visible, just before its onset."""
    walk.page.evaluate(
        """() => new MutationObserver((_, observer) => {
          if (!document.querySelector(".trial[data-state=viewing]")) return;
          window.viewed = performance.now();
          observer.disconnect();
        }).observe(document, {subtree: true, childList: true, attributeFilter: ["data-state"]})"""
    )
    walk.press("Begin")
    return walk.page.evaluate("() => viewed")


def test_a_press_that_began_before_the_trial_was_shown_does_not_answer_it(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", BARE))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("instructions")
    before = walk.page.evaluate("() => performance.now()")
    walk.press("Begin")
    release = [["pointerup", {}, None], ["click", {"detail": 1}, None]]
    press = [["pointerdown", {}, before], *release]
    walk.page.evaluate(HAPPEN, ["[value=left]", press])
    assert walk.page.locator(".trial[data-state=open]").count() == 1
    assert rows(server, "words", "SELECT count(*) FROM answers") == [(0,)]
    press = [["pointerdown", {}, None], *release]
    walk.answer(lambda: walk.page.evaluate(HAPPEN, ["[value=left]", press]))
    assert rows(server, "words", "SELECT count(*) FROM answers") == [(1,)]


def test_a_key_pressed_before_the_trial_has_settled_does_not_answer_it(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", BARE))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("instructions")
    # The onset is later than this, so the press falls into the 200 ms that follow it.
    early = [["keydown", {"key": "1"}, first_viewed(walk) + 180]]
    walk.page.evaluate(HAPPEN, ["#stage", early])
    assert walk.page.locator(".trial[data-state=open]").count() == 1
    walk.answer(lambda: walk.page.evaluate(HAPPEN, ["#stage", [["keydown", {"key": "2"}, None]]]))
    assert rows(server, "words", SIDES) == [("right",)]


def test_the_second_half_of_a_double_click_belongs_to_the_page_of_the_first(
    window, serve, tmp_path
):
    server = serve(write_study(tmp_path / "words", BARE))
    walk = Walk(window(), f"{server.address}/s/words/")
    # No clicks are accepted in the first 200 ms.
    assert walk.kind == "consent"
    first = walk.page.evaluate("() => performance.now()")
    click = ["[value=yes]", [["click", {"detail": 1}, first]]]
    walk.answer(lambda: walk.page.evaluate(HAPPEN, click))
    for detail, later in ((2, 500), (3, 1000), (4, 1900)):
        click = ["#stage button", [["click", {"detail": detail}, first + later]]]
        assert walk.page.evaluate(HAPPEN, click) == [False], "as slow as some systems let it be"
        assert walk.kind == "instructions"
    # A click this much later is separate, even if the system counts it as a double click.
    late = ["#stage button", [["click", {"detail": 5}, first + 3000]]]
    walk.answer(lambda: walk.page.evaluate(HAPPEN, late))
    assert walk.kind == "trial"


def test_a_click_without_a_press_answers(window, serve, tmp_path):
    """A click without a press, as from screen readers and switch devices."""
    server = serve(write_study(tmp_path / "words", BARE))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("trial")
    long_ago = [["pointerdown", {}, 1], ["pointerup", {}, 2]]
    walk.page.evaluate(HAPPEN, ["#stage", long_ago])
    walk.answer(lambda: walk.page.evaluate("() => document.querySelector('[value=left]').click()"))
    assert rows(server, "words", "SELECT count(*) FROM answers") == [(1,)]


def test_double_clicks_on_consent_do_not_skip_the_instructions(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", BARE))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.answer(lambda: walk.page.get_by_role("button", name="I agree").dblclick())
    assert walk.kind == "instructions"


def test_keys_are_ignored_until_the_images_are_painted(window, serve, tmp_path):
    server = serve(write_media_study(tmp_path / "media", images(), BARE))
    context = window()
    held, holding = [], [True]
    context.route(
        "**/stimulus/*", lambda route: held.append(route) if holding else route.continue_()
    )
    walk = Walk(context, f"{server.address}/s/media/")
    walk.press("I agree")
    walk.page.get_by_role("button", name="Begin").click()
    trial = walk.page.locator(".trial[data-state=loading]")
    expect(trial).to_have_count(1)
    expect(walk.page.locator(".triad")).to_be_hidden()
    for key in ("ArrowLeft", "1", "2", "3"):
        walk.page.keyboard.press(key)
    expect(walk.page.get_by_text("One moment, please")).to_be_visible()
    holding.clear()
    for route in held:
        route.continue_()
    assert walk.stage
    assert rows(server, "media", "SELECT count(*) FROM answers") == [(0,)]
    walk.answer()
    assert rows(server, "media", "SELECT count(*) FROM answers") == [(1,)]


def test_an_image_that_gets_lost_is_fetched_again(window, serve, tmp_path):
    server = serve(write_media_study(tmp_path / "media", images(), BARE))
    context, lost = window(), []

    def lose_each_once(route) -> None:
        again = route.request.url in lost
        lost.append(route.request.url)
        route.continue_() if again else route.abort()

    context.route("**/stimulus/*", lose_each_once)
    walk = Walk(context, f"{server.address}/s/media/")
    walk.until("trial")
    assert all(walk.page.locator("img").evaluate_all("(all) => all.map((i) => i.naturalWidth)"))
    walk.answer()
    assert "failed" not in json.loads(rows(server, "media", "SELECT timings FROM answers")[0][0])


def test_an_image_that_does_not_load_blocks_no_participant(window, serve, tmp_path):
    server = serve(write_media_study(tmp_path / "media", images(), BARE))
    context = window()
    context.route("**/stimulus/*", lambda route: route.abort())
    walk = Walk(context, f"{server.address}/s/media/")
    walk.until("trial")
    walk.page.keyboard.press("1")
    expect(walk.page.get_by_text("2 of 20", exact=True)).to_be_visible()
    found = json.loads(rows(server, "media", "SELECT timings FROM answers")[0][0])
    assert len(found["failed"]) == 3


def test_the_next_images_are_preloaded(window, serve, tmp_path):
    server = serve(write_media_study(tmp_path / "media", images(6), BARE))
    asked = []
    count = lambda app, **_: asked.append(request.path)  # noqa: E731
    with request_started.connected_to(count, server.app):
        walk = Walk(window(), f"{server.address}/s/media/")
        walk.until("trial")
        for _ in range(4):
            upcoming = walk.stage.get_attribute("data-upcoming").split()
            loaded = "(all) => all.every((one) => performance.getEntriesByName(one).length)"
            wait_for(walk.page, loaded, [server.address + path for path in upcoming])
            before = len(asked)
            walk.answer()
            shown = walk.page.locator(".triad img")
            assert [image.get_attribute("src") for image in shown.all()] == upcoming
            assert not set(upcoming) & set(asked[before:])
    fetched = [path for path in asked if "/stimulus/" in path]
    assert len(fetched) == len(set(fetched)), "each is fetched once"


def test_minimum_view_time(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", f"{BARE}[trial]\nmin_view_ms = 700\n"))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("instructions")
    viewed = first_viewed(walk)
    early = viewed + 680
    for events in (
        [["keydown", {"key": "1"}, early]],
        [["pointerdown", {}, early], ["pointerup", {}, early], ["click", {"detail": 1}, early]],
    ):
        walk.page.evaluate(HAPPEN, ["[value=left]", events])
    assert walk.page.locator(".trial[data-state=open]").count() == 1
    walk.answer()
    ((count, rt),) = rows(server, "words", "SELECT count(*), min(rt_ms) FROM answers")
    assert count == 1 and rt >= 700


def test_a_key_pressed_before_the_trial_was_seen_does_not_answer_it(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", BARE))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.press("I agree")
    early = "new KeyboardEvent('keydown', {key: '1', bubbles: true})"
    walk.page.evaluate(f"() => {{ window.early = {early}; }}")
    walk.press("Begin")
    walk.page.evaluate("() => document.dispatchEvent(early)")
    assert walk.page.locator(".trial[data-state=open]").count() == 1
    walk.page.evaluate(f"() => document.dispatchEvent({early})")
    expect(walk.page.get_by_text("2 of 20", exact=True)).to_be_visible()
    assert rows(server, "words", "SELECT count(*) FROM answers") == [(1,)]


def test_time_out_and_interval(window, serve, tmp_path):
    rules = "[trial]\ntimeout_ms = 400\ninterval_ms = 300\n"
    server = serve(write_study(tmp_path / "words", BARE.replace("20", "2") + rules))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.press("I agree")
    begun = walk.page.evaluate("() => performance.now()")
    walk.page.get_by_role("button", name="Begin").click()
    expect(walk.page.locator(".note")).to_contain_text("You ran out of time")
    expect(walk.page.locator("[data-kind=feedback]")).to_be_visible()
    assert walk.page.evaluate("() => performance.now()") - begun >= 2 * (400 + 300)
    found = rows(server, "words", SIDES.replace(" FROM", ", rt_ms FROM"))
    assert [side for side, _ in found] == ["timeout", "timeout"]
    assert all(400 <= rt < 900 for _, rt in found)
