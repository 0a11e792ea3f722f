"""How many dimensions do the answers support? Cross-validation along a chain of ranks.

For each λ of a short path the answers of all folds but one are fitted in many dimensions; then the
weakest dimension is dropped and the rest refitted, down to one. Each fit predicts the answers of
the fold left out. So every rank is judged on answers that it has not seen, and ranks are compared
answer by answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lore_active.data.comparisons import Triplets
from lore_active.embedding.fit import fit
from lore_active.embedding.metrics import margins
from lore_active.embedding.pairs import Pairs, as_pairs
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.questions.pool import keys
from lore_active.rank.significance import MIN_STANDARD_ERRORS
from lore_active.types import Floats, HeldOut, Mapper

# A mean difference of held-out losses, and its standard error.
LossDifference = tuple[float, float]
LAMBDAS = (0.02, 0.01, 0.0025)
# All chains of a fold start from one wide fit at a λ that leaves room for many dimensions.
WIDE_LAMBDA = 0.005
FOLDS = 5
MAX_RANKS = 10
# Loss of a guess.
CHANCE = float(np.log(2.0))
# Judging ranks needs no digits: looser than a published fit, and bounded where answers are so few
# that the optimum lies far out.
ROUGH = 3e-2
FINE = 1e-2
MAX_ITERATIONS = 150
# As many errors worse, and a larger λ is given up for a smaller one.
STEADY = 3.0


@dataclass(frozen=True)
class RankEvidence:
    """What the answers say about one rank.

    loss: mean held-out logistic loss at the best λ and temperature (rank 0: guessing).
    worse: by how much the loss exceeds that of the best rank; error: its standard error.
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
    """The outcome of a cross-validation: the rank chosen, its λ and temperature, and all evidence.

    `solution` is the fit of all answers at that rank and λ.
    `below` and `above`: by how much the neighbouring ranks' held-out losses exceed the chosen
    one's, with standard errors, where those ranks were tried. `smooth_above`: the same as `above`
    for the model that asks, which does not overfit as easily and so sees a dimension earlier.
    `odds_below` and `odds_above`: natural logarithms of the odds for the chosen rank against its
    neighbours, where they were weighed.
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


def audit(
    triplets: Triplets,
    seed: int,
    expected: int = 1,
    parsimony: float = 1.0,
    lambdas: Sequence[float] = LAMBDAS,
    mapper: Mapper = map,
) -> Audit:
    """Cross-validate, and choose a rank."""
    return compare(triplets, seed, expected, lambdas, mapper).audit(parsimony)


def compare(
    triplets: Triplets,
    seed: int,
    expected: int = 1,
    lambdas: Sequence[float] = LAMBDAS,
    mapper: Mapper = map,
) -> Comparison:
    """Judge ranks on answers left out.

    Ranks up to `expected` + 3 are tried, and more where the best one lies near that end, each at
    every one of `lambdas`; `mapper` runs the folds.
    """
    triplets = triplets.repeated("cross-validation")
    most = min(MAX_RANKS, expected + 3)
    while True:
        table = held_out_margins(triplets, seed, most, lambdas, mapper)
        found = Comparison(triplets, most, _by_rank(table, max(lambdas)))
        if found.best + 1 < most or most == MAX_RANKS:
            return found
        most = MAX_RANKS


def wide_fit(pairs: Pairs, most: int) -> Solution:
    """A rough fit in up to `most` dimensions, from which chains start."""
    settings = SolverSettings(
        WIDE_LAMBDA, tolerance=ROUGH, n_components=most, max_iter=MAX_ITERATIONS
    )
    return fit(pairs, settings, certify=False)


def fits_by_rank(pairs: Pairs, lam: float, wide: Solution) -> dict[int, Solution]:
    """Solutions by rank: refitted at `lam`, then without the weakest dimension, down to one."""
    settings = SolverSettings(lam, tolerance=FINE, max_iter=MAX_ITERATIONS)
    start, curvature = wide.embedding, wide.curvature
    chain: dict[int, Solution] = {}
    while start.shape[1] > 0:
        found = solve(pairs, start, settings, curvature)
        if found.rank == 0:
            break
        chain[found.rank] = found
        start, curvature = found.embedding[:, :-1], found.curvature
    return chain


def held_out_margins(
    triplets: Triplets,
    seed: int,
    most: int = MAX_RANKS,
    lambdas: Sequence[float] = LAMBDAS,
    mapper: Mapper = map,
) -> HeldOut:
    """Margins of all answers by rank and λ, each predicted by fits that did not see the answer."""
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
    # A rank that some fold did not reach cannot be compared answer by answer.
    return {key: column for key, column in table.items() if not np.isnan(column).any()}


def folds(triplets: Triplets, seed: int, parts: int = FOLDS) -> Floats:
    """A fold for each answer; answers to the same question share one, so that none leaks."""
    rows = np.column_stack([triplets.anchor, triplets.nearer, triplets.farther]).astype(np.int64)
    _, question = np.unique(keys(rows, triplets.n_objects), return_inverse=True)
    order = np.random.default_rng(seed).permutation(int(question.max()) + 1)
    return np.asarray(order[question] % parts)


@dataclass(frozen=True, eq=False)
class _Judged:
    lam: float
    temperature: float
    losses: Floats
    accuracy: float
    # The same rank at a larger λ.
    stiffer: _Judged | None = None

    def most_regularised(self) -> _Judged:
        """The largest λ whose loss is not clearly worse.

        Most answers are to questions picked for being hard to tell. On these a small λ is often
        better by a hair, while on questions in general it is clearly worse.
        """
        pick, other = self, self.stiffer
        while other is not None:
            mean, error = paired_difference(other.losses, self.losses)
            if mean <= STEADY * error:
                pick = other
            other = other.stiffer
        return pick


@dataclass(frozen=True, eq=False)
class Comparison:
    """Ranks from 0 on, each with what it loses on answers that it has not seen."""

    triplets: Triplets
    most: int
    judged: dict[int, _Judged]

    @property
    def best(self) -> int:
        """The rank that predicts best."""
        return min(self.judged, key=lambda rank: float(self.judged[rank].losses.mean()))

    def audit(self, parsimony: float = 1.0, supported: bool = False) -> Audit:
        """Choose the lowest rank that is not worse than the best by `parsimony` errors.

        If the best is not clearly better than guessing: rank 0, or 1 where it is `vouched`, by
        somebody who can tell better, that there is something to be found.
        """
        best = chosen = self._reported(supported)
        for rank in range(1, best):
            mean, error = self._worse(rank, best) if rank in self.judged else (np.inf, 0.0)
            if mean <= parsimony * error:
                chosen = rank
                break
        pick = self.judged[chosen].most_regularised()
        pairs = as_pairs(self.triplets)
        chain = fits_by_rank(pairs, pick.lam, wide_fit(pairs, self.most))
        lower = [rank for rank in chain if rank <= chosen]
        return Audit(
            answers=len(self.triplets),
            rank=chosen,
            lam=pick.lam,
            temperature=pick.temperature,
            evidence=self._evidence(best),
            solution=chain[max(lower)] if lower else None,
            below=self._against(chosen - 1, chosen),
            above=self._against(chosen + 1, chosen),
        )

    def _reported(self, supported: bool) -> int:
        """The rank that predicts best; if that may be luck, the least that is vouched for."""
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
                lam=one.lam,
                temperature=one.temperature,
                loss=float(one.losses.mean()),
                accuracy=one.accuracy,
                worse=self._worse(rank, best)[0],
                error=self._worse(rank, best)[1],
            )
            for rank, one in sorted(self.judged.items())
        )


def _by_rank(table: HeldOut, largest: float) -> dict[int, _Judged]:
    """The best λ of each rank; rank 0 guesses, at the largest."""
    count = len(next(iter(table.values()))) if table else 1
    found = {0: _Judged(largest, 1.0, np.full(count, CHANCE), 0.5)}
    by_lam: dict[int, list[_Judged]] = {}
    for (rank, lam), column in sorted(table.items(), reverse=True):
        temperature = best_temperature(column)
        losses = np.logaddexp(0.0, -column / temperature)
        right = float(np.mean(0.5 * (1.0 + np.sign(column))))
        larger = by_lam.setdefault(rank, [])
        larger.append(_Judged(lam, temperature, losses, right, larger[-1] if larger else None))
    for rank, judged in by_lam.items():
        found[rank] = min(judged, key=lambda one: float(one.losses.mean()))
    return found


def best_temperature(column: Floats) -> float:
    """The temperature at which margins predict their answers best."""
    size = max(float(np.abs(column).mean()), 1e-9)
    grid = size * np.geomspace(0.02, 50.0, 60)
    losses = [float(np.logaddexp(0.0, -column / one).mean()) for one in grid]
    return float(grid[int(np.argmin(losses))])


def paired_difference(one: Floats, other: Floats) -> LossDifference:
    """Mean of a paired difference and its standard error."""
    gap = one - other
    return float(gap.mean()), float(gap.std() / np.sqrt(len(gap)))
