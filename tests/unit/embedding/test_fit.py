"""Solver, lift and fit: stationary, certified, repeatable, and the paper's ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore_active import LORE, InvalidParameter
from lore_active.data.comparisons import as_triplets
from lore_active.embedding.fit import fit, random_start
from lore_active.embedding.lift import lifted, steepest_directions, trimmed
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import SolverSettings, solve
from lore_active.simulation.observers import ObserverNoise, gaussian_space, simulated_answers
from tests.support import numpy_reference


def simulated(items, count, dimensions, seed, noise=0.1):
    space = gaussian_space(items, dimensions, seed)
    answers = simulated_answers(space, count, seed + 1000, ObserverNoise(noise=noise))
    test = simulated_answers(space, 3000, seed + 2000, ObserverNoise(noise=0.0))
    return answers, test


@pytest.mark.parametrize("dimensions", [1, 3])
def test_solution_is_a_stationary_point_of_the_objective(dimensions):
    answers, _ = simulated(30, 1500, dimensions, seed=4)
    found = solve(as_pairs(as_triplets(answers)), random_start(30, 8, 1), SolverSettings())
    assert found.converged
    weight = np.ones(len(answers))
    value = numpy_reference.objective(found.embedding, answers, weight, 1.0, 0.01, 0.5)
    assert found.objective == pytest.approx(value, rel=1e-9)
    rng = np.random.default_rng(0)
    slopes = []
    for _ in range(20):
        way = rng.normal(size=found.embedding.shape)
        way *= 1e-4 / np.linalg.norm(way)
        ends = [
            numpy_reference.objective(found.embedding + sign * way, answers, weight, 1.0, 0.01, 0.5)
            for sign in (1, -1)
        ]
        slopes.append(abs(ends[0] - ends[1]) / 2e-4)
    penalty_slope = np.linalg.norm(0.01 * 0.5 * found.singular_values**-0.5)
    assert max(slopes) < 1e-3 * penalty_slope


def test_columns_are_principal_axes():
    answers, _ = simulated(30, 1500, 3, seed=5)
    found = fit(as_pairs(as_triplets(answers)), SolverSettings())
    gram = found.embedding.T @ found.embedding
    np.testing.assert_allclose(gram, np.diag(found.singular_values**2), atol=1e-8 * gram.max())
    assert (np.diff(found.singular_values) <= 0).all()


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5, 6])
def test_paper_setting_finds_rank_and_accuracy(dimensions):
    answers, test = simulated(50, 5880, dimensions, seed=10 + dimensions)
    found = fit(as_pairs(as_triplets(answers, 50)), SolverSettings(), random_start(50, 15, 3))
    assert found.rank == dimensions
    assert triplet_accuracy(found.embedding, test) >= (0.95 if dimensions <= 5 else 0.94)


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_starts_of_any_width_end_at_the_same_objective(dimensions):
    answers, _ = simulated(50, 5880, dimensions, seed=20 + dimensions)
    pairs = as_pairs(as_triplets(answers, 50))
    ends = [
        fit(
            pairs, SolverSettings(), random_start(50, 15, seed=int(deviation), deviation=deviation)
        ).objective
        for deviation in (1.0, 5.0**0.5, 5.0)
    ]
    ends.append(fit(pairs, SolverSettings()).objective)
    assert max(ends) / min(ends) - 1 < 1e-3


def test_a_locked_rank_is_lifted():
    answers, _ = simulated(40, 3000, 3, seed=30)
    pairs = as_pairs(as_triplets(answers, 40))
    flat = solve(pairs, random_start(40, 1, 0), SolverSettings())
    assert flat.rank == 1
    assert solve(pairs, flat.embedding, SolverSettings()).rank == 1
    assert lifted(pairs, flat, SolverSettings()).objective < flat.objective
    full = fit(pairs, SolverSettings(), flat.embedding)
    cold = fit(pairs, SolverSettings())
    assert full.rank == cold.rank == 3
    assert full.objective == pytest.approx(cold.objective, rel=1e-3)


def test_a_certified_fit_has_no_better_neighbour():
    answers, _ = simulated(40, 3000, 2, seed=31)
    pairs = as_pairs(as_triplets(answers, 40))
    settings = SolverSettings(trim=True)
    found = fit(pairs, settings)
    assert lifted(pairs, found, settings) is None
    assert trimmed(pairs, found, settings) is None


def test_trimming_finds_a_lower_objective_with_few_answers():
    answers, _ = simulated(50, 1000, 2, seed=32)
    pairs = as_pairs(as_triplets(answers, 50))
    loose = fit(pairs, SolverSettings())
    tight = fit(pairs, SolverSettings(trim=True))
    assert tight.objective < loose.objective
    assert tight.rank < loose.rank


def test_steepest_direction_is_where_a_new_column_pays():
    answers, _ = simulated(20, 800, 3, seed=33)
    pairs = as_pairs(as_triplets(answers, 20))
    flat = solve(pairs, random_start(20, 1, 0), SolverSettings())
    column = steepest_directions(pairs, flat.embedding, 1.0, 1)
    weight = np.ones(len(answers))
    rng = np.random.default_rng(0)

    def change(direction):
        wide = np.column_stack([flat.embedding, 0.01 * direction / np.linalg.norm(direction)])
        narrow = np.column_stack([flat.embedding, np.zeros(20)])
        return numpy_reference.loss(wide, answers, weight, 1.0) - numpy_reference.loss(
            narrow, answers, weight, 1.0
        )

    best = change(column[:, 0])
    assert best < 0
    assert all(best <= change(rng.normal(size=20)) for _ in range(50))


def test_large_lambda_gives_rank_zero():
    answers, _ = simulated(20, 500, 2, seed=34)
    model = LORE(lam=100.0).fit(answers, n_objects=20)
    assert model.rank_ == 0
    assert model.converged_
    assert model.embedding_.shape == (20, 15)
    assert not model.embedding_.any()
    assert model.score(answers) == 0.5
    assert model.objective_ == pytest.approx(np.log1p(np.e), rel=1e-9)


@settings(max_examples=40)
@given(
    st.integers(3, 8),
    st.integers(1, 12),
    st.integers(0, 10**6),
    st.sampled_from([1e-4, 0.01, 0.3]),
    st.sampled_from([0.1, 0.5, 1.0]),
)
def test_any_small_problem_ends_finite(items, count, seed, lam, power):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(items, 3, replace=False) for _ in range(count)])
    found = fit(
        as_pairs(as_triplets(rows, items)), SolverSettings(lam=lam, power=power, max_iter=300)
    )
    assert np.isfinite(found.embedding).all()
    assert np.isfinite(found.objective)
    assert found.rank <= items - 1
    # The zero embedding is always to be had.
    assert found.objective <= np.log1p(np.e) + 1e-9


def test_contradicting_answers_leave_nothing():
    rows = [[0, 1, 2], [0, 2, 1]]
    assert fit(as_pairs(as_triplets(rows)), SolverSettings()).rank == 0


def test_weights_act_like_repetition():
    answers, _ = simulated(20, 300, 2, seed=35)
    repeated = np.concatenate([answers, answers[:100]])
    weight = np.where(np.arange(300) < 100, 2.0, 1.0)
    one = LORE().fit(repeated, n_objects=20)
    other = LORE().fit(answers, n_objects=20, sample_weight=weight)
    np.testing.assert_array_equal(one.embedding_, other.embedding_)


def test_results_do_not_depend_on_the_order_of_answers():
    answers, _ = simulated(20, 500, 2, seed=36)
    one = LORE().fit(answers, n_objects=20)
    other = LORE().fit(answers[::-1], n_objects=20)
    assert one.embedding_.tobytes() == other.embedding_.tobytes()


def test_reaching_max_iter_is_reported():
    answers, _ = simulated(30, 1000, 3, seed=37)
    found = solve(
        as_pairs(as_triplets(answers, 30)), random_start(30, 8, 0), SolverSettings(max_iter=5)
    )
    assert not found.converged
    assert found.iterations == 5


@pytest.mark.parametrize("start", [np.full((10, 2), np.nan), np.full((10, 2), 1e200)])
def test_impossible_starts_are_refused(start):
    with pytest.raises(InvalidParameter, match="start"):
        solve(as_pairs(as_triplets([[0, 1, 2]], 10)), start, SolverSettings())


def test_start_with_the_wrong_rows_is_refused():
    with pytest.raises(InvalidParameter, match="10 rows"):
        solve(as_pairs(as_triplets([[0, 1, 2]], 10)), np.zeros((9, 2)), SolverSettings())
