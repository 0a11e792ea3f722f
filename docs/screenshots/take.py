"""Pictures of the monitor for the documentation: a simulated study at three stages.

Run from the project's folder: python -m docs.screenshots.take [folder for the pictures]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, sync_playwright

from lore_active.simulation.observers import ObserverNoise
from server.auth.passwords import set_password
from server.learning.worker import Worker
from server.report.report import report as make_report
from server.store import collection, heartbeat
from server.study.samples.colours import colours
from server.study.samples.template import write_study
from tests.browser.conftest import find_chromium
from tests.support.live_server import LiveServer
from tests.support.simulated_participants import SimulatedParticipant

HERE = Path(__file__).parent / "monitor"
PASSWORD = "a password for pictures"
WINDOWS = {
    "desktop-light": ({"width": 1440, "height": 860}, "light"),
    "desktop-dark": ({"width": 1440, "height": 860}, "dark"),
    "phone-light": ({"width": 390, "height": 844}, "light"),
    "phone-dark": ({"width": 390, "height": 844}, "dark"),
}
SHOWN = {
    "1-start": ("desktop-light",),
    "2-half-way": ("desktop-light", "phone-light"),
    "3-stopped": ("desktop-light", "desktop-dark", "phone-dark"),
}
# For the README and the tutorial: the first screen has the head, the evidence and the map.
TOP = 860
# Six people at a time, an answer every three seconds from each.
TOGETHER = 6
ANSWER_MS = 500
ODD = {
    7: {"always": "left", "rt_ms": 260.0},
    9: {"observer_noise": ObserverNoise(noise=0.1, lapse=0.9), "rt_ms": 700.0, "blur": 0.35},
}


class Clock:
    """Time that passes only when a participant answers, and ends now."""

    def __init__(self) -> None:
        self.ms = int(time.time() * 1000) - 45 * 60_000

    def __call__(self) -> int:
        return self.ms


def collecting(server: LiveServer, clock: Clock, worker: Worker) -> Iterator[int]:
    """People come and go; yields the number of answers."""
    service = server.studies["colours"].service
    space = np.array([colour.position for colour in colours()])
    participants: list[SimulatedParticipant] = []
    arrived = answers = 0
    while True:
        while len(participants) < TOGETHER:
            arrived += 1
            options: dict[str, Any] = {
                "observer_noise": ObserverNoise(noise=0.08, lapse=0.02),
                **ODD.get(arrived, {}),
            }
            participants.append(
                SimulatedParticipant(service, space, arrived, name=f"5f{arrived:06x}c", **options)
            )
        for participant in list(participants):
            clock.ms += ANSWER_MS
            before = participant.stage.kind
            if not participant.step():
                participants.remove(participant)
            answers += before == "trial"
            if answers % 12 == 0:
                worker.turn()
            yield answers


def picture(browser: Browser, server: LiveServer, stage: str, out: Path) -> None:
    """The whole page, in every window."""
    served = server.studies["colours"]
    served.database.write(lambda c: heartbeat.beat(c, served.service.clock(), 1, "waiting", ""))
    for name in SHOWN[stage]:
        size, scheme = WINDOWS[name]
        page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
        page.goto(f"{server.address}/monitor/?study=colours")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("body[data-version]")
        if stage != "1-start" and page.locator(".item").count():
            page.locator("#item").select_option("13")
        page.wait_for_load_state("networkidle")
        page.screenshot(path=out / f"{stage}-{name}.png", full_page=True)
        if name == "desktop-light":
            top = {"x": 0, "y": 0, "width": 1440, "height": TOP}
            page.screenshot(path=out / f"{stage}-top.png", full_page=True, clip=top)
        page.close()


def picture_of_report(browser: Browser, server: LiveServer, out: Path) -> None:
    """The beginning of the report, from disk."""
    served = server.studies["colours"]
    file = served.study.folder / "report.html"
    file.write_text(make_report(served.database, served.study, served.service.clock).page)
    page = browser.new_page(viewport={"width": 1300, "height": 2300}, reduced_motion="reduce")
    page.goto(f"file://{file}")
    page.wait_for_selector("body[data-drawn]")
    page.screenshot(path=out / "4-report-desktop-light.png")
    page.close()


def main(out: Path) -> None:
    """Run the study and take pictures at the start, half way, and when it has stopped."""
    out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp()) / "colours"
    write_study(folder, "colours", 5)
    set_password(folder, PASSWORD)
    clock = Clock()
    server = LiveServer(folder, clock=clock)
    try:
        served = server.studies["colours"]
        worker = Worker(served.database, served.study, clock, time.perf_counter)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=find_chromium(), args=["--no-sandbox"]
            )
            excluded = False
            stages = {30: "1-start", 180: "2-half-way"}
            for answers in collecting(server, clock, worker):
                if answers in stages:
                    worker.turn()
                    picture(browser, server, stages.pop(answers), out)
                if answers == 260 and not excluded:
                    excluded = True
                    served.control.exclude("Ada", 7, "Always the left one, too fast to look.")
                if served.control.database.read(_status) == "stopped" or answers > 3000:
                    break
            while worker.turn():
                pass
            picture(browser, server, "3-stopped", out)
            picture_of_report(browser, server, out)
            browser.close()
    finally:
        server.close()
        shutil.rmtree(folder.parent)


def _status(c: Any) -> str:
    state = collection.state(c)
    assert state is not None
    return state.status


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
