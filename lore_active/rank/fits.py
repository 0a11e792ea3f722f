"""Fits by rank of one set of training answers, from cold or warm starts.

A cold start fits many dimensions and removes the weakest, one after another. A warm start is the
fit of the same rank at the last audit, when there were fewer answers. Where a rank has no start, a
dimension is added to the fit below it in the direction in which the loss falls fastest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from lore_active.embedding import map as map_embedding
from lore_active.embedding.fit import fit
from lore_active.embedding.lift import LIFT_LENGTH, steepest_directions
from lore_active.embedding.pairs import Pairs
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.trials.stages import Stages
from lore_active.types import Floats

# All cold fits of a fold start from one wide fit, at a λ that leaves many dimensions nonzero.
WIDE_LAMBDA = 0.005
# Tolerances of the wide fit and of the fits by rank. Comparing ranks needs less accuracy than a
# published fit; the iterations are limited because with few answers the optimum is far away.
WIDE_TOLERANCE = 3e-2
RANK_TOLERANCE = 1e-2
MAX_ITERATIONS = 150
# Fits from warm starts are continued at the next audit.
MAX_WARM_ITERATIONS = 50
# A cold fit is better than a warm one if its objective is lower by this share.
MIN_GAIN = 1e-3

MapFit = tuple[Floats, float]


@dataclass(frozen=True, eq=False)
class Starts:
    """Embeddings by rank at the last audit, from which the fits of one fold start.

    `penalised` are LORE fits, `map` are MAP embeddings.
    """

    penalised: dict[int, Floats] = field(default_factory=dict)
    map: dict[int, Floats] = field(default_factory=dict)


def cold_fits(pairs: Pairs, lam: float, max_rank: int) -> dict[int, Solution]:
    """LORE solutions by rank: a wide fit, then refits at `lam` without the weakest dimension."""
    return narrowed(pairs, lam, wide_fit(pairs, max_rank))


def wide_fit(pairs: Pairs, max_rank: int) -> Solution:
    """Approximate fit in up to `max_rank` dimensions, from which the cold fits by rank start."""
    settings = SolverSettings(
        WIDE_LAMBDA, tolerance=WIDE_TOLERANCE, n_components=max_rank, max_iter=MAX_ITERATIONS
    )
    return fit(pairs, settings, certify=False)


def narrowed(pairs: Pairs, lam: float, wide: Solution) -> dict[int, Solution]:
    """Solutions by rank: refitted at `lam`, removing the weakest dimension each time."""
    settings = _settings(lam)
    start, curvature = wide.embedding, wide.curvature
    solutions: dict[int, Solution] = {}
    while start.shape[1] > 0:
        solution = solve(pairs, start, settings, curvature)
        if solution.rank == 0:
            break
        solutions[solution.rank] = solution
        start, curvature = solution.embedding[:, :-1], solution.curvature
    return solutions


def warm_fits(
    pairs: Pairs, lam: float, min_rank: int, max_rank: int, starts: dict[int, Floats]
) -> dict[int, Solution]:
    """LORE solutions of these ranks, where the penalty does not reduce the rank."""
    settings = replace(_settings(lam), max_iter=MAX_WARM_ITERATIONS)
    solutions: dict[int, Solution] = {}
    for rank in range(min_rank, max_rank + 1):
        start = starts.get(rank)
        if start is None:
            start = _with_one_more(pairs, solutions.get(rank - 1))
        if start is None:
            continue
        solution = solve(pairs, start, settings)
        if solution.rank == rank:
            solutions[rank] = solution
    return solutions


def _with_one_more(pairs: Pairs, below: Solution | None) -> Floats | None:
    """The fit below with one more dimension; None if there is none, or the loss would not fall."""
    if below is None:
        return None
    direction = steepest_directions(pairs, below.embedding, SolverSettings().margin, 1)
    if not direction.shape[1]:
        return None
    length = LIFT_LENGTH * float(below.singular_values[0])
    return np.column_stack([below.embedding, direction * length])


def better(cold: dict[int, Solution], warm: dict[int, Solution]) -> bool:
    """Whether a cold fit found a clearly lower objective than the warm fit of the same rank."""
    return any(
        cold[rank].objective < warm[rank].objective * (1.0 - MIN_GAIN)
        for rank in cold
        if rank in warm
    )


def lowest(*fits: dict[int, Solution]) -> dict[int, Solution]:
    """The solution with the lowest objective for each rank."""
    ranks = sorted({rank for solutions in fits for rank in solutions})
    return {
        rank: min((s[rank] for s in fits if rank in s), key=lambda found: found.objective)
        for rank in ranks
    }


def _settings(lam: float) -> SolverSettings:
    return SolverSettings(lam, tolerance=RANK_TOLERANCE, max_iter=MAX_ITERATIONS)


def map_fits(
    answers: Pairs | Stages,
    count: int,
    noise: float,
    max_rank: int,
    starts: dict[int, Floats],
    *,
    final: bool = False,
    min_rank: int = 1,
    cold: bool = False,
) -> dict[int, MapFit]:
    """MAP embeddings of ranks `min_rank` to `max_rank` with their objectives, from warm starts.

    Where a rank has no start, or if `cold`, ranks are also fitted from a cold start, and the lower
    objective is kept.
    """
    fits = {
        rank: map_embedding.fitted(answers, count, noise, starts[rank], final)
        for rank in range(min_rank, max_rank + 1)
        if rank in starts
    }
    if cold or len(fits) < max_rank + 1 - min_rank:
        fresh = map_embedding.fits_by_rank(answers, count, noise, max_rank, final, min_rank)
        for rank, found in fresh.items():
            if rank not in fits or found[1] < fits[rank][1]:
                fits[rank] = found
    return fits
