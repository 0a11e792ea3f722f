"""Marginal likelihoods of ranks, and log Bayes factors between neighbouring ranks.

Held-out log-loss says which rank *predicts* best; with few answers a true dimension can predict
worse than none, because its coordinates are poorly estimated. The marginal likelihood integrates
over all coordinates under the prior instead, so that a poorly identified dimension is not counted
as evidence against that rank.

The integral is approximated by Laplace's method at the MAP embedding, with the expected Fisher
information in place of the Hessian. The likelihood is invariant under rotations and reflections,
so the volume of the orbit is integrated exactly. The prior precision maximises the marginal
likelihood of each rank separately (empirical Bayes; MacKay, 1992).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb, inf, lgamma, log, pi

import numpy as np

from lore_active.data.triplets import Triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.covariance import MAX_COORDINATES, factored
from lore_active.embedding.pairs import Pairs
from lore_active.errors import InvalidParameter
from lore_active.questions.pool import Questions
from lore_active.trials.stages import Stages, as_trials
from lore_active.types import Floats

# Grid of prior precisions, searched from the middle outwards while the marginal likelihood grows.
NOISES = (0.03, 0.06, 0.12, 0.24, 0.48, 0.96)
MIDDLE = 2
# Minimum squared length of an axis: an empty axis has no orbit, and a logarithm must be finite.
MIN_SQUARED_LENGTH = 1e-12

# Natural log Bayes factors of a rank: against one dimension fewer, and against one more.
LogBayesFactors = tuple[float | None, float | None]


def log_bayes_factors(
    triplets: Triplets, rank: int, starts: Iterable[Floats] = ()
) -> LogBayesFactors:
    """Log Bayes factors of `rank` against its neighbours; None where they cannot be computed.

    The posterior may have several modes: fits start cold, and from those of `starts` that have
    the same number of dimensions, and the lowest objective is used.
    """
    triplets = triplets.repeated("the marginal likelihood")
    max_rank = rank + 1 if rank + 1 <= triplets.n_objects - 2 else rank
    if rank < 1 or max_rank * triplets.n_objects > MAX_COORDINATES:
        return None, None
    rows = np.column_stack([triplets.anchor, triplets.nearer, triplets.farther]).astype(np.int64)
    answers, min_rank = as_trials(triplets), max(rank - 1, 1)
    fits = map_embedding.fits_by_rank(
        answers, len(rows), NOISES[MIDDLE], max_rank, final=True, min_rank=min_rank
    )
    for start in starts:
        if (width := start.shape[1]) in fits:
            warm = map_embedding.fitted(answers, len(rows), NOISES[MIDDLE], start, final=True)
            fits[width] = min(fits[width], warm, key=lambda fit: fit[1])
    asked = answers if isinstance(answers, Stages) else rows
    evidence = {0: guessing(asked)}
    evidence.update({width: _evidence(answers, asked, *fits[width]) for width in fits})
    above = evidence[rank] - evidence[max_rank] if max_rank > rank else None
    return evidence[rank] - evidence[rank - 1], above


def guessing(asked: Questions | Stages) -> float:
    """Log probability of the answers without dimensions: all possible ones are as probable."""
    if not isinstance(asked, Stages):
        return -len(asked) * log(2.0)
    sizes = np.diff(asked.start)
    ways = [log(comb(int(n), int(k))) for n, k in zip(sizes, asked.picked, strict=True)]
    return -asked.count * float(asked.weight @ np.array(ways))


def _evidence(
    answers: Pairs | Stages, asked: Questions | Stages, z: Floats, objective: float
) -> float:
    """Log marginal likelihood at the best prior precision, from a fit at the middle one."""
    best = log_evidence(z, objective, asked, NOISES[MIDDLE])
    for further in (NOISES[MIDDLE + 1 :], NOISES[:MIDDLE][::-1]):
        at = z
        for noise in further:
            at, objective = map_embedding.fitted(answers, _count(asked), noise, at, final=True)
            value = log_evidence(at, objective, asked, noise)
            if value <= best:
                break
            best = value
    return best


def _count(asked: Questions | Stages) -> int:
    return asked.count if isinstance(asked, Stages) else len(asked)


def log_evidence(z: Floats, objective: float, asked: Questions | Stages, noise: float) -> float:
    """Log marginal likelihood of the answers by Laplace's method around the MAP embedding."""
    rank = int(z.shape[1])
    try:
        factor = factored(z, (asked,), 1.0, np.full(rank, noise))
    except InvalidParameter:
        return -inf
    log_det = 2.0 * float(np.log(np.diag(factor)).sum()) - z.size * log(noise)
    lengths = [max(float(length), MIN_SQUARED_LENGTH) for length in (z**2).sum(axis=0)]
    planes = [lengths[x] + lengths[y] for x in range(rank) for y in range(x)]
    rotations = sum(0.5 * log(plane * noise / (2.0 * pi)) for plane in planes)
    spheres = sum(0.5 * k * log(pi) - lgamma(0.5 * k) for k in range(2, rank + 1))
    return -_count(asked) * objective - 0.5 * log_det + rotations + spheres + rank * log(2.0)
