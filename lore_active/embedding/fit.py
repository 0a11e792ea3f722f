"""LORE fit: solve from a cold or given start, then change the rank while the objective falls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lore_active.embedding.lift import lifted, steepest_directions, trimmed
from lore_active.embedding.pairs import Pairs, sampled
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.types import Floats

# Standard deviation of a cold start along one axis: wide, so that items can pass each other.
COLD_DEVIATION = 5.0**0.5
# A cold start is first solved roughly with a weaker penalty. With the full penalty, dimensions
# that the answers support can collapse before the coordinates have formed.
EASE_PENALTY = 1.0 / 3.0
EASE_TOLERANCE = 0.1
# With many answers, a sample of them is fitted first, to this tolerance: of at least MIN_SAMPLE
# answers and SAMPLE_PER_ITEM / λ per item, so that it does not have too many dimensions at that λ.
# It has to be a small part of all answers to be worth it.
MIN_SAMPLE = 300_000
SAMPLE_PER_ITEM = 1.5
MAX_SAMPLED = 0.34
SAMPLE_TOLERANCE = 1e-2


def fit(
    pairs: Pairs,
    settings: SolverSettings,
    start: Floats | None = None,
    curvature: float | None = None,
    certify: bool = True,
) -> Solution:
    """Fit answers from `start`, or from a spectral start.

    A start with all `n_components` columns is treated as a cold start, a narrower one as a
    solution of fewer or slightly different answers.

    With `certify`, the result cannot be improved by adding a dimension (nor by removing one, if
    the settings say `trim`). Without it, only the solve is run: for a refit after a few new
    answers, from a certified solution.

    A cold fit of very many answers starts from that of a sample of them, in which dimensions are
    added. With fewer answers a further dimension fits more noise, so one that does not lower the
    objective of the sample would not lower that of all answers.
    """
    if start is None and certify:
        count = max(MIN_SAMPLE, SAMPLE_PER_ITEM / settings.lam * pairs.n_objects)
        if count <= MAX_SAMPLED * len(pairs.near):
            rough = replace(settings, tolerance=max(SAMPLE_TOLERANCE, settings.tolerance))
            first = fit(sampled(pairs, int(count)), rough)
            final = solve(pairs, first.embedding, settings, first.curvature)
            return replace(final, iterations=first.iterations + final.iterations)
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
        # From one dimension to none is always tested: it costs a single evaluation.
        narrower = settings.trim or best.rank == 1
        better = trimmed(pairs, best, settings) if narrower else None
        better = better or lifted(pairs, best, settings)
        if better is None:
            break
        iterations += better.iterations
        best = better
    return replace(best, iterations=iterations)


def spectral_start(pairs: Pairs, settings: SolverSettings) -> Floats:
    """Spectral start: the directions of steepest descent from the embedding at a single point."""
    count = min(settings.n_components, pairs.n_objects - 1)
    origin = np.zeros((pairs.n_objects, 1))
    directions = steepest_directions(pairs, origin, settings.margin, count)
    return np.asarray(directions * (COLD_DEVIATION * np.sqrt(pairs.n_objects)))


def random_start(
    n_objects: int, n_components: int, seed: int, deviation: float = COLD_DEVIATION
) -> Floats:
    """Independent Gaussian coordinates of standard deviation `deviation`."""
    return np.random.default_rng(seed).normal(0.0, deviation, (n_objects, n_components))
