"""Near-ties among neighbours: the questions that depend on a weak further dimension."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lore_active.acquisition.local import LocalSelector
from lore_active.acquisition.state import SelectorState
from lore_active.errors import InvalidParameter
from lore_active.questions.pool import AllQuestions

NONE = np.empty((0, 3), dtype=np.int64)


def state(space):
    return SelectorState(space, 1.0, NONE, NONE, set(), AllQuestions(len(space)))


def test_close_ties_score_above_distant_ties_and_clear_questions():
    line = np.array([[0.0], [0.2], [-0.2], [6.0], [-6.0]])
    rows = np.array([[0, 1, 2], [0, 3, 4], [0, 1, 3]])
    close, distant, clear = LocalSelector(0.1).scores(state(line), rows)
    assert close > 2 * distant
    assert close > 2 * clear


def test_the_score_is_the_variance_that_further_coordinates_add_to_the_margin():
    rng = np.random.default_rng(1)
    space = rng.normal(size=(6, 2)) * 2.0
    share, row = 0.1, np.array([[0, 1, 2]])
    deviation = np.sqrt(share / (1 - share) * space.var(axis=0).sum())
    near, far = (np.linalg.norm(space[0] - space[k]) for k in (1, 2))
    # Differences to the two options drawn independently, as the score assumes.
    first, second = rng.normal(0.0, np.sqrt(2.0) * deviation, (2, 400_000))
    margin = np.hypot(far, second) - np.hypot(near, first)
    likely = 1.0 / (1.0 + np.exp(near - far))
    expected = likely * (1.0 - likely) * margin.var()
    assert LocalSelector(share).scores(state(space), row)[0] == pytest.approx(expected, rel=0.02)


def test_questions_are_new_and_different():
    space = np.random.default_rng(2).normal(size=(8, 2))
    picked = LocalSelector().pick(state(space), 20, np.random.default_rng(3)).questions
    keys = {(a, *sorted((i, j))) for a, i, j in picked.tolist()}
    assert len(keys) == 20


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1])
def test_impossible_shares_are_refused(share):
    with pytest.raises(InvalidParameter, match="share is"):
        LocalSelector(share)


def test_a_question_that_was_answered_often_tells_less():
    space = np.random.default_rng(4).normal(size=(6, 2))
    rows = AllQuestions(6).new(60, set(), np.random.default_rng(0))
    before = LocalSelector().scores(state(space), rows)
    often = np.repeat(rows[:1], 40, axis=0)[:, [0, 2, 1]]
    after = LocalSelector().scores(replace(state(space), answered=often), rows)
    # The information of 40 answers to the same question, its options in either order.
    assert after[0] == pytest.approx(before[0] / (1.0 + 40.0 * before[0]))
    assert np.array_equal(after[1:], before[1:])
