"""The acquisition model: it guesses well early, keeps its accuracy honest, and knows noise."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active.acquisition import model as acquisition_model
from lore_active.data.comparisons import as_triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.embedding.pairs import as_pairs
from lore_active.simulation.observers import ObserverNoise, gaussian_space, simulated_answers

ITEMS = 25


def answers(rank, count, seed=1, noise=0.1):
    space = gaussian_space(ITEMS, rank, seed)
    rows = simulated_answers(space, count, seed + 1, ObserverNoise(noise))
    test = simulated_answers(space, 2000, seed + 2, ObserverNoise(noise=0.0))
    return as_triplets(rows, ITEMS), test


def everything(triplets):
    return np.ones(len(triplets), dtype=bool)


def chosen(triplets, max_rank):
    return acquisition_model.chosen(triplets, everything(triplets), 0, max_rank)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_it_predicts_from_few_answers(rank):
    triplets, test = answers(rank, 200)
    found = chosen(triplets, max_rank=rank + 1).acquisition
    assert triplet_accuracy(found.embedding, test) > 0.72
    assert found.wider.shape == (ITEMS, found.embedding.shape[1] + 1)
    assert found.judged == 200
    assert found.accuracy == pytest.approx(triplet_accuracy(found.embedding, test), abs=0.1)


def test_guesses_earn_no_trust():
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(ITEMS, 3, replace=False) for _ in range(500)])
    triplets = as_triplets(rows, ITEMS)
    assert chosen(triplets, 3).acquisition.accuracy < 0.58


def test_a_dimension_that_is_there_pays_and_one_that_is_not_costs():
    triplets, _ = answers(2, 800)
    steps = chosen(triplets, 3).steps
    assert sorted(steps) == [1, 2]
    (gain, error), (cost, _) = steps[1], steps[2]
    assert gain < -3 * error
    assert cost > 0


def test_only_unselected_answers_are_judged():
    triplets, _ = answers(2, 200)
    few = everything(triplets)
    few[30:] = False
    assert acquisition_model.chosen(triplets, few, 0, 2).acquisition.judged == 30
    nothing = acquisition_model.chosen(triplets, ~everything(triplets), 0, 2).acquisition
    assert (nothing.judged, nothing.accuracy) == (0, 0.5)


def test_it_is_a_stationary_point_on_principal_axes():
    triplets, _ = answers(2, 400)
    found = chosen(triplets, 2).acquisition
    z, noise = found.embedding, found.noise
    product = z.T @ z
    np.testing.assert_allclose(product, np.diag(np.diag(product)), atol=1e-8 * product[0, 0])

    def objective(at):
        near = np.linalg.norm(at[triplets.anchor] - at[triplets.nearer], axis=1)
        far = np.linalg.norm(at[triplets.anchor] - at[triplets.farther], axis=1)
        return np.logaddexp(0.0, near - far).sum() + 0.5 * noise * (at**2).sum()

    rng = np.random.default_rng(1)
    here = objective(z)
    assert all(objective(z + 0.05 * rng.normal(size=z.shape)) > here for _ in range(5))


def test_a_refit_follows_new_answers():
    triplets, test = answers(2, 600)
    first = triplets.take(np.arange(300))
    begun = chosen(first, 2).acquisition
    later = acquisition_model.refitted(as_pairs(triplets), len(triplets), begun)
    assert later.noise == begun.noise
    assert triplet_accuracy(later.embedding, test) > triplet_accuracy(begun.embedding, test)


def test_more_dimensions_than_answers_could_start_are_still_fitted():
    """A spectral start has only as many columns as the answers pull apart."""
    triplets = as_triplets([[0, 1, 2], [3, 4, 5]], 6)
    chain = map_embedding.fits_by_rank(as_pairs(triplets), 2, 0.1, 4, final=True)
    assert sorted(chain) == [1, 2, 3, 4]
    assert all(np.isfinite(one).all() for one, _ in chain.values())


def test_warm_starts_predict_as_well_as_cold_ones():
    triplets, _ = answers(2, 900)
    first = triplets.take(np.arange(800))
    begun = chosen(first, 3)
    warm = acquisition_model.chosen(
        *(triplets, everything(triplets), 0, 3, begun.acquisition), warm=begun.warm, expected=2
    )
    cold = chosen(triplets, 3)
    assert warm.acquisition.embedding.shape == cold.acquisition.embedding.shape
    assert warm.acquisition.accuracy == pytest.approx(cold.acquisition.accuracy, abs=0.02)
