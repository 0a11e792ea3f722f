"""Trials in the representation of the kernels: stages, at each of which a pair is picked.

The answer to a trial is a product of choices (Plackett, 1975; Luce, 1959). At each stage the pair
of items that appears nearest is picked from those that are left, with probabilities proportional to
exp(−distance). A triplet, and the odd one out, have one stage; ranking k options has k. Where k
options are chosen in no order, their stage has k picked pairs, and its probability is the sum over
all orders in which they could have been picked.

Stages are read off the comparisons of a trial, so they need no other record of it: those with the
same nearer pair are one stage, and stages with the same farther pairs are one stage without order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lore_active.data.triplets import Triplets
from lore_active.embedding.pairs import Pairs, as_pairs
from lore_active.types import Floats, Indices

# Sums over the orders of so many picks are exact. With more, each is compared with all unpicked
# pairs by itself, as if the others had not been there (a composite likelihood).
MAX_UNORDERED = 5


@dataclass(frozen=True, eq=False)
class Stages:
    """Answers as stages, for trials of which some carry several comparisons.

    Stage s consists of the pairs `member[start[s]:start[s + 1]]`, of which the first `picked[s]`
    were picked. Pair q joins the items `first[q]` and `second[q]`. Equal stages are merged and
    everything is sorted, so that the same set of answers gives the same arrays. Weights add up to
    the number of stages divided by that of comparisons, `count`. `pairs` are the same answers as
    comparisons.
    """

    pairs: Pairs
    first: Indices
    second: Indices
    start: Indices
    member: Indices
    picked: Indices
    weight: Floats
    count: int

    @property
    def n_objects(self) -> int:
        """Number of items."""
        return self.pairs.n_objects


def as_trials(triplets: Triplets) -> Pairs | Stages:
    """Convert validated answers to stages, or to pairs if every trial is one comparison."""
    return as_stages(triplets) if triplets.compound else as_pairs(triplets)


def pairs_of(answers: Pairs | Stages) -> Pairs:
    """The comparisons of answers, whatever trials they belong to."""
    return answers.pairs if isinstance(answers, Stages) else answers


def as_stages(triplets: Triplets) -> Stages:
    """Convert validated answers of weight 1 to stages; those repeated in a trial count again."""
    items = triplets.n_objects
    trial = np.unique(triplets.trial, return_inverse=True)[1]
    near = _pair_key(triplets.anchor, triplets.nearer, items)
    far = _pair_key(triplets.anchor, triplets.farther, items)
    order = np.lexsort((far, near, trial))
    trial, near, far = trial[order], near[order], far[order]
    new = np.ones(len(near), dtype=bool)
    new[1:] = (trial[1:] != trial[:-1]) | (near[1:] != near[:-1])
    bounds = np.append(np.flatnonzero(new), len(near))
    # Stages by their pairs: (picked …), (unpicked …); their number of occurrences.
    stages: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    chosen: dict[tuple[int, ...], list[int]] = {}
    last, times = -1, 1
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if trial[begin] != last:
            _count(chosen, stages, times)
            chosen, last = {}, int(trial[begin])
        unpicked = tuple(dict.fromkeys(far[begin:end].tolist()))
        times = (end - begin) // len(unpicked)
        chosen.setdefault(unpicked, []).append(int(near[begin]))
    _count(chosen, stages, times)
    listed = sorted(stages)
    sizes = [len(picked) + len(other) for picked, other in listed]
    members = np.array(
        [pair for picked, other in listed for pair in (*picked, *other)], dtype=np.int64
    )
    keys, member = np.unique(members, return_inverse=True)
    return Stages(
        pairs=as_pairs(triplets),
        first=(keys // items).astype(np.int32),
        second=(keys % items).astype(np.int32),
        start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        member=member.astype(np.int32),
        picked=np.array([len(picked) for picked, _ in listed], dtype=np.int32),
        weight=np.array([stages[stage] for stage in listed], dtype=np.float64) / len(triplets),
        count=len(triplets),
    )


def _count(
    chosen: dict[tuple[int, ...], list[int]],
    stages: dict[tuple[tuple[int, ...], tuple[int, ...]], int],
    times: int,
) -> None:
    """Count the stages of a trial so many times, given its picked pairs by those left unpicked."""
    for unpicked, near in chosen.items():
        together = [tuple(near)] if len(near) <= MAX_UNORDERED else [(pair,) for pair in near]
        for picked in together:
            stages[picked, unpicked] = stages.get((picked, unpicked), 0) + times


def _pair_key(a: Indices, b: Indices, items: int) -> NDArray[np.int64]:
    low = np.minimum(a, b).astype(np.int64)
    return low * items + np.maximum(a, b)
