"""Screenshots of every participant page, for docs/: `python -m tests.browser.screenshots`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from server.study.items.positions import read_positions
from server.study.samples.template import Sample
from server.study.samples.template import write_study as write_sample
from tests.browser.conftest import FLAGS, find_chromium
from tests.browser.participant_pages import Walk
from tests.support.live_server import Clock, LiveServer, write_study
from tests.support.media import audio_clips, videos, write_media_study
from tests.support.simulated_participants import SimulatedParticipant, take_turns

PLACE = Path(__file__).parent.parent.parent / "docs" / "screenshots" / "participant"
SCREENS = {
    "phone": {"viewport": {"width": 360, "height": 720}, "has_touch": True, "is_mobile": True},
    "phone-landscape": {
        "viewport": {"width": 667, "height": 375},
        "has_touch": True,
        "is_mobile": True,
    },
    "desktop": {"viewport": {"width": 1280, "height": 800}},
}
SHORT = "[session]\ntrials = 2\npractice = 1\nbreak_every = 1\n"
WAYS_OUT = """[completion]
code = "C1A2B3"
redirect = "https://recruiter.example/done?id=[PROLIFIC_PID]"
return_seconds = 60
declined_code = "NO-THANKS"
full_code = "FULL-1"
already_code = "ONCE-ONLY"
"""
DEBRIEF = '"We wanted to know along how many dimensions people compare what they taste."'
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

    def take(self, page: Page, name: str, whole: bool = False) -> None:
        page.screenshot(path=self._folder / f"{name}.png", animations="disabled", full_page=whole)


def studies(home: Path, chromium: Browser) -> list[Path]:
    """What the screenshots show: colours, words on either side, audio, video, Arabic, grids."""
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
    tones = write_media_study(home / "tones", audio_clips(), SHORT)
    moving = dict(zip(("a.webm", "b.webm", "c.webm", "d.webm"), videos(chromium, 4), strict=True))
    arabic = home / "arabic"
    (arabic / "stimuli").mkdir(parents=True)
    for at, word in enumerate(("أحمر", "أزرق", "أخضر", "أصفر")):
        (arabic / "stimuli" / f"{at}.txt").write_text(word)
    (arabic / "study.toml").write_text(ARABIC)
    foods = home / "foods"
    write_sample(foods, "foods", 3)
    toml = (foods / "study.toml").read_text()
    for key, value in (("trials", "40"), ("practice", "0"), ("break_every", "0")):
        toml = _set(toml, key, value)
    toml = _set(_set(toml, "feedback", "false"), "show_map", "true")
    toml = toml.replace("rush_ms = 500", "rush_ms = 0").replace(
        "min_answers = 0", "min_answers = 999"
    )
    (foods / "study.toml").write_text(_set(toml, "debrief", DEBRIEF))
    quick = write_study(home / "quick", "[session]\npractice = 0\nbreak_every = 0\n")
    moving_ = write_media_study(home / "video", moving, SHORT)
    grids = [
        grid_study(home / name, *kind)
        for name, *kind in (
            ("ranking", "colours", "rank", 8, 2),
            ("choosing", "foods", "choose", 6, 2),
            ("odd", "colours", "odd-one-out", 0, 0),
            ("twelve", "colours", "choose", 12, 3),
        )
    ]
    return [colours, tastes, tones, moving_, arabic, foods, quick, *grids]


def grid_study(folder: Path, sample: Sample, kind: str, options: int, pick: int) -> Path:
    write_sample(folder, sample, 3)
    toml = (folder / "study.toml").read_text()
    for key, value in (("kind", f'"{kind}"'), ("options", str(options)), ("pick", str(pick)),
                       ("question", '""'), ("practice", str(int(kind == "rank")))):  # fmt: skip
        toml = _set(toml, key, value)
    (folder / "study.toml").write_text(toml)
    return folder


def _set(toml: str, key: str, value: str) -> str:
    lines = toml.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"{key} = "))
    lines[at] = f"{key} = {value}"
    return "\n".join(lines) + "\n"


def main_flow(album: Album, server: LiveServer) -> None:
    link = f"{server.address}/s/colours/?PROLIFIC_PID=p1&SESSION_ID=1"
    walk = album.walk(link)
    names = {"consent": "01-consent", "instructions": "02-instructions", "practice": "03-practice",
             "practice_feedback": "03-practice-feedback", "ready": "04-ready", "trial": "05-trial",
             "break": "06-break", "feedback": "07-feedback"}  # fmt: skip
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
    second = album.walk(f"{server.address}/s/colours/?PROLIFIC_PID=p2")
    second.until("trial")
    again = second.page.context.new_page()
    again.goto(second.page.url)
    second.page.wait_for_url("**/elsewhere")
    album.take(second.page, "14-elsewhere")


def hurry(album: Album, server: LiveServer, clock: Clock) -> None:
    """Answers faster than anybody can look: the server's clock sees them come at once."""
    walk = album.walk(f"{server.address}/s/quick/")
    walk.until("trial")
    while walk.kind == "trial":
        clock.wait(100)
        walk.answer()
    album.take(walk.page, "07-slow-down")


def with_a_map(album: Album, server: LiveServer, clock: Clock) -> None:
    """The closing page of a study that others have answered, with its text and its map."""
    served = server.studies["foods"]
    space = read_positions(served.study.folder / "positions.csv", served.study.items)
    others = [
        SimulatedParticipant(served.service, space, seed, wait=clock.wait) for seed in range(14)
    ]
    worker = server.worker("foods")
    for _ in take_turns(others, worker.turn, every=40):
        pass
    worker.turn()
    walk = album.walk(f"{server.address}/s/foods/")
    walk.until("finished")
    album.take(walk.page, "08-finished-map", whole=True)


def turned_away(album: Album, server: LiveServer) -> None:
    served = server.studies["colours"]
    link = f"{server.address}/s/colours/"
    walk = album.walk(f"{link}?PROLIFIC_PID=no")
    walk.press("I do not want")
    album.take(walk.page, "09-declined")
    walk.press("Leave the study")
    album.take(walk.page, "09-declined-code")
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
    trial("tones", "17-trial-audio")
    trial("video", "18-trial-video")
    trial("arabic", "19-trial-right-to-left")
    trial("tastes", "22-offline", offline)


def grids(album: Album, server: LiveServer) -> None:
    walk = album.walk(f"{server.address}/s/ranking/")
    walk.until("instructions")
    album.take(walk.page, "23-instructions-rank")
    for kind in ("practice", "trial"):
        walk.until(kind)
        for key in ("7", "2"):
            walk.page.keyboard.press(key)
        if kind == "trial":
            album.take(walk.page, "24-trial-rank")
        else:
            walk.answer(lambda: walk.page.keyboard.press("Enter"))
            album.take(walk.page, "24-practice-feedback-rank")
    for study, name in (
        ("choosing", "25-trial-choose"),
        ("odd", "26-trial-odd-one-out"),
        ("twelve", "27-trial-choose-twelve"),
    ):
        walk = album.walk(f"{server.address}/s/{study}/")
        walk.until("trial")
        if study != "odd":
            walk.page.keyboard.press("3")
        album.take(walk.page, name)


def main() -> None:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        for screen in SCREENS:
            clock = Clock()
            server = LiveServer(*studies(Path(home) / screen, chromium), clock=clock)
            album = Album(chromium, screen)
            for part in (main_flow, turned_away, other_trials, grids):
                part(album, server)
            for timed in (hurry, with_a_map):
                timed(album, server, clock)
            server.close()
        chromium.close()


if __name__ == "__main__":
    main()
