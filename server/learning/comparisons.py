"""The answers that a model is fitted to, as comparisons of trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from lore_active.data.comparisons import as_triplets
from lore_active.data.triplets import Triplets
from lore_active.questions.kinds import Kind
from server.store.imports import Trial
from server.store.journal import CountedAnswer


def trials_of(kind: Kind, answers: Iterable[CountedAnswer]) -> list[Trial]:
    """Return the comparisons of each answer."""
    return [kind.comparisons(answer.anchor, answer.options, answer.chosen) for answer in answers]


def comparisons_of(
    trials: Sequence[Trial], n_objects: int, labels: Sequence[str] | None = None
) -> Triplets:
    """Return the comparisons of all trials, each with the number of its trial."""
    rows = [row for trial in trials for row in trial]
    trial = np.repeat(np.arange(len(trials)), [len(trial) for trial in trials])
    return replace(as_triplets(rows, n_objects=n_objects, labels=labels), trial=trial)
