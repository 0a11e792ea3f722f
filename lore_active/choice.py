"""From a model, or from none yet, to the next questions: covering, random and active ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lore_active.questions import Questions, keys
from lore_active.records import Purpose
from lore_active.selection import Knowledge, Selector
from lore_active.types import Floats

# Without a model that predicts anything, one question in so many is uniformly random, to judge
# by; the others cover the items.
JUDGE_EVERY = 5


@dataclass(frozen=True, eq=False)
class Choice:
    """A question chosen, what for, and its selector's score."""

    row: NDArray[np.int64]
    purpose: Purpose
    score: float


def covering(
    n: int,
    known: Knowledge,
    as_anchor: NDArray[np.int64],
    as_option: NDArray[np.int64],
    judged: bool,
    rng: np.random.Generator,
) -> list[Choice]:
    """Questions about the items asked least so far; some random ones if a model is `judged`."""
    anchors, options, taken = as_anchor.copy(), as_option.copy(), set(known.taken)
    chosen = []
    for k in range(n):
        judge = judged and k % JUDGE_EVERY == JUDGE_EVERY - 1
        if judge:
            found = known.source.new(1, taken, rng)
        else:
            found = known.source.covering(anchors, options, taken, rng)
        if len(found):
            chosen.append(Choice(found[0], "random" if judge else "cover", 0.0))
            taken |= _keys(found, known)
    return chosen


def informative(
    n: int,
    known: Knowledge,
    wider: Floats,
    selector: Selector,
    random_share: float,
    widen: float,
    rng: np.random.Generator,
) -> list[Choice]:
    """Active questions, mixed with random ones that keep the accuracy honest."""
    is_random = rng.random(n) < random_share
    uniform = known.source.new(int(is_random.sum()), known.taken, rng)
    free = replace(known, taken=known.taken | _keys(uniform, known))
    active = iter(_active(int(n - is_random.sum()), free, wider, selector, widen, rng))
    randoms: Iterator[Choice] = (Choice(row, "random", 0.0) for row in uniform)
    # Either kind may run out before the other.
    mixed = (next(randoms if one else active, None) for one in is_random)
    return [one for one in mixed if one is not None]


def _active(
    count: int,
    known: Knowledge,
    wider: Floats,
    selector: Selector,
    widen: float,
    rng: np.random.Generator,
) -> list[Choice]:
    """Active questions, some of them for the model with a dimension more.

    A model of too low a rank sees no use in questions about what it lacks; asked for by a
    wider model, they show whether that dimension is there.
    """
    wide = int(rng.binomial(count, widen)) if wider.shape[1] else 0
    picked: list[Choice] = []
    for many, embedding in ((wide, wider), (count - wide, known.embedding)):
        if many:
            picks = selector.pick(replace(known, embedding=embedding), many, rng)
            picked += (
                Choice(row, "active", float(score))
                for row, score in zip(picks.questions, picks.scores, strict=True)
            )
            known = replace(known, taken=known.taken | _keys(picks.questions, known))
    return [picked[k] for k in rng.permutation(len(picked))]


def _keys(rows: Questions, known: Knowledge) -> set[int]:
    return {int(key) for key in keys(rows, known.n_objects)}
