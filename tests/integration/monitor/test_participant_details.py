"""One participant in detail, and what excluding them would change: over HTTP and by themselves."""

from __future__ import annotations

import http.client
import json
import time

import numpy as np
import pytest

from lore_active.errors import InvalidParameter
from lore_active.simulation.observers import gaussian_space
from server.learning import exclusion_effect
from server.monitor import quality
from server.monitor.feed import Feed
from tests.support.experimenter_client import application, guarded_study, post, sign_in
from tests.support.open_study import Desk
from tests.support.simulated_participants import SimulatedParticipant, take_turns

TOML = "[session]\ntrials = 40\npractice = 1\nbreak_every = 0\ncatch = 0.1\nrepeat = 0.1\n"


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    made = Desk(tmp_path_factory.mktemp("details") / "words", TOML)
    worker, space = made.worker(), gaussian_space(12, 2, 5)
    participants = [
        SimulatedParticipant(made.service, space, seed, wait=made.wait) for seed in (1, 2, 3)
    ]
    participants.append(
        SimulatedParticipant(made.service, space, 4, always="right", name="abc", wait=made.wait)
    )
    for _ in take_turns(participants, worker.turn, every=8):
        pass
    while worker.turn():
        pass
    yield made
    made.close()


def seen(desk, number, with_names=True):
    return Feed(desk.database, desk.study, desk.clock).session(number, with_names)


def test_every_trial_is_there_in_order_with_what_came_of_it(desk):
    found = seen(desk, 4)
    answers = found["answers"]
    assert [answer["trial"] for answer in answers] == list(range(1, 41)), "practice is left out"
    assert all(answer["chosen"] == answer["options"][1:] for answer in answers)
    catches = [answer for answer in answers if answer["purpose"] == "catch"]
    repeats = [answer for answer in answers if answer["purpose"] == "repeat"]
    assert len(catches) == len(repeats) == 4
    # Without catches of its own a study shows the anchor beside another item.
    assert all(catch["known"] == (catch["chosen"] == [catch["anchor"]]) for catch in catches)
    for repeat in repeats:
        first = answers[repeat["repeats"] - 1]
        assert repeat["anchor"] == first["anchor"]
        assert repeat["options"] == first["options"][::-1]
        assert repeat["alike"] is False, "sides are swapped, and the right one is chosen again"
    assert all(answer["known"] is None for answer in answers if answer["purpose"] != "catch")
    assert next(finding["flag"] for finding in found["tests"] if finding["raised"]) == "side"
    rows = json.loads(Feed(desk.database, desk.study, desk.clock).update(True).plain)
    mine = next(row for row in rows["participants"]["rows"] if row["id"] == 4)
    raised = [finding for finding in found["tests"] if finding["raised"]]
    assert mine["flags"] == [flag["flag"] for flag in raised]
    assert mine["evidence"] == [flag["statement"] for flag in raised]


def test_predictions_are_of_models_that_did_not_know_the_answer(desk, monkeypatch):
    """However few of the models are kept in memory at a time."""
    # The oldest is asked for again when all others have been read.
    monkeypatch.setattr(quality, "MAX_KEPT", 1)
    predicted = [answer["predicted"] is not None for answer in seen(desk, 1)["answers"]]
    rows = desk.rows(
        "SELECT coalesce(m.rank, 0), coalesce(m.up_to_seq, 0), a.seq FROM answers a "
        "JOIN queries q ON q.id = a.query LEFT JOIN models m ON m.version = q.version "
        "WHERE q.participant = 1 AND q.slot >= 0 ORDER BY a.seq"
    )
    assert predicted == [rank > 0 for rank, _, _ in rows]
    assert all(up_to < seq for _, up_to, seq in rows)
    assert len({up_to for _, up_to, _ in rows}) > 2


def test_without_names_no_participant_can_be_recognised(desk):
    desk.control.exclude("Ada", 4, "abc pressed one key")
    named, plain = seen(desk, 4), seen(desk, 4, with_names=False)
    desk.control.restore("Ada", 4, "a test")
    assert named["external"] == "PROLIFIC_PID=abc"
    assert named["decisions"][0]["reason"] == "abc pressed one key"
    assert "abc" not in json.dumps(plain) and "Ada" not in json.dumps(plain)
    assert plain["answers"] == named["answers"]


def test_there_is_no_such_participant(desk):
    assert seen(desk, 99) is None


def test_the_effect_of_an_exclusion(desk):
    *steps, last = exclusion_effect.effect(desk.folder, 4)
    assert [step["done"] for step in steps] == [0, 1, 2]
    found = last["effect"]
    assert found["excluded"] is False
    assert found["with"]["answers"] - found["without"]["answers"] == 36
    assert 0.0 <= found["with"]["accuracy"] <= 1.0
    # The study is as it was.
    ((excluded,),) = desk.rows("SELECT excluded FROM participants WHERE id = 4")
    assert not excluded


def test_the_effect_needs_answers(desk, tmp_path):
    with pytest.raises(InvalidParameter, match="P77 has no answers"):
        list(exclusion_effect.effect(desk.folder, 77))
    small = Desk(tmp_path / "small", TOML)
    participant = SimulatedParticipant(small.service, gaussian_space(12, 2, 5), 1)
    for _ in range(12):
        participant.step()
    with pytest.raises(InvalidParameter, match="the first estimate needs 24"):
        list(exclusion_effect.effect(small.folder, 1))
    small.close()


def test_similar_maps_correlate_under_any_rotation():
    z = gaussian_space(20, 2, 3)
    turn = np.array([[0.0, -2.0], [2.0, 0.0]])
    assert exclusion_effect.distance_correlation(z, z @ turn) == pytest.approx(1.0)
    assert exclusion_effect.distance_correlation(z, np.zeros((20, 0))) is None
    assert exclusion_effect.distance_correlation(z, gaussian_space(20, 2, 4)) < 0.5


# ---- over HTTP ----------------------------------------------------------------------------------


def test_only_experimenters_may_compute_and_only_the_signed_in_may_view(tmp_path):
    client = application(guarded_study(tmp_path / "words", TOML)).test_client()
    # As the monitor's data: no page that asks for a password, but a refusal.
    assert client.get("/monitor/words/participants/1").status_code == 401
    assert client.post("/monitor/words/participants/1/effect").status_code in (401, 403)
    sign_in(client, "words")
    assert client.get("/monitor/words/participants/1").status_code == 404
    refused = client.post("/monitor/words/participants/1/effect", data={"csrf": "wrong"})
    assert refused.status_code == 403
    made = post(client, "words", "participants/1/effect")
    lines = [json.loads(line) for line in made.get_data(as_text=True).splitlines()]
    assert "no data" in lines[-1]["problem"] or "no answer" in lines[-1]["problem"]


def test_one_comparison_at_a_time_and_it_ends_with_its_reader(desk):
    first = exclusion_effect.lines(desk.folder, 4)
    process = first._process
    try:
        with pytest.raises(exclusion_effect.AlreadyComputing):
            exclusion_effect.lines(desk.folder, 3)
        assert json.loads(next(first)) is not None
    finally:
        first.close()
    assert process.poll() is not None
    assert list(first) == []
    again = exclusion_effect.lines(desk.folder, 4)
    again.close()


def test_a_closed_page_ends_the_comparison(serve_desk):
    server, cookie, csrf = serve_desk
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/monitor/words/participants/1/effect", f"csrf={csrf}", headers)
    reply = connection.getresponse()
    assert reply.status == 200
    # One line has come, so the process runs; or it has taken a second to start.
    assert isinstance(json.loads(reply.readline()), dict)
    connection.close()
    reply.close()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if exclusion_effect._ONE_AT_A_TIME.acquire(timeout=1):
            exclusion_effect._ONE_AT_A_TIME.release()
            return
    raise AssertionError("The comparison goes on although nobody reads it.")


@pytest.fixture
def serve_desk(tmp_path):
    import re
    from urllib.parse import urlencode

    from tests.support.experimenter_client import PASSWORD
    from tests.support.live_server import LiveServer

    server = LiveServer(guarded_study(tmp_path / "words", TOML))
    service = server.studies["words"].service
    participants = [
        SimulatedParticipant(service, gaussian_space(12, 2, 5), seed) for seed in (1, 2, 3)
    ]
    for _ in take_turns(participants):
        pass
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def send(method, path, fields=None, cookie=""):
        headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        connection.request(method, path, urlencode(fields or {}), headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        cookies = [one.partition(";")[0] for one in reply.headers.get_all("Set-Cookie") or []]
        return text, "; ".join(cookies)

    text, cookie = send("GET", "/monitor/")
    token = re.search(r'name="csrf" value="([^"]+)"', text)[1]
    form = {"csrf": token, "study": "words", "password": PASSWORD, "who": "Ada"}
    _, signed = send("POST", "/monitor/sign-in", form, cookie)
    page, _ = send("GET", "/monitor/words/", None, signed)
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)[1]
    yield server, signed, csrf
    connection.close()
    server.close()
