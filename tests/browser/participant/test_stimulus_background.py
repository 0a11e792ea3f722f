"""The area around the stimuli: the study's colour, nothing that looks chosen, any screen."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from server.study.contrast import palette
from tests.browser.participant_pages import Walk, first_trial_without_scripts, rows
from tests.support.live_server import Clock, write_study
from tests.support.media import audio_clips, images, videos, write_media_study
from tests.support.study_folders import write

TOML = """
[session]
trials = 12
practice = 1
break_every = 8
[trial]
skip = true
layout = "LAYOUT"
[completion]
code = "DONE-77"
"""
ABOVE, BETWEEN = TOML.replace("LAYOUT", "above"), TOML.replace("LAYOUT", "between")
TOUCH = {"has_touch": True, "is_mobile": True}
GROUND = "(one) => getComputedStyle(one).backgroundColor"


def rgb(colour: str) -> str:
    return f"rgb({int(colour[1:3], 16)}, {int(colour[3:5], 16)}, {int(colour[5:7], 16)})"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("background", ["", "#808080", "#102030"])
def test_every_page_has_the_study_s_background(window, serve, tmp_path, scheme, background):
    toml = ABOVE.replace("trials = 12", "trials = 3").replace("break_every = 8", "break_every = 2")
    if background:
        toml = toml.replace("skip = true", f'background = "{background}"')
    server = serve(write_media_study(tmp_path / "media", images(), toml))
    walk = Walk(window(color_scheme=scheme), f"{server.address}/s/media/")
    background = background or "#ebebeb"
    colours, seen = palette(background), set()
    while True:
        kind = walk.kind
        assert walk.page.locator("body").evaluate(GROUND) == rgb(background), kind
        ink = walk.page.locator("h1").evaluate("(one) => getComputedStyle(one).color")
        assert ink == rgb(colours.ink)
        if kind not in seen:
            assert walk.axe() == [], kind
        if kind == "practice_feedback":
            # Grey letters on black would look as if the button could not be pressed.
            letters = walk.page.locator(".answered .main").evaluate(
                "(one) => getComputedStyle(one).color"
            )
            assert letters == rgb(colours.plate)
        if kind in ("practice", "trial"):
            # Nothing of another colour lies between a stimulus and the page.
            for part in walk.page.locator(".triad, .anchor, .option, .triad img").all():
                assert part.evaluate(GROUND) == "rgba(0, 0, 0, 0)"
        seen.add(kind)
        if kind == "finished":
            break
        walk.step()
    assert seen >= {"consent", "instructions", "practice", "practice_feedback", "trial", "break"}
    stored = rows(server, "media", "SELECT timings FROM answers")
    assert {json.loads(row[0])["background"] for row in stored} == {background}
    assert walk.complaints == []


def border(page: Page, side: str) -> str:
    return page.locator(f".option.{side}").evaluate("(one) => getComputedStyle(one).borderColor")


def test_nothing_looks_chosen_until_the_pointer_moves(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", ABOVE))
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("trial")
    page = walk.page
    box = page.locator(".option.left").bounding_box()
    at = box["x"] + 40, box["y"] + 40
    page.mouse.move(5, 5)
    page.mouse.move(*at)
    assert border(page, "left") != border(page, "right"), "a pointer that moves is answered"
    walk.answer(lambda: page.mouse.click(*at))
    under = "([x, y]) => Boolean(document.elementFromPoint(x, y).closest('.option.left'))"
    assert page.evaluate(under, list(at)), "it rests on the new trial's left option"
    assert border(page, "left") == border(page, "right")
    page.mouse.move(at[0] + 3, at[1])
    assert border(page, "left") != border(page, "right")


def test_nothing_looks_chosen_without_scripts(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", "[session]\npractice = 0\n"))
    page = first_trial_without_scripts(window, f"{server.address}/s/words/")
    page.locator(".option.left").hover()
    assert border(page, "left") == border(page, "right")


def test_texts_fit_the_device(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", ABOVE))
    link = f"{server.address}/s/words/"
    for options, shown, hidden in (
        ({}, "arrow key", "Tap"),
        ({"viewport": {"width": 360, "height": 640}, **TOUCH}, "Tap", "arrow key"),
    ):
        walk = Walk(window(**options), link)
        walk.until("instructions")
        expect(walk.page.get_by_text(shown)).to_be_visible()
        expect(walk.page.get_by_text(hidden)).to_be_hidden()
        example = walk.page.get_by_role("img", name="Example of a question")
        expect(example).to_be_visible()
        walk.until("trial")
        keys = walk.page.locator("kbd:visible").count()
        assert (keys == 0) == bool(options), "nor are keys drawn on a phone"


@pytest.mark.parametrize("layout", ["above", "between"])
@pytest.mark.parametrize("kind", ["words", "images"])
@pytest.mark.parametrize("size", [(667, 375), (568, 320), (844, 390)])
def test_a_phone_on_its_side_cuts_no_button(window, serve, tmp_path, size, kind, layout):
    toml = ABOVE if layout == "above" else BETWEEN
    if kind == "words":
        server = serve(write_study(tmp_path / "study", toml))
    else:
        server = serve(write_media_study(tmp_path / "study", images(), toml))
    width, height = size
    walk = Walk(
        window(viewport={"width": width, "height": height}, **TOUCH), f"{server.address}/s/study/"
    )
    for kind_ in ("consent", "instructions", "practice", "practice_feedback", "ready", "trial"):
        walk.until(kind_)
        assert walk.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        for part in walk.page.locator("#stage button, .triad img, .triad .text").all():
            box = part.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= height + 0.5, (kind_, box)
            assert box["x"] >= 0 and box["x"] + box["width"] <= width + 0.5, (kind_, box)
        if kind_ in ("trial", "practice_feedback"):
            free = walk.page.locator(".skip, .answered .main").bounding_box()
            for part in walk.page.locator(".anchor img, .anchor .text, .option").all():
                other = part.bounding_box()
                apart = (
                    free["x"] >= other["x"] + other["width"]
                    or other["x"] >= free["x"] + free["width"]
                    or free["y"] >= other["y"] + other["height"]
                    or other["y"] >= free["y"] + free["height"]
                )
                assert apart, f"what continues covers a stimulus: {free} {other}"


def test_nor_with_audio_and_video(window, chromium, serve, tmp_path):
    moving = dict(zip(("a.webm", "b.webm", "c.webm", "d.webm"), videos(chromium, 4), strict=True))
    for kind, files in (("videos", moving), ("tones", audio_clips())):
        server = serve(write_media_study(tmp_path / kind, files, "[session]\npractice = 0\n"))
        for width, height in ((667, 375), (568, 320)):
            viewport = {"width": width, "height": height}
            walk = Walk(window(viewport=viewport, **TOUCH), f"{server.address}/s/{kind}/")
            walk.press("I agree")
            walk.page.get_by_role("button", name="Begin").click()
            expect(walk.page.locator(".trial[data-state=viewing]")).to_be_visible()
            for part in walk.page.locator(".trial button, video").all():
                box = part.bounding_box()
                assert box["y"] >= 0 and box["y"] + box["height"] <= height + 0.5, (kind, box)
                assert box["x"] >= 0 and box["x"] + box["width"] <= width + 0.5, (kind, box)


def test_images_without_labels_have_neutral_names(window, serve, tmp_path):
    files = {f"stimuli/{name}": content for name, content in images().items()}
    toml = f'title = "Pictures"\n{ABOVE}'
    server = serve(write(tmp_path / "media", {"study.toml": toml, **files}))
    walk = Walk(window(), f"{server.address}/s/media/")
    for kind in ("practice", "practice_feedback", "trial"):
        walk.until(kind)
        names = walk.page.locator(".triad img").evaluate_all("(all) => all.map((one) => one.alt)")
        assert names == ["Image A", "Image B", "Image C"]
    assert walk.page.get_by_role("button", name="Left: Image B").is_visible()


def test_progress_begins_with_1_and_shows_the_minutes_left(window, serve, tmp_path):
    clock = Clock()
    server = serve(write_study(tmp_path / "words", ABOVE), clock=clock)
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("trial")
    said = []
    for _ in range(7):
        number = walk.page.locator("#done").text_content()
        left = walk.page.locator(".minutes")
        said.append((number, left.text_content() if left.count() else ""))
        clock.wait(20_000)
        walk.answer()
    assert said == [
        *((f"{number} of 12", "") for number in range(1, 6)),
        ("6 of 12", "about 3 min left"),
        ("7 of 12", "about 2 min left"),
    ]


def test_who_hurries_is_asked_to_take_their_time(window, serve, tmp_path):
    clock = Clock()
    toml = ABOVE.replace("break_every = 8", "break_every = 0")
    server = serve(write_study(tmp_path / "words", toml), clock=clock)
    walk = Walk(window(), f"{server.address}/s/words/")
    walk.until("trial")
    while walk.kind == "trial":
        clock.wait(100)
        walk.answer()
    assert walk.kind == "slow_down" and walk.axe() == []
    expect(walk.page.get_by_role("heading", name="Take your time")).to_be_visible()
    walk.page.reload()
    assert walk.kind == "slow_down"
    walk.answer(lambda: walk.page.keyboard.press("Enter"))
    assert walk.kind == "trial"
    expect(walk.page.get_by_text("10 of 12", exact=True)).to_be_visible()
    ((detail,),) = rows(server, "words", "SELECT detail FROM events WHERE kind = 'slow_down'")
    assert json.loads(detail) == {"done": 9, "median_ms": 100}
