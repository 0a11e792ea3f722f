"""The monitor's forecast and cost: ranges with a currency, and what is said where there is none."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lore_active.simulation.observers import gaussian_space
from server.clock import now
from server.learning.worker import Worker
from tests.browser.monitor_pages import assert_valid_page, confirm, monitor, wait_for
from tests.support.experimenter_client import guarded_study
from tests.support.live_server import Clock
from tests.support.simulated_participants import SimulatedParticipant, take_turns

# So many answers that there is a dimension, and so many audits asked for that it is not settled,
# whenever the worker comes to its audits.
MANY = 6
TOML = """
[session]
trials = 50
practice = 0
break_every = 0
feedback = false
[stopping]
audits = 25
"""
PAY = '[pay]\nper_participant = 2.5\nfee = 0.25\ncurrency = "EUR"\n'
ITEMS = 12
SPACE = gaussian_space(ITEMS, 1, 5)
RANGE = re.compile(r"^([\d,]+|up) to [\d,]+$")
WINDOWS = {
    "laptop": {"viewport": {"width": 1366, "height": 768}},
    "dark": {"viewport": {"width": 1366, "height": 768}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 320, "height": 740}, "has_touch": True},
}


def collected(serve, folder, toml, many):
    """A served study of so many participants who finished."""
    server = serve(guarded_study(folder, toml, ITEMS), clock=Clock(running=True))
    service = server.studies[folder.name].service
    # Audits come whenever they are due, however slow the machine is.
    worker = Worker(service.database, service.study, now, lambda: 0.0)
    crowd = [
        SimulatedParticipant(service, SPACE, seed, wait=service.clock.wait)
        for seed in range(1, many + 1)
    ]
    for _ in take_turns(crowd, worker.turn, every=8):
        pass
    while worker.turn():
        pass
    return server


@pytest.mark.parametrize("window", WINDOWS)
def test_a_range_with_participants_and_money(chromium, serve, tmp_path, window):
    server = collected(serve, tmp_path / "paid", TOML + PAY, MANY)
    page = monitor(chromium, server.address, "paid", **WINDOWS[window])
    expect(page.locator("#to-stop")).to_have_text(RANGE)
    expect(page.locator("#to-stop-participants")).to_have_text(
        re.compile(r"^, .*\d participants?$")
    )
    expect(page.locator("#forecast")).to_have_text(
        re.compile("more answers until stopping .90.% range")
    )
    # Six at 2.50 EUR, and a quarter of that for the recruitment site.
    expect(page.locator("#cost")).to_have_text("18.75 EUR")
    message = re.compile(
        f"^for {MANY} participants who finished; (about|up to) .+ EUR more until stopping$"
    )
    expect(page.locator("#cost-more")).to_have_text(message)
    wait_for(page, "document.documentElement.scrollWidth <= innerWidth")
    assert_valid_page(page)
    if window == "laptop":
        confirm(page, "Stop now", "Stop now")
        expect(page.locator("#to-stop")).to_have_text("ended")
        expect(page.locator("#cost-more")).to_have_text(f"for {MANY} participants who finished")
    page.context.close()


def test_before_anything_is_known_and_without_pay(chromium, serve, tmp_path):
    server = collected(serve, tmp_path / "new", TOML, 0)
    page = monitor(chromium, server.address, "new")
    expect(page.locator("#to-stop")).to_have_text("not yet known")
    expect(page.locator("#forecast")).to_have_text("No forecast yet.")
    expect(page.locator("#cost")).to_have_text("–")
    expect(page.locator("#cost-more")).to_contain_text("Set [pay] in study.toml")
    assert_valid_page(page)
    page.context.close()
