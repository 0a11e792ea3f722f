"""Questions of every kind, from the schedule to the stored answer."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore_active.questions.kinds import kind as kind_by_label
from server.collection.catches import own_question, passed, twin_question
from server.study.config import Catch
from server.study.workspace import KindChanged, open_study, reading
from tests.support.kinds import KINDS
from tests.support.open_study import Desk

SESSION = """skip = true
timeout_ms = 5000
[session]
trials = 30
practice = 2
catch = 0.1
repeat = 0.2
random = 0.2
break_every = 0
feedback = false
"""
ITEMS = 7
RANDOM = np.random.default_rng(1)


def desk_of(folder, label, toml=SESSION):
    return Desk(folder / "words", KINDS[label] + toml, items=ITEMS)


@pytest.fixture(params=KINDS)
def label(request):
    return request.param


def random_response(trial):
    places = np.random.default_rng(len(trial.token) + sum(trial.items)).permutation(
        len(trial.options)
    )
    return tuple(places[: trial.kind.pick].tolist())


def test_a_whole_session(tmp_path, label):
    desk, kind = desk_of(tmp_path, label), kind_by_label(label)
    worker = desk.worker()
    given = {}
    for _ in range(3):
        worker.turn()
        stage = desk.new_participant()
        while stage.kind in ("practice", "trial"):
            trial, response = stage.trial, random_response(stage.trial)
            assert trial.kind == kind and len(trial.options) == kind.options
            assert (trial.anchor is not None) == kind.has_anchor
            assert set(stage.upcoming) <= set(range(ITEMS))
            given[trial.token] = [trial.options[place] for place in response]
            desk.now += 1500
            stage = desk.answer(stage, response)
        assert stage.kind == "finished"
    stored = desk.rows(
        "SELECT q.token, a.outcome, a.chosen FROM answers a JOIN queries q ON q.id = a.query"
    )
    assert {token: json.loads(chosen) for token, _, chosen in stored} == given
    assert {outcome for _, outcome, _ in stored} == {"chosen"}
    # Nobody was asked a new question twice, and repeats are the same in another order.
    had = desk.rows(
        "SELECT participant, key FROM queries "
        "WHERE slot >= 0 AND purpose NOT IN ('catch', 'repeat')"
    )
    assert len(had) == len(set(had))
    repeats = desk.rows(
        "SELECT q.key, o.key, q.options, o.options FROM queries q "
        "JOIN queries o ON o.id = q.repeats"
    )
    assert len(repeats) >= 15
    assert all(now == then and this != that for now, then, this, that in repeats)
    # Every question that is not about a known answer has as many different items as its kind.
    for anchor, options in desk.rows(
        "SELECT anchor, options FROM queries WHERE purpose NOT IN ('catch', 'practice')"
    ):
        kind.check_question(anchor, json.loads(options))
    desk.close()


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_only_a_complete_choice_is_stored_and_retries_change_nothing(tmp_path_factory, data):
    label = data.draw(st.sampled_from(sorted(KINDS)))
    kind = kind_by_label(label)
    desk = desk_of(tmp_path_factory.mktemp("kinds"), label)
    stage = desk.new_participant()
    while stage.kind == "practice":
        stage = desk.answer(stage, random_response(stage.trial))
    for _ in range(4):
        place = st.integers(-2, kind.options + 1)
        response = tuple(data.draw(st.lists(place, max_size=kind.pick + 2)))
        complete = response in set(permutations(range(kind.options), kind.pick))
        before = desk.rows("SELECT * FROM answers")
        following = desk.service.answer(stage.participant, stage.trial.token, response)
        if not complete:
            assert following.note == "incomplete"
            assert replace(following, note="") == replace(stage, note="")
            assert desk.rows("SELECT * FROM answers") == before
            response = random_response(stage.trial)
            following = desk.service.answer(stage.participant, stage.trial.token, response)
        assert following.trial != stage.trial and following.done == stage.done + 1
        ((chosen,),) = desk.rows("SELECT chosen FROM answers ORDER BY seq DESC LIMIT 1")
        assert json.loads(chosen) == [stage.trial.options[place] for place in response]
        # The same request again, or another answer to the same question.
        stored = desk.rows("SELECT * FROM answers")
        for again in (response, response[::-1], (), "skip"):
            assert desk.service.answer(stage.participant, stage.trial.token, again) == replace(
                following, note=""
            )
        assert desk.rows("SELECT * FROM answers") == stored
        stage = following
    desk.close()


def test_skips_and_time_outs_of_every_kind(tmp_path, label):
    desk = desk_of(tmp_path, label)
    stage = desk.new_participant()
    reply = desk.service.answer(stage.participant, stage.trial.token, "skip")
    assert (reply.note, reply.trial.chosen) == ("practice_skipped", ())
    assert len(reply.trial.expected) == 1
    stage = desk.service.rest(stage.participant, reply.done)
    stage = desk.answer(stage, random_response(stage.trial))
    early = desk.service.answer(stage.participant, stage.trial.token, "timeout")
    assert early.note == "not_taken"
    desk.now += 5000
    stage = desk.answer(stage, "timeout")
    assert stage.note == "timed_out"
    desk.answer(stage, "skip")
    assert desk.rows("SELECT outcome, chosen FROM answers WHERE outcome <> 'chosen'") == [
        ("skip", None),
        ("timeout", None),
        ("skip", None),
    ]
    desk.close()


def test_practice_feedback_names_positions(tmp_path, label):
    desk, kind = desk_of(tmp_path, label), kind_by_label(label)
    stage = desk.new_participant()
    trial = stage.trial
    known = next(
        place
        for place, item in enumerate(trial.options)
        if (item == trial.anchor if kind.has_anchor else trial.options.count(item) == 1)
    )
    others = [place for place in range(kind.options) if place != known]
    right = (*others[: kind.pick - 1], known)
    reply = desk.service.answer(stage.participant, trial.token, right)
    assert (reply.kind, reply.note) == ("practice_feedback", "practice_right")
    assert (reply.trial.chosen, reply.trial.expected) == (right, (known,))
    stage = desk.service.rest(stage.participant, reply.done)
    trial = stage.trial
    wrong = tuple(
        place
        for place, item in enumerate(trial.options)
        if (item != trial.anchor if kind.has_anchor else trial.options.count(item) == 2)
    )[: kind.pick]
    reply = desk.service.answer(stage.participant, trial.token, wrong)
    assert reply.note == "practice_wrong"
    desk.close()


def test_random_questions_are_uniform_and_end_in_known_ones(tmp_path):
    toml = "[session]\ntrials = 14\npractice = 0\ncatch = 0\nrepeat = 0\nbreak_every = 0\n"
    desk = Desk(tmp_path / "few", KINDS["odd-one-out"] + toml, items=5)
    stage = desk.new_participant()
    while stage.kind == "trial":
        stage = desk.answer(stage, (0,))
    asked = desk.rows("SELECT purpose, count(*), count(DISTINCT key) FROM queries GROUP BY 1")
    # There are only 10 questions about 5 items.
    assert [row for row in asked if row[0] == "random"] == [("random", 10, 10)]
    assert [row[:2] for row in asked if row[0] == "catch"] == [("catch", 4)]
    probabilities = desk.rows(
        "SELECT probability FROM queries WHERE purpose = 'random' ORDER BY id"
    )
    assert [round(1 / row[0]) for row in probabilities] == [*range(10, 0, -1)]
    desk.close()


# ---- known answers ------------------------------------------------------------------------------


def test_twins(tmp_path, label):
    desk, kind = desk_of(tmp_path, label), kind_by_label(label)
    places = set()
    for _ in range(60):
        anchor, options, known = twin_question(desk.study, RANDOM)
        assert len(options) == kind.options and len(known) == 1
        if kind.has_anchor:
            assert known == (anchor,) and len(set(options)) == kind.options
        else:
            assert anchor is None and options.count(known[0]) == 1 and len(set(options)) == 2
        places.add(options.index(known[0]))
    assert kind.name == "triplet" or places == set(range(kind.options))
    desk.close()


def test_own_catches_are_completed_by_items_that_are_not_near(tmp_path):
    folder = tmp_path / "words"
    desk = desk_of(tmp_path, "choose-2-of-5")
    desk.close()
    (folder / "c.csv").write_text(
        "anchor,nearer,farther,farther_2\nword00,word01,word02,\nword00,word03,word04,word05\n"
    )
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(f'{text}[stimuli]\ncatches = "c.csv"\n')
    study, database = open_study(folder, desk.clock)
    database.close()
    assert study.catches == (Catch(0, 1, 2), Catch(0, 3, 4, (5,)))
    for _ in range(30):
        anchor, options, known = own_question(study, study.catches[0], RANDOM)
        assert (anchor, known) == (0, (1,))
        # Item 3 is near, too, and there are enough others.
        assert set(options) == {1, 2, 4, 5, 6}
        anchor, options, known = own_question(study, study.catches[1], RANDOM)
        assert known == (3,) and set(options) == {3, 4, 5, 2, 6}


def test_own_catches_of_the_odd_one_out(tmp_path):
    study = desk_of(tmp_path, "odd-one-out").study
    anchor, options, known = own_question(study, Catch(0, 1, 2), RANDOM)
    assert (anchor, sorted(options), known) == (None, [0, 1, 2], (2,))


def test_a_known_answer_must_be_among_those_chosen():
    assert passed((3,), (3,)) and passed((3,), (5, 3))
    assert not passed((3,), (4, 5)) and not passed((3,), ())


# ---- the kind of a study ------------------------------------------------------------------------


def test_a_study_with_questions_keeps_its_kind(tmp_path):
    desk = desk_of(tmp_path, "rank-2-of-4")
    file = desk.folder / "study.toml"
    text = file.read_text()
    assert desk.rows("SELECT kind FROM state") == [("rank-2-of-4",)]
    desk.close()
    # Nobody has been asked yet.
    file.write_text(text.replace("options = 4", "options = 5"))
    desk.open()
    assert desk.rows("SELECT kind FROM state") == [("rank-2-of-5",)]
    stage = desk.new_participant()
    assert len(stage.trial.options) == 5
    desk.close()
    file.write_text(text)
    what = (
        "asks questions of the kind rank-2-of-4, but those in study.db are of the kind rank-2-of-5"
    )
    with pytest.raises(KindChanged, match=what):
        open_study(desk.folder, desk.clock)
    with pytest.raises(KindChanged, match=what), reading(desk.folder, desk.clock):
        pass
