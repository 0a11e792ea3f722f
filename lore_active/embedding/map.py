"""MAP embedding: logistic likelihood of the answers, Gaussian prior on the coordinates.

Of trials that carry several comparisons, the likelihood is that of Plackett and Luce; see `Stages`.

Coordinates are in units of the temperature of the answers, so a margin m predicts its answer with
probability 1 / (1 + exp(−m)), and have independent Gaussian priors with variance 1 / noise.
"""

from __future__ import annotations

import numpy as np

from lore_active.embedding.fit import spectral_start
from lore_active.embedding.pairs import Pairs
from lore_active.embedding.quasi_newton import minimise
from lore_active.embedding.solver import SolverSettings
from lore_active.trials.stages import Stages, pairs_of
from lore_active.types import Floats, Indices

# Tolerance (relative decrease of the objective in one iteration) and maximum number of iterations,
# for cross-validation and for fits that are used.
CV_TOLERANCE, FINAL_TOLERANCE = 1e-5, 1e-6
CV_ITERATIONS, FINAL_ITERATIONS = 50, 200
# Standard deviation of a cold start relative to the prior's: coordinates grow from the centre.
COLD_DEVIATION = 0.3
NO_STARTS = np.empty(0, dtype=np.int32)


def fits_by_rank(
    answers: Pairs | Stages, count: int, noise: float, max_rank: int, final: bool, min_rank: int = 1
) -> dict[int, tuple[Floats, float]]:
    """MAP embeddings by rank, with their objectives.

    A cold fit in `max_rank` dimensions, then refits without the weakest dimension, down to
    `min_rank`; `final` ones to the tolerance of fits that are used.
    """
    start = spectral_start(pairs_of(answers), SolverSettings(n_components=max_rank))
    missing = max_rank - start.shape[1]
    if missing:
        seeded = np.random.default_rng(missing).normal(size=(answers.n_objects, missing))
        start = np.column_stack([start, seeded * np.sqrt(max(float((start**2).mean()), 1e-6))])
    start = start * (COLD_DEVIATION / np.sqrt(noise * (start**2).mean()))
    fits: dict[int, tuple[Floats, float]] = {}
    while start.shape[1] >= min_rank:
        width = start.shape[1]
        fits[width] = fitted(answers, count, noise, start, final)
        start = fits[width][0][:, :-1]
    return fits


def fitted(
    answers: Pairs | Stages, count: int, noise: float, start: Floats, final: bool
) -> tuple[Floats, float]:
    """MAP embedding on its principal axes, from a start; and its objective per comparison."""
    if not start.size:
        return start, 0.0
    arrays: tuple[Indices, ...]
    if isinstance(answers, Stages):
        arrays, starts = (answers.member, answers.picked), answers.start
    else:
        arrays, starts = (answers.near, answers.far), NO_STARTS
    z, objective, _ = minimise(
        np.ascontiguousarray(start, dtype=np.float64),
        *(answers.first, answers.second, *arrays, answers.weight, starts),
        noise / count,
        FINAL_TOLERANCE if final else CV_TOLERANCE,
        FINAL_ITERATIONS if final else CV_ITERATIONS,
    )
    return z, float(objective)
