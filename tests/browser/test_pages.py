"""Properties of every page: small, strict CSP, no third parties, any zoom."""

from __future__ import annotations

import re

import pytest

from tests.browser.participant_pages import WHOLE, Walk
from tests.support.live_server import write_study
from tests.support.media import audio_clips, images, videos, write_media_study

# Bytes on the wire, after compression: sources can stay readable.
FIRST_LOAD = 30_000
FURTHER = 3_000


@pytest.mark.parametrize("kind", ["words", "images"])
def test_page_weights(window, serve, tmp_path, kind):
    if kind == "words":
        server = serve(write_study(tmp_path / "study", WHOLE))
    else:
        server = serve(write_media_study(tmp_path / "study", images(), WHOLE))
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.until("trial")
    cold, finished = Walk(window(), "about:blank"), []
    cold.page.on("requestfinished", lambda request: finished.append(request))
    cold.page.goto(walk.page.url)
    assert cold.stage
    cold.page.wait_for_load_state("networkidle")
    page = [one for one in finished if "/stimulus/" not in one.url]
    assert len(page) >= 6, "the page, its style and four scripts, perhaps its icon"
    sent = {one.url: one.sizes()["responseBodySize"] for one in page}
    assert sum(sent.values()) <= FIRST_LOAD, sent
    with cold.page.expect_response("**/answer") as further:
        cold.page.keyboard.press("1")
    assert len(further.value.body()) <= FURTHER


def test_no_other_server_is_contacted_and_nothing_is_revealed(window, chromium, serve, tmp_path):
    names = ("secret-a.webm", "secret-b.webm", "secret-c.webm", "secret-d.webm")
    kinds = {
        "images": images(),
        "audio": audio_clips(),
        "video": dict(zip(names, videos(chromium, 4), strict=True)),
    }
    rules = "[trial]\nmust_play = false\n[session]\ntrials = 2\npractice = 1\nbreak_every = 1\n"
    for kind, files in kinds.items():
        server = serve(write_media_study(tmp_path / kind, files, rules))
        context, seen = window(), []
        context.on("request", lambda request, seen=seen: seen.append(request.url))
        context.on("response", lambda response, seen=seen: seen.append(str(response.headers)))
        walk = Walk(context, f"{server.address}/s/{kind}/")
        pages = []
        while walk.kind != "finished":
            pages.append(walk.page.content())
            walk.step()
        assert walk.complaints == [], "not one violation of the content security policy"
        assert all(url.startswith(server.address) for url in seen if url.startswith("http"))
        texts = "\n".join([*pages, *seen])
        leaks = [name for name in files if name in texts or name.partition(".")[0] in texts]
        assert not leaks and "secret" not in texts, "neither keys nor names of files"


def test_headers(serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    client = server.app.test_client()
    page = client.get("/s/words/", follow_redirects=True)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert page.headers["Cache-Control"] == "no-store"
    assert not re.search(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=", page.text)
    for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text):
        packed = client.get(address, headers={"Accept-Encoding": "gzip"}, buffered=True)
        plain = client.get(address, buffered=True)
        assert packed.headers["Content-Encoding"] == "gzip"
        assert "immutable" in plain.headers["Cache-Control"]
        assert len(packed.data) < len(plain.data)
        unversioned = client.get(address.partition("?")[0], buffered=True)
        assert "immutable" not in unversioned.headers["Cache-Control"]


@pytest.mark.parametrize("layout", ["above", "between"])
def test_zoom_of_200_percent_and_large_text(window, serve, tmp_path, layout):
    toml = WHOLE.replace("skip = true", f'layout = "{layout}"')
    server = serve(write_media_study(tmp_path / "media", images(), toml))
    # A window of 1280 × 800 at 200 % has this many CSS pixels.
    walk = Walk(window(viewport={"width": 640, "height": 400}), f"{server.address}/s/media/")
    walk.until("trial")
    walk.page.evaluate("() => document.documentElement.style.setProperty('font-size', '200%')")
    assert walk.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for target in walk.page.locator("[name=side]").all():
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 640
    walk.answer(lambda: walk.page.locator("[value=right]").click())


def test_a_trial_fits_its_window_without_scrolling(window, serve, tmp_path):
    for layout in ("above", "between"):
        toml = f'[session]\npractice = 0\n[trial]\nskip = true\nlayout = "{layout}"\n'
        server = serve(write_media_study(tmp_path / layout / "media", images(), toml))
        walk = Walk(window(), f"{server.address}/s/media/")
        walk.until("trial")
        for width, height in ((360, 640), (320, 568), (1280, 720), (768, 1024), (3840, 2160)):
            assert walk.fits(width, height), f"{layout} {width} × {height}"


def test_motion_is_reduced_on_request(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "words", WHOLE))
    walk = Walk(window(reduced_motion="reduce"), f"{server.address}/s/words/")
    walk.until("trial")
    spans = walk.page.evaluate(
        "() => [...document.querySelectorAll('*')].map("
        "(one) => parseFloat(getComputedStyle(one).animationDuration) || 0)"
    )
    assert max(spans) < 0.001
