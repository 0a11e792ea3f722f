"""Every entry to a study and every exit from it, each with its own page."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.participant_pages import Walk, rows, token
from tests.support.live_server import write_study
from tests.support.media import images, write_media_study
from tests.support.open_study import SIDES
from tests.support.participant_client import taking_part

STUDY = """
language = "de"
[session]
trials = 2
practice = 0
feedback = false
[completion]
code = "OK-1"
redirect = "https://recruiter.example/done?who=[PROLIFIC_PID]&a=[assignmentId]"
declined_code = "NO-1"
declined_redirect = "https://recruiter.example/no?who=[PROLIFIC_PID]"
full_code = "FULL-1"
full_redirect = "https://recruiter.example/full?who=[PROLIFIC_PID]"
expired_code = "LATE-1"
already_code = "TWICE-1"
already_redirect = "https://recruiter.example/twice?who=[PROLIFIC_PID]"
[texts]
consent_title = "Bevor es losgeht"
unknown_title = "Diese Seite gibt es nicht"
error_title = "Das ging nicht"
back = "Zurück zur Studie"
"""
ENTRIES = [
    {"PROLIFIC_PID": "5f3", "STUDY_ID": "s", "SESSION_ID": "x"},
    {"workerId": "W1", "assignmentId": "A1", "hitId": "H1", "turkSubmitTo": "https://t.example"},
    {"participant_label": "seat 4"},
    {"puid": "ü&=?/"},
    {},
]


@pytest.fixture
def study(serve, tmp_path):
    server = serve(write_study(tmp_path / "words", STUDY))
    server.link = f"{server.address}/s/words/"
    return server


def go(window, address) -> Walk:
    """A fresh browser on this page; every such page must be accessible, and in German."""
    walk = Walk(window(), address)
    assert walk.axe() == []
    html = walk.page.locator("html")
    assert html.get_attribute("lang") == "de" and html.get_attribute("dir") == "ltr"
    assert [
        complaint
        for complaint in walk.complaints
        if "404" not in complaint and "400" not in complaint
    ] == []
    return walk


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: next(iter(entry), "nothing"))
def test_entries(window, study, entry):
    query = "&".join(f"{name}={quote(value)}" for name, value in entry.items())
    walk = Walk(window(), f"{study.link}?{query}")
    expect(walk.page.get_by_role("heading", name="Bevor es losgeht")).to_be_visible()
    ((stored, external),) = rows(study, "words", "SELECT entry, external FROM participants")
    assert json.loads(stored) == entry
    named = next((name for name in entry if name.lower().endswith(("id", "label"))), None)
    assert external == (f"{named}={entry[named]}" if named else None)


def test_finishing_gives_the_code_and_the_way_back(window, study):
    walk = go(window, f"{study.link}?PROLIFIC_PID=a%26b&SESSION_ID=1")
    walk.until("finished")
    assert walk.axe() == []
    assert walk.page.get_by_text("OK-1").is_visible()
    link = walk.page.get_by_role("link", name="Return to the recruitment site")
    address = "https://recruiter.example/done?who=a%26b&a=[assignmentId]"
    assert link.get_attribute("href") == address
    again = go(window, f"{study.link}?PROLIFIC_PID=a%26b&SESSION_ID=1")
    assert again.page.get_by_text("OK-1").is_visible(), "the same link shows the code again"
    twice = go(window, f"{study.link}?PROLIFIC_PID=a%26b&SESSION_ID=2")
    assert twice.kind == "already"
    assert twice.page.get_by_text("TWICE-1").is_visible()
    assert "who=a%26b" in twice.page.get_by_role("link").get_attribute("href")


def test_the_exit_names_the_current_assignment(window, study):
    walk = Walk(window(), f"{study.link}?workerId=W&assignmentId=RETURNED")
    walk.until("trial")
    walk = Walk(window(), f"{study.link}?workerId=W&assignmentId=HELD")
    walk.until("finished")
    assert walk.page.get_by_role("link").get_attribute("href").endswith("&a=HELD")
    ((detail,),) = rows(study, "words", "SELECT detail FROM events WHERE kind = 'entry'")
    assert json.loads(detail)["before"]["assignmentId"] == "RETURNED"


def test_declining_has_its_own_page_and_code(window, study):
    walk = go(window, f"{study.link}?PROLIFIC_PID=no")
    walk.press("I do not want to take part")
    assert walk.kind == "declined" and walk.axe() == []
    assert "NO-1" not in walk.page.content() and "/no?who" not in walk.page.content()
    walk.page.reload()
    walk.press("Leave the study")
    assert walk.kind == "declined" and walk.axe() == []
    assert walk.page.get_by_text("NO-1").is_visible()
    assert walk.page.get_by_role("link").get_attribute("href").endswith("/no?who=no")
    walk.page.reload()
    assert walk.page.get_by_text("NO-1").is_visible()
    assert walk.page.get_by_role("button", name="I changed my mind").count() == 0


@pytest.mark.parametrize("scripts", [True, False])
def test_declining_can_be_undone(window, study, scripts):
    page = window(java_script_enabled=scripts).new_page()
    page.goto(f"{study.link}?PROLIFIC_PID=hesitant")
    page.get_by_role("button", name="I do not want to take part").click()
    page.get_by_role("button", name="I changed my mind").click()
    expect(page.get_by_role("heading", name="Bevor es losgeht")).to_be_visible()
    page.get_by_role("button", name="I agree").click()
    expect(page.locator("[data-kind=instructions]")).to_be_visible()
    events = rows(study, "words", "SELECT kind, participant FROM events WHERE who = 'participant'")
    assert events == [("reconsider", 1)]
    stored = rows(study, "words", "SELECT stage, finished_at FROM participants")
    assert stored == [("instructions", None)]


def test_a_preview_shows_the_instructions_and_no_trial(window, study):
    walk = go(window, f"{study.link}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=H")
    expect(walk.page.get_by_role("heading", name="What to do")).to_be_visible()
    assert walk.page.get_by_role("button").count() == 0
    assert rows(study, "words", "SELECT count(*) FROM participants") == [(0,)]


def test_paused_before_and_in_the_middle(window, study):
    control = study.studies["words"].control
    walk = Walk(window(), f"{study.link}?PROLIFIC_PID=early")
    walk.until("trial")
    control.pause("tester")
    late = go(window, f"{study.link}?PROLIFIC_PID=late")
    assert late.kind == "paused"
    walk.answer()
    assert walk.kind == "paused" and walk.axe() == []
    control.resume("tester")
    expect(walk.page.locator(".trial[data-state=open]")).to_be_visible()
    assert walk.page.get_by_text("2 of 2", exact=True).is_visible(), "it continues automatically"
    late.page.get_by_role("link", name="Try again").click()
    assert late.kind == "consent"
    assert json.loads(
        rows(study, "words", "SELECT entry FROM participants ORDER BY id DESC")[0][0]
    ) == {"PROLIFIC_PID": "late"}


def test_full(window, study):
    study.studies["words"].control.stop("tester")
    walk = go(window, f"{study.link}?PROLIFIC_PID=late")
    assert walk.kind == "full"
    assert walk.page.get_by_text("FULL-1").is_visible()
    assert walk.page.get_by_role("link").get_attribute("href").endswith("/full?who=late")


def test_the_study_ended_while_the_participant_was_idle(window, study):
    walk = Walk(window(), f"{study.link}?PROLIFIC_PID=away")
    walk.until("trial")
    served = study.studies["words"]
    served.control.stop("tester")
    served.database.write(lambda c: c.execute("UPDATE participants SET seen_at = 1"))
    walk.page.reload()
    assert walk.kind == "expired" and walk.axe() == []
    assert walk.page.get_by_text("LATE-1").is_visible()


@pytest.mark.parametrize("agreed", [False, True])
def test_an_idle_participant_never_sees_the_completion_code(window, serve, tmp_path, agreed):
    server = serve(write_study(tmp_path / "words", STUDY.replace("expired_code", "# unset")))
    walk = Walk(window(), f"{server.address}/s/words/?PROLIFIC_PID=away")
    walk.until("instructions" if agreed else "consent")
    served = server.studies["words"]
    served.control.stop("tester")
    served.database.write(lambda c: c.execute("UPDATE participants SET seen_at = 1"))
    walk.page.reload()
    assert walk.axe() == []
    expect(walk.page.get_by_role("heading", name="This study has closed")).to_be_visible()
    assert "OK-1" not in walk.page.content() and "/done" not in walk.page.content()
    if agreed:
        assert walk.kind == "expired"
        assert walk.page.get_by_role("link").count() == 0
        assert walk.page.get_by_text("Any answers that you gave are stored").is_visible()
    else:
        assert walk.kind == "full", "as for everyone who arrives too late"
        assert walk.page.get_by_text("FULL-1").is_visible()


@pytest.mark.parametrize("path", ["p/nobody", "p/nobody/elsewhere/x", "nonsense"])
def test_unknown_urls(window, study, path):
    walk = go(window, study.link + path)
    expect(walk.page.get_by_role("heading", name="Diese Seite gibt es nicht")).to_be_visible()
    walk.page.get_by_role("link", name="Zurück zur Studie").click()
    assert walk.kind == "consent"


def test_an_invalid_request_leads_back(window, study):
    walk = Walk(window(), study.link)
    walk.until("trial")
    question = walk.question
    walk.page.locator("[value=left]").evaluate("(one) => one.value = 'up'")
    walk.answer(lambda: walk.page.locator(".option").first.click())
    expect(walk.page.get_by_role("heading", name="Das ging nicht")).to_be_visible()
    assert walk.axe() == []
    walk.page.get_by_role("link", name="Zurück zur Studie").click()
    assert walk.question == question


@pytest.mark.parametrize("side", ["skip", "timeout"])
def test_what_the_study_does_not_allow_is_refused_with_a_reason(window, study, side):
    walk = Walk(window(), study.link)
    walk.until("trial")
    question = walk.question
    walk.page.locator("[value=left]").evaluate("(one, side) => one.value = side", side)
    walk.answer(lambda: walk.page.locator(".option").first.click())
    assert walk.question == question
    expect(walk.page.locator(".note")).to_contain_text("was not stored")
    expect(walk.page.get_by_role("status").first).to_contain_text("was not stored")
    assert rows(study, "words", "SELECT count(*) FROM answers") == [(0,)]
    walk.answer()
    expect(walk.page.locator(".note")).to_be_empty()
    assert rows(study, "words", SIDES) == [("left",)]


@pytest.mark.parametrize("side", ["skip", "timeout"])
def test_without_scripts_it_is_refused_too(study, side):
    client, action, page = taking_part(study.app)
    question = re.search(r'name="question" value="([^"]+)"', page.text)[1]
    answer = {"question": question, "side": side}
    page = client.post(f"{action}/answer", data=answer, follow_redirects=True)
    assert page.status_code == 200
    assert question in page.text and "was not stored" in page.text
    htmx = client.post(f"{action}/answer", data=answer, headers={"HX-Request": "true"})
    assert htmx.status_code == 422 and question in htmx.text
    assert rows(study, "words", "SELECT count(*) FROM answers") == [(0,)]


def test_a_form_sent_twice_without_scripts_speaks_of_no_other_window(study):
    """The page that answers the first counts as the newest window when the second comes."""
    client = study.app.test_client()
    page = client.get("/s/words/", follow_redirects=True)
    for _ in range(4):
        action = re.search(r'action="([^"]+)"', page.text)[1]
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text))
        fields |= {"agreed": "yes", "side": "left"}
        first = client.post(action, data=fields, follow_redirects=True)
        page = client.post(action, data=fields, follow_redirects=True)
        assert re.findall('data-kind="(.*?)"', page.text) == re.findall(
            'data-kind="(.*?)"', first.text
        )
    assert 'data-kind="finished"' in page.text
    assert rows(study, "words", "SELECT count(*) FROM answers") == [(2,)]


def test_errors_without_a_study_and_without_a_browser(study):
    client = study.app.test_client()
    page = client.get("/s/other/")
    assert page.status_code == 404 and b"find this study" in page.data
    assert client.get("/nothing").status_code == 404
    token_ = client.get("/s/words/").location.rpartition("/")[2]
    big = client.post(f"/s/words/p/{token_}/feedback", data={"text": "x" * 100_000})
    assert big.status_code == 413 and "Das ging nicht" in big.text
    assert f"/s/words/p/{token_}" in big.text
    wrong = client.get(f"/s/words/p/{token_}/answer")
    assert wrong.status_code == 405 and wrong.headers["Allow"]
    part = client.post("/s/words/p/nobody/begin", headers={"HX-Request": "true"})
    assert part.status_code == 404 and "<html" not in part.text


def test_what_breaks_is_calm_too(study, serve, tmp_path):
    media = serve(write_media_study(tmp_path / "media", images()))
    (name, (file, _)) = next(iter(media.studies["media"].display_items.files.items()))
    file.unlink()
    page = media.app.test_client().get(f"/s/media/stimulus/{name}")
    assert page.status_code == 404 and file.name not in page.text
    study.studies["words"].database.write(lambda c: c.execute("DROP TABLE participants"))
    page = study.app.test_client().get("/s/words/p/nobody-known")
    assert page.status_code == 503 and page.headers["Retry-After"]
    assert "Please try again" in page.text and "Zurück zur Studie" in page.text


def test_right_to_left_keeps_left_on_the_left(window, serve, tmp_path):
    toml = 'language = "ar"\ndirection = "rtl"\n[session]\npractice = 0\n'
    for layout in ("above", "between"):
        toml_ = f'{toml}[trial]\nlayout = "{layout}"\n'
        server = serve(write_study(tmp_path / layout / "words", toml_))
        walk = Walk(window(), f"{server.address}/s/words/")
        assert walk.page.locator("html").get_attribute("dir") == "rtl"
        walk.until("trial")
        assert walk.axe() == []
        left = walk.page.locator("[value=left]").bounding_box()
        right = walk.page.locator("[value=right]").bounding_box()
        anchor = walk.page.locator(".anchor").bounding_box()
        assert left["x"] + left["width"] < right["x"]
        if layout == "between":
            assert left["x"] < anchor["x"] < right["x"] and anchor["y"] == left["y"]
        else:
            assert anchor["y"] + anchor["height"] <= left["y"]
        assert token(walk.page)
