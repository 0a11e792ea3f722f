"""Compiled quasi-Newton minimisation, compared with SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from lore_active.data.comparisons import as_triplets
from lore_active.embedding.map import NO_STARTS
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.quasi_newton import minimise
from lore_active.simulation.observers import gaussian_space, simulated_answers

ITEMS, PRIOR = 20, 0.05


def answers(count=600):
    return as_triplets(simulated_answers(gaussian_space(ITEMS, 2, 3), count, 4), ITEMS)


def objective(point, triplets):
    z = point.reshape(ITEMS, -1)
    near, far = (
        np.sqrt(((z[triplets.anchor] - z[other]) ** 2).sum(axis=1) + 1e-6)
        for other in (triplets.nearer, triplets.farther)
    )
    return np.logaddexp(0.0, near - far).mean() + 0.5 * PRIOR * (z**2).sum()


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_it_finds_the_minimum_that_scipy_finds(columns):
    triplets = answers()
    pairs = as_pairs(triplets)
    start = 0.3 * np.random.default_rng(1).normal(size=(ITEMS, columns))
    arrays = (pairs.first, pairs.second, pairs.near, pairs.far, pairs.weight, NO_STARTS)
    z, value, _ = minimise(start, *arrays, PRIOR, 1e-9, 500)
    assert value == pytest.approx(objective(z.ravel(), triplets), rel=1e-9)
    found = minimize(objective, z.ravel(), args=(triplets,), method="L-BFGS-B")
    assert value <= found.fun * (1.0 + 1e-5)


def test_the_result_is_on_principal_axes_and_repeats_bit_for_bit():
    pairs = as_pairs(answers())
    start = np.random.default_rng(1).normal(size=(ITEMS, 2))
    arrays = (pairs.first, pairs.second, pairs.near, pairs.far, pairs.weight, NO_STARTS)
    one, other = (minimise(start, *arrays, PRIOR, 1e-6, 100)[0] for _ in range(2))
    assert (one == other).all()
    product = one.T @ one
    assert abs(product[0, 1]) < 1e-8 * product[0, 0]
    assert product[0, 0] >= product[1, 1]


def test_a_start_at_a_single_point_ends_at_once():
    pairs = as_pairs(answers())
    arrays = (pairs.first, pairs.second, pairs.near, pairs.far, pairs.weight, NO_STARTS)
    z, value, _ = minimise(np.zeros((ITEMS, 2)), *arrays, PRIOR, 1e-6, 100)
    assert (z == 0.0).all()
    assert value == pytest.approx(np.log(2.0))
