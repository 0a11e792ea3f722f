"""Answers in the representation of the kernels: distinct item pairs, and answers as pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lore_active.data.triplets import Triplets
from lore_active.types import Floats, Indices

# From this many answers on, pairs are listed by anchor.
BY_ANCHOR_FROM = 200_000


@dataclass(frozen=True, eq=False)
class Pairs:
    """Answer t says that pair `near[t]` is nearer than pair `far[t]`.

    Pair q joins the items `first[q]` and `second[q]`. Equal answers are merged, their weights added
    and normalised to a sum of 1, and everything is sorted: the same set of answers gives the
    same arrays, and so bitwise the same fit, in whatever order the answers came.

    With few answers, `first[q] < second[q]`, and a pair is listed once. With many, the distances of
    all pairs exceed the cache, and looking them up in no order takes most of the time of a fit.
    Then `first` is the anchor, a pair may be listed once for each of its items, and answers are
    sorted by anchor: what an answer needs is near what the last one needed.
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
    if len(triplets) >= BY_ANCHOR_FROM:
        return _by_anchor(triplets)
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


def sampled(pairs: Pairs, count: int) -> Pairs:
    """About `count` of the answers, drawn at random; always the same ones of the same answers."""
    kept = np.random.default_rng(0).random(len(pairs.near)) < count / len(pairs.near)
    near, far, weight = pairs.near[kept], pairs.far[kept], pairs.weight[kept]
    seen = np.zeros(len(pairs.first), dtype=bool)
    seen[near] = True
    seen[far] = True
    number = np.cumsum(seen, dtype=np.int32) - 1
    return Pairs(
        n_objects=pairs.n_objects,
        first=pairs.first[seen],
        second=pairs.second[seen],
        near=number[near].astype(np.int32),
        far=number[far].astype(np.int32),
        weight=weight / weight.sum(),
    )


def _by_anchor(triplets: Triplets) -> Pairs:
    """Pairs listed by anchor; few arrays at a time, since there are millions of answers."""
    items = np.int64(triplets.n_objects)
    key = (triplets.anchor * items + triplets.nearer) * items + triplets.farther
    if triplets.weighted:
        key, which = np.unique(key, return_inverse=True)
        weight = np.bincount(which, weights=triplets.weight, minlength=len(key))
        del which
    else:
        key, times = np.unique(key, return_counts=True)
        weight = times.astype(np.float64)
    near = key // items
    far = near // items * items + key % items
    del key
    if items * items <= 8 * len(near):
        number = np.zeros(int(items * items), dtype=np.int32)
        number[near] = 1
        number[far] = 1
        keys = np.flatnonzero(number)
        number[keys] = np.arange(len(keys), dtype=np.int32)
        near, far = number[near], number[far]
    else:
        keys = np.unique(np.concatenate([near, far]))
        near, far = np.searchsorted(keys, near), np.searchsorted(keys, far)
    return Pairs(
        n_objects=int(items),
        first=(keys // items).astype(np.int32),
        second=(keys % items).astype(np.int32),
        near=near.astype(np.int32, copy=False),
        far=far.astype(np.int32, copy=False),
        weight=weight / weight.sum(),
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
