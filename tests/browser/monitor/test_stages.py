"""Each stage of a study as the monitor and the report show it: one verdict, nothing against it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lore_active.stopping.stages import STAGES
from server.auth.passwords import set_password
from server.report.report import report as make_report
from tests.browser.monitor_pages import assert_valid_page, monitor, new_page, wait_for
from tests.support.experimenter_client import PASSWORD
from tests.support.study_stages import BUILDERS, said

ENDED = ("settled", "no longer settled", "stopped")


@pytest.mark.parametrize("stage", STAGES, ids=lambda one: one.name)
def test_monitor_and_report_show_one_verdict(chromium, serve, tmp_path, stage):
    desk = BUILDERS[stage.name](tmp_path / "words")
    found, folder = said(desk), desk.folder
    report = tmp_path / "report.html"
    report.write_text(make_report(desk.database, desk.study, desk.clock).page)
    desk.close()
    set_password(folder, PASSWORD)
    server = serve(folder)
    page = monitor(chromium, server.address, folder.name, viewport={"width": 1366, "height": 768})
    assert_shows(page, stage, found)
    # Ticked is what is met, and nothing that makes no sense at this stage is there to be ticked.
    met = [criterion.passed for criterion in found.criteria]
    expect(page.locator("#criteria li.met")).to_have_count(sum(met))
    expect(page.locator("#criteria li.open")).to_have_count(len(met) - sum(met))
    # Beside the headline stands one accuracy, that of the map; without one there is none.
    predicted = page.locator("#predicted").inner_text().replace("\u00a0", " ")
    assert ("chance: 50 %" in predicted) == bool(predicted)
    assert stage.has_rank or not predicted
    expect(page.locator("#accuracy-chart svg")).to_have_count(1 if predicted else 0)
    expect(page.locator("#map-chart svg")).to_have_count(1 if stage.has_rank else 0)
    # Without a map there is nothing to choose, to zoom or to save.
    for tools in page.locator("#map :is(.tools, aside)").all():
        expect(tools).to_be_visible(visible=stage.has_rank)
    for card in ("#dimensions", "#map"):
        assert bottom_of(page, card) <= 768, "the first screen has headline, evidence and map"
    if stage.name in ENDED:
        expect(page.locator("#pace")).to_have_text("–")
        expect(page.locator("#spark")).to_have_text("")
    page.set_viewport_size({"width": 320, "height": 640})
    expect(page.locator("#headline")).to_be_visible()
    wait_for(page, "document.documentElement.scrollWidth <= innerWidth")
    page.context.close()
    page = new_page(chromium, offline=True, viewport={"width": 1366, "height": 768})
    page.goto(f"file://{report}")
    expect(page.locator("body")).to_have_attribute("data-drawn", "")
    assert_shows(page, stage, found)
    expect(page.locator("#rank")).to_have_text(_rank(found) if stage.has_rank else "–")
    expect(page.locator("#methods-text")).to_contain_text(found.methods)
    # A line, or no map at all, does not need half a page.
    if page.locator("svg.plane").count() == 0:
        assert page.locator("#map").bounding_box()["height"] <= 640
    page.context.close()


def assert_shows(page, stage, found):
    expect(page.locator("#headline")).to_have_text(found.headline)
    expect(page.locator("#explanation")).to_have_text(found.explanation)
    expect(page.locator("#criteria li")).to_have_count(len(found.criteria))
    caption = page.locator("#compared").text_content()
    assert "best" not in caption
    if stage.criteria and not stage.has_rank:
        assert "compared with guessing" in caption
    assert_valid_page(page)


def bottom_of(page, selector):
    box = page.locator(selector).bounding_box()
    return box["y"] + box["height"]


def _rank(found):
    names = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5"}
    # Where the number varies, the newest is one of those named.
    return re.compile("|".join(names[match] for match in re.findall(r"\w+", found.methods.lower())
                               if match in names))  # fmt: skip
