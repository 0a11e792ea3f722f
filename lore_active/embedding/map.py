"""MAP embedding: logistic likelihood of the answers, Gaussian prior on the coordinates.

Coordinates are in units of the temperature of the answers, so a margin m predicts its answer with
probability 1 / (1 + exp(−m)), and have independent Gaussian priors with variance 1 / noise.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from lore_active.embedding import algebra, kernels
from lore_active.embedding.fit import spectral_start
from lore_active.embedding.pairs import Pairs
from lore_active.embedding.solver import SolverSettings
from lore_active.types import Floats

# Tolerance (relative decrease of the objective in one iteration) and maximum number of iterations,
# for cross-validation and for fits that are used.
CV_TOLERANCE, FINAL_TOLERANCE = 1e-5, 1e-6
CV_ITERATIONS, FINAL_ITERATIONS = 50, 200
# Standard deviation of a cold start relative to the prior's: coordinates grow from the centre.
COLD_SPREAD = 0.3


def fits_by_rank(
    pairs: Pairs, count: int, noise: float, most: int, fine: bool, least: int = 1
) -> dict[int, tuple[Floats, float]]:
    """MAP embeddings by rank, with their objectives.

    A cold fit in `most` dimensions, then refits without the weakest dimension, down to `least`.
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
    """MAP embedding on its principal axes, from a start; and its objective per answer."""
    shape = start.shape
    if not start.size:
        return start, 0.0
    distance, pair_gradient = np.empty(len(pairs.first)), np.empty(len(pairs.first))
    gradient = np.empty(shape)
    weight = noise / count

    def objective(point: Floats) -> tuple[float, Floats]:
        z = point.reshape(shape)
        kernels.distances(z, pairs.first, pairs.second, distance)
        loss = kernels.answers(distance, pairs.near, pairs.far, pairs.weight, 0.0, pair_gradient)
        kernels.laplacian_times(z, pairs.first, pairs.second, distance, pair_gradient, gradient)
        return loss + 0.5 * weight * algebra.inner(z, z), (gradient + weight * z).ravel()

    result = minimize(
        objective,
        np.ascontiguousarray(start).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": FINAL_ITERATIONS if fine else CV_ITERATIONS,
            "ftol": FINAL_TOLERANCE if fine else CV_TOLERANCE,
            "gtol": 0.0,
        },
    )
    z = result.x.reshape(shape)
    return algebra.rotated(z, algebra.principal(z)[1]), float(result.fun)
