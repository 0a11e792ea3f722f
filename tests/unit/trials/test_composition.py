"""Selection of trials with several options: their score, and what is selected."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from lore_active.acquisition.grids import Uncertainty, informative, uncertain
from lore_active.acquisition.infotuple import InfoTupleSelector, mutual_information
from lore_active.acquisition.local import LocalSelector
from lore_active.acquisition.selectors import FisherSelector, RandomSelector, UncertaintySelector
from lore_active.acquisition.state import SelectorState, coordinate_covariance
from lore_active.questions.kinds import kind
from lore_active.questions.pool_of_kinds import AllGrids, count_possible, draw_grids, grid_keys
from lore_active.trials.composition import gain
from lore_active.trials.information import (
    Unanswered,
    add_unanswered,
    pair_gradients,
    question_pairs,
    trial_information,
)

ITEMS = 14
LABELS = ["rank-2-of-6", "choose-1-of-4", "choose-2-of-5", "odd-one-out", "choose-1-of-2"]


def state(label, items=ITEMS, taken=frozenset(), answers=60, axes=2):
    rng = np.random.default_rng(1)
    asked = kind(label)
    z = 3.0 * rng.normal(size=(items, axes))
    rows = np.array([rng.permutation(items)[:3] for _ in range(answers)])
    near = np.linalg.norm(z[rows[:, 0]] - z[rows[:, 1]], axis=1)
    far = np.linalg.norm(z[rows[:, 0]] - z[rows[:, 2]], axis=1)
    rows[near > far] = rows[near > far][:, [0, 2, 1]]
    none = np.empty((0, 1 + asked.options), dtype=np.int64)
    trials = np.arange(len(rows))
    source = AllGrids(items, asked)
    return SelectorState(z, 1.0, rows, none, taken, source, asked, trials)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(
    "selector",
    [
        FisherSelector(),
        UncertaintySelector(),
        LocalSelector(),
        InfoTupleSelector(),
        RandomSelector(),
    ],
    ids=lambda one: one.name,
)
def test_selected_questions_are_valid_different_and_not_taken(label, selector):
    known = state(label)
    first = selector.pick(known, 8, np.random.default_rng(2))
    asked = kind(label)
    for row in first.questions.tolist():
        asked.check_question(row[0] if asked.has_anchor else None, row[1:])
    keys = set(grid_keys(first.questions).tolist())
    assert len(keys) == len(first.questions) == 8
    again = selector.pick(state(label, taken=keys), 8, np.random.default_rng(2))
    assert not keys & set(grid_keys(again.questions).tolist())
    same = selector.pick(known, 8, np.random.default_rng(2))
    assert (same.questions == first.questions).all() and (same.scores == first.scores).all()


@pytest.mark.parametrize("label", LABELS)
def test_the_first_score_is_the_reduction_of_the_targets_variance(label):
    """By dense algebra: information added to the inverse covariance."""
    known = state(label)
    best = informative(known, 1, np.random.default_rng(3))
    # The same targets: the generator has been used for nothing else before.
    uncertainty = Uncertainty(known, np.random.default_rng(3))
    before = np.linalg.inv(coordinate_covariance(known))
    added = np.zeros_like(before)
    add_unanswered(known.embedding, Unanswered(known.kind, best.questions), 1.0, added)
    added = np.tril(added) + np.tril(added, -1).T
    assert uncertainty.images is not None
    targets = before @ uncertainty.images
    after = np.linalg.inv(before + added)
    expected = np.trace(targets.T @ (np.linalg.inv(before) - after) @ targets)
    assert best.scores[0] == pytest.approx(expected, rel=1e-6)
    uncertainty.learn(best.questions[0], known)
    assert uncertainty.covariance == pytest.approx(after, abs=1e-8)
    assert uncertainty.images == pytest.approx(after @ targets, abs=1e-8)


def test_composed_trials_tell_more_than_random_ones():
    known = state("rank-2-of-6", items=30, answers=300)
    composed = informative(known, 10, np.random.default_rng(0)).scores
    uncertainty = Uncertainty(known, np.random.default_rng(0))
    rows = draw_grids(30, known.kind, 200, np.random.default_rng(5))
    scores = []
    for row in rows:
        distance, _, covariance, targets = uncertainty.of(*question_pairs(row, known.kind))
        j, system, solved = (np.empty((6, 6)) for _ in range(3))
        trial_information(distance, 2, True, j)
        scores.append(gain(j, covariance, targets, system, solved))
    assert composed[0] > 1.5 * np.mean(scores)
    assert composed[0] >= 0.9 * max(scores)


def test_many_items_are_selected_from_with_one_covariance_for_each():
    known = state("rank-2-of-6", items=400, axes=3, answers=2000)
    selection = informative(known, 5, np.random.default_rng(1))
    assert (selection.scores > 0.0).all() and len(set(selection.questions[:, 0])) == 5


def test_local_trials_are_about_neighbours():
    known = state("rank-2-of-6", items=40)
    rows = LocalSelector().pick(known, 10, np.random.default_rng(1)).questions
    distance = np.linalg.norm(known.embedding[:, None] - known.embedding[None], axis=2)
    rank = distance.argsort(axis=1).argsort(axis=1)
    assert max(rank[row[0], item] for row in rows for item in row[1:]) <= 9
    odd = LocalSelector().pick(state("odd-one-out", items=40), 10, np.random.default_rng(1))
    assert np.mean([rank[a, b] for _, a, b, c in odd.questions]) < 10


def test_uncertain_trials_have_nearly_equal_distances():
    known = state("choose-1-of-4", items=40)
    rows = uncertain(known, 5, np.random.default_rng(1)).questions
    z = known.embedding
    spread = [np.ptp(np.linalg.norm(z[row[1:]] - z[row[0]], axis=1)) for row in rows]
    assert max(spread) < 1.5


@pytest.mark.parametrize(("picked", "ordered"), [(1, True), (2, True), (2, False)])
def test_mutual_information(picked, ordered):
    """Entropy of the mean distribution of answers less the mean entropy, in plain Python."""
    draws = 2.0 * np.random.default_rng(3).random((6, 4))

    def answers(distance):
        out = {}
        for order in permutations(range(4), picked):
            left, probability = list(range(4)), 1.0
            for pick in order:
                probability *= np.exp(-distance[pick]) / np.exp(-distance[left]).sum()
                left.remove(pick)
            key = order if ordered else tuple(sorted(order))
            out[key] = out.get(key, 0.0) + probability
        return np.array([out[key] for key in sorted(out)])

    def entropy(p):
        return float(-(p * np.log(p)).sum())

    each = np.array([answers(row) for row in draws])
    expected = entropy(each.mean(axis=0)) - np.mean([entropy(p) for p in each])
    assert mutual_information(draws, picked, ordered) == pytest.approx(expected, abs=1e-10)


def test_gradients_of_pairs():
    z = np.random.default_rng(0).normal(size=(4, 2))
    first, second = np.array([0, 2], dtype=np.int32), np.array([1, 3], dtype=np.int32)
    distance, unit = np.empty(2), np.empty((2, 2))
    pair_gradients(z, first, second, distance, unit)
    assert distance == pytest.approx(np.linalg.norm(z[first] - z[second], axis=1), abs=1e-5)
    assert unit == pytest.approx((z[first] - z[second]) / distance[:, None])


@pytest.mark.parametrize("label", ["odd-one-out", "rank-2-of-5", "choose-1-of-2"])
def test_all_questions_are_found_once_and_then_none(label):
    asked, items = kind(label), 7
    source, rng = AllGrids(items, asked), np.random.default_rng(1)
    possible = count_possible(items, asked)
    taken, found = set(), []
    counts = np.zeros(items, dtype=np.int64), np.zeros(items, dtype=np.int64)
    for _ in range(5):
        row = source.coverage(*counts, taken, rng)
        found.append(row)
        taken |= set(grid_keys(row).tolist())
    while len(rows := source.new(20, taken, rng)):
        found.append(rows)
        taken |= set(grid_keys(rows).tolist())
    rows = np.concatenate(found)
    assert len(rows) == len(taken) == possible
    for row in rows.tolist():
        asked.check_question(row[0] if asked.has_anchor else None, row[1:])
    assert counts[1].max() - counts[1].min() <= asked.options
    assert source.asks_again(possible) and not source.asks_again(0)


def test_random_grids_are_uniform():
    asked = kind("rank-2-of-3")
    rows = draw_grids(6, asked, 6000, np.random.default_rng(1))
    assert all(len(set(row)) == 4 for row in rows.tolist())
    for column in rows.T:
        assert np.bincount(column, minlength=6) == pytest.approx(1000, abs=120)
