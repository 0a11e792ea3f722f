"""With scripts off the study can still be completed, and reload and back are harmless."""

from __future__ import annotations

from playwright.sync_api import expect

from server.collection.screens import CONTINUED
from tests.browser.participant_pages import WHOLE, first_trial_without_scripts, rows
from tests.support.live_server import write_study
from tests.support.open_study import SIDES


def test_a_whole_study_with_scripts_off(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    page = window(java_script_enabled=False).new_page()
    page.goto(f"{server.address}/s/words/?participant_label=plain")
    stage = page.locator("#stage > [data-kind]")
    buttons = {"consent": "I agree", "instructions": "Begin", "feedback": "Send and finish"}
    buttons |= dict.fromkeys(CONTINUED, "Continue")
    seen = []
    while (kind := stage.get_attribute("data-kind")) != "finished":
        seen.append(kind)
        page.reload()
        assert stage.get_attribute("data-kind") == kind
        if kind in buttons:
            page.get_by_role("button", name=buttons[kind]).click()
            continue
        page.locator("[value=left]").click()
        if kind == "practice":
            expect(page.locator(".note")).to_contain_text("ost people choose")
            expect(page.locator(".option.left")).to_contain_text("Your choice")
    assert seen.count("trial") == 6 and seen.count("practice") == 2
    assert page.get_by_text("DONE-77").is_visible()
    assert rows(server, "words", "SELECT count(*), count(rt_ms) FROM answers") == [(8, 0)]


def test_the_back_button_leads_to_the_current_trial(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", "[session]\npractice = 0\ntrials = 5\n"))
    page = first_trial_without_scripts(window, f"{server.address}/s/words/")
    page.locator("[value=left]").click()
    page.locator("[value=left]").click()
    question = page.locator("[name=question]").get_attribute("value")
    page.go_back()
    assert page.locator("[name=question]").get_attribute("value") == question
    page.locator("[value=right]").click()
    sides = rows(server, "words", f"{SIDES} ORDER BY seq")
    assert sides == [("left",), ("left",), ("right",)]


def test_the_older_of_two_windows_says_so(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", "[session]\npractice = 0\ntrials = 5\n"))
    context = window(java_script_enabled=False)
    old = context.new_page()
    old.goto(f"{server.address}/s/words/")
    old.get_by_role("button", name="I agree").click()
    old.get_by_role("button", name="Begin").click()
    new = context.new_page()
    new.goto(old.url)
    old.locator("[value=left]").click()
    expect(old.get_by_role("heading", name="The study continues in another window")).to_be_visible()
    old.reload()
    assert rows(server, "words", "SELECT count(*) FROM answers") == [(0,)]
    old.get_by_role("link", name="Continue here").click()
    expect(old.locator("[value=left]")).to_be_visible()
