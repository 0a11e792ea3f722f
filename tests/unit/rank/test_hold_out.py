"""Hold-out validation: λ and rank from one part of many answers."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active.data.comparisons import as_triplets
from lore_active.embedding.metrics import margins
from lore_active.errors import InvalidParameter
from lore_active.estimators import cross_validated
from lore_active.estimators.lore_cv import LORECV
from lore_active.rank.hold_out import held_out_audit
from lore_active.simulation.observers import gaussian_space, simulated_answers


@pytest.fixture(scope="module")
def answers():
    return as_triplets(simulated_answers(gaussian_space(60, 5, 1), 20_000, 2), 60)


def test_the_rank_is_that_of_the_space(answers):
    steps = []
    result = held_out_audit(answers, 0, max_rank=12, progress=lambda *step: steps.append(step))
    assert result.rank == result.solution.rank == 5
    assert result.answers == len(answers)
    assert steps[0] == (1, 8)
    losses = {row.rank: row.loss for row in result.evidence}
    assert losses[5] == min(losses.values()) < losses[4]
    assert result.below[0] > result.below[1]
    fresh = as_triplets(simulated_answers(gaussian_space(60, 5, 1), 4000, 3), 60)
    assert (margins(result.solution.embedding, fresh) > 0).mean() > 0.85


def test_the_same_answers_give_the_same_bits_in_any_order(answers):
    order = np.random.default_rng(4).permutation(len(answers))
    first, second = (held_out_audit(a, 0, max_rank=8) for a in (answers, answers.take(order)))
    assert first.solution.embedding.tobytes() == second.solution.embedding.tobytes()


def test_guesses_have_no_dimension():
    rng = np.random.default_rng(5)
    guesses = as_triplets([rng.permutation(20)[:3] for _ in range(2000)])
    result = held_out_audit(guesses, 0, max_rank=5)
    assert result.rank == 0
    assert result.solution is None


def test_the_estimator_holds_out_where_answers_are_many(answers, monkeypatch):
    monkeypatch.setattr(cross_validated, "HOLD_OUT_FROM", 10_000)
    seen = set()
    model = LORECV().fit(answers, progress=lambda what, done, of: seen.add(what))
    assert model.rank_ == 5
    assert model.converged_
    assert seen == {"Hold-out validation: λ"}
    with pytest.raises(InvalidParameter, match="20000 answers, but a further dimension"):
        LORECV(smallest_dimension=0.1).fit(answers)
