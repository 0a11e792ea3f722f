"""Pictures of every page of a participant, for docs/: `python -m tests.browser.screenshots`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from server.template import write_study as write_sample
from tests.browser.conftest import FLAGS, find_chromium
from tests.browser.walking import Walk
from tests.living import LiveServer
from tests.media import films, sounds, write_media_study

PLACE = Path(__file__).parent.parent.parent / "docs" / "screenshots" / "participant"
SCREENS = {
    "phone": {"viewport": {"width": 360, "height": 720}, "has_touch": True, "is_mobile": True},
    "desktop": {"viewport": {"width": 1280, "height": 800}},
}
SHORT = "[session]\ntrials = 2\npractice = 1\nbreak_every = 1\n"
WAYS_OUT = """[completion]
code = "C1A2B3"
redirect = "https://recruiter.example/done?id=[PROLIFIC_PID]"
declined_code = "NO-THANKS"
full_code = "FULL-1"
already_code = "ONCE-ONLY"
"""
ARABIC = """
title = "الألوان"
seed = 4
language = "ar"
direction = "rtl"
[trial]
question = "أيّ الكلمتين أقرب إلى الكلمة في الأعلى؟"
skip = true
[session]
practice = 0
[texts]
cant_tell = "لا أعرف"
progress = "{done} من {all}"
consent_title = "قبل أن تبدأ"
consent = "سنسألك أيّ شيئين أقرب إلى شيء ثالث. لا توجد إجابات صحيحة أو خاطئة."
agree = "أوافق"
decline = "لا أوافق"
instructions_title = "ما عليك فعله"
instructions = "اختر الأقرب."
begin = "ابدأ"
"""


class Album:
    """Takes the pictures of one screen size."""

    def __init__(self, chromium: Browser, screen: str) -> None:
        self._chromium, self._screen = chromium, screen
        self._folder = PLACE / screen
        self._folder.mkdir(parents=True, exist_ok=True)
        self._contexts: list[object] = []

    def walk(self, address: str, **options) -> Walk:
        context = self._chromium.new_context(**SCREENS[self._screen], **options)
        return Walk(context, address)

    def take(self, page: Page, name: str) -> None:
        page.screenshot(path=self._folder / f"{name}.png", animations="disabled")


def studies(home: Path, chromium: Browser) -> list[Path]:
    """What the pictures show: colours, words on either side, sounds, films, Arabic."""
    colours = home / "colours"
    write_sample(colours, "colours", 3)
    toml = (colours / "study.toml").read_text()
    for key, value in (("trials", 4), ("practice", 1), ("break_every", 2)):
        toml = _set(toml, key, str(value))
    for line in WAYS_OUT.splitlines()[1:]:
        key, _, value = line.partition(" = ")
        toml = _set(toml, key, value)
    (colours / "study.toml").write_text(toml)
    tastes = home / "tastes"
    write_sample(tastes, "foods", 3)
    toml = (tastes / "study.toml").read_text()
    toml = toml.replace('layout = "above"', 'layout = "between"').replace(
        "skip = false", "skip = true"
    )
    toml = toml.replace("like the one above", "like the one in the middle")
    (tastes / "study.toml").write_text(_set(toml, "practice", "0"))
    tones = write_media_study(home / "tones", sounds(), SHORT)
    moving = dict(zip(("a.webm", "b.webm", "c.webm", "d.webm"), films(chromium, 4), strict=True))
    arabic = home / "arabic"
    (arabic / "stimuli").mkdir(parents=True)
    for at, word in enumerate(("أحمر", "أزرق", "أخضر", "أصفر")):
        (arabic / "stimuli" / f"{at}.txt").write_text(word)
    (arabic / "study.toml").write_text(ARABIC)
    return [colours, tastes, tones, write_media_study(home / "films", moving, SHORT), arabic]


def _set(toml: str, key: str, value: str) -> str:
    lines = toml.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"{key} = "))
    lines[at] = f"{key} = {value}"
    return "\n".join(lines) + "\n"


def main_flow(album: Album, server: LiveServer) -> None:
    link = f"{server.address}/s/colours/?PROLIFIC_PID=p1&SESSION_ID=1"
    walk = album.walk(link)
    names = {"consent": "01-consent", "instructions": "02-instructions", "practice": "03-practice",
             "ready": "04-ready", "trial": "05-trial", "break": "06-break",
             "feedback": "07-feedback"}  # fmt: skip
    kind = ""
    while kind != "finished":
        kind = walk.kind
        album.take(walk.page, names.get(kind, "08-finished"))
        if kind == "trial":
            names[kind] = "05-trial-later"
        walk.step()
    (Path(album._folder) / "05-trial-later.png").unlink()
    walk.page.goto(link.replace("SESSION_ID=1", "SESSION_ID=2"))
    album.take(walk.page, "12-already")
    dark = album.walk(f"{server.address}/s/colours/?PROLIFIC_PID=p2", color_scheme="dark")
    album.take(dark.page, "20-consent-dark")
    dark.until("trial")
    album.take(dark.page, "21-trial-dark")
    again = dark.page.context.new_page()
    again.goto(dark.page.url)
    dark.page.wait_for_url("**/elsewhere")
    album.take(dark.page, "14-elsewhere-dark")


def turned_away(album: Album, server: LiveServer) -> None:
    served = server.studies["colours"]
    link = f"{server.address}/s/colours/"
    walk = album.walk(f"{link}?PROLIFIC_PID=no")
    walk.press("I do not want")
    album.take(walk.page, "09-declined")
    served.control.pause("screenshots")
    album.take(album.walk(f"{link}?PROLIFIC_PID=late").page, "10-paused")
    served.control.resume("screenshots")
    served.control.stop("screenshots")
    album.take(album.walk(f"{link}?PROLIFIC_PID=late").page, "11-full")
    served.control.reopen("screenshots")
    preview = f"{link}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE"
    album.take(album.walk(preview).page, "13-preview")
    album.take(album.walk(f"{link}p/nobody").page, "15-unknown")


def other_trials(album: Album, server: LiveServer) -> None:
    def trial(study: str, name: str, act: Callable[[Walk], None] | None = None) -> None:
        walk = album.walk(f"{server.address}/s/{study}/")
        for button in walk.page.locator("#stage button[name=agreed]").all()[:1]:
            button.click()
        walk.page.locator("[data-kind=instructions] button").click()
        walk.page.locator(".trial:not([data-state=loading])").wait_for()
        if act:
            act(walk)
        album.take(walk.page, name)

    def offline(walk: Walk) -> None:
        assert walk.stage
        walk.page.context.set_offline(True)
        walk.page.keyboard.press("ArrowLeft")
        walk.page.locator("#connection:not([hidden])").wait_for()

    trial("tastes", "16-trial-between")
    trial("tones", "17-trial-sounds")
    trial("films", "18-trial-films")
    trial("arabic", "19-trial-right-to-left")
    trial("tastes", "22-offline", offline)


def main() -> None:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        for screen in SCREENS:
            server = LiveServer(*studies(Path(home) / screen, chromium))
            album = Album(chromium, screen)
            for part in (main_flow, turned_away, other_trials):
                part(album, server)
            server.close()
        chromium.close()


if __name__ == "__main__":
    main()
