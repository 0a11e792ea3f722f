"""Acquisition model: a MAP embedding that predicts well long before a rank can be reported.

It has neither a margin nor a rank penalty, and with few answers its prior shrinks coordinates
instead of expanding them. It does not decide which dimensions exist: its rank and its prior are
those with the lowest held-out log-loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lore_active.data.triplets import Triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.metrics import margins
from lore_active.embedding.pairs import Pairs
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.rank.audit import LossDifference
from lore_active.rank.comparison import NO_STARTS, WarmStarts, paired_difference
from lore_active.rank.fits import MapFit, Starts, map_fits
from lore_active.rank.folds import Fold, split
from lore_active.rank.temperature import best_temperature, log_losses
from lore_active.trials.stages import Stages, as_trials
from lore_active.types import Floats, Mapper

# Grid of prior precisions: squared ratio of the answers' temperature to the standard deviation of
# the coordinates. Three times the true value costs nothing, a third of it half a point of accuracy;
# simulated observers have 0.02 to 0.4.
NOISES: tuple[float, ...] = (0.06, 0.2)


@dataclass(frozen=True, eq=False)
class AcquisitionModel:
    """MAP embedding used for selection, and `wider`, the same with one more dimension.

    `accuracy` is the cross-validated accuracy on the comparisons of model-independent questions,
    `judged` the number of these questions; of kinds other than triplets, the number of triplets of
    which the accuracy would be as uncertain under guessing.
    """

    embedding: Floats
    wider: Floats
    noise: float
    accuracy: float
    judged: int

    @property
    def beyond_guessing(self) -> float:
        """Accuracy above chance, in standard errors under guessing."""
        return 2.0 * (self.accuracy - 0.5) * float(np.sqrt(self.judged))


@dataclass(frozen=True, eq=False)
class Chosen:
    """An acquisition model, and what cross-validation found on the way.

    `steps` is, by rank, the difference in held-out log-loss of one more dimension.
    """

    acquisition: AcquisitionModel
    steps: dict[int, LossDifference]
    warm: WarmStarts


def chosen(
    triplets: Triplets,
    model_independent: NDArray[np.bool_],
    seed: int,
    max_rank: int,
    previous: AcquisitionModel | None = None,
    mapper: Mapper = map,
    warm: WarmStarts = NO_STARTS,
    expected: int = 1,
    check: bool = False,
    kind: Kind = TRIPLET,
) -> Chosen:
    """Choose rank (up to `max_rank`) and prior precision by cross-validation, and fit all answers.

    Each combination is compared at its best temperature: what matters is how well the margins
    discriminate, and with few answers a calibrated fit would be uninformative. Fits start from
    `previous` and from the starts in `warm`, near the `expected` rank and at the last precision.
    Where there are no starts, and with `check` for one fold and for all answers, cold starts are
    tried, too, with all precisions.
    """
    triplets.refuse_weights("the acquisition model")
    parts = split(triplets, seed)
    table = _HeldOut(parts, triplets, warm, mapper, check)
    min_rank, noises = 1, NOISES
    if warm.noise in NOISES and previous is not None and not check:
        min_rank, noises = max(1, min(expected, previous.embedding.shape[1]) - 1), (warm.noise,)
    table.add(noises, min_rank, max_rank)
    while table.best[0] == min_rank and min_rank > 1:
        min_rank -= 1
        table.add(noises, min_rank, min_rank)
    rank, noise = table.best
    # Comparisons of one trial are predicted together: its share of correct ones counts once.
    free = triplets.take(model_independent)
    correct = 0.5 * (1.0 + np.sign(table.columns[rank, noise][model_independent]))
    correct = free.trial_means(correct) if len(free) else correct
    answers, count = as_trials(triplets), len(triplets)
    known = () if previous is None else (previous.embedding, previous.wider)
    fits = map_fits(
        *(answers, count, noise, rank + 1, {start.shape[1]: start for start in known}),
        final=True,
        min_rank=rank,
        cold=check,
    )
    acquisition = AcquisitionModel(
        embedding=fits[rank][0],
        wider=fits[rank + 1][0],
        noise=noise,
        accuracy=float(np.mean(correct)) if len(correct) else 0.5,
        # So many triplets would be predicted as precisely by guessing.
        judged=round(len(correct) * TRIPLET.guess_variance / kind.guess_variance),
    )
    starts = {
        fold.part: replace(
            warm.folds.get(fold.part, Starts()), map={**warm_starts, **table.starts(index, noise)}
        )
        for index, fold in enumerate(parts)
        for warm_starts in (warm.folds.get(fold.part, Starts()).map,)
    }
    return Chosen(acquisition, table.steps(), replace(warm, folds=starts, noise=noise))


class _HeldOut:
    """Held-out margins of all answers, by rank and prior precision."""

    def __init__(
        self,
        parts: Sequence[Fold],
        triplets: Triplets,
        warm: WarmStarts,
        mapper: Mapper,
        check: bool,
    ) -> None:
        self.parts, self.triplets, self.mapper = parts, triplets, mapper
        self.columns: dict[tuple[int, float], Floats] = {}
        self.losses: dict[tuple[int, float], Floats] = {}
        self._starts = [warm.folds.get(fold.part, Starts()).map for fold in parts]
        # One fold at a time is also fitted from a cold start.
        self._cold = warm.checks % len(parts) if check and parts else None
        self._fits: list[dict[tuple[int, float], Floats]] = [{} for _ in parts]

    def add(self, noises: Sequence[float], min_rank: int, max_rank: int) -> None:
        """Fit these ranks at these prior precisions, and predict what is held out."""
        for noise in noises:
            fitted = partial(self._fitted, noise, min_rank, max_rank)
            by_fold = list(self.mapper(fitted, range(len(self.parts))))
            for rank in range(min_rank, max_rank + 1):
                column = np.zeros(len(self.triplets))
                for fold, done, fits in zip(self.parts, self._fits, by_fold, strict=True):
                    done[rank, noise] = fits[rank][0]
                    column[fold.held] = margins(fits[rank][0], fold.test)
                self.columns[rank, noise] = column
                losses = log_losses(column, best_temperature(column))
                self.losses[rank, noise] = self.triplets.trial_means(losses)

    def _fitted(self, noise: float, min_rank: int, max_rank: int, index: int) -> dict[int, MapFit]:
        fold, done = self.parts[index], self._fits[index]
        # The same rank at another precision is nearer than that of the last audit.
        near = {rank: z for (rank, _), z in done.items()}
        return map_fits(
            *(fold.answers, fold.count, noise, max_rank, {**self._starts[index], **near}),
            min_rank=min_rank,
            cold=index == self._cold and min_rank < max_rank,
        )

    def starts(self, index: int, noise: float) -> dict[int, Floats]:
        """Embeddings of one fold by rank, for the next audit."""
        fits = self._fits[index]
        return {rank: fits[rank, at] for rank, at in sorted(fits) if at == noise}

    @property
    def best(self) -> tuple[int, float]:
        """Rank and prior precision with the lowest held-out log-loss."""
        return min(sorted(self.losses), key=lambda key: float(self.losses[key].mean()))

    def steps(self) -> dict[int, LossDifference]:
        """By rank: log-loss difference of one more dimension, each at its best precision."""
        best = {
            rank: min(
                (self.losses[at, noise] for at, noise in sorted(self.losses) if at == rank),
                key=lambda loss: float(loss.mean()),
            )
            for rank in sorted({rank for rank, _ in self.losses})
        }
        return {
            rank: paired_difference(best[rank + 1], best[rank]) for rank in best if rank + 1 in best
        }


def refitted(answers: Pairs | Stages, count: int, last: AcquisitionModel) -> AcquisitionModel:
    """Refit after new answers, at the same rank and prior precision."""
    return AcquisitionModel(
        embedding=map_embedding.fitted(answers, count, last.noise, last.embedding, final=True)[0],
        wider=map_embedding.fitted(answers, count, last.noise, last.wider, final=True)[0],
        noise=last.noise,
        accuracy=last.accuracy,
        judged=last.judged,
    )
