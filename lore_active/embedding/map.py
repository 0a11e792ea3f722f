"""A smooth fit: the most probable embedding under the answers' plain logistic likelihood.

Coordinates are measured in units of the answers' temperature, so a margin m predicts its answer
with probability 1 / (1 + exp(−m)), and have a Gaussian prior whose variance is 1 / noise.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from lore_active.embedding import algebra, kernels
from lore_active.embedding.fit import spectral_start
from lore_active.embedding.pairs import Pairs
from lore_active.embedding.solver import SolverSettings
from lore_active.types import Floats

# Relative fall of the objective in one iteration at which a fit ends, and how many it may take.
ROUGH, FINE = 1e-5, 1e-6
ROUGH_ITERATIONS, FINE_ITERATIONS = 50, 200
# Spread of a cold start relative to the prior's: items find their places from the inside.
COLD_SPREAD = 0.3


def fits_by_rank(
    pairs: Pairs, count: int, noise: float, most: int, fine: bool, least: int = 1
) -> dict[int, tuple[Floats, float]]:
    """Fits by rank, with their objectives.

    A cold one in `most` dimensions, then without the weakest, down to `least`.
    """
    start = spectral_start(pairs, SolverSettings(n_components=most))
    missing = most - start.shape[1]
    if missing:
        seeded = np.random.default_rng(missing).normal(size=(pairs.n_objects, missing))
        start = np.column_stack([start, seeded * np.sqrt(max(float((start**2).mean()), 1e-6))])
    start = start * (COLD_SPREAD / np.sqrt(noise * (start**2).mean()))
    fits: dict[int, tuple[Floats, float]] = {}
    while start.shape[1] >= least:
        width = start.shape[1]
        fits[width] = fitted(pairs, count, noise, start, fine)
        start = fits[width][0][:, :-1]
    return fits


def fitted(
    pairs: Pairs, count: int, noise: float, start: Floats, fine: bool
) -> tuple[Floats, float]:
    """Most probable embedding on its principal axes, from a start; and the objective there."""
    shape = start.shape
    if not start.size:
        return start, 0.0
    distance, pull = np.empty(len(pairs.first)), np.empty(len(pairs.first))
    slope = np.empty(shape)
    weight = noise / count

    def objective(point: Floats) -> tuple[float, Floats]:
        z = point.reshape(shape)
        kernels.distances(z, pairs.first, pairs.second, distance)
        loss = kernels.answers(distance, pairs.near, pairs.far, pairs.weight, 0.0, pull)
        kernels.laplacian_times(z, pairs.first, pairs.second, distance, pull, slope)
        return loss + 0.5 * weight * algebra.inner(z, z), (slope + weight * z).ravel()

    found = minimize(
        objective,
        np.ascontiguousarray(start).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": FINE_ITERATIONS if fine else ROUGH_ITERATIONS,
            "ftol": FINE if fine else ROUGH,
            "gtol": 0.0,
        },
    )
    z = found.x.reshape(shape)
    return algebra.rotated(z, algebra.principal(z)[1]), float(found.fun)
