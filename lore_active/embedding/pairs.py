"""Answers in the representation of the kernels: distinct item pairs, and answers as pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lore_active.data.comparisons import Triplets
from lore_active.types import Floats, Indices


@dataclass(frozen=True, eq=False)
class Pairs:
    """Answer t says that pair `near[t]` is nearer than pair `far[t]`.

    Pair q joins the items `first[q] < second[q]`. Equal answers are merged, their weights added
    and normalised to a sum of 1, and everything is sorted: the same set of answers gives the
    same arrays, and so bitwise the same fit, in whatever order the answers came.
    """

    n_objects: int
    first: Indices
    second: Indices
    near: Indices
    far: Indices
    weight: Floats


def as_pairs(triplets: Triplets) -> Pairs:
    """Convert validated answers to pairs."""
    items = triplets.n_objects
    nearer = _pair_key(triplets.anchor, triplets.nearer, items)
    farther = _pair_key(triplets.anchor, triplets.farther, items)
    keys, near, far = _number_pairs(nearer, farther, items)
    answers, which = np.unique(near * np.int64(len(keys)) + far, return_inverse=True)
    weight = np.bincount(which, weights=triplets.weight, minlength=len(answers))
    return Pairs(
        n_objects=items,
        first=(keys // items).astype(np.int32),
        second=(keys % items).astype(np.int32),
        near=(answers // len(keys)).astype(np.int32),
        far=(answers % len(keys)).astype(np.int32),
        weight=weight / triplets.weight.sum(),
    )


def _pair_key(a: Indices, b: Indices, items: int) -> NDArray[np.int64]:
    low = np.minimum(a, b).astype(np.int64)
    return low * items + np.maximum(a, b)


def _number_pairs(
    nearer: NDArray[np.int64], farther: NDArray[np.int64], items: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sorted distinct keys, and the indices of each answer's two keys among them."""
    if items * items > 8 * len(nearer):
        keys, numbers = np.unique(np.concatenate([nearer, farther]), return_inverse=True)
        return keys, numbers[: len(nearer)], numbers[len(nearer) :]
    # Few items, many answers: marking the pairs in a table is faster than sorting the keys.
    seen = np.zeros(items * items, dtype=bool)
    seen[nearer] = True
    seen[farther] = True
    number = np.cumsum(seen) - 1
    return np.flatnonzero(seen), number[nearer], number[farther]
