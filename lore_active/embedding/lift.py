"""Changes of rank that proximal steps cannot make: adding a dimension, removing the weakest.

A dimension at zero never returns by itself, because the penalty's derivative there is infinite.
And an unsupported dimension can remain, because removing it first increases the objective. Both
changes are tested by descending from the changed embedding; the result is kept if its objective is
lower, and the descent is stopped early if it cannot become lower.
"""

from __future__ import annotations

import numpy as np

from lore_active.embedding import kernels
from lore_active.embedding.pairs import Pairs
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.types import Floats

# Minimum relative improvement, above the inaccuracy of the solver.
MIN_GAIN = 1e-5
# Initial length of a new dimension relative to the longest dimension.
LIFT_LENGTH = 0.5


def steepest_directions(pairs: Pairs, embedding: Floats, margin: float, count: int) -> Floats:
    """New columns along which the loss decreases fastest, in descending order.

    Their lengths are the square roots of the curvatures relative to the steepest; the first has
    length 1. No columns: the loss decreases in no new direction, and the rank is certified.
    """
    distance = np.empty(len(pairs.first))
    pair_gradient = np.empty(len(pairs.first))
    kernels.distances(embedding, pairs.first, pairs.second, distance)
    kernels.answers(distance, pairs.near, pairs.far, pairs.weight, margin, pair_gradient)
    values, vectors = kernels.lowest(
        pairs.first, pairs.second, distance, pair_gradient, pairs.n_objects, count
    )
    decreasing = values < -1e-12 * max(float(np.abs(pair_gradient / distance).max()), 1e-300)
    if not decreasing.any():
        return np.empty((pairs.n_objects, 0))
    return np.asarray(vectors[:, decreasing] * np.sqrt(values[decreasing] / values[0]))


def lifted(pairs: Pairs, solution: Solution, settings: SolverSettings) -> Solution | None:
    """A better solution with one more dimension, or None if there is none."""
    if solution.rank >= min(settings.n_components, pairs.n_objects - 1):
        return None
    direction = steepest_directions(pairs, solution.embedding, settings.margin, 1)
    if direction.shape[1] == 0:
        return None
    longest = solution.singular_values[0] if solution.rank else np.sqrt(pairs.n_objects)
    start = np.column_stack([solution.embedding, direction * (LIFT_LENGTH * longest)])
    return _early_stopped(pairs, start, solution, settings)


def trimmed(pairs: Pairs, solution: Solution, settings: SolverSettings) -> Solution | None:
    """A better solution without the weakest dimension, or None if there is none."""
    if solution.rank == 0:
        return None
    start = solution.embedding[:, :-1] if solution.rank > 1 else np.zeros((pairs.n_objects, 1))
    return _early_stopped(pairs, start, solution, settings)


def _early_stopped(
    pairs: Pairs, start: Floats, best: Solution, settings: SolverSettings
) -> Solution | None:
    solution = solve(pairs, start, settings, best.curvature, goal=best.objective)
    return solution if solution.objective < best.objective * (1.0 - MIN_GAIN) else None
