"""The estimator: scikit-learn's manner, fitted attributes, errors that name value and rule."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_array

from lore_active import LORE, InvalidParameter, InvalidTriplets, NotFitted, as_triplets
from lore_active.simulation.observers import gaussian_space, simulated_answers

ANSWERS = simulated_answers(gaussian_space(20, 2, 1), 800, 2)


def test_fitted_attributes_and_score():
    model = LORE(n_components=6, random_state=0)
    assert model.fit(ANSWERS, n_objects=20) is model
    assert model.embedding_.shape == (20, 6)
    assert model.rank_ == np.count_nonzero(model.singular_values_) >= 1
    assert not model.embedding_[:, model.rank_ :].any()
    live = model.embedding_[:, : model.rank_]
    np.testing.assert_allclose(np.linalg.norm(live, axis=0), model.singular_values_[: model.rank_])
    assert (live.max(axis=0) == np.abs(live).max(axis=0)).all()
    assert model.converged_
    assert 0.8 < model.score(ANSWERS) <= 1
    again = LORE(n_components=6, random_state=0).fit_transform(ANSWERS, n_objects=20)
    assert again.tobytes() == model.embedding_.tobytes()


def test_labels_are_kept_for_scoring():
    names = np.array([f"item {k:02d}" for k in range(20)])
    model = LORE().fit(names[ANSWERS])
    assert model.labels_ == tuple(names)
    assert model.score(names[ANSWERS[:100]]) > 0.5


def test_init_is_used():
    start = np.random.default_rng(0).normal(size=(20, 3))
    one = LORE(max_iter=1).fit(ANSWERS, init=start)
    other = LORE(max_iter=1).fit(ANSWERS, init=2 * start)
    assert one.objective_ != other.objective_


def test_same_bits_in_another_process():
    code = (
        "from tests.unit.estimators.test_lore import ANSWERS; from lore_active import LORE;"
        "print(LORE(random_state=3).fit(ANSWERS, n_objects=20).embedding_.tobytes().hex())"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    here = LORE(random_state=3).fit(ANSWERS, n_objects=20).embedding_
    assert result.stdout.strip() == here.tobytes().hex()


def test_params():
    model = LORE(lam=0.02)
    assert model.get_params()["lam"] == 0.02
    assert model.set_params(p=0.7) is model
    assert "p=0.7" in repr(model)
    with pytest.raises(InvalidParameter, match="'gamma'"):
        model.set_params(gamma=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lam", 0),
        ("lam", -1),
        ("lam", float("nan")),
        ("p", 0),
        ("p", 1.5),
        ("margin", -1),
        ("tol", 0),
        ("max_iter", 0),
        ("max_iter", 2.5),
        ("n_components", 0),
        ("n_components", True),
        ("random_state", -1),
        ("random_state", "a"),
    ],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(InvalidParameter, match=rf"^{name} is {value!r}"):
        LORE(**{name: value}).fit(ANSWERS)


def test_bad_init():
    with pytest.raises(InvalidParameter, match=r"init has shape \(19, 2\)"):
        LORE().fit(ANSWERS, n_objects=20, init=np.zeros((19, 2)))


def test_not_fitted():
    with pytest.raises(NotFitted, match="fit first"):
        LORE().score(ANSWERS)


# ---- y, as scikit-learn and cblearn pass it -----------------------------------------------------

FIRST = np.random.default_rng(0).random(800) < 0.5
QUESTIONS = np.where(FIRST[:, None], ANSWERS, ANSWERS[:, [0, 2, 1]])


@pytest.mark.parametrize(
    "y",
    [
        FIRST,
        FIRST.tolist(),
        FIRST.astype(int),
        np.where(FIRST, 1, -1),
        np.where(FIRST, 1.0, -1.0),
        pd.Series(FIRST),
        pl.Series(np.where(FIRST, 1, -1)),
    ],
)
def test_y_says_which_option_is_nearer(y):
    wanted = LORE().fit(ANSWERS, n_objects=20)
    model = LORE().fit(QUESTIONS, y, n_objects=20)
    assert model.embedding_.tobytes() == wanted.embedding_.tobytes()
    assert model.score(QUESTIONS, y) == wanted.score(ANSWERS)
    # Taking y for weights would have fitted and scored the questions as they are.
    assert model.score(QUESTIONS) < 0.7 < model.score(QUESTIONS, y)
    assert LORE().fit_transform(QUESTIONS, y, n_objects=20).tobytes() == model.embedding_.tobytes()


def test_weights_come_third():
    weights = np.random.default_rng(1).random(800)
    model = LORE().fit(QUESTIONS, FIRST, weights, n_objects=20)
    other = LORE().fit(ANSWERS, sample_weight=weights, n_objects=20)
    assert model.embedding_.tobytes() == other.embedding_.tobytes()
    assert model.score(QUESTIONS, FIRST, weights) == model.score(ANSWERS, None, weights)
    assert model.score(QUESTIONS, FIRST, weights) != model.score(QUESTIONS, FIRST)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (20, "y is 20, but must hold a response for each question"),
        (np.ones((800, 1)), "Pass n_objects by name"),
        (np.ones(799), r"y has shape \(799,\), but there are 800 rows"),
        (
            np.full(800, 0.5),
            r"Row 0 \(counted from 0\): y is 0.5, but .* Pass weights as sample_weight",
        ),
        (np.arange(800), r"Row 2 \(counted from 0\): y is 2, but"),
        (np.r_[-1, 0, np.ones(798)], r"Row 1 \(counted from 0\): y is 0.0, .* not mixed"),
        (np.full(800, np.nan), "y is nan"),
        (np.full(800, "left"), "y is left"),
    ],
)
def test_what_cannot_be_y_is_refused(y, message):
    for call in (LORE().fit, LORE().fit(ANSWERS, n_objects=20).score):
        with pytest.raises(InvalidTriplets, match=message):
            call(QUESTIONS, y)


def test_answers_need_no_y():
    frame = pd.DataFrame(ANSWERS, columns=["head", "winner", "loser"])
    for source in (as_triplets(ANSWERS), frame):
        with pytest.raises(InvalidTriplets, match="y is only for questions"):
            LORE().fit(source, FIRST)


def test_items_and_start_are_passed_by_name():
    with pytest.raises(TypeError):
        LORE().fit(ANSWERS, None, None, 20)


def test_sparse_input_is_refused_with_a_message():
    with pytest.raises(InvalidTriplets, match="Sparse input is not supported"):
        LORE().fit(coo_array(ANSWERS))


def test_transform_gives_the_embedding():
    model = LORE().fit(ANSWERS)
    assert model.transform() is model.embedding_
    assert model.transform(ANSWERS) is model.embedding_
    with pytest.raises(InvalidTriplets, match="out of range"):
        model.transform([[0, 1, 20]])
    with pytest.raises(NotFitted):
        LORE().transform()
