"""Cross-validation over ranks: how many dimensions do the answers support?

Each fold is predicted from fits of the others, one for each rank and λ, so that every rank has a
log-loss for every answer and ranks are compared by paired differences. The rank is chosen by the
one-standard-error rule (Breiman et al., 1984). The fits of a fold start from those of the last
audit; now and then a fold is also fitted from a cold start, and where that finds a lower objective
all folds are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lore_active.data.triplets import Triplets
from lore_active.embedding.solver import Solution
from lore_active.rank import fits
from lore_active.rank.audit import Audit
from lore_active.rank.comparison import NO_STARTS, Comparison, WarmStarts
from lore_active.rank.fits import Starts
from lore_active.rank.folds import Fold, split
from lore_active.types import Mapper

Fits = dict[int, Solution]
LAMBDAS = (0.02, 0.01, 0.0025)
MAX_RANKS = 10
# With more answers than this per item, the rank hardly changes from one audit to the next.
MANY_ANSWERS = 50
# Ranks that are fitted above the expected one: the best rank needs one above it.
RANKS_ABOVE, RANKS_ABOVE_COLD = 1, 3


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
    warm: WarmStarts = NO_STARTS,
) -> Comparison:
    """Cross-validate over ranks and λ.

    Parameters
    ----------
    triplets : Triplets
        Answers.
    seed : int
        Seed of the folds.
    expected : int
        Ranks a few above this one are fitted, or more if the best one turns out to be higher.
    lambdas : sequence of float
        From cold starts, every rank is fitted at each of them; from warm starts, at the last one,
        and at the others where that can change the choice.
    mapper : callable
        Runs the folds, like the built-in `map`.
    warm : WarmStarts
        What the last audit left.
    """
    triplets = triplets.repeated("cross-validation")
    parts = split(triplets, seed)
    if parts and warm.lam in lambdas and all(fold.part in warm.folds for fold in parts):
        return _compared_warm(triplets, parts, expected, lambdas, mapper, warm)
    max_rank = min(MAX_RANKS, expected + RANKS_ABOVE_COLD)
    while True:
        comparison = _compared_cold(triplets, parts, max_rank, lambdas, mapper)
        if comparison.best + 1 < max_rank or max_rank == MAX_RANKS:
            return comparison
        max_rank = MAX_RANKS


def _compared_cold(
    triplets: Triplets,
    parts: Sequence[Fold],
    max_rank: int,
    lambdas: Sequence[float],
    mapper: Mapper,
) -> Comparison:
    """Every rank at every λ, from cold starts."""

    def fitted(index: int) -> dict[float, dict[int, Solution]]:
        wide = fits.wide_fit(parts[index].pairs, max_rank)
        return {lam: fits.narrowed(parts[index].pairs, lam, wide) for lam in lambdas}

    solved = list(mapper(fitted, range(len(parts))))
    comparison = Comparison(triplets, max_rank, max(lambdas))
    for lam in lambdas:
        comparison.add(lam, parts, [solutions[lam] for solutions in solved])
    lam = comparison.judged[comparison.best].lam
    starts = {
        fold.part: Starts({k: solution.embedding for k, solution in solutions[lam].items()})
        for fold, solutions in zip(parts, solved, strict=True)
    }
    comparison.warm = WarmStarts(starts, lam, checked=len(triplets))
    return comparison


def _compared_warm(
    triplets: Triplets,
    parts: Sequence[Fold],
    expected: int,
    lambdas: Sequence[float],
    mapper: Mapper,
    warm: WarmStarts,
) -> Comparison:
    """The ranks next to the expected one at one λ, and more where that can change the choice.

    Where cold starts are due, all λ are tried at the ranks that may be chosen.
    """
    lam, check = warm.lam, warm.check_due(len(triplets))
    assert lam is not None
    min_rank, max_rank = max(1, expected - 1), min(MAX_RANKS, max(expected, 1) + RANKS_ABOVE)
    comparison = Comparison(triplets, max_rank, max(lambdas))
    few = len(triplets) < MANY_ANSWERS * triplets.n_objects
    starts = [warm.folds[fold.part].penalised for fold in parts]

    def fitted(at: float, low: int, high: int, near: Sequence[Fits] = ()) -> list[Fits]:
        known = [
            {**old, **{rank: fit.embedding for rank, fit in (near[index] if near else {}).items()}}
            for index, old in enumerate(starts)
        ]
        return list(
            mapper(
                lambda index: fits.warm_fits(parts[index].pairs, at, low, high, known[index]),
                range(len(parts)),
            )
        )

    solved = fitted(lam, min_rank, max_rank)
    if check:
        solved = _checked(parts, lam, max_rank, solved, warm.checks % len(parts), mapper)
    comparison.add(lam, parts, solved)
    for _ in lambdas:
        while comparison.best >= max_rank and max_rank < MAX_RANKS:
            max_rank += 1
            solved = _joined(solved, fitted(lam, max_rank, max_rank, solved))
            comparison.add(lam, parts, solved)
        while comparison.best in (0, min_rank) and min_rank > 1:
            min_rank -= 1
            solved = _joined(solved, fitted(lam, min_rank, min_rank))
            comparison.add(lam, parts, solved)
        best, candidates = comparison.best, comparison.candidates()
        for other in lambdas if check or candidates[-1:] != [warm.rank] else warm.lambdas:
            for rank in candidates:
                if (rank, other) not in comparison.table:
                    comparison.add(other, parts, fitted(other, rank, rank, solved))
        if (check or few) and best + 1 <= max_rank and (best + 1, lam) not in comparison.table:
            # The penalty removes a further dimension, which a smaller one may not do.
            for other in lambdas:
                if other < lam and (best + 1, other) not in comparison.table:
                    comparison.add(other, parts, fitted(other, max(best, 1), best + 1, solved))
        if comparison.best == 0 or comparison.judged[comparison.best].lam == lam:
            break
        lam = comparison.judged[comparison.best].lam
        solved = _joined(solved, fitted(lam, min_rank, max_rank, solved))
        comparison.add(lam, parts, solved)
    comparison.max_rank = max_rank
    comparison.warm = replace(
        warm,
        folds={
            fold.part: _kept(warm.folds[fold.part], solutions, min_rank, max_rank)
            for fold, solutions in zip(parts, solved, strict=True)
        },
        lam=lam,
        checks=warm.checks + check,
        checked=len(triplets) if check else warm.checked,
    )
    return comparison


def _joined(solved: Sequence[Fits], more: Sequence[Fits]) -> list[Fits]:
    return [{**solutions, **further} for solutions, further in zip(solved, more, strict=True)]


def _kept(old: Starts, solutions: Fits, min_rank: int, max_rank: int) -> Starts:
    """Starts for the next audit; ranks that the penalty reduced are started afresh."""
    beyond = {rank: z for rank, z in old.penalised.items() if not min_rank <= rank <= max_rank}
    fresh = {rank: solution.embedding for rank, solution in solutions.items()}
    return Starts({**beyond, **fresh}, old.map)


def _checked(
    parts: Sequence[Fold],
    lam: float,
    max_rank: int,
    solved: list[Fits],
    tried: int,
    mapper: Mapper,
) -> list[Fits]:
    """Fit one fold from a cold start, and all of them if that finds a lower objective."""
    cold = fits.cold_fits(parts[tried].pairs, lam, max_rank)
    if not fits.better(cold, solved[tried]):
        return solved
    others = mapper(
        lambda index: cold if index == tried else fits.cold_fits(parts[index].pairs, lam, max_rank),
        range(len(parts)),
    )
    return [fits.lowest(warm, cold) for warm, cold in zip(solved, others, strict=True)]
