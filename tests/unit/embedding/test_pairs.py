"""Pairs hold exactly the answers that went in, in an order of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore_active.data.comparisons import as_triplets
from lore_active.embedding import fit as fit_module
from lore_active.embedding import pairs as pairs_module
from lore_active.embedding.fit import fit
from lore_active.embedding.pairs import as_pairs, sampled
from lore_active.embedding.solver import SolverSettings
from lore_active.simulation.observers import gaussian_space, simulated_answers


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


@pytest.mark.parametrize("items", [8, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_answers_are_listed_by_anchor(items, weighted, monkeypatch):
    rng = np.random.default_rng(5)
    rows = np.array([rng.choice(8, 3, replace=False) for _ in range(400)])
    weights = rng.random(400) if weighted else None
    few = as_pairs(as_triplets(rows, items, weights))
    monkeypatch.setattr(pairs_module, "BY_ANCHOR_FROM", 400)
    many = as_pairs(as_triplets(rows, items, weights))
    assert recovered(many) == pytest.approx(recovered(few))
    assert (np.diff(many.first) >= 0).all()
    assert (many.first[many.near] == many.first[many.far]).all()
    assert len(many.first) > len(few.first)
    order = rng.permutation(400)
    again = as_pairs(as_triplets(rows[order], items, None if weights is None else weights[order]))
    for name in ("first", "second", "near", "far"):
        assert getattr(again, name).tobytes() == getattr(many, name).tobytes()


def test_both_ways_of_listing_pairs_give_the_same_fit(monkeypatch):
    answers = as_triplets(simulated_answers(gaussian_space(30, 3, 1), 3000, 2), 30)
    few = fit(as_pairs(answers), SolverSettings())
    monkeypatch.setattr(pairs_module, "BY_ANCHOR_FROM", 1000)
    many = fit(as_pairs(answers), SolverSettings())
    assert many.rank == few.rank
    assert many.objective == pytest.approx(few.objective, rel=1e-6)


def test_a_sample_holds_some_of_the_answers_and_only_their_pairs():
    pairs = as_pairs(as_triplets(simulated_answers(gaussian_space(40, 2, 1), 2000, 2), 40))
    some = sampled(pairs, 300)
    whole, part = recovered(pairs), recovered(some)
    assert 200 < len(part) < 400
    assert part.keys() < whole.keys()
    assert sum(part.values()) == pytest.approx(1.0)
    used = np.union1d(some.near, some.far)
    np.testing.assert_array_equal(used, np.arange(len(some.first)))
    assert sampled(pairs, 300).near.tobytes() == some.near.tobytes()


def test_a_fit_that_starts_from_a_sample_reaches_the_same_minimum(monkeypatch):
    pairs = as_pairs(as_triplets(simulated_answers(gaussian_space(30, 3, 1), 12_000, 2), 30))
    settings = SolverSettings(lam=0.02)
    whole = fit(pairs, settings)
    monkeypatch.setattr(fit_module, "MIN_SAMPLE", 2400)
    sizes = []
    monkeypatch.setattr(
        fit_module, "sampled", lambda pairs, count: sizes.append(count) or sampled(pairs, count)
    )
    quick = fit(pairs, settings)
    assert sizes == [2400]
    assert quick.rank == whole.rank == 3
    assert quick.converged
    assert quick.objective == pytest.approx(whole.objective, rel=1e-6)
