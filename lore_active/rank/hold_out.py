"""Hold-out validation over λ, for so many answers that cross-validation would take hours.

With hundreds of thousands of answers, a small part of them compares ranks precisely, so one split
is enough. One descent follows a grid of growing λ, each fit starting from the last one: the first,
at the smallest λ, has all the dimensions that the answers support, and the others lose them one by
one. (The other way round the rank would be locked: a dimension at zero never returns by itself.)
The best fit is then compared with fits of one more dimension and one dimension fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lore_active.data.triplets import Triplets
from lore_active.embedding.fit import spectral_start
from lore_active.embedding.lift import LIFT_LENGTH, steepest_directions
from lore_active.embedding.metrics import margins
from lore_active.embedding.pairs import Pairs, as_pairs, sampled
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.rank.audit import Audit, LossDifference, RankEvidence
from lore_active.rank.comparison import CHANCE, paired_difference
from lore_active.rank.folds import folds
from lore_active.rank.significance import MIN_STANDARD_ERRORS
from lore_active.rank.temperature import best_temperature
from lore_active.types import Floats

# With this many answers, one part of them is held out instead of cross-validation.
HOLD_OUT_FROM = 200_000
LAMBDAS = (0.0005, 0.001, 0.002, 0.0035, 0.005, 0.007, 0.01, 0.02)
MAX_DIMENSIONS = 50
# One answer in MIN_PARTS is held out, but not more than MAX_HELD_OUT.
MIN_PARTS, MAX_HELD_OUT = 10, 200_000
# The first fit of very many answers starts from that of a sample of them. At the smallest λ the
# sample has at least the dimensions of all answers, since it fits more noise.
SAMPLE, MAX_SAMPLED = 600_000, 0.34
# The path ends after WORSE_IN_A_ROW fits that are worse than the best by this many standard errors.
WORSE_BY, WORSE_IN_A_ROW = 3.0, 2
# Comparing ranks needs less accuracy than a published fit.
TOLERANCE = 1e-2
MAX_ITERATIONS = 150


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit of the training answers, and its log-losses on the held-out ones."""

    lam: float
    solution: Solution | None
    temperature: float
    losses: Floats
    accuracy: float

    @property
    def rank(self) -> int:
        return 0 if self.solution is None else self.solution.rank

    @property
    def loss(self) -> float:
        return float(self.losses.mean())


def held_out_audit(
    triplets: Triplets,
    seed: int,
    lambdas: Sequence[float] = LAMBDAS,
    max_rank: int = MAX_DIMENSIONS,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Audit:
    """Choose λ and a rank of at most `max_rank` by hold-out validation, and fit all answers."""
    triplets = triplets.repeated("hold-out validation")
    parts = max(MIN_PARTS, len(triplets) // MAX_HELD_OUT)
    held = folds(triplets, seed, parts) == 0
    training, test = as_pairs(triplets.take(~held)), triplets.take(held)
    guessing = _Fit(max(lambdas), None, 1.0, np.full(test.n_trials, CHANCE), 0.5)
    fits = [guessing]
    for done, fit in enumerate(_path(training, test, sorted(lambdas), max_rank), 1):
        fits.append(fit)
        progress(done, len(lambdas))
    progress(len(lambdas), len(lambdas))
    chosen = _chosen(training, test, fits, max_rank)
    del training
    by_rank = {}
    for fit in sorted(fits, key=lambda fit: fit.loss, reverse=True):
        by_rank[fit.rank] = fit
    solution = None
    if chosen.solution is not None:
        start, curvature = chosen.solution.embedding, chosen.solution.curvature
        solution = solve(as_pairs(triplets), start, _settings(chosen.lam), curvature)
    return Audit(
        answers=triplets.n_trials,
        rank=chosen.rank,
        lam=chosen.lam,
        temperature=chosen.temperature,
        evidence=_evidence(by_rank),
        solution=solution,
        below=_worse(by_rank.get(chosen.rank - 1), chosen),
        above=_worse(by_rank.get(chosen.rank + 1), chosen),
    )


def _path(pairs: Pairs, test: Triplets, lambdas: list[float], max_rank: int) -> Iterator[_Fit]:
    """Fits at growing λ, each from the last one, until they are clearly worse."""
    start, curvature = _start(pairs, lambdas[0], max_rank)
    best, worse = None, 0
    for lam in lambdas:
        solution = solve(pairs, start, _settings(lam), curvature)
        if solution.rank == 0:
            return
        fit = _judged(lam, solution, test)
        yield fit
        if best is None or fit.loss <= best.loss:
            best, worse = fit, 0
        else:
            mean, error = paired_difference(fit.losses, best.losses)
            worse = worse + 1 if mean > WORSE_BY * error else 0
        if worse == WORSE_IN_A_ROW:
            return
        start, curvature = solution.embedding, solution.curvature


def _start(pairs: Pairs, lam: float, max_rank: int) -> tuple[Floats, float | None]:
    """A start in up to `max_rank` dimensions, and its curvature if it is a fit."""
    wide = SolverSettings(lam, n_components=max_rank)
    if MAX_SAMPLED * len(pairs.near) < SAMPLE:
        return spectral_start(pairs, wide), None
    sample = sampled(pairs, SAMPLE)
    solution = solve(sample, spectral_start(sample, wide), _settings(lam))
    return solution.embedding, solution.curvature


def _chosen(pairs: Pairs, test: Triplets, fits: list[_Fit], max_rank: int) -> _Fit:
    """The smallest rank within one standard error of the best; new fits are added to `fits`."""
    best = min(fits, key=lambda fit: fit.loss)
    while best.solution is not None and best.rank < min(max_rank, pairs.n_objects - 2):
        wider = _with_one_more(pairs, test, best.lam, best.solution)
        if wider is None:
            break
        fits.append(wider)
        mean, error = paired_difference(wider.losses, best.losses)
        if mean >= -error:
            break
        best = wider
    mean, error = paired_difference(fits[0].losses, best.losses)
    if mean < MIN_STANDARD_ERRORS * error:
        return fits[0]
    chosen = best
    while chosen.solution is not None and chosen.rank > 1:
        start = chosen.solution.embedding[:, :-1]
        narrower = solve(pairs, start, _settings(chosen.lam), chosen.solution.curvature)
        if narrower.rank == 0:
            break
        fits.append(_judged(chosen.lam, narrower, test))
        mean, error = paired_difference(fits[-1].losses, best.losses)
        if mean > error:
            break
        chosen = fits[-1]
    return chosen


def _with_one_more(pairs: Pairs, test: Triplets, lam: float, solution: Solution) -> _Fit | None:
    """The fit with one more dimension, or None if the answers support none at this λ."""
    settings = _settings(lam)
    direction = steepest_directions(pairs, solution.embedding, settings.margin, 1)
    if direction.shape[1] == 0:
        return None
    new = direction * (LIFT_LENGTH * solution.singular_values[0])
    start = np.column_stack([solution.embedding, new])
    wider = solve(pairs, start, settings, solution.curvature)
    return _judged(lam, wider, test) if wider.rank > solution.rank else None


def _settings(lam: float) -> SolverSettings:
    return SolverSettings(lam, tolerance=TOLERANCE, max_iter=MAX_ITERATIONS)


def _judged(lam: float, solution: Solution, test: Triplets) -> _Fit:
    column = margins(solution.embedding, test)
    temperature = best_temperature(column)
    losses = test.trial_means(np.logaddexp(0.0, -column / temperature))
    accuracy = float(np.mean(0.5 * (1.0 + np.sign(column))))
    return _Fit(lam, solution, temperature, losses, accuracy)


def _worse(fit: _Fit | None, chosen: _Fit) -> LossDifference | None:
    return None if fit is None else paired_difference(fit.losses, chosen.losses)


def _evidence(by_rank: dict[int, _Fit]) -> tuple[RankEvidence, ...]:
    best = min(by_rank.values(), key=lambda fit: fit.loss)
    rows = []
    for rank, fit in sorted(by_rank.items()):
        difference, error = paired_difference(fit.losses, best.losses)
        rows.append(
            RankEvidence(rank, fit.lam, fit.temperature, fit.loss, fit.accuracy, difference, error)
        )
    return tuple(rows)
