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
from lore_active.jit import kernel
from lore_active.types import Floats, Indices

# Sums over the orders of so many picks are exact. With more, each is compared with all unpicked
# pairs by itself, as if the others had not been there (a composite likelihood).
MAX_UNORDERED = 5
# Fills the rows of a table of stages; smaller than the key of any pair.
NO_PAIR = -1


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
    # A block of comparisons has the same nearer pair; its farther pairs may be repeated.
    block = np.flatnonzero(_changed(trial, near))
    other = np.flatnonzero(_changed(trial, near, far))
    ends = np.append(np.searchsorted(other, block), len(other))
    times = np.diff(np.append(block, len(trial))) // np.diff(ends)
    width = MAX_UNORDERED + int(np.diff(ends).max())
    table = np.full((len(block), width), NO_PAIR)
    sizes = np.zeros((len(block), 2), dtype=np.int64)
    counts = np.zeros(len(block), dtype=np.int64)
    filled = _fill_stages(
        *(trial[block], near[block], far[other], ends, times, table, sizes, counts)
    )
    # Shorter lists of pairs come before longer ones that begin with them.
    order = np.lexsort(table[:filled].T[::-1])
    table, sizes, counts = table[order], sizes[order], counts[order]
    first = np.flatnonzero(_changed(*table.T))
    members = table[first]
    keys, member = np.unique(members[members != NO_PAIR], return_inverse=True)
    return Stages(
        pairs=as_pairs(triplets),
        first=(keys // items).astype(np.int32),
        second=(keys % items).astype(np.int32),
        start=np.concatenate([[0], np.cumsum(sizes[first].sum(axis=1))]).astype(np.int32),
        member=member.astype(np.int32),
        picked=sizes[first, 0].astype(np.int32),
        weight=np.add.reduceat(counts, first).astype(np.float64) / len(triplets),
        count=len(triplets),
    )


def _changed(*columns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows differ from the row before."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return new


@kernel
def _fill_stages(
    trial: NDArray[np.int64],
    near: NDArray[np.int64],
    far: NDArray[np.int64],
    ends: NDArray[np.int64],
    times: NDArray[np.int64],
    table: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Make stages of blocks: those of a trial with the same farther pairs are one stage.

    Block b has the nearer pair `near[b]` and the farther pairs `far[ends[b]:ends[b + 1]]`. Each
    stage is a row of `table`: first its picked pairs, then, from column MAX_UNORDERED on, the
    others. `sizes` are their numbers, `counts` how often the stage occurred. Returns the number of
    stages.
    """
    count = near.shape[0]
    together = np.empty(count, dtype=np.int64)
    done = np.zeros(count, dtype=np.bool_)
    filled = 0
    begin = 0
    while begin < count:
        end = begin + 1
        while end < count and trial[end] == trial[begin]:
            end += 1
        for b in range(begin, end):
            if done[b]:
                continue
            size = ends[b + 1] - ends[b]
            found = 0
            for c in range(b, end):
                same = not done[c] and ends[c + 1] - ends[c] == size
                for m in range(size if same else 0):
                    if far[ends[c] + m] != far[ends[b] + m]:
                        same = False
                        break
                if same:
                    together[found] = c
                    done[c] = True
                    found += 1
            # Too many for exact sums are compared with the others one by one.
            picked = found if found <= MAX_UNORDERED else 1
            for group in range(found // picked):
                for m in range(picked):
                    table[filled, m] = near[together[group * picked + m]]
                for m in range(size):
                    table[filled, MAX_UNORDERED + m] = far[ends[b] + m]
                sizes[filled, 0] = picked
                sizes[filled, 1] = size
                counts[filled] = times[end - 1]
                filled += 1
        begin = end
    return filled


def _pair_key(a: Indices, b: Indices, items: int) -> NDArray[np.int64]:
    low = np.minimum(a, b).astype(np.int64)
    return low * items + np.maximum(a, b)
