"""Comparison of ranks by held-out log-loss, and the choice of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from lore_active.data.triplets import Triplets
from lore_active.embedding.metrics import margins
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import Solution
from lore_active.rank import fits
from lore_active.rank.audit import Audit, LossDifference, RankEvidence
from lore_active.rank.fits import Starts
from lore_active.rank.folds import Fold
from lore_active.rank.significance import CLEARLY_WORSE, MIN_STANDARD_ERRORS
from lore_active.rank.temperature import best_temperature, log_losses
from lore_active.types import Floats

# Log-loss of guessing.
CHANCE = float(np.log(2.0))
# The most regularised λ within this many standard errors of the best one is used.
LAMBDA_STANDARD_ERRORS = 3.0
# Cold starts are tried again when the number of answers has grown by this factor.
COLD_GROWTH = 1.25


@dataclass(frozen=True, eq=False)
class WarmStarts:
    """What an audit leaves for the next: starts by fold, λ, and when cold starts were last tried.

    `lam` and `noise` predicted best. `rank` was chosen, with one of `lambdas`. `checks` counts the
    cold starts that were tried, `checked` is the number of answers then.
    """

    folds: dict[int, Starts] = field(default_factory=dict)
    lam: float | None = None
    noise: float | None = None
    rank: int | None = None
    lambdas: tuple[float, ...] = ()
    checks: int = 0
    checked: int = 0

    def check_due(self, answers: int) -> bool:
        """Whether cold starts have to be tried again."""
        return answers >= COLD_GROWTH * self.checked


NO_STARTS = WarmStarts()


@dataclass(frozen=True, eq=False)
class Judged:
    """Held-out log-losses of one rank at one λ and its best temperature, by trial."""

    lam: float
    temperature: float
    losses: Floats
    accuracy: float
    loss: float


def judged(lam: float, column: Floats, triplets: Triplets) -> Judged:
    """Judge margins of held-out answers, at the temperature at which they predict best."""
    temperature = best_temperature(column)
    losses = triplets.trial_means(log_losses(column, temperature))
    accuracy = float(np.mean(0.5 * (1.0 + np.sign(column))))
    return Judged(lam, temperature, losses, accuracy, float(losses.mean()))


class Comparison:
    """Held-out log-losses of all ranks, including rank 0 (guessing).

    `table` holds the results by rank and λ, `judged` those at the best λ of each rank, `warm` what
    the next audit can start from. Ranks up to `max_rank` were fitted.
    """

    def __init__(self, triplets: Triplets, max_rank: int, largest: float) -> None:
        self.triplets = triplets
        self.max_rank = max_rank
        self.table: dict[tuple[int, float], Judged] = {}
        guessing = np.full(max(triplets.n_trials, 1), CHANCE)
        self.judged = {0: Judged(largest, 1.0, guessing, 0.5, CHANCE)}
        self.warm = WarmStarts()

    def add(self, lam: float, parts: Sequence[Fold], solved: Sequence[dict[int, Solution]]) -> None:
        """Take in the fits of all folds at one λ."""
        # A rank that was not reached in every fold cannot be compared by paired differences.
        for rank in sorted(set.intersection(*map(set, solved)) if solved else set()):
            column = np.empty(len(self.triplets))
            for fold, solutions in zip(parts, solved, strict=True):
                column[fold.held] = margins(solutions[rank].embedding, fold.test)
            result = self.table[rank, lam] = judged(lam, column, self.triplets)
            if rank not in self.judged or result.loss < self.judged[rank].loss:
                self.judged[rank] = result

    @property
    def best(self) -> int:
        """The rank with the lowest held-out log-loss."""
        return min(sorted(self.judged), key=lambda rank: self.judged[rank].loss)

    def one_standard_error(self, best: int, standard_errors: float = 1.0) -> int:
        """The smallest rank whose log-loss is within `standard_errors` of that of `best`."""
        for rank in range(1, best):
            mean, error = self._difference(rank, best) if rank in self.judged else (np.inf, 0.0)
            if mean <= standard_errors * error:
                return rank
        return best

    def candidates(self) -> list[int]:
        """The ranks whose λ matters: the best one, and the one that its standard error allows."""
        best = self.best
        return sorted({best, self.one_standard_error(best)} - {0}, reverse=True)

    def audit(
        self,
        standard_errors: float = 1.0,
        supported: bool = False,
        solved: Callable[[int, float], Solution | None] | None = None,
        found: Collection[int] = (),
    ) -> Audit:
        """Choose the smallest rank within `standard_errors` standard errors of the best.

        With the default this is the one-standard-error rule. If the best rank is not clearly
        better than guessing, the reported rank is 0, or 1 if a dimension is `supported` by the
        acquisition model. `solved` fits all answers at a rank and λ; cold by default. `found` are
        ranks beyond which a further dimension was found by its Bayes factor: they are exceeded
        unless one more dimension predicts clearly worse.
        """
        best = self._reported(supported)
        chosen = self.one_standard_error(best, standard_errors)
        while chosen in found and not self._clearly_worse(chosen + 1, chosen):
            chosen += 1
        pick = self._most_regularised(chosen)
        return Audit(
            answers=self.triplets.n_trials,
            rank=chosen,
            lam=pick.lam,
            temperature=pick.temperature,
            evidence=self._evidence(best),
            solution=(solved or self.solved)(chosen, pick.lam),
            below=self._against(chosen - 1, chosen),
            above=self._against(chosen + 1, chosen),
        )

    def solved(self, rank: int, lam: float) -> Solution | None:
        """Fit all answers from a cold start; of lower rank if the penalty allows no higher one."""
        solutions = fits.cold_fits(as_pairs(self.triplets), lam, self.max_rank)
        lower = [found for found in solutions if found <= rank]
        return solutions[max(lower)] if lower else None

    def _most_regularised(self, rank: int) -> Judged:
        """The largest λ within LAMBDA_STANDARD_ERRORS of the best.

        Most answers are to difficult, actively selected questions. On these a small λ is often
        slightly better, while on questions in general it is clearly worse.
        """
        best = self.judged[rank]
        for (fitted, lam), other in sorted(
            self.table.items(), key=lambda entry: entry[0], reverse=True
        ):
            if fitted == rank and lam > best.lam:
                mean, error = paired_difference(other.losses, best.losses)
                if mean <= LAMBDA_STANDARD_ERRORS * error:
                    return other
        return best

    def _reported(self, supported: bool) -> int:
        """The best rank if it exceeds the significance threshold; else 1 if supported, or 0."""
        mean, error = self._difference(0, self.best)
        if mean >= MIN_STANDARD_ERRORS * error:
            return self.best
        return 1 if supported and 1 in self.judged else 0

    def _clearly_worse(self, rank: int, than: int) -> bool:
        if rank not in self.judged:
            return True
        mean, error = self._difference(rank, than)
        return mean > CLEARLY_WORSE * error

    def _difference(self, rank: int, than: int) -> LossDifference:
        return paired_difference(self.judged[rank].losses, self.judged[than].losses)

    def _against(self, rank: int, chosen: int) -> LossDifference | None:
        return self._difference(rank, chosen) if rank in self.judged else None

    def _evidence(self, best: int) -> tuple[RankEvidence, ...]:
        return tuple(
            RankEvidence(
                rank=rank,
                lam=result.lam,
                temperature=result.temperature,
                loss=result.loss,
                accuracy=result.accuracy,
                difference=self._difference(rank, best)[0],
                error=self._difference(rank, best)[1],
            )
            for rank, result in sorted(self.judged.items())
        )


def paired_difference(losses: Floats, reference: Floats) -> LossDifference:
    """Mean paired difference of losses, and its standard error."""
    difference = losses - reference
    return float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))
