"""Every page that a participant can be shown is valid HTML."""

from __future__ import annotations

import html
import re

import pytest

from server.app import create_app
from tests.integration.views.test_closing_map import collected  # noqa: F401 (a fixture)
from tests.support.html_validation import findings
from tests.support.live_server import Clock, write_study
from tests.support.media import audio_clips, images, write_media_study

TOML = """
[session]
trials = 14
practice = 3
break_every = 6
[trial]
skip = true
[completion]
code = "OK-1"
redirect = "https://recruiter.example/done?who=[PROLIFIC_PID]&x=1"
return_seconds = 20
declined_code = "NO-1"
full_redirect = "https://recruiter.example/full"
expired_code = "LATE-1"
already_code = "TWICE-1"
[texts]
debrief = "How many dimensions has <taste> & why?\\n\\nThanks."
"""
PAGES = {
    *("consent", "instructions", "practice", "practice_feedback", "ready", "trial", "slow_down"),
    *("break", "feedback", "finished", "declined", "paused", "full", "expired", "already"),
    *("preview", "elsewhere", "unknown", "error", "trouble"),
}


# How many options participants choose in studies that do not ask triplets.
PICKS = {"choose": 2, "rank": 3, "odd": 1, "heard": 2}


def other_kind(name, options=0, pick=0):
    """What to replace in the settings for another kind of question, and by what."""
    return "skip = true", f'skip = true\nkind = "{name}"\noptions = {options}\npick = {pick}'


class Visitor:
    """A participant without scripts: sends the forms that the pages hold."""

    def __init__(self, client, link):
        self.client = client
        self.page = client.get(link, follow_redirects=True).text

    @property
    def kind(self):
        return re.search(r'data-kind="(\w+)"', self.page)[1]

    def send(self, **more):
        action = html.unescape(re.search(r'<form[^>]* action="([^"]+)"', self.page)[1])
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', self.page))
        reply = self.client.post(action, data={**fields, **more}, follow_redirects=True)
        self.page = reply.text
        return self


class Collector:
    """Pages by a name that says what they show."""

    def __init__(self):
        self.pages = {}
        self.kinds = set()

    def take(self, name, page):
        self.kinds |= set(re.findall(r'data-kind="(\w+)"', page))
        self.pages[f"{len(self.pages):03d}-{name}"] = page


def walk(app, clock, study, collector):
    """Through a whole study, too fast in the end; every page once."""
    visitor = Visitor(app.test_client(), f"/s/{study}/?PROLIFIC_PID=a%22b")
    sides, seen = iter(["left", "right", "skip"]), set()
    for _ in range(60):
        kind = visitor.kind
        if kind not in seen or kind.startswith("practice"):
            collector.take(f"{study}-{kind}", visitor.page)
        seen.add(kind)
        if kind == "finished":
            return visitor
        clock.wait(100)
        if kind == "consent":
            visitor.send(agreed="yes")
        elif kind in ("practice", "trial"):
            side = next(sides) if kind == "practice" else "left"
            pick = PICKS.get(study, 0)
            if pick and side == "right":
                # Too few are chosen: the question comes back with a note.
                collector.take(f"{study}-incomplete", visitor.send(chosen="").page)
            visitor.send(
                **{"chosen": list(range(pick))} if pick and side != "skip" else {"side": side}
            )
        elif kind == "feedback":
            visitor.send(text="fine")
        else:
            visitor.send()
    raise AssertionError(seen)


def others(app, clock, collector):
    """Everybody who is sent away, and everything that goes wrong."""
    served, link = app.extensions["studies"]["words"], "/s/words/"

    def arrive(query):
        return Visitor(app.test_client(), f"{link}?{query}")

    visitor = arrive("PROLIFIC_PID=no").send(agreed="no")
    collector.take("declined-held", visitor.page)
    collector.take("declined-left", visitor.send().page)
    middle, away = arrive("PROLIFIC_PID=mid"), arrive("PROLIFIC_PID=away")
    for one in (middle, away):
        one.send(agreed="yes").send()
    collector.take("again", arrive("PROLIFIC_PID=a%22b&SESSION_ID=2").page)
    collector.take("preview", arrive("assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE").page)
    token = re.search(r"/p/([\w-]+)/", middle.page)[1]
    client = app.test_client()
    collector.take("elsewhere", client.get(f"{link}p/{token}/elsewhere").text)
    collector.take("unknown", client.get(f"{link}p/nobody").text)
    collector.take("no-study", client.get("/s/none/").text)
    collector.take("error", client.post(f"{link}p/{token}/answer", data={"side": "up"}).text)
    served.control.pause("test")
    collector.take("paused", arrive("PROLIFIC_PID=late").page)
    collector.take("paused-middle", client.get(f"{link}p/{token}").text)
    served.control.resume("test")
    served.control.stop("test")
    collector.take("full", arrive("PROLIFIC_PID=late").page)
    clock.wait(10**8)
    collector.take("expired", client.get(f"{link}p/{token}").text)
    broken = app.extensions["studies"]["broken"]
    broken.database.write(lambda c: c.execute("DROP TABLE participants"))
    collector.take("trouble", client.get("/s/broken/p/nobody-known").text)


@pytest.fixture
def every_page(tmp_path, collected):  # noqa: F811
    clock, collector = Clock(), Collector()
    side = TOML.replace("skip = true", 'skip = true\nlayout = "between"\nbackground = "#203040"')
    mixed = {**dict(list(images(3).items())), **dict(list(audio_clips().items())[:2])}
    folders = [
        write_study(tmp_path / "words", TOML),
        write_media_study(tmp_path / "media", mixed, side),
        write_study(tmp_path / "bare", "[session]\ntrials = 1\npractice = 0\nfeedback = false\n"),
        write_study(tmp_path / "broken"),
        write_study(tmp_path / "choose", TOML.replace(*other_kind("choose", 4, 2))),
        write_study(tmp_path / "rank", TOML.replace(*other_kind("rank", 8, 3))),
        write_media_study(tmp_path / "odd", mixed, TOML.replace(*other_kind("odd-one-out"))),
        write_media_study(
            tmp_path / "heard", audio_clips(5), TOML.replace(*other_kind("choose", 3, 2))
        ),
    ]
    app = create_app(folders, clock)
    for study in ("words", "media", "bare", *PICKS):
        walk(app, clock, study, collector)
    others(app, clock, collector)
    for served in app.extensions["studies"].values():
        served.database.close()
    desk = collected[0]
    desk.database.close()
    app = create_app([desk.folder], desk.clock)
    (token,) = app.extensions["studies"]["words"].database.read(
        lambda c: c.execute("SELECT token FROM participants WHERE id = 1").fetchone()
    )
    collector.take("map", app.test_client().get(f"/s/words/p/{token}").text)
    app.extensions["studies"]["words"].database.close()
    desk.open()
    return collector


def test_every_page_is_valid_html(every_page, tmp_path):
    assert every_page.kinds >= PAGES
    assert '<svg class="map"' in every_page.pages[max(every_page.pages)]
    folder = tmp_path / "pages"
    folder.mkdir()
    assert findings(folder, every_page.pages) == []
