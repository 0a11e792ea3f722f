"""The estimator: scikit-learn's manner, fitted attributes, errors that name value and rule."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from lore_active import LORE, InvalidParameter, NotFitted
from lore_active.observers import gaussian_space, simulated_answers

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
        "import sys; from tests.test_estimator import ANSWERS; from lore_active import LORE;"
        "print(LORE(random_state=3).fit(ANSWERS, n_objects=20).embedding_.tobytes().hex())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = LORE(random_state=3).fit(ANSWERS, n_objects=20).embedding_
    assert told.stdout.strip() == here.tobytes().hex()


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
