"""A learner whose questions carry more than one comparison."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lore_active import InvalidParameter, Learner, as_triplets
from lore_active.learner import snapshot
from lore_active.questions.kinds import ODD_ONE_OUT, Kind, kind
from lore_active.questions.question import NotATriplet
from lore_active.simulation.observers import Observer, ObserverNoise, gaussian_space

ITEMS = 16
LABELS = ["rank-2-of-8", "choose-1-of-4", "choose-2-of-5", "odd-one-out"]


def study(label, trials=60, seed=1, batch=5):
    """A learner after some trials of one simulated participant, refitted as it asks for."""
    observer = Observer(gaussian_space(ITEMS, 2, seed=2), ObserverNoise(), seed=3)
    learner = Learner(ITEMS, seed, kind=label)
    while learner.counted < trials:
        for question in learner.ask(batch):
            chosen = observer.choose(question.kind, question.anchor, question.options)
            learner.tell(question.id, chosen, participant="P1")
        due = learner.due()
        if due is not None:
            getattr(learner, due)()
    return learner


@pytest.mark.parametrize("label", LABELS)
def test_questions_of_each_kind_are_asked_answered_and_learnt_from(label):
    learner = study(label)
    asked = kind(label)
    for question in learner.questions:
        asked.check_question(question.anchor, question.options)
    keys = {asked.key(one.anchor, one.options) for one in learner.questions}
    assert len(keys) == len(learner.questions)
    assert learner.counted == len(learner.answers) == 60
    rows = [row for answer in learner.answers for row in answer.comparisons]
    assert learner._counts.rows.tolist() == [list(row) for row in rows]
    trials = [answer.question for answer in learner.answers for _ in answer.comparisons]
    assert learner._counts.trials.tolist() == trials
    assert learner.audits and learner.audits[-1].answers <= 60
    assert learner.estimate.rank >= 1


@pytest.mark.parametrize("label", LABELS)
def test_saved_and_restored_it_continues_bit_for_bit(label):
    learner = study(label)
    learner.repeat(3)
    learner.add(
        as_triplets({"anchor": [0, 0], "nearer": [1, 1], "farther": [2, 3], "trial": [1, 1]})
    )
    document, arrays = snapshot.dump(learner)
    restored = snapshot.load(json.loads(json.dumps(document)), arrays)
    assert restored.kind == learner.kind
    assert restored.answers == learner.answers
    assert restored.questions == learner.questions
    assert restored.prequential == learner.prequential
    assert restored.ask(4) == learner.ask(4)
    for each in (learner, restored):
        each.refit()
    assert (restored.estimate.embedding == learner.estimate.embedding).all()


def test_replayed_without_a_participant():
    learner = study("rank-2-of-8", trials=30)
    before = learner.estimate.embedding
    learner.exclude("P1")
    assert learner.counted == 0 and learner.estimate.version == 0
    learner.restore("P1")
    assert learner.counted == 30
    assert (learner.estimate.embedding == before).all()


def test_wrong_answers_are_refused():
    learner = Learner(ITEMS, kind="rank-2-of-8")
    [question] = learner.ask()
    for chosen, message in (
        ("left", "must be a list of items"),
        (question.options[:1], "must be 2 of the options"),
        ((question.options[0], question.anchor), "contains"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            learner.tell(question.id, chosen)
    with pytest.raises(NotATriplet, match="'rank-2-of-8'"):
        question.left  # noqa: B018
    assert not hasattr(question, "left")
    with pytest.raises(InvalidParameter, match="shows 9 items"):
        Learner(8, kind=Kind("rank", 8, 2))
    with pytest.raises(InvalidParameter, match="item 16"):
        learner.issue(0, range(9, 17))


def test_imported_comparisons_of_one_trial_stay_together():
    learner = Learner(ITEMS, kind="rank-2-of-8")
    rows = Kind("rank", 4, 2).comparisons(0, (1, 2, 3, 4), (2, 3))
    frame = dict(zip(("anchor", "nearer", "farther"), np.array(rows).T, strict=True))
    learner.add(as_triplets({**frame, "trial": [7] * len(rows)}), participant="P1")
    learner.add([[5, 6, 7], [6, 7, 8]])
    assert learner.counted == 3
    trials = learner._counts.trials
    assert len(set(trials[: len(rows)])) == 1 and len(set(trials)) == 3
    assert learner.verdict.stage
    triplets = learner._triplets()
    assert triplets is not None and triplets.n_trials == 3


def test_a_repeat_shows_the_options_in_reverse_and_agreement_is_counted():
    learner = Learner(ITEMS, seed=1, kind="rank-2-of-8")
    first = learner.ask(12)
    for number, question in enumerate(first):
        learner.tell(question.id, question.options[:2])
        again = learner.repeat(question.id)
        assert again.options == question.options[::-1]
        # Three of twelve answers differ, one of them only in its order.
        chosen = question.options[:2]
        if number < 2:
            chosen = question.options[2:4]
        elif number == 2:
            chosen = chosen[::-1]
        learner.tell(again.id, chosen)
    agreement = 9 / 12
    p = learner.ceiling
    assert p is not None
    assert p**2 + (1 - p) ** 2 / 55 == pytest.approx(agreement)


def test_predictions_of_random_questions_are_counted():
    """A model that knows the space predicts the answers of an observer without noise."""
    space = gaussian_space(ITEMS, 2, seed=2)
    observer = Observer(space, ObserverNoise(noise=0.0))
    learner = study("odd-one-out", trials=200)
    before = learner.prequential.count
    for _ in range(60):
        shown = np.random.default_rng(learner.counted).permutation(ITEMS)[:3].tolist()
        question = learner.issue(None, shown)
        learner.tell(question.id, observer.choose(ODD_ONE_OUT, None, question.options))
    after = learner.prequential
    assert after.count == before + 60
    assert after.value > 0.75
