"""One covariance for each item, against plain NumPy and against the full covariance."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active.acquisition import selectors
from lore_active.acquisition.block_candidates import BlockCandidates
from lore_active.acquisition.candidates import Gradients
from lore_active.acquisition.selectors import FisherSelector, RandomSelector, UncertaintySelector
from lore_active.acquisition.state import (
    SelectorState,
    coordinate_covariance,
    covariance_blocks,
    target_weights,
)
from lore_active.embedding import covariance
from lore_active.learner.model import item_covariances
from lore_active.questions.pool import AllQuestions, draw, keys
from lore_active.simulation.observers import gaussian_space, simulated_answers

ITEMS, AXES = 60, 3
Z = np.ascontiguousarray(gaussian_space(ITEMS, AXES, 1) * 3.0)
ANSWERED = simulated_answers(Z / 3.0, 1200, 2)
NONE = np.empty((0, 3), dtype=np.int64)
STATE = SelectorState(Z, 1.0, ANSWERED, NONE, set(), AllQuestions(ITEMS))


def slopes_of(gradients, t):
    return gradients.slopes[t].reshape(3, AXES)


def test_information_by_item_is_reduced_by_the_others_uncertainty():
    own = np.tile(0.2 * np.eye(AXES), (ITEMS, 1, 1))
    out = np.zeros_like(own)
    rows = ANSWERED[:50]
    covariance.add_block_information(Z, rows, 0.8, own, out)
    expected = np.zeros_like(out)
    gradients = Gradients(Z, rows)
    for t, row in enumerate(rows):
        p = 1 / (1 + np.exp(-gradients.margins[t] / 0.8))
        noise = 0.8**2 / (p * (1 - p))
        slopes = slopes_of(gradients, t)
        variances = [slope @ own[item] @ slope for slope, item in zip(slopes, row, strict=True)]
        for x, item in enumerate(row):
            others = sum(variances) - variances[x]
            expected[item] += np.outer(slopes[x], slopes[x]) / (noise + others)
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-15)


def test_variances_are_close_to_those_of_the_full_covariance():
    gradients = Gradients(Z, draw(ITEMS, 500, np.random.default_rng(3)))
    full = gradients.variances(coordinate_covariance(STATE))
    near = np.empty(500)
    rows = draw(ITEMS, 500, np.random.default_rng(3))
    covariance.block_variances(gradients.slopes, rows, covariance_blocks(STATE), near)
    assert 0.85 < np.median(near / full) <= 1.05
    assert np.corrcoef(np.log(near), np.log(full))[0, 1] > 0.95


def candidates(rows):
    own = covariance_blocks(STATE)
    targets = draw(ITEMS, 600, np.random.default_rng(4))
    gradients, variances = Gradients(Z, targets), np.empty(600)
    covariance.block_variances(gradients.slopes, targets, own, variances)
    weights = target_weights(gradients.margins, variances)
    return own, targets, weights, BlockCandidates(Z, own, targets, weights, rows, 1.0)


def test_scores_are_the_reduction_through_shared_items():
    rows = draw(ITEMS, 30, np.random.default_rng(5))
    own, targets, weights, found = candidates(rows)
    asked, wanted = Gradients(Z, rows), Gradients(Z, targets)
    for t, row in enumerate(rows):
        slopes = slopes_of(asked, t)
        p = 1 / (1 + np.exp(-asked.margins[t]))
        variance = sum(s @ own[item] @ s for s, item in zip(slopes, row, strict=True))
        reduced = 0.0
        for q, target in enumerate(targets):
            for s, item in zip(slopes, row, strict=True):
                for h, other in zip(slopes_of(wanted, q), target, strict=True):
                    if item == other:
                        reduced += weights[q] / len(targets) * (h @ own[item] @ s) ** 2
        expected = p * (1 - p) * reduced / (1 + p * (1 - p) * variance)
        assert found.scores()[t] == pytest.approx(expected, rel=1e-9)


def test_learning_lowers_the_scores_of_questions_about_the_same_items_only():
    rows = draw(ITEMS, 300, np.random.default_rng(6))
    *_, found = candidates(rows)
    found.narrow(np.arange(200), learn=1)
    before = found.scores()
    found.learn(7)
    after = found.scores()
    shared = np.isin(found.rows, found.rows[7]).any(axis=1)
    assert (after[~shared] == before[~shared]).all()
    assert after[7] < before[7]
    assert after[shared].sum() < before[shared].sum()


def test_picks_are_as_good_as_those_of_the_full_covariance(monkeypatch):
    """By the variance of random margins that is left after them, computed with the full one."""

    def left(picked):
        state = SelectorState(Z, 1.0, ANSWERED, picked, set(), AllQuestions(ITEMS))
        test = Gradients(Z, draw(ITEMS, 3000, np.random.default_rng(8)))
        return test.variances(coordinate_covariance(state)).mean()

    def picked(selector):
        return selector.pick(STATE, 20, np.random.default_rng(7)).questions

    exact, random = left(picked(FisherSelector())), left(picked(RandomSelector()))
    uncertain = left(picked(UncertaintySelector()))
    monkeypatch.setattr(selectors, "MAX_EXACT", ITEMS)
    chosen = picked(FisherSelector())
    assert len(np.unique(keys(chosen, ITEMS))) == 20
    assert (random - left(chosen)) > 0.8 * (random - exact)
    assert left(chosen) < uncertain
    again = FisherSelector().pick(STATE, 20, np.random.default_rng(7))
    assert again.questions.tobytes() == chosen.tobytes()


def test_large_sets_have_item_covariances_too():
    z = np.ascontiguousarray(gaussian_space(1400, 3, 1) * 3.0)
    rows = simulated_answers(z / 3.0, 5000, 2)
    state = SelectorState(z, 1.0, rows, NONE, set(), AllQuestions(1400))
    found = item_covariances(state)
    assert found.shape == (1400, 3, 3)
    assert (np.linalg.eigvalsh(found) > 0).all()
