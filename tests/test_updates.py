"""From answers to the next model: what the model that asks may vouch for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lore_active.data.comparisons import as_triplets
from lore_active.learner import updates
from lore_active.rank import cross_validation
from lore_active.rank.significance import STILL_VOUCHED, VOUCHED
from lore_active.simulation.observers import Habits, gaussian_space, simulated_answers

ITEMS = 25
FAIR, HARD = 300, 600


def mixed(seed, fair=FAIR, hard=HARD):
    """Answers to unpicked questions, and to picked ones that are too hard for anybody."""
    space = gaussian_space(ITEMS, 1, seed)
    told = simulated_answers(space, fair, seed + 1, Habits(0.5))
    guessed = simulated_answers(space, hard, seed + 2, Habits(0.5, lapse=1.0))
    return as_triplets(np.vstack([told, guessed]), ITEMS), np.arange(fair + hard) < fair


@pytest.fixture(scope="module")
def noisy():
    return mixed(4)


def audited(answers, unselected, last=()):
    return updates.audited(answers, unselected, 0, last, None)


def test_what_hard_questions_hide_the_model_that_asks_vouches_for(noisy):
    answers, unselected = noisy
    assert cross_validation.audit(answers, 0).rank == 0
    found, asker = audited(answers, unselected)
    assert asker.beyond_guessing >= VOUCHED
    assert found.rank == 1
    assert found.solution.rank == 1
    # Judged on the hard questions as well, nothing could be told.
    assert audited(answers, np.ones_like(unselected))[0].rank == 0


def test_what_was_found_is_not_lost_to_a_weak_audit():
    answers, unselected = mixed(3)
    nothing, asker = audited(answers, unselected)
    assert STILL_VOUCHED <= asker.beyond_guessing < VOUCHED
    assert nothing.rank == 0
    assert audited(answers, unselected, [nothing])[0].rank == 0
    assert audited(answers, unselected, [replace(nothing, rank=1)])[0].rank == 1


def test_guesses_are_not_vouched_for():
    answers, unselected = mixed(4, fair=0)
    for last in ((), [replace(cross_validation.audit(answers, 0), rank=1)]):
        found, asker = audited(answers, np.ones_like(unselected), last)
        assert asker.beyond_guessing < STILL_VOUCHED
        assert found.rank == 0
        assert found.solution is None


def test_no_unpicked_questions_vouch_for_nothing(noisy):
    answers, unselected = noisy
    found, asker = audited(answers, np.zeros_like(unselected))
    assert asker.beyond_guessing == 0
    assert found.rank == 0
