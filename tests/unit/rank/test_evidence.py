"""Odds of ranks: right where they can be computed otherwise, and patient where little is known."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active.data.comparisons import as_triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.pairs import as_pairs
from lore_active.rank import evidence
from lore_active.simulation.observers import ObserverNoise, gaussian_space, simulated_answers

ITEMS = 25


def answers(rank, count, noise=0.1, seed=3, items=ITEMS):
    return as_triplets(
        simulated_answers(gaussian_space(items, rank, seed), count, seed + 1, ObserverNoise(noise)),
        items,
    )


def as_rows(triplets):
    return np.column_stack([triplets.anchor, triplets.nearer, triplets.farther]).astype(np.int64)


def averaged(rows, items, rank, noise, rng, rounds=50, each=20_000):
    """The log probability of answers, averaged over spaces drawn from the prior."""
    rows, often = np.unique(rows, axis=0, return_counts=True)
    logs = []
    for _ in range(rounds):
        z = rng.normal(size=(each, items, rank)) / np.sqrt(noise)
        apart = np.sqrt(((z[:, :, None] - z[:, None]) ** 2).sum(axis=3))
        near, far = (apart[:, rows[:, 0], rows[:, k]] for k in (1, 2))
        logs.append(-np.logaddexp(0.0, near - far) @ often)
    every = np.concatenate(logs)
    return float(np.logaddexp.reduce(every) - np.log(len(every)))


@pytest.mark.parametrize(("items", "rank", "count"), [(5, 1, 40), (5, 2, 60), (6, 2, 40)])
def test_it_is_the_average_over_the_prior(items, rank, count):
    triplets, noise = answers(rank, count, items=items), 0.12
    pairs, rng = as_pairs(triplets), np.random.default_rng(0)
    starts = [rng.normal(size=(items, rank)) for _ in range(20)]
    found = [map_embedding.fitted(pairs, count, noise, start, final=True) for start in starts]
    z, objective = min(found, key=lambda finding: finding[1])
    expected = averaged(as_rows(triplets), items, rank, noise, rng)
    assert evidence.log_evidence(z, objective, as_rows(triplets), noise) == pytest.approx(
        expected, abs=0.6
    )


def test_turning_and_mirroring_a_space_changes_nothing():
    triplets = answers(3, 300)
    z, objective = map_embedding.fits_by_rank(
        as_pairs(triplets), 300, 0.12, 3, final=True, min_rank=3
    )[3]
    basis, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    # On other axes the lengths differ, so turned back to the principal ones but for mirrors.
    mirrored = z * np.array([1.0, -1.0, 1.0])
    here, there = (
        evidence.log_evidence(one, objective, as_rows(triplets), 0.12) for one in (z, mirrored)
    )
    assert here == pytest.approx(there, abs=1e-9)
    turned = map_embedding.fitted(as_pairs(triplets), 300, 0.12, z @ basis, final=True)
    assert evidence.log_evidence(*turned, as_rows(triplets), 0.12) == pytest.approx(here, abs=0.05)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_the_true_rank_has_the_largest_marginal_likelihood(rank, noise):
    fewer, more = evidence.log_bayes_factors(answers(rank, 3000, noise), rank)
    assert fewer > 10
    assert more > 0.4 * ITEMS / rank


@pytest.mark.parametrize("rank", [2, 3])
def test_a_true_dimension_has_a_larger_marginal_likelihood_than_none(rank):
    assert evidence.log_bayes_factors(answers(rank, 1500), rank - 1)[1] < -20


def test_with_few_answers_a_dimension_that_is_there_is_not_refuted():
    """Held-out answers would speak against it; odds say that little is known."""
    for seed in (3, 13, 23):
        assert evidence.log_bayes_factors(answers(5, 300, 0.5, seed), 4)[1] < 0.05 * ITEMS


def test_guesses_have_no_dimension():
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(ITEMS, 3, replace=False) for _ in range(600)])
    fewer, _ = evidence.log_bayes_factors(as_triplets(rows, ITEMS), 1)
    assert fewer < 0


def test_a_start_that_reaches_a_lower_objective_is_used():
    triplets = answers(1, 80, seed=11)
    cold, _ = evidence.log_bayes_factors(triplets, 1)
    below, _ = evidence.log_bayes_factors(
        triplets, 1, [gaussian_space(ITEMS, 1, 11), np.zeros((ITEMS, 4))]
    )
    assert below > cold + 3


@pytest.mark.parametrize(("items", "rank"), [(ITEMS, 0), (2001, 1)])
def test_no_evidence_where_there_is_nothing_to_compare_or_too_much(items, rank):
    triplets = as_triplets([[0, 1, 2], [3, 4, items - 1]], items)
    assert evidence.log_bayes_factors(triplets, rank) == (None, None)


def test_there_may_be_no_rank_above():
    fewer, more = evidence.log_bayes_factors(answers(2, 100, items=4), 2)
    assert np.isfinite(fewer)
    assert more is None
