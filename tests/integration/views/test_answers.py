"""Answers as forms send them: what is accepted, what comes back, and what is refused."""

from __future__ import annotations

import json
import re

import pytest

from server.app import create_app
from tests.support.live_server import Clock, write_study
from tests.support.participant_client import taking_part

SESSION = "[session]\ntrials = 9\npractice = 0\nbreak_every = 0\n"
RANK = '[trial]\nkind = "rank"\noptions = 4\npick = 2\n'
HTMX = {"HX-Request": "true"}


@pytest.fixture
def study(tmp_path):
    """Call with settings; returns the application, which is closed after the test."""
    opened = []

    def open_study(toml):
        opened.append(create_app([write_study(tmp_path / "words", SESSION + toml)], Clock()))
        return opened[-1]

    yield open_study
    for app in opened:
        app.extensions["studies"]["words"].database.close()


def token(page):
    return re.search(r'name="question" value="([^"]+)"', page.text)[1]


def answers(app):
    sql = "SELECT a.chosen, q.options FROM answers a JOIN queries q ON q.id = a.query ORDER BY seq"
    found = app.extensions["studies"]["words"].database.read(lambda c: c.execute(sql).fetchall())
    return [tuple(map(json.loads, row)) for row in found]


def test_positions_are_stored_as_items_in_the_order_of_choice(study):
    app = study(RANK)
    client, action, page = taking_part(app)
    for chosen in (["3", "0"], ["1", "2"]):
        page = client.post(
            f"{action}/answer", data={"question": token(page), "chosen": chosen}, headers=HTMX
        )
        assert page.status_code == 200
    (first, options), (second, others) = answers(app)
    assert first == [options[3], options[0]]
    assert second == [others[1], others[2]]


@pytest.mark.parametrize("chosen", [[], ["", ""], ["1"], ["1", "1"], ["0", "1", "2"], ["0", "4"]])
def test_a_wrong_number_of_choices_comes_back_with_a_note(study, chosen):
    app = study(RANK)
    client, action, page = taking_part(app)
    data = {"question": token(page), "chosen": chosen}
    again = client.post(f"{action}/answer", data=data, headers=HTMX)
    assert again.status_code == 422
    assert token(again) == token(page)
    assert "Please choose 2 different ones" in again.text
    # Without scripts: the same by a redirect.
    again = client.post(f"{action}/answer", data=data)
    assert again.status_code == 303
    assert "Please choose 2 different ones" in client.get(again.location).text
    assert answers(app) == []


@pytest.mark.parametrize(
    "data",
    [{"chosen": "a"}, {"chosen": "-1"}, {"chosen": "12"}, {"chosen": ["0", "01"]}, {"side": "up"}],
)
@pytest.mark.parametrize("toml", [RANK, ""])
def test_what_no_page_sends_is_refused(study, data, toml):
    app = study(toml)
    client, action, page = taking_part(app)
    reply = client.post(f"{action}/answer", data={"question": token(page), **data}, headers=HTMX)
    assert reply.status_code == 400
    assert answers(app) == []


def test_a_triplet_can_be_answered_by_position(study):
    app = study("")
    client, action, page = taking_part(app)
    data = {"question": token(page), "chosen": "1"}
    assert client.post(f"{action}/answer", data=data, headers=HTMX).status_code == 200
    ((chosen, options),) = answers(app)
    assert chosen == [options[1]]


@pytest.mark.parametrize(
    "toml", [RANK, RANK.replace("pick = 2", "pick = 1"), '[trial]\nkind = "odd-one-out"\n']
)
def test_only_triplets_have_sides(study, toml):
    app = study(toml)
    client, action, page = taking_part(app)
    data = {"question": token(page), "side": "left"}
    assert client.post(f"{action}/answer", data=data, headers=HTMX).status_code == 400
    assert answers(app) == []
