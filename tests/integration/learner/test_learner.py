"""The learner as its users drive it: ask, tell, audit, exclude, save, stop."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, replace
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
from lore_active.learner.pending_audit import AuditCancelled
from lore_active.questions.pool import PooledQuestions, keys
from lore_active.questions.question import AlreadyAnswered, UnknownQuestion
from lore_active.simulation.observers import (
    Observer,
    ObserverNoise,
    gaussian_space,
    simulated_answers,
)
from lore_active.simulation.run import LoggedParticipants, SimulatedParticipants, simulate
from lore_active.stopping.registry import stopping_rule

ITEMS = 20


def course(seed=3, rank=2, noise=0.05, participants=2, **options):
    """A learner after every few answers, refits and audits included, and the space behind them."""
    space = gaussian_space(ITEMS, rank, seed)
    observers = [Observer(space, ObserverNoise(noise=noise), seed + k) for k in range(participants)]
    learner = Learner(ITEMS, seed=seed, **options)
    while True:
        for question in learner.ask(5):
            who = question.id % participants
            side = observers[who].answer(question.anchor, question.left, question.right)
            learner.tell(question.id, side, f"P{who}")
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
        estimate.prequential,
        learner.decision,
    )


def question_keys(questions):
    rows = np.array([[q.anchor, q.left, q.right] for q in questions])
    return keys(rows, ITEMS).tolist()


def test_it_learns_the_space_and_the_rank():
    learner, space = study(answers=400)
    assert learner.estimate.rank == 2
    test = simulated_answers(space, 2000, 99, ObserverNoise(noise=0.0))
    assert triplet_accuracy(learner.estimate.embedding, test) > 0.88
    purposes = {question.purpose for question in learner.questions}
    assert {"cover", "random", "active"} <= purposes
    prequential = learner.estimate.prequential
    assert 0 < prequential.low < prequential.value < prequential.high < 1


class NotingWidths:
    """Random questions; notes in how many dimensions they were asked for."""

    name = "noting"

    def __init__(self):
        self.widths = []

    def pick(self, state, count, rng):
        self.widths.append(state.embedding.shape[1])
        return RandomSelector().pick(state, count, rng)


def test_questions_about_one_dimension_more_until_the_rank_is_clear():
    noting = NotingWidths()
    learner, _ = study(answers=200, selector=noting)
    assert learner.exploration_now == 0.5

    def wide_share():
        noting.widths.clear()
        for _ in range(100):
            learner.ask(1, pending=[])
        rank = learner.model.acquisition.embedding.shape[1]
        assert set(noting.widths) == {rank, rank + 1}
        return noting.widths.count(rank + 1) / len(noting.widths)

    assert 0.35 < wide_share() < 0.65
    learner, _ = study(answers=900, selector=noting, stopping=stopping_rule("rank_settled"))
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
        (question,) = learner.ask(1)
        key = keys(np.array([[question.anchor, question.left, question.right]]), 4).tolist()[0]
        assert key not in seen
        seen.add(key)
        learner.tell(question.id, "left")
    assert learner.ask(3) == []


def test_a_question_is_asked_of_several_participants_but_never_twice_of_one():
    space, learner = gaussian_space(5, 1, 2), Learner(5, seed=0)
    participants = SimulatedParticipants([Observer(space, seed=k) for k in range(3)])
    *_, summary = simulate(learner, participants, 1000, None, lambda: 0.0, stop=False)
    # Five items have 30 questions: all participants answer all of them, then nobody is left to ask.
    assert summary["answers"] == 90
    asked = {(answer.participant, key) for answer, key in zip(
        learner.answers, answer_keys(learner), strict=True
    )}  # fmt: skip
    assert len(asked) == 90


def answer_keys(learner):
    rows = [(answer.anchor, answer.nearer, answer.farther) for answer in learner.answers]
    return keys(np.array(rows), learner.n_objects).tolist()


def test_new_questions_come_first_while_there_are_many():
    space, learner = gaussian_space(8, 2, 2), Learner(8, seed=1)
    participants = SimulatedParticipants([Observer(space, seed=k) for k in range(20)])
    list(simulate(learner, participants, 200, None, lambda: 0.0, stop=False))
    given = answer_keys(learner)
    # Of 168 questions the first half are all different; then information decides.
    assert len(set(given[:84])) == 84
    assert len(set(given)) < 200
    *_, often = np.unique(given, return_counts=True)
    assert 2 <= often.max() <= 20


def test_nobody_is_asked_a_question_that_they_have_had():
    learner = Learner(4, seed=0)
    for who in ("P1", "P2"):
        had = set()
        for _ in range(12):
            (question,) = learner.ask(participant=who)
            had.update(question_keys([question]))
            learner.tell(question.id, "left", who)
        assert len(had) == 12
        assert learner.ask(participant=who) == []
    # If it is not known who comes next, there is a question for others.
    assert len(learner.ask(5)) == 5


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
        for question in asked[::order]:
            learner.tell(question.id, sides[question.id % 2])
        learner.audit()
    assert one.estimate.embedding.tobytes() == other.estimate.embedding.tobytes() or (
        one.estimate.rank == other.estimate.rank == 0
    )


def test_duplicate_unknown_and_invalid_answers_are_named():
    learner = Learner(ITEMS)
    (question,) = learner.ask()
    learner.tell(question.id, "left")
    with pytest.raises(AlreadyAnswered, match=f"Question {question.id}"):
        learner.tell(question.id, "right")
    with pytest.raises(AlreadyAnswered):
        learner.skip(question.id)
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
    (question,) = learner.ask()
    assert question.version == 1


def test_repeats_swap_sides_and_give_a_noise_ceiling():
    learner, _ = study()
    drawn = [question for question in learner.questions if question.purpose == "random"]
    assert learner.estimate.ceiling is None
    chose_left = {i: answer.nearer for i, answer in enumerate(learner.answers)}
    for question in drawn[:12]:
        again = learner.repeat(question.id)
        assert (again.left, again.right) == (question.right, question.left)
        assert again.purpose == "repeat"
        answer = next(one for one in learner.answers if one.question == question.id)
        learner.tell(again.id, "left" if answer.nearer == again.left else "right")
    assert chose_left
    assert learner.estimate.ceiling == 1.0


def test_catch_answers_do_not_enter_the_fit():
    learner = Learner(ITEMS)
    question = learner.issue(0, (1, 2), "catch")
    learner.tell(question.id, "left")
    assert learner.estimate.answers == 0


def test_same_seed_and_calls_same_bits_also_in_another_process():
    learner, _ = study(answers=160)
    code = (
        "from tests.integration.learner.test_learner import study, fingerprint; import hashlib;"
        "learner = study(answers=160, seed=3)[0];"
        "print(hashlib.sha256(repr(fingerprint(learner)).encode()"
        " + repr(learner.questions).encode()).hexdigest())"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    import hashlib

    text = repr(fingerprint(learner)).encode() + repr(learner.questions).encode()
    assert result.stdout.strip() == hashlib.sha256(text).hexdigest()


def spelt(learner, document):
    """A snapshot as it was written before questions and answers were arrays."""
    states = [STATES[code] for code in learner._history.asked.rows["state"]]
    margins = learner._counts.predictions
    return {
        **{
            name: value for name, value in document.items() if name not in ("codes", "participants")
        },
        "format": 3,
        "queries": [
            {
                **{
                    name: value
                    for name, value in asdict(question).items()
                    if name not in ("options", "kind")
                },
                "left": question.left,
                "right": question.right,
            }
            for question in learner.questions
        ],
        "states": states,
        "answers": [
            {
                "query": answer.question,
                **{
                    name: getattr(answer, name)
                    for name in ("anchor", "nearer", "farther", "participant")
                },
            }
            for answer in learner.answers
        ],
        "events": [list(event) for event in learner._history.events()],
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
    assert restored.questions == before.questions == learner.questions
    for one in (learner, restored):
        one.refit()
        one.audit()
    assert fingerprint(restored) == fingerprint(learner)
    with pytest.raises(InvalidParameter, match="format 99"):
        snapshot.load({**document, "format": 99}, arrays)


def test_ids_are_names_and_change_nothing_that_is_computed():
    dense, chosen = Learner(ITEMS, seed=3), Learner(ITEMS, seed=3)
    respondent = Observer(gaussian_space(ITEMS, 2, 1), ObserverNoise(noise=0.1), 2)
    ids = iter(np.random.default_rng(0).permutation(1000).tolist())
    for _ in range(16):
        pairs = [(question, next(ids)) for question in dense.ask(10)]
        selected = chosen.proposal(10)()
        assert [replace(one, id=0) for one in selected] == [replace(q, id=0) for q, _ in pairs]
        for one, (_, number) in zip(selected, pairs, strict=True):
            chosen.record(replace(one, id=number))
        extra, number = dense.issue(0, (1, 2)), next(ids)
        assert chosen.issue(0, (1, 2), id=number).id == number
        again, twice = dense.repeat(extra.id), next(ids)
        assert chosen.repeat(number, id=twice).repeats == number
        for question, other in (*pairs, (extra, number), (again, twice)):
            side = respondent.answer(question.anchor, question.left, question.right)
            dense.tell(question.id, side, f"P{question.id % 3}")
            chosen.tell(other, side, f"P{question.id % 3}")
        if due := dense.due():
            assert chosen.due() == due
            getattr(dense, due)(), getattr(chosen, due)()
    assert dense.audits and fingerprint(chosen) == fingerprint(dense)
    assert [replace(answer, question=0) for answer in chosen.answers] == [
        replace(answer, question=0) for answer in dense.answers
    ]
    document, arrays = snapshot.dump(chosen)
    restored = snapshot.load(json.loads(json.dumps(document)), arrays)
    assert restored.questions == chosen.questions and restored.answers == chosen.answers
    for one in (dense, chosen, restored):
        one.exclude("P1")
    assert fingerprint(chosen) == fingerprint(dense) == fingerprint(restored)
    # By default an id is new.
    taken = {one.id for one in chosen.questions}
    assert chosen.ask()[0].id == max(taken) + 1
    with pytest.raises(InvalidParameter, match="must be a new number"):
        chosen.issue(0, (1, 2), id=max(taken))


def test_exclusion_is_as_if_never_there_and_can_be_undone():
    learner, _ = study(answers=200)
    before = fingerprint(learner)
    without = Learner(ITEMS, seed=learner.seed)
    # The same questions and the same moments of learning, but P1 never answers.
    for kind, which in learner._history.events():
        if kind == "ask":
            question = learner.questions[which]
            without.issue(question.anchor, question.options, question.purpose)
        elif kind == "answer":
            answer = learner.answers[which]
            if answer.participant != "P1":
                side = (
                    "left" if answer.nearer == learner.questions[answer.question].left else "right"
                )
                without.tell(answer.question, side, answer.participant)
        elif kind == "audit":
            without.audit()
        elif kind == "refit":
            without.refit()
    learner.exclude("P1")
    assert fingerprint(learner) == fingerprint(without)
    assert fingerprint(learner) != before
    learner.restore("P1")
    assert fingerprint(learner) == before


def test_an_audit_beside_the_learner_counts_the_answers_that_came_meanwhile():
    learner, _ = study(answers=200)
    duplicate, _ = study(answers=200)
    pending = learner.start_audit()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(pending.run)
        for question in learner.ask(30):
            learner.tell(question.id, "left", "P3")
        running.result()
    audit = learner.finish_audit(pending)
    assert audit.answers == learner.counted - 30
    assert learner.unfitted == 0
    # The audit itself is that of the earlier answers.
    assert [entry.loss for entry in audit.evidence] == [
        entry.loss for entry in duplicate.audit().evidence
    ]
    before = fingerprint(learner)
    learner.exclude("P3")
    learner.restore("P3")
    assert fingerprint(learner) == before


def test_a_cancelled_audit_ends_early_and_leaves_the_learner_as_it_was():
    learner, _ = study(answers=200)
    before = fingerprint(learner)
    pending = learner.start_audit()
    pending.cancel()
    with pytest.raises(AuditCancelled):
        pending.run()
    assert fingerprint(learner) == before
    learner.audit()
    assert learner.unfitted == 0


def test_aligned_embedding_does_not_rotate_between_refits():
    learner, space = study(answers=300)
    participant = Observer(space, ObserverNoise(noise=0.05), 77)
    for _ in range(3):
        before = learner.estimate.aligned
        for question in learner.ask(10):
            learner.tell(
                question.id, participant.answer(question.anchor, question.left, question.right)
            )
        learner.refit()
        after = learner.estimate.aligned
        if after.shape == before.shape:
            moved = np.linalg.norm(after - before) / np.linalg.norm(before)
            assert moved < 0.35


def test_uncertainty_shrinks_with_answers():
    few, many = study(answers=160, seed=8)[0], study(answers=520, seed=8)[0]
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
    answered = {answer.question for answer in learner.answers}
    old = question_keys([q for q in learner.questions if q.id in answered])
    assert not set(question_keys(asked)) & set(old)
    assert len(set(question_keys(asked))) == 30


def test_pure_noise_is_nothing_to_find():
    learner = Learner(ITEMS, seed=2)
    rng = np.random.default_rng(0)
    while learner.estimate.answers < 500:
        for question in learner.ask(10):
            learner.tell(question.id, "left" if rng.random() < 0.5 else "right")
        if learner.due() == "audit":
            learner.audit()
            assert not learner.decision.settled
    assert learner.audits[-1].rank <= 1


@pytest.mark.parametrize(
    ("rule", "against_fewer", "against_more"),
    [
        ("rank_settled", "2 vs 1 dimension: mean advantage of", "2 vs 3 dimensions: mean adv"),
        (
            "smallest_dimension",
            "Log Bayes factor, 2 vs 1 dimension",
            "against a further dimension that carries 10 % or more",
        ),
    ],
)
def test_it_stops_with_reasons_at_the_right_rank(rule, against_fewer, against_more):
    space = gaussian_space(ITEMS, 2, 6)
    participants = SimulatedParticipants([Observer(space, ObserverNoise(noise=0.05), 1)])
    learner = Learner(ITEMS, seed=6, stopping=stopping_rule(rule))
    *records, summary = simulate(learner, participants, 800, None, lambda: 0.0)
    assert summary["stopped_at"] == records[-1]["answers"]
    assert summary["stopped_rank"] == 2
    assert against_fewer in summary["message"]
    assert against_more in summary["message"]


def test_a_pool_is_asked_only_what_it_holds():
    rows = simulated_answers(gaussian_space(ITEMS, 2, 7), 400, 8)
    logged = as_triplets(rows, ITEMS)
    participants = LoggedParticipants(logged, 1)
    learner = Learner(ITEMS, seed=1, source=PooledQuestions(participants.questions, ITEMS))
    *_, summary = simulate(learner, participants, 10_000, rows, lambda: 0.0, stop=False)
    assert summary["answers"] == len(set(keys(rows, ITEMS).tolist()))
    held = set(keys(rows, ITEMS).tolist())
    assert set(question_keys(learner.questions)) <= held
