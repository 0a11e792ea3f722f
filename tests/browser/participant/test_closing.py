"""The closing pages: completion code, automatic return, debriefing."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.participant.test_resuming import recruiter  # noqa: F401 (a fixture)
from tests.browser.participant_pages import Walk
from tests.integration.views.test_closing_map import collected  # noqa: F401 (a fixture)
from tests.support.live_server import write_study

TOML = """
[session]
trials = 1
practice = 0
feedback = false
[completion]
code = "C1-A2-B3"
redirect = "https://recruiter.example/done?who=[PROLIFIC_PID]"
[texts]
debrief = "How many dimensions has taste?\\n\\nWrite to us if you want to know."
"""
RETURN = TOML.replace("[texts]", "return_seconds = 5\n[texts]")


def test_the_code_is_copied_and_that_is_said(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", TOML))
    context = window()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    walk = Walk(context, f"{server.address}/s/words/")
    walk.until("finished")
    walk.page.get_by_role("button", name="Copy code").click()
    expect(walk.page.locator("#announcement")).to_have_text("Code copied.")
    expect(walk.page.locator(".copying span")).to_have_text("Code copied.")
    assert walk.page.evaluate("() => navigator.clipboard.readText()") == "C1-A2-B3"
    assert walk.axe() == [] and walk.complaints == []


def test_it_is_copied_inside_a_frame_that_may_not(window, serve, tmp_path, recruiter):  # noqa: F811
    server = serve(write_study(tmp_path / "words", TOML))
    page = window().new_page()
    page.goto(recruiter(f"{server.address}/s/words/?workerId=w"))
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="I agree").click()
    frame.get_by_role("button", name="Begin").click()
    frame.locator(".trial[data-state=open] [value=left]").click()
    copy = frame.get_by_role("button", name="Copy code")
    refused = copy.evaluate("() => navigator.clipboard.writeText('x').then(() => 0, () => 1)")
    assert refused, "or this test would show nothing"
    copy.click()
    expect(frame.locator(".copying span")).to_have_text("Code copied.")
    page.evaluate("() => document.body.prepend(document.createElement('textarea'))")
    page.locator("textarea").focus()
    page.keyboard.press("Control+V")
    assert page.locator("textarea").input_value().strip() == "C1-A2-B3"


def test_without_scripts_the_code_is_there_to_be_selected(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", RETURN))
    page = window(java_script_enabled=False).new_page()
    page.goto(f"{server.address}/s/words/")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").click()
    page.locator("[value=left]").click()
    expect(page.get_by_text("C1-A2-B3")).to_be_visible()
    for name in ("Copy code", "Stay on this page"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("link", name="Return to the recruitment site")).to_be_visible()
    expect(page.get_by_role("heading", name="What this study is about")).to_be_visible()


@pytest.mark.parametrize("stays", [False, True])
def test_the_automatic_return(window, serve, tmp_path, stays):
    server = serve(write_study(tmp_path / "words", RETURN))
    context = window()
    back = "<!DOCTYPE html><title>Back</title>Welcome back"
    context.route("https://recruiter.example/**", lambda route: route.fulfill(
        body=back, content_type="text/html"
    ))  # fmt: skip
    walk = Walk(context, f"{server.address}/s/words/?PROLIFIC_PID=me")
    walk.until("finished")
    said = "You will return to the recruitment site in 5 s."
    expect(walk.page.locator("#announcement")).to_have_text(said)
    if stays:
        walk.page.get_by_role("button", name="Stay on this page").click()
        assert walk.page.locator(".returning").count() == 0
        expect(walk.page.get_by_role("link", name="Return to the rec")).to_be_focused()
        assert walk.axe() == []
        # Longer than the countdown.
        walk.page.wait_for_timeout(6000)
        assert "/s/words/p/" in walk.page.url
    else:
        expect(walk.page.locator(".returning span")).to_contain_text("in 3 s")
        # Not again every second.
        expect(walk.page.locator("#announcement")).to_have_text(said)
        walk.page.wait_for_url("https://recruiter.example/done?who=me")


def test_what_the_study_is_about(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", TOML))
    walk = Walk(window(), f"{server.address}/s/words/")
    while walk.kind != "finished":
        assert "How many dimensions" not in walk.page.content(), "not before the last answer"
        walk.step()
    expect(walk.page.get_by_role("heading", name="What this study is about")).to_be_visible()
    assert walk.page.locator("section p").all_text_contents() == [
        "How many dimensions has taste?",
        "Write to us if you want to know.",
    ]
    assert walk.axe() == []
    plain = serve(write_study(tmp_path / "other" / "words", TOML.partition("[texts]")[0]))
    walk = Walk(window(), f"{plain.address}/s/words/")
    walk.until("finished")
    assert walk.page.get_by_role("heading").count() == 1


def test_the_map_can_be_seen_and_heard(window, serve, collected):  # noqa: F811
    desk = collected[0]
    (token,) = desk.rows("SELECT token FROM participants WHERE id = 1")[0]
    desk.database.close()
    server = serve(desk.folder, clock=desk.clock)
    for viewport in ({"width": 1280, "height": 800}, {"width": 320, "height": 568}):
        walk = Walk(window(viewport=viewport), f"{server.address}/s/words/p/{token}")
        assert walk.kind == "finished"
        expect(walk.page.get_by_role("img", name="The map so far")).to_be_visible()
        walk.page.get_by_text("Show the map as a list").click()
        assert walk.page.get_by_role("listitem").count() == 8
        assert walk.axe() == [] and walk.complaints == []
        assert walk.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("code", [True, False])
def test_enter_returns_only_where_there_is_no_code_to_copy(window, serve, tmp_path, code):
    toml = TOML if code else TOML.replace('code = "C1-A2-B3"', "")
    server = serve(write_study(tmp_path / "words", toml))
    context = window()
    context.route("https://recruiter.example/**", lambda route: route.fulfill(body="back"))
    walk = Walk(context, f"{server.address}/s/words/?PROLIFIC_PID=me")
    walk.until("finished")
    walk.page.keyboard.press("Enter")
    if code:
        # Any effect of the key press would come before this.
        walk.page.evaluate("() => new Promise((done) => setTimeout(done, 300))")
        assert walk.kind == "finished"
    else:
        walk.page.wait_for_url("https://recruiter.example/done?who=me")
