"""Every comparison carries its trial and its participant, from files to the folds of a fit."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active import Learner, as_triplets
from lore_active.rank.folds import folds

ROWS = [[0, 1, 2], [0, 1, 3], [2, 3, 1], [3, 0, 1], [0, 1, 2]]


def test_columns_say_which_comparisons_belong_together():
    frame = {
        "anchor": [row[0] for row in ROWS],
        "nearer": [row[1] for row in ROWS],
        "farther": [row[2] for row in ROWS],
        "participant": ["ann", "ann", "ann", "bob", "bob"],
        # Numbered from 1 for each participant.
        "trial": [1, 1, 2, 1, 2],
    }
    triplets = as_triplets(frame)
    assert triplets.participant.tolist() == [0, 0, 0, 1, 1]
    assert triplets.trial.tolist() == [0, 0, 1, 2, 3]
    again = as_triplets(triplets)
    assert again.trial.tolist() == triplets.trial.tolist()
    assert again.participant.tolist() == triplets.participant.tolist()
    some = triplets.take(np.array([4, 2]))
    assert (some.trial.tolist(), some.participant.tolist()) == ([3, 1], [1, 0])


def test_without_columns_each_answer_is_a_trial_of_an_unknown_participant():
    triplets = as_triplets(ROWS)
    assert triplets.trial.tolist() == [0, 1, 2, 3, 4]
    assert set(triplets.participant.tolist()) == {-1}


def test_rows_left_out_take_theirs_with_them(tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text(
        "participant,anchor,nearer,farther,trial,excluded\n"
        "P1,a,b,c,1,0\nP2,a,b,c,1,1\nP3,b,c,a,1,0\nP3,b,c,d,1,0\n"
    )
    triplets = as_triplets(file)
    assert triplets.participant.tolist() == [0, 1, 1]
    assert triplets.trial.tolist() == [0, 1, 1]


def test_weights_repeat_the_trial_of_an_answer():
    triplets = as_triplets(ROWS, sample_weight=[1, 2, 1, 1, 0]).repeated("a test")
    assert triplets.trial.tolist() == [0, 1, 1, 2, 3]


@pytest.mark.parametrize("seed", range(5))
def test_folds_keep_trials_and_questions_together(seed):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(12, 3, replace=False) for _ in range(240)])
    frame = dict(zip(("anchor", "nearer", "farther"), rows.T, strict=True))
    # The last 40 repeat the first ten trials, of four comparisons each.
    for name in frame:
        frame[name] = np.concatenate([frame[name][:200], frame[name][:40]])
    trial = np.concatenate([np.arange(200) // 4, 200 + np.arange(40) // 4])
    triplets = as_triplets({**frame, "trial": trial})
    part = folds(triplets, seed)
    for number in np.unique(trial):
        assert len(set(part[trial == number])) == 1
    assert (part[:40] == part[200:]).all()
    assert len(set(part)) == 5


def test_an_answer_stays_in_its_fold_while_others_arrive():
    rng = np.random.default_rng(2)
    rows = np.array([rng.choice(12, 3, replace=False) for _ in range(300)])
    early, late = (folds(as_triplets(rows[:count], 12), 7) for count in (60, 300))
    assert (early == late[:60]).all()
    assert np.bincount(late).min() > 30


def test_single_comparisons_fall_into_folds_as_they_always_did():
    triplets = as_triplets(ROWS)
    numbered = as_triplets({**dict(zip(("anchor", "nearer", "farther"), np.array(ROWS).T,
                                       strict=True)), "trial": [9, 8, 7, 6, 5]})  # fmt: skip
    assert (folds(triplets, 3) == folds(numbered, 3)).all()
    assert folds(triplets, 3)[0] == folds(triplets, 3)[4]


def test_a_learner_knows_them_too():
    learner = Learner(6, seed=1)
    asked = learner.ask(4)
    for number, question in enumerate(asked):
        learner.tell(question.id, "left", participant="P1" if number % 2 else "P2")
    learner.add([[0, 1, 2], [1, 2, 3]])
    triplets = learner._triplets()
    assert triplets.participant.tolist() == [0, 1, 0, 1, -1, -1]
    assert triplets.trial.tolist()[:4] == [question.id for question in asked]
    assert len(set(triplets.trial.tolist())) == 6
    learner.exclude("P1")
    assert learner._triplets().participant.tolist() == [0, 0, -1, -1]
