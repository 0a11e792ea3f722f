"""The table of participants and its drawer: sorted, searched, by keyboard, while it is updated."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lore_active.simulation.observers import gaussian_space
from tests.browser.monitor_pages import answer, assert_valid_page, monitor, new_page, wait_for
from tests.support.experimenter_client import guarded_study
from tests.support.live_server import Clock
from tests.support.simulated_participants import SimulatedParticipant, take_turns

TOML = "[session]\ntrials = 40\npractice = 0\nbreak_every = 0\ncatch = 0.1\nrepeat = 0.1\n"
TOML += "[budget]\nanswers = 20000\n"
SPACE = gaussian_space(12, 2, 5)
COMMENT = "It was hard & <fun>"


@pytest.fixture
def server(serve, tmp_path):
    return serve(guarded_study(tmp_path / "words", TOML), clock=Clock(running=True))


@pytest.fixture
def crowd(server):
    """Three who care, and one who presses one key; the first of all leaves a comment."""
    service = server.studies["words"].service
    wait = service.clock.wait
    participants = [
        SimulatedParticipant(service, SPACE, seed, wait=wait, name=f"id-{seed}")
        for seed in (1, 2, 3)
    ]
    participants.append(
        SimulatedParticipant(service, SPACE, 9, always="left", rt_ms=90.0, wait=wait)
    )
    worker = server.worker("words")
    feedback = service.feedback
    service.feedback = lambda token, _: feedback(
        token, COMMENT if token == participants[0].token else ""
    )
    for _ in take_turns(participants, worker.turn, every=8):
        pass
    while worker.turn():
        pass
    return participants


def names(page):
    return page.locator("#participant-rows .open").all_inner_texts()


def drawer(page, number):
    page.get_by_role("button", name=f"Details of P{number}", exact=True).click()
    opened = page.locator("#drawer[open]")
    expect(opened.locator("#drawer-facts div")).to_have_count(4)
    return opened


def test_it_is_sorted_searched_and_stays_so_while_it_is_updated(chromium, server, crowd):
    page = monitor(chromium, server.address, "words")
    assert names(page)[0] == "P4", "the flagged one first"
    head = page.locator("th[data-sort=id]")
    expect(head).not_to_have_attribute("aria-sort", re.compile("."))
    head.get_by_role("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert names(page) == ["P1", "P2", "P3", "P4"]
    head.get_by_role("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert names(page) == ["P4", "P3", "P2", "P1"]
    page.locator("th[data-sort=place] button").click()
    expect(head).not_to_have_attribute("aria-sort", re.compile("."))
    assert names(page)[-1] == "P4", "always left"
    search = page.get_by_label("Search")
    for text, expected in {
        "fun": ["P1"],
        "id-3": ["P3"],
        "p2": ["P2"],
        "side bias": ["P4"],
        "nobody": [],
    }.items():
        search.fill(text)
        expect(page.locator("#participant-rows .open")).to_have_text(expected)
    expect(page.locator("#participant-count")).to_have_text("No participant matches")
    search.fill("id-")
    before = names(page)
    version = page.locator("body").get_attribute("data-version")
    # Nobody's answers change, but there is one more, and the page is told so.
    server.studies["words"].service.arrive({"PROLIFIC_PID": "another"})
    expect(page.locator("body")).not_to_have_attribute("data-version", version)
    assert names(page) == before and len(before) == 3
    expect(search).to_be_focused()
    expect(search).to_have_value("id-")
    expect(page.locator("th[data-sort=place]")).to_have_attribute("aria-sort", "ascending")
    assert_valid_page(page)
    page.context.close()


def test_hundreds_of_participants_are_shown_by_and_by(chromium, server):
    service = server.studies["words"].service
    for number in range(240):
        service.arrive({"PROLIFIC_PID": f"came-{number:03d}"})
    page = monitor(chromium, server.address, "words")
    expect(page.locator("#participant-rows tr")).to_have_count(12)
    expect(page.locator("#participant-count")).to_contain_text("12 of 240 shown")
    page.get_by_role("button", name="Show 100 more").click()
    expect(page.locator("#participant-rows tr")).to_have_count(112)
    # The reader goes on where the new rows begin.
    expect(page.locator("#participant-rows .open").nth(12)).to_be_focused()
    page.get_by_label("Search").fill("came-07")
    expect(page.locator("#participant-rows tr")).to_have_count(10)
    assert_valid_page(page)
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_drawer_shows_the_whole_session(chromium, server, crowd, scheme):
    page = monitor(chromium, server.address, "words", color_scheme=scheme)
    opener = page.get_by_role("button", name="Details of P4", exact=True)
    opener.press("Enter")
    opened = page.locator("#drawer[open]")
    expect(opened.get_by_role("heading", name="P4", exact=True)).to_be_visible()
    raised = opened.locator("#drawer-flags")
    expect(raised).to_contain_text("Chose the left option in 40 of 40 trials; the chance of that")
    expect(raised).to_contain_text("Answered 40 of 40 trials within 300 ms")
    checks = opened.locator("#drawer-checks tbody tr")
    expect(checks).to_have_count(8)
    expect(checks.filter(has_text="repeat of trial").first).to_contain_text("inconsistent")
    expect(checks.filter(has_text="catch trial")).to_have_count(4)
    expect(opened.locator("#drawer-times svg[role=img]")).to_have_count(1)
    expect(opened.locator("#drawer-timeline svg[role=img]")).to_have_count(1)
    # Eight lines of catch trials and repeats stand out from those of other answers.
    tops = opened.locator("#drawer-timeline line").evaluate_all(
        "lines => lines.map((one) => one.getBoundingClientRect().top)"
    )
    assert sum(top <= min(tops) + 1 for top in tops) == 8 and len(tops) == 40
    for chart in ("#drawer-times", "#drawer-timeline"):
        empty = "one => one.clientHeight - one.firstElementChild.clientHeight"
        assert opened.locator(chart).evaluate(empty) <= 4, chart
    opened.get_by_text("All tests").click()
    expect(opened.locator("#drawer-tests")).to_contain_text("nothing unusual")
    assert_valid_page(page)
    page.keyboard.press("Escape")
    expect(page.locator("#drawer")).to_be_hidden()
    expect(opener).to_be_focused()
    expect(drawer(page, 1).locator("#drawer-comment")).to_have_text(COMMENT)
    page.context.close()


def test_on_a_small_phone_nothing_is_cut(chromium, server, crowd):
    page = monitor(chromium, server.address, "words", viewport={"width": 320, "height": 640})
    wait_for(page, "document.documentElement.scrollWidth <= innerWidth")
    opened = drawer(page, 4)
    body = opened.locator(".drawer-body")
    assert body.evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    assert opened.evaluate("one => one.getBoundingClientRect().width") <= 320
    assert_valid_page(page)
    page.context.close()


def test_excluded_and_restored_in_the_drawer(chromium, server, crowd):
    page = monitor(chromium, server.address, "words")
    opened = drawer(page, 4)
    opened.get_by_role("button", name="Exclude P4").click()
    expect(page.locator("#dialog-exclude")).to_contain_text("P4")
    answer_dialog(page, "Exclude", "one key")
    expect(opened.get_by_role("button", name="Restore P4")).to_be_visible()
    expect(opened.locator("#drawer-log li")).to_contain_text("Excluded by Ada: “one key”")
    expect(page.locator("#participant-rows tr.excluded .open")).to_have_text("P4")
    assert_valid_page(page)
    opened.get_by_role("button", name="Restore P4").click()
    answer_dialog(page, "Restore", "a test")
    expect(opened.get_by_role("button", name="Exclude P4")).to_be_visible()
    expect(opened.locator("#drawer-log li")).to_have_count(2)
    page.context.close()


def answer_dialog(page, button, reason):
    dialog = page.locator("dialog[open]:not(#drawer)")
    dialog.locator("[name=reason]").fill(reason)
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog).to_have_count(0)


def test_what_excluding_would_change_is_computed_beside(chromium, server, crowd):
    page = monitor(chromium, server.address, "words")
    opened = drawer(page, 4)
    compare = opened.get_by_role("button", name="Compare")
    compare.click()
    expect(opened.locator("#drawer-effect-progress")).to_be_visible()
    expect(opened.locator("#drawer-effect-progress p")).to_contain_text(re.compile(r"\d s"))
    opened.get_by_role("button", name="Cancel").click()
    expect(opened.locator("#drawer-effect-progress")).to_be_hidden()
    expect(compare).to_be_enabled()
    expect(async_compare(opened)).to_contain_text("P4 would", timeout=120_000)
    rows = opened.locator("#drawer-effect tbody tr")
    expect(rows).to_have_count(3)
    with_them, without = rows.first.locator("td").all_inner_texts()
    assert int(with_them) - int(without) == 36, "all but four catch trials"
    assert_valid_page(page)
    page.context.close()


def async_compare(opened):
    """Start again; the process that was cancelled may take a moment to be gone."""
    result = opened.locator("#drawer-effect")
    for _ in range(20):
        opened.get_by_role("button", name="Compare").click()
        expect(result).not_to_be_empty(timeout=120_000)
        if "Another comparison" not in result.inner_text():
            break
    return result


def test_who_only_looks_sees_no_names_and_changes_nothing(chromium, server, crowd):
    desk = monitor(chromium, server.address, "words")
    desk.get_by_role("button", name=re.compile("link", re.IGNORECASE)).first.click()
    answer(desk, "Create link", label="colleague")
    link = desk.locator(".address").input_value()
    page = new_page(chromium)
    page.goto(link)
    page.wait_for_selector("body[data-version]")
    opened = drawer(page, 1)
    expect(opened.locator("#drawer-comment-section")).to_be_hidden()
    expect(opened).not_to_contain_text("id-1")
    expect(opened.get_by_role("button", name="Exclude")).to_have_count(0)
    expect(opened.get_by_role("button", name="Compare")).to_have_count(0)
    assert_valid_page(page)
    opened.get_by_role("button", name="Close").click()
    expect(page.locator("#drawer")).to_be_hidden()
    page.context.close()
    desk.context.close()
