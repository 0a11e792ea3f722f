"""Cross-validation along ranks: honest folds, right ranks, nothing in noise."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active.data.comparisons import as_triplets
from lore_active.rank import cross_validation
from lore_active.simulation.observers import ObserverNoise, gaussian_space, simulated_answers


def answers(rank, count=900, items=25, seed=1, noise=0.1):
    rows = simulated_answers(
        gaussian_space(items, rank, seed), count, seed + 1, ObserverNoise(noise)
    )
    return as_triplets(rows, items)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_audit_names_the_true_rank(rank):
    found = cross_validation.audit(answers(rank), seed=0)
    assert found.rank == rank
    assert found.solution.rank == rank
    best = min(found.evidence, key=lambda one: one.loss)
    assert best.worse == 0
    assert all(one.worse >= 0 for one in found.evidence)
    assert found.below[0] > 0
    assert found.above[0] > 0
    assert found.evidence[0].rank == 0
    assert found.evidence[0].loss == pytest.approx(np.log(2))


def test_guesses_support_no_dimension():
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(20, 3, replace=False) for _ in range(600)])
    found = cross_validation.audit(as_triplets(rows, 20), seed=0)
    assert found.rank == 0
    assert found.solution is None


def test_answers_to_one_question_share_a_fold():
    rows = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1]] * 4)
    folds = cross_validation.folds(as_triplets(rows, 4), seed=3)
    assert len({*folds[0::5], *folds[1::5]}) == 1
    assert len({*folds[2::5], *folds[3::5]}) == 1


def test_held_out_margins_come_from_fits_that_did_not_see_the_answer():
    """A flipped answer changes the margins of other folds only."""
    triplets = answers(2, count=400)
    folds = cross_validation.folds(triplets, seed=0)
    flipped = np.column_stack([triplets.anchor, triplets.nearer, triplets.farther])
    flipped[7, 1:] = flipped[7, :0:-1]
    one = cross_validation.held_out_margins(triplets, 0, 4)
    other = cross_validation.held_out_margins(as_triplets(flipped, 25), 0, 4)
    key = next(iter(sorted(set(one) & set(other))))
    same = folds == folds[7]
    rest = same.copy()
    rest[7] = False
    np.testing.assert_array_equal(one[key][rest], other[key][rest])
    assert one[key][7] == -other[key][7]
    assert (one[key][~same] != other[key][~same]).any()


def test_more_ranks_are_tried_when_the_best_is_near_the_end():
    found = cross_validation.audit(answers(4, count=2500, seed=5), seed=0, expected=0)
    assert found.rank == 4
    assert max(one.rank for one in found.evidence) > 4


def test_best_temperature_recovers_the_noise():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=20_000) * 2
    right = rng.random(20_000) < 1 / (1 + np.exp(-np.abs(truth) / 0.5))
    column = np.where(right, np.abs(truth), -np.abs(truth))
    assert cross_validation.best_temperature(column) == pytest.approx(0.5, rel=0.15)
