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


def test_the_objective_is_what_the_fit_minimised():
    answers = simulated_answers(gaussian_space(12, 2, 1), 300, 2)
    model = LORE(lam=0.02).fit(answers)
    found = metrics.objective(model.embedding_, answers, SolverSettings(0.02))
    assert found == pytest.approx(model.objective_, rel=1e-9)
    assert metrics.objective(1.1 * model.embedding_, answers, SolverSettings(0.02)) > found
