"""Pairs hold exactly the answers that went in, in an order of their own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lore_active.data.comparisons import as_triplets
from lore_active.embedding.pairs import as_pairs


def recovered(pairs):
    """The weight of each (anchor, nearer, farther)."""
    out = {}
    for near, far, weight in zip(pairs.near, pairs.far, pairs.weight, strict=True):
        one = {int(pairs.first[near]), int(pairs.second[near])}
        other = {int(pairs.first[far]), int(pairs.second[far])}
        (anchor,) = one & other
        (nearer,), (farther,) = one - {anchor}, other - {anchor}
        out[anchor, nearer, farther] = weight
    return out


@given(st.integers(3, 60), st.integers(1, 200), st.integers(0, 10**6))
def test_answers_survive_grouping(items, count, seed):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(min(items, 5), 3, replace=False) for _ in range(count)])
    expected = {}
    for row in rows:
        key = tuple(int(cell) for cell in row)
        expected[key] = expected.get(key, 0.0) + 1.0 / count
    found = recovered(as_pairs(as_triplets(rows, items)))
    assert found.keys() == expected.keys()
    for key, weight in expected.items():
        assert abs(found[key] - weight) < 1e-15


def test_results_do_not_depend_on_the_order_of_answers():
    rng = np.random.default_rng(3)
    rows = np.array([rng.choice(20, 3, replace=False) for _ in range(300)])
    one = as_pairs(as_triplets(rows, 20))
    other = as_pairs(as_triplets(rows[rng.permutation(300)], 20))
    for name in ("first", "second", "near", "far", "weight"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
