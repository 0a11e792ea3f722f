"""A LORE fit: solve from a cold or a given start, then move between ranks while that pays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lore_active.embedding.lift import lifted, steepest_directions, trimmed
from lore_active.embedding.pairs import Pairs
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.types import Floats

# Spread of a cold start's items along one axis: wide, so that items can pass each other.
COLD_SPREAD = 5.0**0.5
# A cold start first settles roughly under a weaker penalty. Under the full one, columns that the
# answers would need can die before the items have found their places.
EASE_PENALTY = 1.0 / 3.0
EASE_TOLERANCE = 0.1


def fit(
    pairs: Pairs,
    settings: SolverSettings,
    start: Floats | None = None,
    curvature: float | None = None,
    certify: bool = True,
) -> Solution:
    """Fit answers; without a `start`, from the spectral one.

    A start with all `n_components` columns is taken as a cold one, a narrower start as a
    solution of fewer or slightly other answers.

    With `certify`, the result is one that no further dimension improves (nor one less, where the
    settings say `trim`). Without, the solve alone: for a refit after a few new answers, from a
    certified solution.
    """
    point = spectral_start(pairs, settings) if start is None else start
    iterations = 0
    if start is None or start.shape[1] >= settings.n_components:
        tolerance = max(EASE_TOLERANCE, settings.tolerance)
        weaker = replace(settings, lam=EASE_PENALTY * settings.lam, tolerance=tolerance)
        eased = solve(pairs, point, weaker, curvature)
        point, curvature, iterations = eased.embedding, eased.curvature, eased.iterations
    best = solve(pairs, point, settings, curvature)
    iterations += best.iterations
    while certify:
        # From one dimension to none is always worth a look: it costs a single evaluation.
        narrower = settings.trim or best.rank == 1
        better = trimmed(pairs, best, settings) if narrower else None
        better = better or lifted(pairs, best, settings)
        if better is None:
            break
        iterations += better.iterations
        best = better
    return replace(best, iterations=iterations)


def spectral_start(pairs: Pairs, settings: SolverSettings) -> Floats:
    """A start made from the answers alone: the directions in which coinciding items want apart."""
    count = min(settings.n_components, pairs.n_objects - 1)
    together = np.zeros((pairs.n_objects, 1))
    directions = steepest_directions(pairs, together, settings.margin, count)
    return np.asarray(directions * (COLD_SPREAD * np.sqrt(pairs.n_objects)))


def random_start(
    n_objects: int, n_components: int, seed: int, spread: float = COLD_SPREAD
) -> Floats:
    """Independent Gaussian coordinates of standard deviation `spread`."""
    return np.random.default_rng(seed).normal(0.0, spread, (n_objects, n_components))
