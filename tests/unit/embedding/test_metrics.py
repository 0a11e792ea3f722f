"""Metrics on spaces whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active import LORE
from lore_active.embedding import metrics
from lore_active.embedding.solver import SolverSettings
from lore_active.simulation.observers import gaussian_space, simulated_answers


def test_accuracy_counts_ties_half():
    line = np.array([[0.0], [1.0], [-1.0], [3.0]])
    assert metrics.triplet_accuracy(line, [[0, 1, 3]]) == 1.0
    assert metrics.triplet_accuracy(line, [[0, 3, 1]]) == 0.0
    assert metrics.triplet_accuracy(line, [[0, 1, 2]]) == 0.5
    assert metrics.triplet_accuracy(line, [[0, 1, 3], [0, 3, 2]]) == 0.5


def test_a_rotated_and_scaled_space_aligns():
    space = gaussian_space(40, 3, 0)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    embedding = space @ turn * 7 + 5
    np.testing.assert_allclose(metrics.aligned(embedding, space), space, atol=1e-4)
    assert metrics.procrustes_distance(embedding, space) < 1e-5
    assert metrics.psnr(embedding, space) > 60


def test_formulas_by_hand():
    space = gaussian_space(10, 2, 2)
    embedding = gaussian_space(10, 3, 3)
    centred = embedding - embedding.mean(0)
    matrix = np.linalg.inv(centred.T @ centred + 1e-3 * np.eye(3)) @ centred.T
    fitted = centred @ matrix @ (space - space.mean(0)) + space.mean(0)
    rest = np.linalg.norm(fitted - space)
    assert metrics.procrustes_distance(embedding, space) == pytest.approx(
        rest / np.linalg.norm(centred)
    )
    assert metrics.psnr(embedding, space) == pytest.approx(20 * np.log10(fitted.max() / rest))


def test_empty_embedding_is_infinitely_far():
    space = gaussian_space(10, 2, 2)
    assert metrics.procrustes_distance(np.zeros((10, 2)), space) == float("inf")
    assert np.isfinite(metrics.aligned(np.zeros((10, 0)), space)).all()


def test_the_objective_is_what_the_fit_minimised():
    answers = simulated_answers(gaussian_space(12, 2, 1), 300, 2)
    model = LORE(lam=0.02).fit(answers)
    found = metrics.objective(model.embedding_, answers, SolverSettings(0.02))
    assert found == pytest.approx(model.objective_, rel=1e-9)
    assert metrics.objective(1.1 * model.embedding_, answers, SolverSettings(0.02)) > found
