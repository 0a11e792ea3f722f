"""How much likelier are the answers in so many dimensions than in one fewer, or in one more?

Held-out answers tell which rank *predicts* best, and while answers are few a dimension that is
there predicts worse than none: it is placed too badly to be of use. Odds ask something else: how
probable are all these answers in a space of that rank, on average over every place where its items
might lie? What an answer fixes costs once; what stays open costs nothing. So a dimension that is
only badly known does not count as refuted.

The average is Laplace's: the most probable space, and around it a Gaussian whose precision is the
answers' expected information. Turning and mirroring a space changes nothing, so along these
directions the whole orbit counts. The strength of the prior is the one that makes the answers most
probable, for each rank by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, lgamma, log, pi

import numpy as np

from lore_active.data.comparisons import Triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.covariance import MAX_COORDINATES, factored
from lore_active.embedding.pairs import Pairs, as_pairs
from lore_active.errors import InvalidParameter
from lore_active.questions.pool import Questions
from lore_active.types import Floats

# Strengths of the prior that are tried, from the middle outwards as long as it pays.
NOISES = (0.03, 0.06, 0.12, 0.24, 0.48, 0.96)
MIDDLE = 2
# Squared length of an axis on which all items coincide: it can be turned without end, and is not.
TINY = 1e-12

# Natural logarithms of odds for a rank: against one dimension fewer, against one more.
LogOdds = tuple[float | None, float | None]


def log_bayes_factors(triplets: Triplets, rank: int, starts: Iterable[Floats] = ()) -> LogOdds:
    """For `rank` against its neighbours; None where there is none, or too much to weigh.

    The answers leave several optima: fits begin cold, and from those of `starts` that have as many
    dimensions, and the lowest counts.
    """
    triplets = triplets.repeated("the marginal likelihood")
    most = rank + 1 if rank + 1 <= triplets.n_objects - 2 else rank
    if rank < 1 or most * triplets.n_objects > MAX_COORDINATES:
        return None, None
    rows = np.column_stack([triplets.anchor, triplets.nearer, triplets.farther]).astype(np.int64)
    pairs, least = as_pairs(triplets), max(rank - 1, 1)
    fits = map_embedding.fits_by_rank(
        pairs, len(rows), NOISES[MIDDLE], most, fine=True, least=least
    )
    for start in starts:
        if (width := start.shape[1]) in fits:
            warm = map_embedding.fitted(pairs, len(rows), NOISES[MIDDLE], start, fine=True)
            fits[width] = min(fits[width], warm, key=lambda one: one[1])
    # In no dimensions every answer is a coin's.
    found = {0: -len(rows) * log(2.0)}
    found.update({width: _evidence(pairs, rows, *fits[width]) for width in fits})
    above = found[rank] - found[most] if most > rank else None
    return found[rank] - found[rank - 1], above


def _evidence(pairs: Pairs, rows: Questions, z: Floats, objective: float) -> float:
    """Log probability of the answers at the best of NOISES, from a fit at the middle one."""
    best = log_evidence(z, objective, rows, NOISES[MIDDLE])
    for further in (NOISES[MIDDLE + 1 :], NOISES[:MIDDLE][::-1]):
        at = z
        for noise in further:
            at, objective = map_embedding.fitted(pairs, len(rows), noise, at, fine=True)
            value = log_evidence(at, objective, rows, noise)
            if value <= best:
                break
            best = value
    return best


def log_evidence(z: Floats, objective: float, rows: Questions, noise: float) -> float:
    """Log probability of the answers in spaces of this rank, around the most probable one."""
    rank = int(z.shape[1])
    try:
        factor = factored(z, (rows,), 1.0, np.full(rank, noise))
    except InvalidParameter:
        return -inf
    fixed = 2.0 * float(np.log(np.diag(factor)).sum()) - z.size * log(noise)
    lengths = [max(float(length), TINY) for length in (z**2).sum(axis=0)]
    planes = [lengths[x] + lengths[y] for x in range(rank) for y in range(x)]
    turns = sum(0.5 * log(plane * noise / (2.0 * pi)) for plane in planes)
    spheres = sum(0.5 * k * log(pi) - lgamma(0.5 * k) for k in range(2, rank + 1))
    return -len(rows) * objective - 0.5 * fixed + turns + spheres + rank * log(2.0)
