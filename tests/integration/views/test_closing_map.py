"""The map that participants may see at the end: who sees it, and what is drawn where."""

from __future__ import annotations

import re

import numpy as np
import pytest

from server.app import create_app
from server.monitor.closing_map import LINE_HEIGHT, MIN_PARTICIPANTS, closing_map, drawn
from server.study.config import Item
from tests.support.live_server import write_study
from tests.support.open_study import Desk, Respondent

ITEMS = 8
TOML = """
[session]
trials = 40
practice = 0
break_every = 0
feedback = false
random = 0.3
[stopping]
min_answers = 1000
[completion]
show_map = true
"""


def words(*names):
    return tuple(Item(name, "text", name, name, name) for name in names)


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A study that people have answered, one more than the map needs; and what they saw of it."""
    desk = Desk(tmp_path_factory.mktemp("map") / "words", TOML, items=ITEMS)
    worker, participant = desk.worker(), Respondent(ITEMS, 1, noise=0.05)
    seen = []
    for number in range(MIN_PARTICIPANTS + 1):
        stage = desk.new_participant(PROLIFIC_PID=f"p{number}")
        while stage.kind == "trial":
            desk.wait(2000)
            stage = desk.answer(stage, participant.side(stage))
        assert stage.kind == "finished"
        worker.turn()
        seen.append(closing_map(desk.database, desk.study))
    yield desk, participant, seen
    desk.close()


def test_there_is_a_map_once_enough_participants_have_answered(collected):
    desk, participant, seen = collected
    ranks = desk.rows("SELECT rank FROM models ORDER BY version DESC LIMIT 1")
    assert ranks[0][0] >= 1
    assert seen[: MIN_PARTICIPANTS - 1] == [None] * (MIN_PARTICIPANTS - 1)
    found = seen[-1]
    assert [place.item for place in found.places] == list(range(ITEMS))
    # They answered from a line: the map has its order, or the reverse.
    order = np.argsort([place.x for place in found.places])
    truth = np.argsort(participant.space[:, 0])
    agree = [np.corrcoef(np.argsort(order), np.argsort(truth))[0, 1]]
    assert abs(agree[0]) > 0.9
    assert len(found.nearest) == ITEMS and all(a != b for a, b in found.nearest)


def test_only_who_finished_sees_it_and_only_if_the_study_says_so(collected, tmp_path):
    desk, _, _ = collected
    (token,) = desk.rows("SELECT token FROM participants WHERE id = 1")[0]
    desk.database.close()
    for shows in (True, False):
        toml = desk.folder / "study.toml"
        text = toml.read_text().replace("show_map = true", f"show_map = {str(shows).lower()}")
        toml.write_text(text)
        app = create_app([desk.folder], desk.clock)
        client = app.test_client()
        page = client.get(f"/s/words/p/{token}").text
        assert ('<svg class="map"' in page) == shows
        assert page.count("<circle") == (ITEMS if shows else 0)
        assert ("word 3: closest to" in page) == shows
        assert 'class="map"' not in client.get("/s/words/", follow_redirects=True).text
        app.extensions["studies"]["words"].database.close()
        toml.write_text(text.replace(f"show_map = {str(shows).lower()}", "show_map = true"))
    desk.open()


def test_everything_is_inside_and_no_label_covers_another():
    rng = np.random.default_rng(4)
    for count, rank in ((4, 1), (12, 1), (30, 2), (200, 3)):
        items = words(*(f"a rather long word {number}" for number in range(count)))
        found = drawn(rng.normal(size=(count, rank)), items)
        boxes = []
        for place in found.places:
            assert 0 <= place.x <= found.width and 0 <= place.y <= found.height
            if place.label:
                half = 8.0 * len(place.label) / 2
                top = place.label_y + LINE_HEIGHT / 4 - LINE_HEIGHT
                boxes.append((place.label_x - half, top, place.label_x + half, top + LINE_HEIGHT))
        assert len(boxes) >= 3
        for box in boxes:
            assert box[0] >= -0.1 and box[2] <= found.width + 0.1
            for other in boxes:
                apart = (
                    box[2] <= other[0] + 0.1
                    or other[2] <= box[0] + 0.1
                    or box[3] <= other[1] + 0.1
                    or other[3] <= box[1] + 0.1
                )
                assert box is other or apart


def test_coinciding_items_are_not_an_error():
    found = drawn(np.zeros((4, 2)), words("a", "b", "c", "d"))
    assert len({(place.x, place.y) for place in found.places}) == 1


def test_no_name_of_a_file_is_shown():
    pictures = tuple(Item(f"secret-{n}", "image", f"secret {n}", "") for n in range(5))
    found = drawn(np.random.default_rng(1).normal(size=(5, 2)), pictures)
    assert not re.search("secret", repr(found)) and found.nearest == ()
    assert any(place.image for place in found.places)


def test_the_default_shows_none(tmp_path):
    desk = Desk(write_study(tmp_path / "words"))
    assert desk.study.settings.completion.show_map is False
    assert closing_map(desk.database, desk.study) is None
    desk.close()
