"""Signing in and looking by a link, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from server.auth.sessions import FREE_FAILURES
from tests.browser.monitor_pages import answer, assert_valid_page, monitor, new_page, sign_in
from tests.support.experimenter_client import guarded_study


@pytest.fixture
def server(serve, tmp_path):
    return serve(guarded_study(tmp_path / "words"))


def test_signing_in_and_out(chromium, server):
    page = monitor(chromium, server.address, "words")
    expect(page.get_by_role("heading", name="Words", exact=True)).to_be_visible()
    expect(page.locator("#headline")).to_have_text("No answers yet.")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    page.goto(f"{server.address}/monitor/words/")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert_valid_page(page)
    page.context.close()


def test_wrong_passwords_get_a_message_and_then_a_delay(chromium, server):
    page = new_page(chromium)
    sign_in(page, server.address, "words", "not this one")
    expect(page.get_by_role("alert")).to_contain_text("Wrong study name or password")
    assert_valid_page(page)
    for _ in range(FREE_FAILURES):
        sign_in(page, server.address, "words", "nor this one")
    expect(page.get_by_role("alert")).to_contain_text("please wait")
    sign_in(page, server.address, "words")
    expect(page.get_by_role("alert")).to_contain_text("Too many wrong passwords")
    page.context.close()


def test_a_link_is_shared_and_revoked(chromium, server):
    page = monitor(chromium, server.address, "words")
    page.get_by_role("button", name="Create a view-only link").click()
    answer(page, "Create link", label="the wall")
    address = page.get_by_label("The new link").input_value()
    guest = new_page(chromium)
    guest.goto(address)
    expect(guest.locator("#headline")).to_have_text("No answers yet.")
    assert guest.url == f"{server.address}/monitor/words/"
    expect(guest.get_by_role("button", name="Pause")).to_have_count(0)
    expect(guest.get_by_role("link", name="answers.csv")).to_have_count(0)
    assert_valid_page(guest)
    page.get_by_role("button", name="Revoke the link for the wall").click()
    answer(page, "Revoke")
    # The guest's page finds out by itself.
    expect(guest.get_by_role("button", name="Sign in")).to_be_visible(timeout=15_000)
    for one in (page, guest):
        one.context.close()


def test_the_monitor_cannot_be_framed(chromium, server, serve, tmp_path):
    page = monitor(chromium, server.address, "words")
    frame = page.evaluate(
        "address => new Promise(done => { const frame = document.createElement('iframe');"
        "frame.onload = () => done(frame.contentDocument === null); frame.src = address;"
        "document.body.append(frame); })",
        f"{server.address}/monitor/words/",
    )
    assert frame is True
    page.context.close()
