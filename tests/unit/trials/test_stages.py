"""Trials as stages: how they are read off comparisons, their likelihood and their information."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import minimize

from lore_active.data.comparisons import as_triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.covariance import factored
from lore_active.embedding.pairs import Pairs
from lore_active.questions.kinds import Kind, kind
from lore_active.simulation.observers import Observer, gaussian_space
from lore_active.trials.information import trial_information
from lore_active.trials.likelihood import stage_log_probability
from lore_active.trials.stages import Stages, as_stages, as_trials

ITEMS = 12
LABELS = ["rank-2-of-5", "choose-1-of-4", "choose-2-of-5", "odd-one-out"]


def trials(asked: Kind, count: int, seed: int = 1):
    """Random trials of one observer: (anchor, options, chosen), and their comparisons."""
    rng = np.random.default_rng(seed)
    observer = Observer(gaussian_space(ITEMS, 2, seed), seed=seed)
    given, rows, numbers = [], [], []
    for number in range(count):
        shown = rng.permutation(ITEMS)[: asked.items].tolist()
        anchor, options = (shown[0], shown[1:]) if asked.has_anchor else (None, shown)
        chosen = observer.choose(asked, anchor, options)
        given.append((anchor, tuple(options), chosen))
        comparisons = asked.comparisons(anchor, options, chosen)
        rows += comparisons
        numbers += [number] * len(comparisons)
    frame = dict(zip(("anchor", "nearer", "farther"), np.array(rows).T, strict=True))
    return given, as_triplets({**frame, "trial": numbers}, ITEMS)


def distances(z, pairs):
    return np.array([np.sqrt(((z[a] - z[b]) ** 2).sum() + 1e-6) for a, b in pairs])


def choice(weights, order):
    """Probability of picking these one after another (Plackett and Luce), in plain Python."""
    probability, left = 1.0, list(range(len(weights)))
    for pick in order:
        probability *= weights[pick] / sum(weights[m] for m in left)
        left.remove(pick)
    return probability


def log_probability(z, asked, anchor, options, chosen):
    """Log probability of an answer by its definition."""
    if anchor is None:
        pairs = [tuple(item for item in options if item != odd) for odd in options]
    else:
        pairs = [(anchor, item) for item in options]
    weights = np.exp(-distances(z, pairs))
    picked = [options.index(item) for item in chosen]
    orders = [picked] if asked.ordered else permutations(picked)
    return float(np.log(sum(choice(weights, order) for order in orders)))


@pytest.mark.parametrize("label", LABELS)
def test_the_loss_is_that_of_the_answers(label):
    asked = kind(label)
    given, triplets = trials(asked, 40)
    stages = as_trials(triplets)
    assert isinstance(stages, Stages)
    z = np.random.default_rng(3).normal(size=(ITEMS, 2))
    fitted, value = map_embedding.fitted(stages, len(triplets), 0.1, z, final=True)

    def objective(x):
        total = sum(log_probability(x.reshape(ITEMS, 2), asked, *answer) for answer in given)
        return (0.5 * 0.1 * (x**2).sum() - total) / len(triplets)

    assert value == pytest.approx(objective(fitted.ravel()), rel=1e-9)
    found = minimize(objective, fitted.ravel(), method="L-BFGS-B", options={"maxiter": 20})
    assert value <= found.fun * (1.0 + 1e-3)


def test_triplets_remain_pairs():
    _, triplets = trials(kind("triplet"), 30)
    assert isinstance(as_trials(triplets), Pairs)
    weighted = as_triplets([[0, 1, 2], [1, 2, 3]], 4, sample_weight=[3, 1]).repeated("a test")
    assert isinstance(as_trials(weighted), Pairs)
    assert weighted.n_trials == 4


def test_stages_of_each_kind():
    def of(label, anchor, options, chosen):
        rows = kind(label).comparisons(anchor, options, chosen)
        frame = dict(zip(("anchor", "nearer", "farther"), np.array(rows).T, strict=True))
        stages = as_stages(as_triplets({**frame, "trial": [5] * len(rows)}, ITEMS))
        return [
            (
                sorted((int(stages.first[m]), int(stages.second[m])) for m in members[:picked]),
                sorted((int(stages.first[m]), int(stages.second[m])) for m in members[picked:]),
            )
            for begin, end, picked in zip(
                stages.start[:-1], stages.start[1:], stages.picked, strict=True
            )
            for members in [stages.member[begin:end]]
        ]

    ranked = of("rank-2-of-4", 0, (1, 2, 3, 4), (2, 1))
    assert sorted(ranked) == [
        ([(0, 1)], [(0, 3), (0, 4)]),
        ([(0, 2)], [(0, 1), (0, 3), (0, 4)]),
    ]
    assert of("choose-2-of-4", 0, (1, 2, 3, 4), (2, 1)) == [([(0, 1), (0, 2)], [(0, 3), (0, 4)])]
    assert of("odd-one-out", None, (1, 2, 3), (2,)) == [([(1, 3)], [(1, 2), (2, 3)])]
    many = of("choose-6-of-8", 0, range(1, 9), (1, 2, 3, 4, 5, 6))
    assert len(many) == 6 and all(len(picked) == 1 for picked, _ in many)


def test_repeated_trials_count_again():
    _, triplets = trials(kind("rank-2-of-5"), 1)
    twice = as_triplets(
        {
            **{
                name: np.tile(getattr(triplets, name), 2)
                for name in ("anchor", "nearer", "farther")
            },
            "trial": np.repeat([1, 2], len(triplets)),
        },
        ITEMS,
    )
    assert (as_stages(twice).weight == as_stages(triplets).weight).all()
    same = triplets.take(np.repeat(np.arange(len(triplets)), 2))
    assert as_stages(same).weight.tolist() == as_stages(twice).weight.tolist()


@pytest.mark.parametrize(("size", "picked"), [(4, 1), (4, 2), (5, 3), (7, 4), (8, 5)])
def test_probabilities_are_those_of_all_orders_and_add_up(size, picked):
    rng = np.random.default_rng(size)
    distance = 2.0 * rng.random(size)
    arrays = (np.empty(size), np.empty(size), np.empty(1 << picked), np.empty(1 << picked))
    total = 0.0
    for chosen in combinations(range(size), picked):
        order = [*chosen, *(m for m in range(size) if m not in chosen)]
        here = distance[order]
        value = stage_log_probability(here, picked, *arrays)
        slopes = arrays[0].copy()
        weights = np.exp(-here)
        expected = sum(choice(weights, permutation) for permutation in permutations(range(picked)))
        assert value == pytest.approx(np.log(expected), abs=1e-12)
        total += np.exp(value)
        for m in range(size):
            step = 1e-6 * np.eye(size)[m]
            above, below = (
                stage_log_probability(here + sign * step, picked, *arrays) for sign in (1, -1)
            )
            assert slopes[m] == pytest.approx((above - below) / 2e-6, abs=1e-7)
    assert total == pytest.approx(1.0)


def test_far_apart_distances_do_not_overflow():
    far = np.array([3000.0, 0.0, 1.0])
    value = stage_log_probability(far, 1, np.empty(3), np.empty(3), np.empty(2), np.empty(2))
    assert value == pytest.approx(-3000.0, rel=1e-3)


@pytest.mark.parametrize(
    ("picked", "ordered"), [(1, True), (1, False), (2, True), (2, False), (3, False)]
)
def test_information_is_the_expected_square_of_the_score(picked, ordered):
    """Σ P(answer) ∇ log P ∇ log Pᵀ over all answers, by finite differences."""
    size = 5
    distance = 2.0 * np.random.default_rng(4).random(size)

    def log_p(at, answer):
        orders = [answer] if ordered else permutations(answer)
        return np.log(sum(choice(np.exp(-at), order) for order in orders))

    expected = np.zeros((size, size))
    for answer in (permutations if ordered else combinations)(range(size), picked):
        score = np.array(
            [
                (log_p(distance + step, answer) - log_p(distance - step, answer)) / 2e-5
                for step in 1e-5 * np.eye(size)
            ]
        )
        expected += np.exp(log_p(distance, answer)) * np.outer(score, score)
    out = np.empty((size, size))
    trial_information(distance, picked, ordered, out)
    assert out == pytest.approx(expected, abs=1e-6)


def test_covariance_of_one_stage_trials_is_that_of_triplets():
    """An answer of 1 of 2 is a triplet: the same information and the same likelihood."""
    _, triplets = trials(kind("triplet"), 200)
    z = np.random.default_rng(5).normal(size=(ITEMS, 2))
    rows = np.column_stack([triplets.anchor, triplets.nearer, triplets.farther]).astype(np.int64)
    prior = np.ones(2)
    one, other = (
        np.tril(factored(z, (asked,), 0.7, prior)) for asked in (rows, as_stages(triplets))
    )
    assert one == pytest.approx(other, abs=1e-9)
    fits = [
        map_embedding.fitted(answers, len(triplets), 0.1, z, final=True)
        for answers in (as_trials(triplets), as_stages(triplets))
    ]
    assert fits[0][1] == pytest.approx(fits[1][1], rel=1e-6)


def plain_stages(triplets):
    """Stages of answers, (picked pairs, other pairs), with their counts, in plain Python."""
    by_trial = {}
    columns = (triplets.trial, triplets.anchor, triplets.nearer, triplets.farther)
    for trial, a, i, j in zip(*(column.tolist() for column in columns), strict=True):
        near, far = (tuple(sorted(pair)) for pair in ((a, i), (a, j)))
        by_trial.setdefault(trial, {}).setdefault(near, []).append(far)
    counted = {}
    for blocks in by_trial.values():
        together = {}
        for near in sorted(blocks):
            others = tuple(sorted(set(blocks[near])))
            together.setdefault(others, []).append(near)
            times = len(blocks[near]) // len(others)
        for others, picked in together.items():
            groups = [tuple(picked)] if len(picked) <= 5 else [(pair,) for pair in picked]
            for group in groups:
                counted[group, others] = counted.get((group, others), 0) + times
    return sorted(counted.items())


@pytest.mark.parametrize("label", [*LABELS, "choose-6-of-8"])
def test_stages_are_those_of_plain_python(label):
    _, triplets = trials(kind(label), 60)
    # Some trials are repeated, and the order of answers does not matter.
    rng = np.random.default_rng(3)
    again = np.flatnonzero(np.isin(triplets.trial, [4, 9]))
    shuffled = triplets.take(rng.permutation(np.append(np.arange(len(triplets)), again)))
    stages, expected = as_stages(shuffled), plain_stages(shuffled)
    pairs = list(zip(stages.first.tolist(), stages.second.tolist(), strict=True))
    found = []
    for s, picked in enumerate(stages.picked.tolist()):
        listed = [pairs[m] for m in stages.member[stages.start[s] : stages.start[s + 1]]]
        found.append((tuple(listed[:picked]), tuple(listed[picked:])))
    assert found == [stage for stage, _ in expected]
    weights = np.array([count for _, count in expected]) / len(shuffled)
    assert (stages.weight == weights).all()
