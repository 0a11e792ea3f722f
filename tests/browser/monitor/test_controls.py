"""Every control of the monitor, and its effect on a participant who is under way."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.monitor_pages import assert_valid_page, confirm, monitor, new_page
from tests.support.experimenter_client import guarded_study

TOML = (
    "[session]\ntrials = 5\npractice = 0\nbreak_every = 0\nfeedback = false\n"
    '[completion]\ncode = "DONE-1"\nfull_code = "FULL-2"\n'
)


@pytest.fixture
def server(serve, tmp_path):
    return serve(guarded_study(tmp_path / "words", TOML))


@pytest.fixture
def desk(chromium, server):
    page = monitor(chromium, server.address, "words")
    yield page
    assert_valid_page(page)
    page.context.close()


def arrive(chromium, server):
    page = new_page(chromium)
    page.goto(f"{server.address}/s/words/")
    return page


def participant(chromium, server):
    """A participant who is looking at their first question."""
    page = arrive(chromium, server)
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").click()
    expect(page.locator("button[value=left]")).to_be_visible()
    return page


def choose(page):
    """Answer, and wait until the answer has been taken."""
    token = page.locator("input[name=question]").get_attribute("value")
    page.locator(".trial[data-state=open] [value=left]").click()
    expect(page.locator(f"input[name=question][value='{token}']")).to_have_count(0)


def test_pause_and_resume(chromium, server, desk):
    page = participant(chromium, server)
    confirm(desk, "Pause", "Pause")
    expect(desk.locator("#status")).to_have_text("paused")
    choose(page)
    expect(page.get_by_role("heading", name="The study is paused")).to_be_visible()
    late = arrive(chromium, server)
    expect(late.get_by_role("heading", name="The study is paused")).to_be_visible()
    confirm(desk, "Resume", "Resume")
    expect(desk.locator("#status")).to_have_text("running")
    page.reload()
    choose(page)
    expect(page.locator("button[value=left]")).to_be_visible()
    # The answer that was on its way during the pause was kept.
    expect(desk.locator("#answers")).to_have_text("2")
    log = desk.locator("#log li")
    expect(log).to_have_count(2)
    expect(log.first).to_contain_text("Study resumed by Ada")
    for one in (page, late):
        one.context.close()


def test_start_before_anybody_came(server, desk):
    confirm(desk, "Pause", "Pause")
    expect(desk.locator("#status")).to_have_text("not started")
    confirm(desk, "Start", "Start")
    expect(desk.locator("#status")).to_have_text("running")
    expect(desk.locator("#log li").first).to_contain_text("Study started by Ada")


def test_at_a_stop_participants_under_way_finish_and_new_ones_see_why(chromium, server, desk):
    page = participant(chromium, server)
    choose(page)
    confirm(desk, "Stop now", "Stop now", reason="enough for today")
    expect(desk.locator("#status")).to_have_text("stopped")
    expect(desk.locator("#reason")).to_contain_text("enough for today")
    late = arrive(chromium, server)
    expect(late.get_by_text("FULL-2")).to_be_visible()
    for _ in range(3):
        choose(page)
    page.locator(".trial[data-state=open] [value=left]").click()
    expect(page.get_by_text("DONE-1")).to_be_visible()
    confirm(desk, "Reopen", "Reopen")
    expect(desk.locator("#status")).to_have_text("running")
    late.reload()
    expect(late.get_by_role("button", name="I agree")).to_be_visible()
    for one in (page, late):
        one.context.close()


def test_the_budget_and_the_questions_of_each(chromium, server, desk):
    confirm(desk, "Trials per participant", "Change", trials="3")
    confirm(desk, "Budget", "Change", answers="3", participants="0")
    expect(desk.locator("#budget")).to_have_text("of 3")
    page = participant(chromium, server)
    late = arrive(chromium, server)
    expect(late.get_by_text("FULL-2")).to_be_visible()
    confirm(desk, "Budget", "Change", answers="500", participants="0")
    late.reload()
    expect(late.get_by_role("button", name="I agree")).to_be_visible()
    for _ in range(2):
        choose(page)
    page.locator(".trial[data-state=open] [value=left]").click()
    expect(page.get_by_text("DONE-1")).to_be_visible()
    for one in (page, late):
        one.context.close()


def test_a_budget_out_of_range_is_refused_and_changes_nothing(server, desk):
    before = desk.locator("#budget").text_content()
    desk.get_by_role("button", name="Budget", exact=True).click()
    dialog = desk.locator("dialog[open]")
    dialog.locator("[name=answers]").fill("10000001")
    dialog.get_by_role("button", name="Change", exact=True).click()
    assert not dialog.locator("[name=answers]").evaluate("field => field.validity.valid")
    # A browser that lets it through is told by the server.
    dialog.locator("form").evaluate("form => { form.noValidate = true; }")
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text(
        "answers is 10000001, but must be a whole number from 1 to 10000000"
    )
    expect(dialog.get_by_role("alert")).to_contain_text("Nothing was changed")
    desk.keyboard.press("Escape")
    expect(desk.locator("#budget")).to_have_text(before)


def test_a_control_that_no_longer_applies_says_so(server, desk):
    desk.get_by_role("button", name="Pause", exact=True).click()
    server.studies["words"].control.stop("another")
    desk.locator("dialog[open]").get_by_role("button", name="Pause", exact=True).click()
    alert = desk.locator("dialog[open]").get_by_role("alert")
    expect(alert).to_contain_text("cannot be paused now")
    desk.keyboard.press("Escape")
    expect(desk.locator("#status")).to_have_text("stopped")


def test_cancel_changes_nothing(server, desk):
    desk.get_by_role("button", name="Stop now", exact=True).click()
    desk.locator("dialog[open]").get_by_role("button", name="Cancel").click()
    expect(desk.locator("dialog[open]")).to_have_count(0)
    expect(desk.locator("#log")).to_contain_text("No decisions yet")
