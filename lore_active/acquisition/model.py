"""Acquisition model: a MAP embedding that predicts well long before a rank can be reported.

It has neither a margin nor a rank penalty, and with few answers its prior shrinks coordinates
instead of expanding them. It does not decide which dimensions exist: its rank and its prior are
those with the lowest held-out log-loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lore_active.data.comparisons import Triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.metrics import margins
from lore_active.embedding.pairs import as_pairs
from lore_active.rank.cross_validation import (
    FOLDS,
    LossDifference,
    best_temperature,
    folds,
    paired_difference,
)
from lore_active.types import Floats, HeldOut, Mapper

# Grid of prior precisions: squared ratio of the answers' temperature to the standard deviation of
# the coordinates. Three times the true value costs nothing, a third of it half a point of accuracy;
# simulated observers have 0.02 to 0.4.
NOISES = (0.06, 0.2)


@dataclass(frozen=True, eq=False)
class AcquisitionModel:
    """MAP embedding used for selection, and `wider`, the same with one dimension more.

    `accuracy` is the cross-validated accuracy on answers to model-independent questions, `judged`
    the number of these answers.
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


def chosen(
    triplets: Triplets,
    model_independent: NDArray[np.bool_],
    seed: int,
    most: int,
    previous: AcquisitionModel | None = None,
    mapper: Mapper = map,
) -> tuple[AcquisitionModel, dict[int, LossDifference]]:
    """Choose rank (up to `most`) and prior precision by cross-validation, and fit all answers.

    Each combination is compared at its best temperature: what matters is how well the margins
    discriminate, and with few answers a calibrated fit would be uninformative. Also returns, by
    rank, the difference in held-out log-loss of one dimension more.
    """
    triplets.refuse_weights("the acquisition model")
    table = _held_out(triplets, seed, most, mapper)
    losses = {
        key: np.logaddexp(0.0, -column / best_temperature(column)) for key, column in table.items()
    }
    rank, noise = min(losses, key=lambda key: float(losses[key].mean()))
    column = table[rank, noise][model_independent]
    pairs, count = as_pairs(triplets), len(triplets)
    fits = map_embedding.fits_by_rank(pairs, count, noise, rank + 1, fine=True)
    for start in () if previous is None else (previous.embedding, previous.wider):
        # There may be several optima, and the previous one may be lower than that of a cold fit.
        width = start.shape[1]
        if width in fits:
            warm = map_embedding.fitted(pairs, count, noise, start, fine=True)
            fits[width] = min(fits[width], warm, key=lambda fit: fit[1])
    acquisition = AcquisitionModel(
        embedding=fits[rank][0],
        wider=fits[rank + 1][0],
        noise=noise,
        accuracy=float(np.mean(0.5 * (1.0 + np.sign(column)))) if len(column) else 0.5,
        judged=len(column),
    )
    return acquisition, _steps(losses, most)


def _steps(losses: dict[tuple[int, float], Floats], most: int) -> dict[int, LossDifference]:
    """By rank: log-loss difference of one dimension more, each at its best prior precision."""
    best = {
        rank: min((losses[rank, noise] for noise in NOISES), key=lambda loss: float(loss.mean()))
        for rank in range(1, most + 1)
    }
    return {rank: paired_difference(best[rank + 1], best[rank]) for rank in range(1, most)}


def refitted(triplets: Triplets, last: AcquisitionModel) -> AcquisitionModel:
    """Refit after new answers, at the same rank and prior precision."""
    triplets.refuse_weights("the acquisition model")
    pairs, count = as_pairs(triplets), len(triplets)
    return AcquisitionModel(
        embedding=map_embedding.fitted(pairs, count, last.noise, last.embedding, fine=True)[0],
        wider=map_embedding.fitted(pairs, count, last.noise, last.wider, fine=True)[0],
        noise=last.noise,
        accuracy=last.accuracy,
        judged=last.judged,
    )


def _held_out(triplets: Triplets, seed: int, most: int, mapper: Mapper) -> HeldOut:
    """Held-out margins of all answers, by rank and prior precision."""
    fold = folds(triplets, seed)
    table = {(k, noise): np.zeros(len(triplets)) for k in range(1, most + 1) for noise in NOISES}

    def predicted(part: int) -> HeldOut:
        held, rest = np.flatnonzero(fold == part), np.flatnonzero(fold != part)
        if len(held) == 0 or len(rest) == 0:
            return {}
        pairs, test = as_pairs(triplets.take(rest)), triplets.take(held)
        return {
            (rank, noise): margins(fitted, test)
            for noise in NOISES
            for rank, (fitted, _) in map_embedding.fits_by_rank(
                pairs, len(rest), noise, most, fine=False
            ).items()
        }

    for part, columns in enumerate(mapper(predicted, range(FOLDS))):
        for key, column in columns.items():
            table[key][fold == part] = column
    return table
