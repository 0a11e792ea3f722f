"""The learner as its users drive it: ask, tell, audit, exclude, save, stop."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import deepcopy
from dataclasses import asdict
from functools import cache

import numpy as np
import pytest

from lore_active import InvalidParameter, InvalidTriplets, Learner
from lore_active.acquisition.registry import SELECTORS
from lore_active.acquisition.selectors import RandomSelector
from lore_active.data.comparisons import as_triplets
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.learner import snapshot
from lore_active.learner.history import STATES
from lore_active.questions.pool import PooledQuestions, keys
from lore_active.questions.question import AlreadyAnswered, UnknownQuestion
from lore_active.simulation.observers import (
    Observer,
    ObserverNoise,
    gaussian_space,
    simulated_answers,
)
from lore_active.simulation.run import LoggedPeople, SimulatedPeople, simulate

ITEMS = 20


def course(seed=3, rank=2, noise=0.05, people=2, **options):
    """A learner after every few answers, refits and audits included, and the space behind them."""
    space = gaussian_space(ITEMS, rank, seed)
    persons = [Observer(space, ObserverNoise(noise=noise), seed + k) for k in range(people)]
    learner = Learner(ITEMS, seed=seed, **options)
    while True:
        for query in learner.ask(5):
            who = query.id % people
            side = persons[who].answer(query.anchor, query.left, query.right)
            learner.tell(query.id, side, f"P{who}")
        {"audit": learner.audit, "refit": learner.refit, None: lambda: None}[learner.due()]()
        yield learner, space


def study(answers=260, **options):
    """A learner after some answers, and its space."""
    if not options:
        return deepcopy(usual()[answers])
    return next(one for one in course(**options) if one[0].estimate.answers >= answers)


@cache
def usual():
    """The same course serves many tests: it is gone once, and kept at these numbers of answers."""
    ahead, kept = course(), {}
    for answers in (160, 200, 260, 300, 400):
        found = next(one for one in ahead if one[0].estimate.answers >= answers)
        kept[answers] = deepcopy(found)
    return kept


def fingerprint(learner):
    estimate = learner.estimate
    return (
        estimate.embedding.tobytes(),
        estimate.aligned.tobytes(),
        estimate.spectrum.tobytes(),
        estimate.evidence,
        estimate.progressive,
        learner.decision,
    )


def question_keys(queries):
    rows = np.array([[q.anchor, q.left, q.right] for q in queries])
    return keys(rows, ITEMS).tolist()


def test_it_learns_the_space_and_the_rank():
    learner, space = study(answers=400)
    assert learner.estimate.rank == 2
    test = simulated_answers(space, 2000, 99, ObserverNoise(noise=0.0))
    assert triplet_accuracy(learner.estimate.embedding, test) > 0.88
    purposes = {query.purpose for query in learner.queries}
    assert {"cover", "random", "active"} <= purposes
    progressive = learner.estimate.progressive
    assert 0 < progressive.low < progressive.value < progressive.high < 1


class NotingWidths:
    """Random questions; notes in how many dimensions they were asked for."""

    name = "noting"

    def __init__(self):
        self.widths = []

    def pick(self, known, count, rng):
        self.widths.append(known.embedding.shape[1])
        return RandomSelector().pick(known, count, rng)


def test_questions_about_one_dimension_more_until_the_rank_is_clear():
    noting = NotingWidths()
    learner, _ = study(answers=200, selector=noting)
    assert learner.exploration_now == 0.5

    def wide_share():
        noting.widths.clear()
        for _ in range(200):
            learner.ask(1, pending=[])
        rank = learner.model.acquisition.embedding.shape[1]
        assert set(noting.widths) == {rank, rank + 1}
        return noting.widths.count(rank + 1) / len(noting.widths)

    assert 0.35 < wide_share() < 0.65
    learner, _ = study(answers=900, selector=noting)
    assert learner.decision.settled
    assert 0.01 < wide_share() < 0.25


def test_first_questions_cover_all_items_evenly():
    learner = Learner(ITEMS, seed=1)
    asked = learner.ask(2 * ITEMS)
    anchors = np.bincount([q.anchor for q in asked], minlength=ITEMS)
    options = np.bincount([x for q in asked for x in (q.left, q.right)], minlength=ITEMS)
    assert anchors.tolist() == [2] * ITEMS
    assert options.min() >= 3
    assert options.max() <= 5
    left = np.mean([q.left < q.right for q in asked])
    assert 0.2 < left < 0.8


def test_fifty_participants_at_once_get_fifty_different_questions():
    learner, _ = study()
    asked = [learner.ask(1)[0] for _ in range(50)]
    assert len(set(question_keys(asked))) == 50
    assert np.bincount([q.anchor for q in asked], minlength=ITEMS).max() <= 8
    together = study()[0].ask(50)
    assert len(set(question_keys(together))) == 50


def test_no_question_twice_until_none_is_left():
    learner = Learner(4, seed=0)
    seen = set()
    for _ in range(12):
        (query,) = learner.ask(1)
        key = keys(np.array([[query.anchor, query.left, query.right]]), 4).tolist()[0]
        assert key not in seen
        seen.add(key)
        learner.tell(query.id, "left")
    assert learner.ask(3) == []


def test_skipped_and_lapsed_questions_are_free_again():
    learner = Learner(4, seed=0)
    asked = learner.ask(12)
    assert learner.ask(1) == []
    learner.skip(asked[0].id)
    (again,) = learner.ask(1)
    assert question_keys([again]) == question_keys([asked[0]])
    assert len(learner.ask(20, pending=[])) == 12
    learner.tell(asked[0].id, "left")  # late, but it still counts
    assert learner.estimate.answers == 1


def test_answers_out_of_order_give_the_same_fit():
    one, other = Learner(ITEMS, seed=5), Learner(ITEMS, seed=5)
    sides = ["left", "right"]
    for learner, order in ((one, 1), (other, -1)):
        asked = learner.ask(60)
        for query in asked[::order]:
            learner.tell(query.id, sides[query.id % 2])
        learner.audit()
    assert one.estimate.embedding.tobytes() == other.estimate.embedding.tobytes() or (
        one.estimate.rank == other.estimate.rank == 0
    )


def test_duplicate_unknown_and_invalid_answers_are_named():
    learner = Learner(ITEMS)
    (query,) = learner.ask()
    learner.tell(query.id, "left")
    with pytest.raises(AlreadyAnswered, match=f"Question {query.id}"):
        learner.tell(query.id, "right")
    with pytest.raises(AlreadyAnswered):
        learner.skip(query.id)
    with pytest.raises(UnknownQuestion, match="no question 99"):
        learner.tell(99, "left")
    (other,) = learner.ask()
    with pytest.raises(InvalidParameter, match="'up'"):
        learner.tell(other.id, "up")
    with pytest.raises(InvalidParameter, match="audit"):
        learner.refit()
    with pytest.raises(InvalidParameter, match="no answers"):
        Learner(ITEMS).audit()
    with pytest.raises(InvalidTriplets, match="out of range"):
        learner.add([[0, 1, ITEMS]])
    with pytest.raises(InvalidParameter, match="n is 0"):
        learner.ask(0)
    with pytest.raises(InvalidParameter, match="n_objects is 3"):
        Learner(3)
    with pytest.raises(InvalidParameter, match="min_random is -1"):
        Learner(ITEMS, min_random=-1)
    with pytest.raises(InvalidParameter, match="exploration_share is 2"):
        Learner(ITEMS, exploration_share=2)
    with pytest.raises(InvalidParameter, match="lam is 0"):
        Learner(ITEMS, lam=0)


def test_answers_from_outside_count():
    learner = Learner(ITEMS, seed=1)
    learner.add(simulated_answers(gaussian_space(ITEMS, 2, 4), 500, 5))
    assert learner.due() == "audit"
    learner.audit()
    assert learner.estimate.rank == 2
    (query,) = learner.ask()
    assert query.version == 1


def test_repeats_swap_sides_and_give_a_noise_ceiling():
    learner, _ = study()
    told = [query for query in learner.queries if query.purpose == "random"]
    assert learner.estimate.ceiling is None
    chose_left = {i: answer.nearer for i, answer in enumerate(learner.answers)}
    for query in told[:12]:
        again = learner.repeat(query.id)
        assert (again.left, again.right) == (query.right, query.left)
        assert again.purpose == "repeat"
        answer = next(one for one in learner.answers if one.query == query.id)
        learner.tell(again.id, "left" if answer.nearer == again.left else "right")
    assert chose_left
    assert learner.estimate.ceiling == 1.0


def test_catch_answers_do_not_enter_the_fit():
    learner = Learner(ITEMS)
    query = learner.issue(0, 1, 2, "catch")
    learner.tell(query.id, "left")
    assert learner.estimate.answers == 0


def test_same_seed_and_calls_same_bits_also_in_another_process():
    learner, _ = study(answers=160)
    code = (
        "from tests.integration.learner.test_learner import study, fingerprint; import hashlib;"
        "learner = study(answers=160, seed=3)[0];"
        "print(hashlib.sha256(repr(fingerprint(learner)).encode()"
        " + repr(learner.queries).encode()).hexdigest())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    import hashlib

    text = repr(fingerprint(learner)).encode() + repr(learner.queries).encode()
    assert told.stdout.strip() == hashlib.sha256(text).hexdigest()


def spelt(learner, document):
    """A snapshot as it was written before questions and answers were arrays."""
    states = [STATES[code] for code in learner._history.asked.rows["state"]]
    margins = learner._counts.predictions
    return {
        **{
            name: value for name, value in document.items() if name not in ("codes", "participants")
        },
        "format": 3,
        "queries": [asdict(one) for one in learner.queries],
        "states": states,
        "answers": [asdict(one) for one in learner.answers],
        "events": [list(one) for one in learner._history.events()],
        "predictions": [None if np.isnan(margin) else margin for margin in margins],
    }


def test_saved_and_restored_it_goes_on_exactly():
    learner, _ = study(answers=160)
    document, arrays = snapshot.dump(learner)
    restored = snapshot.load(json.loads(json.dumps(document)), arrays)
    before = snapshot.load(json.loads(json.dumps(spelt(learner, document))), arrays)
    assert fingerprint(restored) == fingerprint(before) == fingerprint(learner)
    assert restored.answers == before.answers == learner.answers
    assert restored.ask(7) == before.ask(7) == learner.ask(7)
    assert restored.queries == before.queries == learner.queries
    for one in (learner, restored):
        one.refit()
        one.audit()
    assert fingerprint(restored) == fingerprint(learner)
    with pytest.raises(InvalidParameter, match="format 99"):
        snapshot.load({**document, "format": 99}, arrays)


def test_exclusion_is_as_if_never_there_and_can_be_undone():
    learner, _ = study(answers=200)
    before = fingerprint(learner)
    without = Learner(ITEMS, seed=learner.seed)
    # The same questions and the same moments of learning, but P1 never answers.
    for kind, which in learner._history.events():
        if kind == "ask":
            query = learner.queries[which]
            without.issue(query.anchor, query.left, query.right, query.purpose)
        elif kind == "answer":
            answer = learner.answers[which]
            if answer.participant != "P1":
                side = "left" if answer.nearer == learner.queries[answer.query].left else "right"
                without.tell(answer.query, side, answer.participant)
        elif kind == "audit":
            without.audit()
        else:
            without.refit()
    learner.exclude("P1")
    assert fingerprint(learner) == fingerprint(without)
    assert fingerprint(learner) != before
    learner.restore("P1")
    assert fingerprint(learner) == before


def test_aligned_embedding_does_not_rotate_between_refits():
    learner, space = study(answers=300)
    person = Observer(space, ObserverNoise(noise=0.05), 77)
    for _ in range(3):
        before = learner.estimate.aligned
        for query in learner.ask(10):
            learner.tell(query.id, person.answer(query.anchor, query.left, query.right))
        learner.refit()
        after = learner.estimate.aligned
        if after.shape == before.shape:
            moved = np.linalg.norm(after - before) / np.linalg.norm(before)
            assert moved < 0.35


def test_uncertainty_shrinks_with_answers():
    few, many = study(answers=120, seed=8)[0], study(answers=420, seed=8)[0]
    sizes = []
    for learner in (few, many):
        blocks = learner.uncertainty()
        rank = learner.estimate.rank
        assert blocks.shape == (ITEMS, rank, rank)
        assert np.linalg.eigvalsh(blocks).min() > -1e-9
        scale = (learner.estimate.embedding**2).mean()
        sizes.append(np.trace(blocks, axis1=1, axis2=2).mean() / rank / scale)
    assert sizes[1] < 0.6 * sizes[0]


@pytest.mark.parametrize("name", sorted(SELECTORS))
def test_every_selector_selects_new_questions(name):
    learner, _ = study(answers=120, selector=SELECTORS.make(name))
    asked = learner.ask(30)
    answered = {one.query for one in learner.answers}
    old = question_keys([q for q in learner.queries if q.id in answered])
    assert not set(question_keys(asked)) & set(old)
    assert len(set(question_keys(asked))) == 30


def test_pure_noise_is_nothing_to_find():
    learner = Learner(ITEMS, seed=2)
    rng = np.random.default_rng(0)
    while learner.estimate.answers < 500:
        for query in learner.ask(10):
            learner.tell(query.id, "left" if rng.random() < 0.5 else "right")
        if learner.due() == "audit":
            learner.audit()
            assert not learner.decision.settled
    assert learner.audits[-1].rank <= 1


def test_it_stops_with_reasons_at_the_right_rank():
    space = gaussian_space(ITEMS, 2, 6)
    people = SimulatedPeople([Observer(space, ObserverNoise(noise=0.05), 1)])
    *records, summary = simulate(Learner(ITEMS, seed=6), people, 800, None, lambda: 0.0)
    assert summary["stopped_at"] == records[-1]["answers"]
    assert summary["stopped_rank"] == 2
    assert "2 vs 1 dimension: mean advantage of" in summary["message"]
    assert "2 vs 3 dimensions: mean advantage of" in summary["message"]


def test_a_pool_is_asked_only_what_it_holds():
    rows = simulated_answers(gaussian_space(ITEMS, 2, 7), 400, 8)
    logged = as_triplets(rows, ITEMS)
    people = LoggedPeople(logged, 1)
    learner = Learner(ITEMS, seed=1, source=PooledQuestions(people.questions, ITEMS))
    *_, summary = simulate(learner, people, 10_000, rows, lambda: 0.0, stop=False)
    assert summary["answers"] == len(set(keys(rows, ITEMS).tolist()))
    held = set(keys(rows, ITEMS).tolist())
    assert set(question_keys(learner.queries)) <= held
