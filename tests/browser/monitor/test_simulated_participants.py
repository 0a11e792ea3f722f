"""Pages that say what is simulated: the monitor's banner, the list of studies."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lore_active.simulation.observers import ObserverNoise, gaussian_space
from server.processes.rehearsal import Purpose
from tests.browser.monitor_pages import assert_valid_page, monitor, new_page, wait_for
from tests.support.experimenter_client import guarded_study
from tests.support.live_server import Clock
from tests.support.simulated_participants import SimulatedParticipant, take_turns

TOML = "[session]\ntrials = 15\npractice = 0\nbreak_every = 0\nfeedback = false\n"
SPACE = gaussian_space(12, 2, 5)
WINDOWS = {
    "laptop": {"viewport": {"width": 1366, "height": 768}},
    "dark": {"viewport": {"width": 320, "height": 640}, "color_scheme": "dark"},
}


@pytest.fixture
def clock():
    return Clock(running=True)


@pytest.fixture
def server(serve, tmp_path, clock):
    return serve(guarded_study(tmp_path / "words", TOML), clock=clock)


def take_part(server, seed, simulated):
    service = server.studies["words"].service
    participant = SimulatedParticipant(
        service,
        SPACE,
        seed,
        ObserverNoise(noise=0.05),
        wait=service.clock.wait,
        simulated=simulated,
    )
    for _ in take_turns([participant]):
        pass


def test_the_monitor_says_what_is_simulated_until_participants_answer(chromium, server, clock):
    take_part(server, 1, simulated=True)
    take_part(server, 2, simulated=True)
    page = monitor(chromium, server.address, "words", **WINDOWS["laptop"])
    banner = page.locator("#simulated")
    expect(banner).to_have_text(
        "Simulated data All 30 answers are from 2 simulated participants (bots)."
    )
    expect(page.locator("#participant-rows .flag.bot")).to_have_count(2)
    assert_valid_page(page)
    take_part(server, 3, simulated=False)
    clock.wait(60_000)
    expect(banner).to_contain_text("Simulated participants are left out")
    expect(banner).to_contain_text("2 simulated participants (bots) gave 30 answers.")
    expect(page.locator("#answers")).to_have_text("15")
    expect(page.locator("#participant-rows tr")).to_have_count(1)
    assert_valid_page(page)


@pytest.mark.parametrize("window", WINDOWS)
def test_a_rehearsal_is_called_so_on_monitor_and_list(chromium, server, window):
    study = server.studies["words"]
    study.database.write(lambda c: Purpose().note(c, 1))
    take_part(server, 1, simulated=True)
    page = monitor(chromium, server.address, "words", **WINDOWS[window])
    expect(page.locator("#simulated")).to_contain_text(
        "Rehearsal in a copy of the study, deleted when the server ends."
    )
    assert_valid_page(page)
    page = new_page(chromium, **WINDOWS[window])
    page.goto(server.address)
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    expect(page.get_by_text("answers do not count as data")).to_be_visible()
    wait_for(page, "document.documentElement.scrollWidth <= innerWidth")
    assert_valid_page(page)
    page.get_by_role("link", name="Words", exact=True).click()
    expect(page.locator("[data-kind=consent]")).to_be_visible()


def test_nothing_is_said_where_nothing_is_simulated(chromium, server):
    take_part(server, 1, simulated=False)
    page = monitor(chromium, server.address, "words", **WINDOWS["laptop"])
    expect(page.locator("#answers")).to_have_text("15")
    expect(page.locator("#simulated")).to_be_hidden()
