"""Compilation of every kernel in advance, so that no request waits for it."""

from __future__ import annotations

import numpy as np

from lore_active.acquisition.candidates import Candidates
from lore_active.embedding import descent, information, kernels


def warm() -> None:
    """Compile every kernel, or load it from the cache."""
    _warm_fits()
    _warm_selection()


def _warm_fits() -> None:
    first = np.array([0, 0, 1], dtype=np.int32)
    second = np.array([1, 2, 2], dtype=np.int32)
    near = np.array([0, 1, 0], dtype=np.int32)
    far = np.array([1, 2, 2], dtype=np.int32)
    weight = np.full(3, 1.0 / 3.0)
    z = np.array([[0.0, 0.0], [1.0, 0.5], [0.0, 2.0]])
    distance = np.empty(3)
    pair_gradient = np.empty(3)
    kernels.distances(z, first, second, distance)
    kernels.answers(distance, near, far, weight, 1.0, pair_gradient)
    kernels.laplacian_times(z, first, second, distance, pair_gradient, np.empty_like(z))
    kernels.lowest(first, second, distance, pair_gradient, 3, 1)
    descent.descend(z, first, second, near, far, weight, 1.0, 0.01, 0.5, 1e-3, 2, 0.1, np.inf)


def _warm_selection() -> None:
    z = np.array([[0.0], [1.0], [3.0]])
    asked = np.array([[0, 1, 2]])
    matrix = np.eye(3)
    information.add_information(z, asked, 1.0, matrix)
    information.mirror(matrix)
    candidates = Candidates(z, matrix, np.ones((3, 1)), asked, 1.0)
    candidates.narrow(np.array([0]), learn=1)
    candidates.learn(0)
