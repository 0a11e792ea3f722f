"""From a model, or from none yet, to the next questions: covering, random and active ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition.model import AcquisitionModel
from lore_active.acquisition.selectors import Selector, SelectorState
from lore_active.questions.pool import Questions, keys
from lore_active.questions.question import Purpose

# The asker's coordinates are in units of the temperature.
TEMPERATURE = 1.0


@dataclass(frozen=True, eq=False)
class Proposal:
    """A question chosen, what for, and its selector's score."""

    row: NDArray[np.int64]
    purpose: Purpose
    score: float


def sides_drawn(choose: Callable[[], list[Proposal]], rng: np.random.Generator) -> list[Proposal]:
    """What is chosen, as rows (anchor, left, right) with a coin thrown for the sides of each."""
    chosen = choose()
    flips = rng.random(len(chosen)) < 0.5
    return [
        replace(one, row=one.row[[0, 2, 1]]) if flip else one
        for one, flip in zip(chosen, flips, strict=True)
    ]


def coverage_design(
    n: int,
    known: SelectorState,
    as_anchor: NDArray[np.int64],
    as_option: NDArray[np.int64],
    rng: np.random.Generator,
) -> list[Proposal]:
    """Questions about the items asked least so far."""
    anchors, options, taken = as_anchor.copy(), as_option.copy(), set(known.taken)
    chosen = []
    for _ in range(n):
        found = known.source.covering(anchors, options, taken, rng)
        if len(found):
            chosen.append(Proposal(found[0], "cover", 0.0))
            taken |= _keys(found, known)
    return chosen


def informative(
    n: int,
    known: SelectorState,
    acquisition: AcquisitionModel,
    selector: Selector,
    random_share: float,
    exploration_share: float,
    rng: np.random.Generator,
) -> list[Proposal]:
    """Active questions, mixed with random ones that keep the accuracy honest."""
    is_random = rng.random(n) < random_share
    uniform = known.source.new(int(is_random.sum()), known.taken, rng)
    free = replace(known, taken=known.taken | _keys(uniform, known))
    active = iter(
        _active(int(n - is_random.sum()), free, acquisition, selector, exploration_share, rng)
    )
    randoms: Iterator[Proposal] = (Proposal(row, "random", 0.0) for row in uniform)
    # Either kind may run out before the other.
    mixed = (next(randoms if one else active, None) for one in is_random)
    return [one for one in mixed if one is not None]


def _active(
    count: int,
    known: SelectorState,
    acquisition: AcquisitionModel,
    selector: Selector,
    exploration_share: float,
    rng: np.random.Generator,
) -> list[Proposal]:
    """Active questions, now and then for the model with a dimension more.

    A model of too low a rank sees no use in questions about what it lacks; asked for by a
    wider model, they show whether that dimension is there.
    """
    if not count:
        return []
    wide = acquisition.wider.shape[1] > 0 and rng.random() < exploration_share
    embedding = acquisition.wider if wide else acquisition.embedding
    picks = selector.pick(replace(known, embedding=embedding, temperature=TEMPERATURE), count, rng)
    return [
        Proposal(row, "active", float(score))
        for row, score in zip(picks.questions, picks.scores, strict=True)
    ]


def _keys(rows: Questions, known: SelectorState) -> set[int]:
    return {int(key) for key in keys(rows, known.n_objects)}
