"""Fisher information and selection against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active.acquisition.candidates import Candidates, Gradients
from lore_active.acquisition.selectors import FisherSelector
from lore_active.acquisition.state import SelectorState, coordinate_covariance
from lore_active.embedding import information
from lore_active.questions.pool import AllQuestions, PooledQuestions, count_possible, draw, keys
from lore_active.simulation.observers import gaussian_space

Z = np.ascontiguousarray(gaussian_space(8, 2, 1))
ASKED = draw(8, 60, np.random.default_rng(2))


def margin(x, row):
    z = x.reshape(8, 2)
    a, i, j = z[row[0]], z[row[1]], z[row[2]]
    smooth = information.SMOOTHING**2
    return np.sqrt(((a - j) ** 2).sum() + smooth) - np.sqrt(((a - i) ** 2).sum() + smooth)


def gradients():
    out = []
    for row in ASKED:
        steps = np.eye(16) * 1e-6
        flat = Z.ravel()
        out.append([(margin(flat + s, row) - margin(flat - s, row)) / 2e-6 for s in steps])
    return np.array(out)


def weights(temperature):
    p = 1 / (1 + np.exp(-np.array([margin(Z.ravel(), row) for row in ASKED]) / temperature))
    return p * (1 - p) / temperature**2


def test_information_is_the_sum_of_outer_products():
    out = np.zeros((16, 16))
    information.add_information(Z, ASKED, 0.7, out)
    g = gradients()
    np.testing.assert_allclose(out, np.tril((g.T * weights(0.7)) @ g), atol=1e-8)


def test_information_has_the_same_bits_whichever_option_is_left():
    one, other = np.zeros((16, 16)), np.zeros((16, 16))
    information.add_information(Z, ASKED, 0.7, one)
    information.add_information(Z, ASKED[:, [0, 2, 1]], 0.7, other)
    np.testing.assert_array_equal(one, other)


def test_a_lower_triangle_is_mirrored():
    full = np.random.default_rng(2).normal(size=(150, 150))
    full = full + full.T
    half = np.tril(full)
    information.mirror(half)
    np.testing.assert_array_equal(half, full)


def test_gradients_match_numpy_also_multiplied_by_matrices():
    root = np.random.default_rng(3).normal(size=(16, 16))
    covariance = root @ root.T
    g = gradients()
    found = Gradients(Z, ASKED)
    np.testing.assert_allclose(found.margins, [margin(Z.ravel(), row) for row in ASKED], rtol=1e-10)
    np.testing.assert_allclose(
        found.variances(covariance), ((g @ covariance) * g).sum(1), rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(found.through(root), g @ root, atol=1e-6)


def test_learning_answers_equals_adding_their_information():
    root = np.random.default_rng(4).normal(size=(16, 16))
    precision = root @ root.T + np.eye(16)
    covariance = np.linalg.inv(precision)
    wanted = np.random.default_rng(5).normal(size=(16, 5))
    kept = np.arange(40)[::-1].copy()
    learnt = Candidates(Z, covariance, covariance @ wanted, ASKED, 0.7)
    learnt.narrow(kept, learn=3)
    for place in (7, 20, 7):
        learnt.learn(place)
        information.add_information(Z, ASKED[[kept[place]]], 0.7, precision)
    information.mirror(precision)
    after = np.linalg.inv(precision)
    fresh = Candidates(Z, after, after @ wanted, ASKED[kept], 0.7)
    np.testing.assert_allclose(learnt.scores(), fresh.scores(), rtol=1e-8)


def test_pending_questions_count_as_known():
    def known(pending):
        return SelectorState(Z, 0.7, ASKED[:20], pending, set(), AllQuestions(8))

    alone = coordinate_covariance(known(np.empty((0, 3), dtype=np.int64)))
    busy = coordinate_covariance(known(ASKED[20:]))
    assert np.trace(busy) < np.trace(alone)
    picks = FisherSelector().pick(known(ASKED[20:]), 10, np.random.default_rng(0))
    assert len(set(keys(picks.questions, 8).tolist())) == 10
    assert (picks.scores > 0).all()


@pytest.mark.parametrize("taken_share", [0.0, 0.5, 0.95])
def test_new_questions_are_new_different_and_uniform(taken_share):
    rng = np.random.default_rng(6)
    every = AllQuestions(8).new(10_000, set(), rng)
    assert len(every) == count_possible(8) == 168
    taken = set(keys(every, 8).tolist()[: int(168 * taken_share)])
    counts = {}
    for _ in range(200):
        for key in keys(AllQuestions(8).new(5, taken, rng), 8).tolist():
            assert key not in taken
            counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 168 - len(taken)


def test_a_pool_runs_dry():
    pool = PooledQuestions(ASKED, 8)
    rng = np.random.default_rng(0)
    held = set(keys(ASKED, 8).tolist())
    assert set(keys(pool.new(1000, set(), rng), 8).tolist()) == held
    assert len(pool.new(5, held, rng)) == 0
    empty = np.zeros(8, dtype=np.int64)
    assert len(pool.coverage(empty, empty, held, rng)) == 0
