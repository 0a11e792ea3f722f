"""Reload, back, another tab, a lost cookie: participants continue where they were."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from tests.browser.participant_pages import WHOLE, Walk, rows
from tests.support.live_server import write_study
from tests.support.open_study import SIDES

ELSEWHERE = "The study continues in another window"


def test_reload_on_every_page(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    walk = Walk(window(), f"{server.address}/s/words/")
    while True:
        kind = walk.kind
        question = walk.question if kind in ("practice", "trial") else ""
        walk.page.reload()
        assert walk.kind == kind
        assert not question or walk.question == question
        if kind == "finished":
            break
        walk.step()
    assert walk.page.get_by_text("DONE-77").is_visible()
    assert rows(server, "words", "SELECT count(*) FROM answers") == [(8,)]


def test_back_and_forward(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    walk = Walk(window(), f"{server.address}/health")
    walk.page.goto(f"{server.address}/s/words/")
    walk.until("trial")
    walk.answer()
    question = walk.question
    walk.page.go_back()
    assert walk.page.url.endswith("/health")
    walk.page.go_forward()
    assert walk.question == question
    walk.answer()
    assert rows(server, "words", "SELECT done FROM participants") == [(2,)]


def test_a_closed_tab_and_a_lost_cookie(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    link = f"{server.address}/s/words/?PROLIFIC_PID=anna&SESSION_ID=1"
    walk = Walk(window(), link)
    walk.until("trial")
    question = walk.question
    walk.page.close()
    assert Walk(walk.page.context, f"{server.address}/s/words/").question == question
    assert Walk(window(), link).question == question, "another device, the same link"
    assert rows(server, "words", "SELECT count(*) FROM participants") == [(1,)]


def test_of_two_tabs_the_newer_one_goes_on(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    old = Walk(window(), f"{server.address}/s/words/")
    old.until("trial")
    new = Walk(old.page.context, old.page.url)
    expect(old.page.get_by_role("heading", name=ELSEWHERE)).to_be_visible()
    assert old.axe() == []
    expect(new.page.get_by_text("also open in another window")).to_be_visible()
    assert new.axe() == []
    new.answer()
    expect(new.page.get_by_text("also open in another window")).to_be_hidden()
    old.page.get_by_role("link", name="Continue here").click()
    expect(new.page.get_by_role("heading", name=ELSEWHERE)).to_be_visible()
    old.answer()
    assert rows(server, "words", "SELECT done FROM participants") == [(2,)]


def test_of_two_devices_the_newer_one_is_heard(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    link = f"{server.address}/s/words/?participant_label=two"
    phone = Walk(window(), link)
    phone.until("trial")
    laptop = Walk(window(), link)
    assert laptop.question == phone.question
    counted = f"{SIDES} WHERE q.slot >= 0"
    phone.answer()
    assert phone.kind == "elsewhere" and phone.axe() == []
    assert phone.page.get_by_text("no longer stored").is_visible()
    assert rows(server, "words", counted) == [], "nor was it"
    laptop.answer(lambda: laptop.page.keyboard.press("2"))
    assert rows(server, "words", counted) == [("right",)]
    phone.page.get_by_role("link", name="Continue here").click()
    assert phone.question == laptop.question, "taken back"
    laptop.answer()
    assert laptop.kind == "elsewhere"
    phone.answer()
    assert rows(server, "words", counted) == [("right",), ("left",)]


@pytest.mark.parametrize("kind", ["consent", "instructions", "ready", "break"])
def test_an_older_window_does_not_go_on_from_a_page_of_text(window, serve, tmp_path, kind):
    server = serve(write_study(tmp_path / "words", WHOLE))
    link = f"{server.address}/s/words/?participant_label=two"
    old = Walk(window(), link)
    old.until(kind)
    new = Walk(window(), link)
    assert new.kind == kind
    assert old.step() == kind
    assert old.kind == "elsewhere"
    assert new.step() == kind
    assert new.kind not in (kind, "elsewhere")


def test_an_answer_under_way_does_not_keep_the_older_window_in(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    old = Walk(window(), f"{server.address}/s/words/")
    old.until("trial")
    held = []
    old.page.route("**/answer", lambda route: held.append((route, route.fetch())))
    old.page.keyboard.press("ArrowLeft")
    expect(old.page.locator(".trial[data-state=sent]")).to_be_visible()
    while not held:
        old.page.wait_for_timeout(10)
    new = Walk(old.page.context, old.page.url)
    expect(new.page.get_by_text("2 of 6", exact=True)).to_be_visible()
    expect(new.page.get_by_text("also open in another window")).to_be_visible()
    ((route, reply),) = held
    route.fulfill(response=reply)
    expect(old.page.get_by_role("heading", name=ELSEWHERE)).to_be_visible()
    new.answer()
    assert rows(server, "words", "SELECT done FROM participants") == [(2,)]


def test_a_pause_ends_in_the_newest_window_only(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    link = f"{server.address}/s/words/?participant_label=two"
    old = Walk(window(), link)
    old.until("trial")
    server.studies["words"].control.pause("tester")
    old.page.reload()
    new = Walk(window(), link)
    assert old.kind == new.kind == "paused"
    expect(old.page.get_by_role("heading", name=ELSEWHERE)).to_be_visible()
    server.studies["words"].control.resume("tester")
    expect(new.page.locator(".trial[data-state=open]")).to_be_visible()
    new.answer()
    assert rows(server, "words", "SELECT done FROM participants") == [(1,)]


@pytest.fixture
def recruiter():
    """Another site, which shows the study in a frame: call with the address to show."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(self.server.page.encode())

        def log_message(self, *about) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()

        def show(address: str) -> str:
            site.page = f'<iframe src="{address}" width=900 height=700></iframe>'
            return f"http://localhost:{site.server_port}/"

        yield show
        site.shutdown()


def test_it_works_in_a_frame_without_cookies(window, serve, tmp_path, recruiter):
    server = serve(write_study(tmp_path / "words", WHOLE))
    context = window()
    page = context.new_page()
    page.goto(recruiter(f"{server.address}/s/words/?workerId=w"))
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="I agree").click()
    frame.get_by_role("button", name="Begin").click()
    frame.locator(".trial[data-state=open] [value=left]").click()
    expect(frame.locator(".note")).to_contain_text("ost people")
    assert context.cookies() == [], "the browser keeps cookies of framed sites out"
    page.reload()
    expect(frame.locator("[data-kind=practice_feedback]")).to_be_visible()
    assert rows(server, "words", "SELECT practice_done FROM participants") == [(1,)]
