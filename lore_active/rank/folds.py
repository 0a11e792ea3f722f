"""Folds of cross-validation that stay the same while answers accumulate.

The fold of a question follows from its items and a seed alone, so that an answer never moves to
another fold. The fits of a fold can therefore start from those of the last audit without having
seen any of the answers that they predict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lore_active.data.triplets import Triplets
from lore_active.embedding.pairs import Pairs
from lore_active.questions.pool import keys
from lore_active.questions.splitmix import hashed
from lore_active.trials.stages import Stages, as_trials, pairs_of

FOLDS = 5


def folds(triplets: Triplets, seed: int, parts: int = FOLDS) -> NDArray[np.int64]:
    """Fold of each answer.

    Answers to the same question share a fold, so that none leaks, and so do the comparisons of one
    trial, which are not independent.
    """
    rows = np.column_stack([triplets.anchor, triplets.nearer, triplets.farther]).astype(np.int64)
    mixed = hashed(keys(rows, triplets.n_objects).astype(np.uint64), seed)
    if triplets.compound:
        trials, trial = np.unique(triplets.trial, return_inverse=True)
        # A trial is known by its items, so that the same question always shares a fold.
        shown = np.unique(np.column_stack([np.repeat(trial, 3), rows.ravel()]), axis=0)
        whole = np.zeros(len(trials), dtype=np.uint64)
        np.add.at(whole, shown[:, 0], hashed(shown[:, 1].astype(np.uint64), seed))
        mixed = whole[trial]
    return (hashed(mixed, seed) % np.uint64(parts)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold: which comparisons are held out, and the others as the kernels take them.

    `answers` are the latter as trials, for likelihoods; `pairs` as comparisons, for LORE.
    """

    part: int
    held: NDArray[np.int64]
    test: Triplets
    pairs: Pairs
    answers: Pairs | Stages
    count: int


def split(triplets: Triplets, seed: int) -> tuple[Fold, ...]:
    """The folds that have both answers to predict and answers to learn from."""
    fold = folds(triplets, seed)
    parts = []
    for part in range(FOLDS):
        held, rest = np.flatnonzero(fold == part), np.flatnonzero(fold != part)
        if len(held) and len(rest):
            answers = as_trials(triplets.take(rest))
            test = triplets.take(held)
            parts.append(Fold(part, held, test, pairs_of(answers), answers, len(rest)))
    return tuple(parts)
