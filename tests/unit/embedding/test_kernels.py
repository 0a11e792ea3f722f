"""Kernels against plain NumPy, element by element, on every shape that may come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore_active.data.comparisons import as_triplets
from lore_active.embedding import algebra, kernels
from lore_active.embedding.pairs import as_pairs
from tests.support import numpy_reference


@st.composite
def problems(draw, largest_exponent=100):
    items = draw(st.integers(3, 12))
    columns = draw(st.integers(1, 6))
    count = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    triplets = np.array([rng.choice(items, 3, replace=False) for _ in range(count)])
    size = 10.0 ** draw(st.sampled_from([-300, -8, -3, 0, 1, 3, largest_exponent]))
    z = rng.normal(size=(items, columns)) * size
    if draw(st.booleans()):
        z[rng.integers(items)] = z[rng.integers(items)]
    if draw(st.booleans()):
        z[:] = z[0]
    weight = rng.random(count) + 0.01 if draw(st.booleans()) else np.ones(count)
    return z, triplets, weight, draw(st.sampled_from([0.0, 1.0, 2.5]))


def run(z, triplets, weight, margin):
    pairs = as_pairs(as_triplets(triplets, len(z), weight))
    distance = np.empty(len(pairs.first))
    pull = np.empty(len(pairs.first))
    grad = np.empty_like(z)
    kernels.distances(z, pairs.first, pairs.second, distance)
    loss = kernels.answers(distance, pairs.near, pairs.far, pairs.weight, margin, pull)
    kernels.laplacian_times(z, pairs.first, pairs.second, distance, pull, grad)
    return pairs, distance, loss, pull, grad


def close(actual, expected, scale=1.0):
    """rtol 1e-10, and to rounding of the largest term where terms cancel."""
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-13 * scale)


@given(problems())
def test_distance_loss_and_gradient_match_numpy(problem):
    z, triplets, weight, margin = problem
    pairs, distance, loss, _, grad = run(z, triplets, weight, margin)
    close(distance, numpy_reference.distance(z, pairs.first, pairs.second))
    assert np.isfinite(loss)
    # Distances of 1e100 cancel in the margin: compare to rounding of the distances themselves.
    close(loss, numpy_reference.loss(z, triplets, weight, margin), scale=max(1.0, distance.max()))
    assert np.isfinite(grad).all()
    close(grad, numpy_reference.gradient(z, triplets, weight, margin), scale=1.0)


@given(problems(largest_exponent=2))
def test_laplacian_product_matches_the_dense_laplacian(problem):
    z, triplets, weight, margin = problem
    pairs, distance, _, pull, _ = run(z, triplets, weight, margin)
    dense = numpy_reference.laplacian(z, triplets, weight, margin)
    rng = np.random.default_rng(1)
    v = rng.normal(size=(len(z), 2))
    out = np.empty_like(v)
    kernels.laplacian_times(v, pairs.first, pairs.second, distance, pull, out)
    close(out, dense @ v, scale=np.abs(dense).max() * 100)


@given(problems(largest_exponent=2))
def test_lowest_eigenvalue_matches_dense_eigh(problem):
    z, triplets, weight, margin = problem
    pairs, distance, _, pull, _ = run(z, triplets, weight, margin)
    dense = numpy_reference.laplacian(z, triplets, weight, margin)
    expected = np.linalg.eigvalsh(dense)
    values, vectors = kernels.lowest(pairs.first, pairs.second, distance, pull, len(z), 2)
    size = max(np.abs(dense).max(), 1e-290)
    assert abs(min(values[0], 0.0) - min(expected[0], 0.0)) <= 1e-8 * size
    np.testing.assert_allclose(dense @ vectors[:, 0], values[0] * vectors[:, 0], atol=1e-6 * size)
    np.testing.assert_allclose(vectors.sum(axis=0), 0.0, atol=1e-9)


@given(st.integers(3, 9), st.integers(1, 5), st.integers(0, 10**6))
def test_gradient_matches_finite_differences(items, columns, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(items, columns)) * 2
    triplets = np.array([rng.choice(items, 3, replace=False) for _ in range(20)])
    grad = run(z, triplets, np.ones(20), 1.0)[4]
    step = 1e-5
    for a in range(items):
        for k in range(columns):
            moved = [z.copy(), z.copy()]
            moved[0][a, k] += step
            moved[1][a, k] -= step
            up, down = (run(m, triplets, np.ones(20), 1.0)[2] for m in moved)
            assert abs((up - down) / (2 * step) - grad[a, k]) < 1e-7


@pytest.mark.parametrize("violation", [-5000.0, -690.0, -40.0, -1.0, -1e-9, 0.0, 1e-9, 3.0, 800.0])
def test_softplus_and_sigmoid_keep_relative_precision(violation):
    index = np.array([0], dtype=np.int32)
    distance = np.array([max(violation, 0.0), max(-violation, 0.0)])
    pull = np.empty(2)
    loss = kernels.answers(distance, index, index + np.int32(1), np.ones(1), 0.0, pull)
    clipped = max(violation, -kernels.MAX_EXPONENT)
    assert loss == pytest.approx(np.logaddexp(0.0, clipped), rel=1e-11, abs=0)
    assert pull[0] == pytest.approx(np.exp(-np.logaddexp(0.0, -clipped)), rel=1e-11, abs=0)
    assert pull[1] == -pull[0]


@given(st.integers(1, 40), st.integers(1, 16), st.integers(0, 10**6))
def test_principal_axes_match_svd(rows, columns, seed):
    x = np.random.default_rng(seed).normal(size=(rows, columns))
    scale, basis = algebra.principal(x)
    expected = np.zeros(columns)
    found = np.linalg.svd(x, compute_uv=False)
    expected[: len(found)] = found
    np.testing.assert_allclose(scale, expected, atol=1e-6)
    np.testing.assert_allclose(basis.T @ basis, np.eye(columns), atol=1e-10)
    turned = algebra.rotated(x, basis)
    np.testing.assert_allclose(turned, x @ basis, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(algebra.gram(turned), np.diag(scale**2), atol=1e-9)
