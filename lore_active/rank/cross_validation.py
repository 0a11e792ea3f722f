"""Cross-validation over ranks: how many dimensions do the answers support?

For each λ of a short grid, the answers of all folds but one are fitted in many dimensions; then
the weakest dimension is removed and the rest refitted, down to one. Each fit predicts the held-out
fold, so that every rank has a log-loss for every answer and ranks are compared by paired
differences. The rank is chosen by the one-standard-error rule (Breiman et al., 1984).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lore_active.data.comparisons import Triplets
from lore_active.embedding.fit import fit
from lore_active.embedding.metrics import margins
from lore_active.embedding.pairs import Pairs, as_pairs
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.questions.pool import keys
from lore_active.rank.further_dimension import FurtherDimension
from lore_active.rank.significance import MIN_STANDARD_ERRORS
from lore_active.types import Floats, HeldOut, Mapper

# Mean paired difference of held-out log-losses, and its standard error.
LossDifference = tuple[float, float]
LAMBDAS = (0.02, 0.01, 0.0025)
# All fits of a fold start from one wide fit, at a λ that leaves many dimensions nonzero.
WIDE_LAMBDA = 0.005
FOLDS = 5
MAX_RANKS = 10
# Log-loss of guessing.
CHANCE = float(np.log(2.0))
# Tolerances of the wide fit and of the fits by rank. Comparing ranks needs less accuracy than a
# published fit; the iterations are limited because with few answers the optimum is far away.
WIDE_TOLERANCE = 3e-2
RANK_TOLERANCE = 1e-2
MAX_ITERATIONS = 150
# The most regularised λ within this many standard errors of the best one is used.
LAMBDA_STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class RankEvidence:
    """Cross-validation results for one rank.

    loss: mean held-out log-loss at the best λ and temperature (rank 0: guessing). worse: its
    difference from the best rank's log-loss. error: standard error of that difference.
    """

    rank: int
    lam: float
    temperature: float
    loss: float
    accuracy: float
    worse: float
    error: float


@dataclass(frozen=True, eq=False)
class Audit:
    """Results of an audit: the chosen rank, its λ and temperature, and the evidence.

    `solution` is the fit of all answers at that rank and λ. `below` and `above` are the differences
    of the neighbouring ranks' held-out log-losses from the chosen one's, with standard errors,
    where those ranks were fitted. `map_above` is the same as `above` for the acquisition model,
    which overfits less and so detects a dimension earlier. `log_bayes_below` and `log_bayes_above`
    are the natural log Bayes factors of the chosen rank against its neighbours, where computed.
    `further` are the tests for a further dimension, by size, where the stopping rule needs them.
    """

    answers: int
    rank: int
    lam: float
    temperature: float
    evidence: tuple[RankEvidence, ...]
    solution: Solution | None
    below: LossDifference | None
    above: LossDifference | None
    map_above: LossDifference | None = None
    log_bayes_below: float | None = None
    log_bayes_above: float | None = None
    further: tuple[FurtherDimension, ...] = ()


def audit(
    triplets: Triplets,
    seed: int,
    expected: int = 1,
    standard_errors: float = 1.0,
    lambdas: Sequence[float] = LAMBDAS,
    mapper: Mapper = map,
) -> Audit:
    """Cross-validate over ranks, and choose a rank."""
    return compare(triplets, seed, expected, lambdas, mapper).audit(standard_errors)


def compare(
    triplets: Triplets,
    seed: int,
    expected: int = 1,
    lambdas: Sequence[float] = LAMBDAS,
    mapper: Mapper = map,
) -> Comparison:
    """Cross-validate over ranks and λ.

    Ranks up to `expected` + 3 are fitted, or up to MAX_RANKS if the best one is near that limit,
    each at every one of `lambdas`; `mapper` runs the folds.
    """
    triplets = triplets.repeated("cross-validation")
    most = min(MAX_RANKS, expected + 3)
    while True:
        table = held_out_margins(triplets, seed, most, lambdas, mapper)
        comparison = Comparison(triplets, most, _by_rank(table, max(lambdas)))
        if comparison.best + 1 < most or most == MAX_RANKS:
            return comparison
        most = MAX_RANKS


def wide_fit(pairs: Pairs, most: int) -> Solution:
    """Approximate fit in up to `most` dimensions, from which the fits by rank start."""
    settings = SolverSettings(
        WIDE_LAMBDA, tolerance=WIDE_TOLERANCE, n_components=most, max_iter=MAX_ITERATIONS
    )
    return fit(pairs, settings, certify=False)


def fits_by_rank(pairs: Pairs, lam: float, wide: Solution) -> dict[int, Solution]:
    """Solutions by rank: refitted at `lam`, removing the weakest dimension each time."""
    settings = SolverSettings(lam, tolerance=RANK_TOLERANCE, max_iter=MAX_ITERATIONS)
    start, curvature = wide.embedding, wide.curvature
    solutions: dict[int, Solution] = {}
    while start.shape[1] > 0:
        solution = solve(pairs, start, settings, curvature)
        if solution.rank == 0:
            break
        solutions[solution.rank] = solution
        start, curvature = solution.embedding[:, :-1], solution.curvature
    return solutions


def held_out_margins(
    triplets: Triplets,
    seed: int,
    most: int = MAX_RANKS,
    lambdas: Sequence[float] = LAMBDAS,
    mapper: Mapper = map,
) -> HeldOut:
    """Held-out margins of all answers, by rank and λ."""
    fold = folds(triplets, seed)
    table: HeldOut = {}

    def predicted(part: int) -> HeldOut:
        held, rest = np.flatnonzero(fold == part), np.flatnonzero(fold != part)
        if len(held) == 0 or len(rest) == 0:
            return {}
        pairs = as_pairs(triplets.take(rest))
        wide = wide_fit(pairs, most)
        test = triplets.take(held)
        return {
            (rank, lam): margins(solution.embedding, test)
            for lam in lambdas
            for rank, solution in fits_by_rank(pairs, lam, wide).items()
        }

    for part, columns in enumerate(mapper(predicted, range(FOLDS))):
        for key, column in columns.items():
            table.setdefault(key, np.full(len(triplets), np.nan))[fold == part] = column
    # A rank that was not reached in every fold cannot be compared by paired differences.
    return {key: column for key, column in table.items() if not np.isnan(column).any()}


def folds(triplets: Triplets, seed: int, parts: int = FOLDS) -> Floats:
    """Fold of each answer.

    Answers to the same question share a fold, so that none leaks, and so do the comparisons of one
    trial, which are not independent.
    """
    rows = np.column_stack([triplets.anchor, triplets.nearer, triplets.farther]).astype(np.int64)
    _, group = np.unique(keys(rows, triplets.n_objects), return_inverse=True)
    trials, trial = np.unique(triplets.trial, return_inverse=True)
    if len(trials) < len(rows):
        # Groups that a question or a trial connects are one.
        count = int(group.max()) + 1
        links = coo_array(
            (np.ones(len(rows)), (group, count + trial)), shape=(count + len(trials),) * 2
        )
        group = connected_components(links, directed=False)[1][group]
    order = np.random.default_rng(seed).permutation(int(group.max()) + 1)
    return np.asarray(order[group] % parts)


@dataclass(frozen=True, eq=False)
class _Judged:
    lam: float
    temperature: float
    losses: Floats
    accuracy: float
    # The same rank at a larger λ.
    larger_lambda: _Judged | None = None

    def most_regularised(self) -> _Judged:
        """The largest λ within LAMBDA_STANDARD_ERRORS of the best.

        Most answers are to difficult, actively selected questions. On these a small λ is often
        slightly better, while on questions in general it is clearly worse.
        """
        pick, other = self, self.larger_lambda
        while other is not None:
            mean, error = paired_difference(other.losses, self.losses)
            if mean <= LAMBDA_STANDARD_ERRORS * error:
                pick = other
            other = other.larger_lambda
        return pick


@dataclass(frozen=True, eq=False)
class Comparison:
    """Held-out log-losses of all ranks, including rank 0 (guessing)."""

    triplets: Triplets
    most: int
    judged: dict[int, _Judged]

    @property
    def best(self) -> int:
        """The rank with the lowest held-out log-loss."""
        return min(self.judged, key=lambda rank: float(self.judged[rank].losses.mean()))

    def audit(self, standard_errors: float = 1.0, supported: bool = False) -> Audit:
        """Choose the smallest rank within `standard_errors` standard errors of the best.

        With the default this is the one-standard-error rule. If the best rank is not clearly
        better than guessing, the reported rank is 0, or 1 if a dimension is `supported` by the
        acquisition model.
        """
        best = chosen = self._reported(supported)
        for rank in range(1, best):
            mean, error = self._worse(rank, best) if rank in self.judged else (np.inf, 0.0)
            if mean <= standard_errors * error:
                chosen = rank
                break
        pick = self.judged[chosen].most_regularised()
        pairs = as_pairs(self.triplets)
        solutions = fits_by_rank(pairs, pick.lam, wide_fit(pairs, self.most))
        lower = [rank for rank in solutions if rank <= chosen]
        return Audit(
            answers=len(self.triplets),
            rank=chosen,
            lam=pick.lam,
            temperature=pick.temperature,
            evidence=self._evidence(best),
            solution=solutions[max(lower)] if lower else None,
            below=self._against(chosen - 1, chosen),
            above=self._against(chosen + 1, chosen),
        )

    def _reported(self, supported: bool) -> int:
        """The best rank if it exceeds the significance threshold; else 1 if supported, or 0."""
        mean, error = self._worse(0, self.best)
        if mean >= MIN_STANDARD_ERRORS * error:
            return self.best
        return 1 if supported and 1 in self.judged else 0

    def _worse(self, rank: int, than: int) -> LossDifference:
        return paired_difference(self.judged[rank].losses, self.judged[than].losses)

    def _against(self, rank: int, chosen: int) -> LossDifference | None:
        return self._worse(rank, chosen) if rank in self.judged else None

    def _evidence(self, best: int) -> tuple[RankEvidence, ...]:
        return tuple(
            RankEvidence(
                rank=rank,
                lam=judged.lam,
                temperature=judged.temperature,
                loss=float(judged.losses.mean()),
                accuracy=judged.accuracy,
                worse=self._worse(rank, best)[0],
                error=self._worse(rank, best)[1],
            )
            for rank, judged in sorted(self.judged.items())
        )


def _by_rank(table: HeldOut, largest: float) -> dict[int, _Judged]:
    """The best λ of each rank; rank 0 is guessing, at the largest λ."""
    count = len(next(iter(table.values()))) if table else 1
    best = {0: _Judged(largest, 1.0, np.full(count, CHANCE), 0.5)}
    by_lam: dict[int, list[_Judged]] = {}
    for (rank, lam), column in sorted(table.items(), reverse=True):
        temperature = best_temperature(column)
        losses = np.logaddexp(0.0, -column / temperature)
        accuracy = float(np.mean(0.5 * (1.0 + np.sign(column))))
        larger = by_lam.setdefault(rank, [])
        larger.append(_Judged(lam, temperature, losses, accuracy, larger[-1] if larger else None))
    for rank, judged in by_lam.items():
        best[rank] = min(judged, key=lambda candidate: float(candidate.losses.mean()))
    return best


def best_temperature(column: Floats) -> float:
    """The temperature at which margins have the lowest log-loss."""
    size = max(float(np.abs(column).mean()), 1e-9)
    grid = size * np.geomspace(0.02, 50.0, 60)
    losses = [float(np.logaddexp(0.0, -column / temperature).mean()) for temperature in grid]
    return float(grid[int(np.argmin(losses))])


def paired_difference(losses: Floats, reference: Floats) -> LossDifference:
    """Mean paired difference of losses, and its standard error."""
    difference = losses - reference
    return float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))
