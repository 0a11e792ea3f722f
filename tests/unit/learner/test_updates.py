"""From answers to the next model: what the acquisition model may support."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lore_active.data.comparisons import as_triplets
from lore_active.learner import updates
from lore_active.rank import cross_validation
from lore_active.rank.comparison import NO_STARTS
from lore_active.rank.significance import SUPPORTED_FROM, SUPPORTED_STILL
from lore_active.simulation.observers import ObserverNoise, gaussian_space, simulated_answers

ITEMS = 25
FAIR, HARD = 300, 600


def mixed(seed, fair=FAIR, hard=HARD):
    """Answers to unpicked questions, and to picked ones that are too hard for anybody."""
    space = gaussian_space(ITEMS, 1, seed)
    answers = simulated_answers(space, fair, seed + 1, ObserverNoise(0.5))
    guessed = simulated_answers(space, hard, seed + 2, ObserverNoise(0.5, lapse=1.0))
    return as_triplets(np.vstack([answers, guessed]), ITEMS), np.arange(fair + hard) < fair


@pytest.fixture(scope="module")
def noisy():
    """Answers in which only the acquisition model finds a dimension; some seeds give such."""
    for seed in range(40):
        answers, model_independent = mixed(seed)
        hidden = cross_validation.audit(answers, 0).rank == 0
        if hidden and audited(answers, model_independent)[1].beyond_guessing >= SUPPORTED_FROM:
            return answers, model_independent
    raise AssertionError("no such answers")


def audited(answers, model_independent, last=()):
    return updates.audited(answers, model_independent, 0, last, None, NO_STARTS)[:2]


def test_a_rank_hidden_by_hard_questions_is_supported_by_the_acquisition_model(noisy):
    answers, model_independent = noisy
    assert cross_validation.audit(answers, 0).rank == 0
    found, acquisition = audited(answers, model_independent)
    assert acquisition.beyond_guessing >= SUPPORTED_FROM
    assert found.rank == 1
    assert found.solution.rank == 1
    # Judged on the hard questions as well, nothing could be told.
    assert audited(answers, np.ones_like(model_independent))[0].rank == 0


def test_what_was_found_is_not_lost_to_a_weak_audit():
    answers, model_independent = mixed(3)
    nothing, acquisition = audited(answers, model_independent)
    assert SUPPORTED_STILL <= acquisition.beyond_guessing < SUPPORTED_FROM
    assert nothing.rank == 0
    assert audited(answers, model_independent, [nothing])[0].rank == 0
    assert audited(answers, model_independent, [replace(nothing, rank=1)])[0].rank == 1


def test_random_answers_give_no_supported_rank():
    answers, model_independent = mixed(4, fair=0)
    for last in ((), [replace(cross_validation.audit(answers, 0), rank=1)]):
        found, acquisition = audited(answers, np.ones_like(model_independent), last)
        assert acquisition.beyond_guessing < SUPPORTED_STILL
        assert found.rank == 0
        assert found.solution is None


def test_without_model_independent_questions_no_rank_is_supported(noisy):
    answers, model_independent = noisy
    found, acquisition = audited(answers, np.zeros_like(model_independent))
    assert acquisition.beyond_guessing == 0
    assert found.rank == 0
