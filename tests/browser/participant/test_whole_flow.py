"""A participant goes through a whole study in a real browser, on any screen."""

from __future__ import annotations

import json

import pytest

from tests.browser.participant_pages import WHOLE, Walk, rows
from tests.support.live_server import write_study

KINDS = [
    "consent",
    "instructions",
    *["practice", "practice_feedback"] * 2,
    "ready",
    *["trial"] * 3,
    "break",
    *["trial"] * 3,
    "feedback",
    "finished",
]
SCREENS = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
    "phone on its side": {
        "viewport": {"width": 568, "height": 320},
        "has_touch": True,
        "is_mobile": True,
    },
    "narrow": {"viewport": {"width": 320, "height": 480}},
    "4K": {"viewport": {"width": 3840, "height": 2160}},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
}


@pytest.mark.parametrize("screen", SCREENS)
def test_from_the_link_to_the_code(window, serve, tmp_path, screen):
    server = serve(write_study(tmp_path / "words", WHOLE))
    walk = Walk(window(**SCREENS[screen]), f"{server.address}/s/words/?PROLIFIC_PID=abc&x=%C3%A9")
    seen = []
    while not seen or seen[-1] != "finished":
        if walk.kind not in seen:
            assert walk.axe() == [], walk.kind
        wide = "() => document.documentElement.scrollWidth <= innerWidth"
        assert walk.page.evaluate(wide), "it must never scroll sideways"
        if walk.kind in ("practice", "trial"):
            for target in walk.page.locator("[name=side]").all():
                box = target.bounding_box()
                assert box is not None and box["width"] >= 44 and box["height"] >= 44
        seen.append(walk.step())
    assert seen == KINDS
    assert walk.page.get_by_text("DONE-77").is_visible()
    assert walk.complaints == []
    assert rows(server, "words", "SELECT count(*) FROM answers") == [(8,)]
    entry = json.loads(rows(server, "words", "SELECT entry FROM participants")[0][0])
    assert entry == {"PROLIFIC_PID": "abc", "x": "é"}
