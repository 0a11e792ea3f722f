"""A report opened from disk without a network: drawn, valid, harmless, the same as the monitor."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest
from playwright.sync_api import expect

from server.auth.passwords import set_password
from server.report.report import report as make_report
from tests.browser.monitor_pages import assert_valid_page, monitor, new_page
from tests.support.experimenter_client import PASSWORD
from tests.support.open_study import Desk
from tests.support.report_study import HARM, collected, written

WINDOWS = {
    "desktop": {"viewport": {"width": 1300, "height": 900}},
    "dark": {"viewport": {"width": 1300, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True},
}
TOLD = """() => ({
  headline: document.getElementById("headline").innerText,
  answers: document.getElementById("answers").innerText,
  criteria: document.getElementById("criteria").innerText,
  words: [...document.querySelectorAll("[data-message]")].map((one) => one.textContent),
  charts: ["evidence", "rank", "accuracy", "spectrum"].map((name) =>
    document.querySelector(`#${name}-chart svg`).getAttribute("aria-label")),
  axes: document.getElementById("axes-list").innerText,
})"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "words"
    collected(folder).close()
    set_password(folder, PASSWORD)
    return folder


@pytest.fixture(scope="module")
def file(folder):
    written(folder)
    return folder / "report.html"


def dimensions(folder):
    """Number of dimensions of the study's last model."""
    with contextlib.closing(sqlite3.connect(folder / "study.db")) as database:
        row = database.execute("SELECT rank FROM models ORDER BY version DESC").fetchone()
    assert row[0] >= 1
    return row[0]


def opened(chromium, file, **options):
    """The report in a window without a network; everything that it says or asks for is kept."""
    page = new_page(chromium, offline=True, reduced_motion="reduce", **options)
    page.heard, page.asked = [], []
    page.on("console", lambda message: page.heard.append(message.text))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(f"file://{file}")
    return page


def assert_quiet(page):
    assert page.heard == []
    asked = [question for question in page.asked if not question.startswith("data:")]
    assert len(asked) == 1
    assert asked[0].startswith("file://")


@pytest.mark.parametrize("window", ["desktop", "phone"])
def test_it_is_drawn_and_valid_in_every_window(chromium, file, window):
    page = opened(chromium, file, **WINDOWS[window])
    expect(page.locator("body")).to_have_attribute("data-drawn", "")
    expect(page.locator(".plot")).to_have_count(6)
    for name in ("evidence", "rank", "accuracy", "spectrum", "collected", "participants"):
        assert page.locator(f"#{name}-chart svg :is(path, circle, rect)").count() > 1, name
    expect(page.locator("svg.map .item")).to_have_count(12)
    page.get_by_label("all ellipses").check()
    expect(page.locator("svg.map ellipse")).to_have_count(12)
    expect(page.locator("#criteria li")).to_have_count(6)
    expect(page.locator(".axis")).to_have_count(dimensions(file.parent))
    for element in page.locator("summary").all():
        element.click()
    page.locator("#item").select_option("3")
    expect(page.locator("#inspector h3")).to_contain_text("</script>")
    assert_valid_page(page)
    assert_quiet(page)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    if window == "desktop":
        # Colours are those of a style sheet: nothing is drawn again.
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        assert_valid_page(page)
    page.context.close()


def test_hostile_texts_do_nothing_and_are_shown_as_they_are(chromium, file):
    page = opened(chromium, file)
    expect(page.locator("body")).to_have_attribute("data-drawn", "")
    assert page.evaluate("typeof window.harmed") == "undefined"
    assert page.locator("img, iframe, object, [onerror], [onmouseover]").count() == 0
    assert page.locator("script").count() == 4
    titles = page.locator("svg.map .item title").all_text_contents()
    assert HARM[:40] in " ".join(titles)
    expect(page.locator("h1")).to_contain_text("<b onmouseover")
    page.context.close()


def test_scripts_from_elsewhere_do_not_run(chromium, file, tmp_path):
    """Even if someone adds one to the file: the policy knows the scripts that belong to it."""
    other = tmp_path / "changed.html"
    text = file.read_text().replace("</body>", "<script>window.harmed = 1</script></body>")
    other.write_text(text)
    page = opened(chromium, other)
    expect(page.locator("body")).to_have_attribute("data-drawn", "")
    assert page.evaluate("typeof window.harmed") == "undefined"
    page.context.close()


def test_it_says_and_draws_what_the_monitor_does(chromium, serve, folder, file):
    size = {"viewport": {"width": 1300, "height": 900}}
    report = opened(chromium, file, **size)
    expect(report.locator("body")).to_have_attribute("data-drawn", "")
    server = serve(folder)
    live = monitor(chromium, server.address, "words", **size)
    expect(live.locator("svg.map .item")).to_have_count(12)
    assert report.evaluate(TOLD) == live.evaluate(TOLD)
    live.context.close()
    report.context.close()


def test_the_map_can_be_seen_as_it_was_before(chromium, file):
    page = opened(chromium, file)
    expect(page.locator("svg.map .item")).to_have_count(12)
    places = "[...document.querySelectorAll('.item')].map(one => one.getAttribute('transform'))"
    last = page.evaluate(places)
    slider = page.locator("#moment")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#moment-label")).not_to_have_text("200 answers")
    assert page.evaluate(places) != last
    page.keyboard.press("Home")
    expect(page.locator("#map-chart")).to_have_text("No map: no dimensions are reported.")
    page.keyboard.press("End")
    expect(page.locator("#moment-label")).to_have_text("200 answers")
    assert page.evaluate(places) == last
    assert page.errors == []
    page.context.close()


def test_the_methods_can_be_copied(chromium, file):
    page = opened(chromium, file, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy text").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("Participants.")
    assert "LORE (Anand et al., 2026)" in text
    page.context.close()


def test_without_scripts_tables_show_the_numbers(chromium, file):
    page = opened(chromium, file, java_script_enabled=False)
    expect(page.locator("#headline")).to_be_visible()
    for words in ("Held-out log-loss", "Singular value", "Criterion", "The other end"):
        expect(page.get_by_role("columnheader", name=words).first).to_be_visible()
    expect(page.get_by_text("Random questions predicted")).to_be_visible()
    expect(page.locator("#map table tbody tr")).to_have_count(12)
    expect(page.locator("#methods-text")).to_contain_text("ordinal embedding with LORE")
    expect(page.locator(".tools").first).to_be_hidden()
    page.context.close()


def test_in_print_everything_is_expanded_but_the_numbers_behind_figures(chromium, file):
    page = opened(chromium, file, **WINDOWS["dark"])
    expect(page.locator("body")).to_have_attribute("data-drawn", "")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".everybody")).to_be_visible()
    expect(page.locator("#evidence-chart svg")).to_be_visible()
    expect(page.locator("details.numbers").first).to_be_hidden()
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    page.context.close()


def test_an_empty_study_is_valid_too(chromium, tmp_path):
    desk = Desk(tmp_path / "new")
    file = tmp_path / "report.html"
    file.write_text(make_report(desk.database, desk.study, desk.clock).page)
    desk.close()
    page = opened(chromium, file)
    expect(page.locator("body")).to_have_attribute("data-drawn", "")
    expect(page.locator("#headline")).to_have_text("No answers yet.")
    expect(page.locator("#map-chart")).to_have_text("No map: no dimensions are reported.")
    assert_valid_page(page)
    assert_quiet(page)
    page.context.close()
