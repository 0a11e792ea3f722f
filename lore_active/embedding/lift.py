"""May the rank grow, may it shrink? Moves between ranks that proximal steps cannot make alone.

A dimension at zero can never come back by itself: the penalty's slope there is far too steep.
And a dimension that does not pay can stay, because removing it is uphill at first. Both moves are
tried as races: start beyond the hill, descend, keep the result if the objective ended lower.
"""

from __future__ import annotations

import numpy as np

from lore_active.embedding import kernels
from lore_active.embedding.pairs import Pairs
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.types import Floats

# A lower objective counts when it is lower by more than the solver's own inexactness.
MIN_GAIN = 1e-5
# Length of a new dimension at the start of its race, relative to the longest one there is.
LIFT_LENGTH = 0.5


def steepest_directions(pairs: Pairs, embedding: Floats, margin: float, count: int) -> Floats:
    """New columns along which the loss falls fastest, best first, one column each.

    Their lengths are the square roots of the curvatures relative to the steepest; the first has
    length 1. No columns: the loss falls in no new direction, the rank is certified.
    """
    distance = np.empty(len(pairs.first))
    pull = np.empty(len(pairs.first))
    kernels.distances(embedding, pairs.first, pairs.second, distance)
    kernels.answers(distance, pairs.near, pairs.far, pairs.weight, margin, pull)
    values, vectors = kernels.lowest(
        pairs.first, pairs.second, distance, pull, pairs.n_objects, count
    )
    falling = values < -1e-12 * max(float(np.abs(pull / distance).max()), 1e-300)
    if not falling.any():
        return np.empty((pairs.n_objects, 0))
    return np.asarray(vectors[:, falling] * np.sqrt(values[falling] / values[0]))


def lifted(pairs: Pairs, solution: Solution, settings: SolverSettings) -> Solution | None:
    """The better solution that one more dimension leads to, or None if there is none."""
    if solution.rank >= min(settings.n_components, pairs.n_objects - 1):
        return None
    direction = steepest_directions(pairs, solution.embedding, settings.margin, 1)
    if direction.shape[1] == 0:
        return None
    longest = solution.singular_values[0] if solution.rank else np.sqrt(pairs.n_objects)
    start = np.column_stack([solution.embedding, direction * (LIFT_LENGTH * longest)])
    return _early_stopped(pairs, start, solution, settings)


def trimmed(pairs: Pairs, solution: Solution, settings: SolverSettings) -> Solution | None:
    """The better solution without the weakest dimension, or None if there is none."""
    if solution.rank == 0:
        return None
    start = solution.embedding[:, :-1] if solution.rank > 1 else np.zeros((pairs.n_objects, 1))
    return _early_stopped(pairs, start, solution, settings)


def _early_stopped(
    pairs: Pairs, start: Floats, best: Solution, settings: SolverSettings
) -> Solution | None:
    found = solve(pairs, start, settings, best.curvature, goal=best.objective)
    return found if found.objective < best.objective * (1.0 - MIN_GAIN) else None
