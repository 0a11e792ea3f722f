"""Cross-validation along ranks: honest folds, right ranks, nothing in noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lore_active.data.comparisons import as_triplets
from lore_active.rank import cross_validation
from lore_active.rank.comparison import NO_STARTS
from lore_active.rank.fits import Starts
from lore_active.rank.folds import FOLDS, folds
from lore_active.rank.temperature import best_temperature
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
    best = min(found.evidence, key=lambda entry: entry.loss)
    assert best.difference == 0
    assert all(one.difference >= 0 for one in found.evidence)
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
    part = folds(as_triplets(rows, 4), seed=3)
    assert len({*part[0::5], *part[1::5]}) == 1
    assert len({*part[2::5], *part[3::5]}) == 1


@pytest.mark.parametrize("warm", [False, True])
def test_held_out_losses_come_from_fits_that_did_not_see_the_answer(warm):
    """A flipped answer changes the fits of other folds only, from warm starts, too."""
    triplets = answers(2, count=400)
    fold = folds(triplets, seed=0)
    flipped = np.column_stack([triplets.anchor, triplets.nearer, triplets.farther])
    flipped[7, 1:] = flipped[7, :0:-1]
    starts = []
    for rows in (triplets, as_triplets(flipped, 25)):
        # The choice of λ depends on all folds.
        begun = cross_validation.compare(rows.take(np.arange(350)), 0, lambdas=(0.01,)).warm
        known = begun if warm else NO_STARTS
        starts.append(cross_validation.compare(rows, 0, 2, (0.01,), warm=known).warm.folds)
    for part in range(FOLDS):
        one, other = (found[part].penalised[2] for found in starts)
        assert (part == fold[7]) == bool((one == other).all())


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_warm_starts_choose_the_same_rank(rank):
    triplets = answers(rank, count=1600)
    begun = cross_validation.compare(triplets.take(np.arange(1450)), 0, rank)
    compared = cross_validation.compare(triplets, 0, begun.audit().rank, warm=begun.warm)
    assert compared.audit().rank == rank
    assert compared.judged[rank].loss == pytest.approx(
        cross_validation.compare(triplets, 0, rank).judged[rank].loss, rel=0.03
    )


def test_a_rank_that_grows_is_followed_from_warm_starts():
    """With few answers fewer dimensions are found; their fits must not lock the rank."""
    triplets = answers(3, count=1500)
    few = cross_validation.compare(triplets.take(np.arange(120)), 0)
    assert few.audit().rank < 3
    later = cross_validation.compare(triplets, 0, few.audit().rank, warm=few.warm)
    assert later.audit().rank == 3


def test_cold_starts_replace_warm_ones_that_are_stuck():
    triplets = answers(2, count=900)
    begun = cross_validation.compare(triplets.take(np.arange(600)), 0, 2)
    lost = {
        part: Starts({k: np.random.default_rng(k).normal(size=z.shape)
                      for k, z in fold.penalised.items()})
        for part, fold in begun.warm.folds.items()
    }  # fmt: skip
    stuck = replace(begun.warm, folds=lost)
    assert stuck.check_due(900)
    found = cross_validation.compare(triplets, 0, 2, warm=stuck)
    cold = cross_validation.compare(triplets, 0, 2)
    assert found.judged[2].loss == pytest.approx(cold.judged[2].loss, rel=0.05)
    assert found.warm.checks == 1


def test_more_ranks_are_tried_when_the_best_is_near_the_end():
    found = cross_validation.audit(answers(4, count=2500, seed=5), seed=0, expected=0)
    assert found.rank == 4
    assert max(entry.rank for entry in found.evidence) > 4


def test_best_temperature_recovers_the_noise():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=20_000) * 2
    right = rng.random(20_000) < 1 / (1 + np.exp(-np.abs(truth) / 0.5))
    column = np.where(right, np.abs(truth), -np.abs(truth))
    assert best_temperature(column) == pytest.approx(0.5, rel=0.15)
