"""The cross-validated estimator: rank and λ from held-out answers, with the evidence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lore_active import LORE, LORECV, FewAnswersWarning, InvalidParameter, InvalidTriplets
from lore_active.data.comparisons import as_triplets
from lore_active.rank.cross_validation import LAMBDAS, audit
from lore_active.simulation.observers import gaussian_space, simulated_answers

ANSWERS = simulated_answers(gaussian_space(20, 2, 1), 800, 2)
FIRST = np.random.default_rng(0).random(800) < 0.5
QUESTIONS = np.where(FIRST[:, None], ANSWERS, ANSWERS[:, [0, 2, 1]])


@pytest.fixture(scope="module")
def model():
    return LORECV().fit(ANSWERS)


def test_fitted_attributes(model):
    assert model.rank_ == 2
    assert model.embedding_.shape == (20, 2)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=0), model.singular_values_)
    assert (model.embedding_.max(axis=0) == np.abs(model.embedding_).max(axis=0)).all()
    assert model.lam_ in LAMBDAS
    assert model.converged_ and model.n_iter_ > 0
    assert model.score(ANSWERS) > 0.9
    assert model.transform(ANSWERS) is model.embedding_
    assert model.further_ == ()


def test_the_evidence_is_that_of_the_audit(model):
    wanted = audit(as_triplets(ANSWERS), seed=0)
    assert model.rank_ == wanted.rank
    assert model.rank_evidence_ == wanted.evidence
    assert (model.loss_below_, model.loss_above_) == (wanted.below, wanted.above)
    losses = {row.rank: row.loss for row in model.rank_evidence_}
    assert losses[2] < losses[1] < losses[0]


def test_few_answers_do_not_add_dimensions():
    """Where the fixed λ finds 4 or more dimensions of 2, cross-validation finds 2."""
    answers = simulated_answers(gaussian_space(50, 2, 1), 1000, 2)
    with pytest.warns(FewAnswersWarning, match="20 answers per item; with fewer than 100"):
        fixed = LORE().fit(answers)
    chosen = LORECV().fit(answers)
    assert fixed.rank_ > 2 == chosen.rank_
    fresh = simulated_answers(gaussian_space(50, 2, 1), 2000, 3)
    assert chosen.score(fresh) > fixed.score(fresh)


@pytest.mark.parametrize(
    ("params", "weights", "warned"),
    [
        ({}, None, True),
        ({"lam": 0.05}, None, False),
        ({"p": 1.0}, None, False),
        ({}, np.full(800, 3.0), False),
        ({}, np.full(800, 0.3), True),
    ],
)
def test_the_fixed_penalty_warns_of_few_answers(params, weights, warned):
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        LORE(**params).fit(ANSWERS, sample_weight=weights)
    assert [warning.category for warning in noted] == [FewAnswersWarning] * warned


def test_guesses_have_no_dimension():
    rng = np.random.default_rng(3)
    guesses = np.array([rng.permutation(15)[:3] for _ in range(400)])
    model = LORECV().fit(guesses)
    assert model.rank_ == 0
    assert model.embedding_.shape == (15, 0)
    assert model.score(guesses) == 0.5
    assert model.converged_


def test_hardly_any_answers():
    assert LORECV().fit([["a", "b", "c"]]).rank_ == 0
    assert LORECV(smallest_dimension=0.1).fit([[0, 1, 2], [1, 2, 0]]).further_ == ()


def test_y_labels_and_weights(model):
    other = LORECV().fit(QUESTIONS, FIRST)
    assert other.embedding_.tobytes() == model.embedding_.tobytes()
    names = np.array([f"item {k:02d}" for k in range(20)])
    assert LORECV().fit(names[ANSWERS]).labels_ == tuple(names)
    twice = LORECV().fit(ANSWERS, sample_weight=np.full(800, 2))
    each = LORECV().fit(np.repeat(ANSWERS, 2, axis=0))
    assert twice.embedding_.tobytes() == each.embedding_.tobytes()
    with pytest.raises(InvalidTriplets, match=r"Weight 0.5 of row 0 .* not a whole number"):
        LORECV().fit(ANSWERS, sample_weight=np.full(800, 0.5))


def test_threads_do_not_change_a_bit_and_progress_is_reported(model):
    seen = []
    other = LORECV(n_jobs=2).fit(ANSWERS, progress=lambda *step: seen.append(step))
    assert other.embedding_.tobytes() == model.embedding_.tobytes()
    assert other.rank_evidence_ == model.rank_evidence_
    assert ("Cross-validation: fold", 5, 5) in seen


def test_a_further_dimension_is_tested_on_request():
    answers = simulated_answers(gaussian_space(12, 1, 1), 600, 2)
    seen = set()
    model = LORECV(smallest_dimension=0.3)
    model.fit(answers, progress=lambda what, done, of: seen.add((what, done == of)))
    assert ("Test for a further dimension: step", True) in seen
    assert model.rank_ == 1
    assert 0.3 in [test.share for test in model.further_]
    # Shares above one that is ruled out are ruled out with it.
    assert model.further_[-1].ruled_out()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lambdas": ()}, "lambdas is empty"),
        ({"lambdas": (0.01, -1)}, "lam is -1"),
        ({"tol": 0}, "tol is 0"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"smallest_dimension": 0.0}, "smallest_dimension is 0.0"),
        ({"random_state": None}, "random_state is None"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"n_jobs": 1.5}, "n_jobs is 1.5"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(InvalidParameter, match=message):
        LORECV(**params).fit(ANSWERS)


def test_plot(model):
    figure = model.plot()
    plane, losses = figure.axes
    assert len(plane.texts) == 20
    assert losses.get_ylabel() == "held-out log-loss"
    assert len(LORECV().fit([["a", "b", "c"]]).plot().axes) == 2
