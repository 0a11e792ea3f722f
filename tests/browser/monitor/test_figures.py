"""The monitor with a study behind it: live, readable, the same after an exclusion is undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from lore_active.simulation.observers import gaussian_space
from tests.browser.monitor_pages import answer, assert_valid_page, monitor
from tests.support.experimenter_client import guarded_study
from tests.support.live_server import Clock
from tests.support.simulated_participants import SimulatedParticipant, take_turns

TOML = "[session]\ntrials = 50\npractice = 0\nbreak_every = 0\nfeedback = false\n"
SPACE = gaussian_space(12, 2, 5)


@pytest.fixture
def clock():
    # The page asks again only when some time has passed.
    return Clock(running=True)


@pytest.fixture
def server(serve, tmp_path, clock):
    return serve(guarded_study(tmp_path / "words", TOML), clock=clock)


def participants(server, many=3):
    service = server.studies["words"].service
    wait = service.clock.wait
    return [SimulatedParticipant(service, SPACE, seed, wait=wait) for seed in range(1, many + 1)]


def collect(server, crowd):
    worker = server.worker("words")
    for _ in take_turns(crowd, worker.turn, every=8):
        pass
    while worker.turn():
        pass
    return worker


WINDOWS = {
    "desktop": {"viewport": {"width": 1400, "height": 900}},
    "dark": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True},
}


@pytest.mark.parametrize("window", WINDOWS)
def test_it_is_valid_in_every_window(chromium, server, window):
    service = server.studies["words"].service
    # Enough people that a dimension can be claimed however quickly the worker asks.
    crowd = participants(server, many=5)
    crowd.append(SimulatedParticipant(service, SPACE, 9, always="left", rt_ms=90.0, name="abc"))
    collect(server, crowd)
    page = monitor(chromium, server.address, "words", **WINDOWS[window])
    expect(page.locator(".plot")).to_have_count(5)
    expect(page.locator("svg.map .item")).to_have_count(12)
    expect(page.locator("#criteria li")).to_have_count(6)
    page.locator("#item").select_option("3")
    expect(page.locator("#inspector h3")).to_have_text("word 3")
    page.get_by_text("When is a flag raised?").click()
    assert_valid_page(page)
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    page.get_by_role("button", name="Exclude P4").click()
    assert_valid_page(page)
    page.context.close()


def test_an_empty_study_is_valid_too(chromium, server):
    page = monitor(chromium, server.address, "words")
    expect(page.locator("#headline")).to_have_text("No answers yet.")
    assert_valid_page(page)
    page.context.close()


def test_it_updates_while_participants_answer(chromium, server):
    page = monitor(chromium, server.address, "words", viewport={"width": 1200, "height": 700})
    expect(page.locator("#answers")).to_have_text("0")
    page.locator("#accuracy").scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    assert before > 300
    collect(server, participants(server))
    expect(page.locator("#answers")).to_have_text("150")
    expect(page.locator("#participant-counts")).to_contain_text("3 finished")
    expect(page.locator("svg.map .item")).to_have_count(12)
    # Cards that fill with charts above must not push away what is being read.
    top = page.evaluate("document.getElementById('accuracy').getBoundingClientRect().top")
    assert 0 <= top <= 700
    assert_valid_page(page)
    page.context.close()


def test_an_update_replaces_only_what_changed(chromium, server):
    collect(server, participants(server))
    page = monitor(chromium, server.address, "words")
    page.locator("#frame").select_option("principal")
    page.evaluate("for (const one of document.querySelectorAll('.plot, .item')) one.mine = true")
    version = page.locator("body").get_attribute("data-version")
    server.studies["words"].service.arrive({})
    expect(page.locator("body")).not_to_have_attribute("data-version", version)
    kept = page.evaluate(
        "[...document.querySelectorAll('#rank-chart .plot, .item')].every(one => one.mine)"
    )
    assert kept
    expect(page.locator("#frame")).to_have_value("principal")
    page.context.close()


def test_nothing_new_means_nothing_sent(chromium, server):
    page = monitor(chromium, server.address, "words")
    statuses = []
    page.on("response", lambda reply: "data" in reply.url and statuses.append(reply.status))
    with page.expect_response(lambda reply: reply.url.endswith("/data") and reply.status == 304):
        pass
    assert 304 in statuses
    page.context.close()


def positions(page):
    return page.evaluate(
        "[...document.querySelectorAll('.item')].map(one => one.getAttribute('transform'))"
    )


def test_exclusion_changes_the_map_and_is_undone(chromium, server):
    service = server.studies["words"].service
    crowd = participants(server)
    crowd.append(SimulatedParticipant(service, SPACE, 9, always="left", rt_ms=90.0))
    worker = collect(server, crowd)
    page = monitor(chromium, server.address, "words", reduced_motion="reduce")
    page.get_by_role("button", name="Flagged").click()
    expect(page.locator("#participant-rows tr")).to_have_count(1)
    before = positions(page)
    page.get_by_role("button", name="Exclude P4").click()
    answer(page, "Exclude", reason="one key")
    expect(page.locator("#participant-rows tr.excluded")).to_have_count(1)
    while worker.turn():
        pass
    expect(page.locator("#log li").first).to_contain_text("P4 excluded by Ada: “one key”")
    page.wait_for_selector("#participant-counts >> text=1 excluded")
    version = page.locator("body").get_attribute("data-version")
    expect(page.locator("body")).not_to_have_attribute("data-version", version)
    without = positions(page)
    assert without != before
    page.get_by_role("button", name="Restore P4").click()
    answer(page, "Restore", reason="a mistake")
    expect(page.locator("#participant-rows tr.excluded")).to_have_count(0)
    while worker.turn():
        pass
    expect(page.locator("#log li").first).to_contain_text("P4 restored")
    fitted = server.app.extensions["feeds"]["words"]
    assert fitted.update(True).version
    page.context.close()


def test_exports_come_as_files(chromium, server):
    collect(server, participants(server, 1))
    page = monitor(chromium, server.address, "words")
    for name, first in {"answers.csv": "seq,participant", "embedding.csv": "item"}.items():
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        assert download.value.suggested_filename == f"words-{name}"
        text = Path(download.value.path()).read_text()
        assert text.startswith(first)
    page.context.close()


def test_in_print_there_are_figures_and_no_controls(chromium, server):
    collect(server, participants(server))
    page = monitor(chromium, server.address, "words")
    page.emulate_media(media="print")
    expect(page.locator(".controls")).to_be_hidden()
    expect(page.locator("#headline")).to_be_visible()
    expect(page.locator("#rank-chart .plot")).to_be_visible()
    page.context.close()


def test_a_lost_server_is_reported_and_found_again(chromium, server):
    page = monitor(chromium, server.address, "words")
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_contain_text("Can’t reach the server")
    page.context.set_offline(False)
    expect(page.locator("#connection")).to_be_hidden(timeout=10_000)
    page.context.close()
