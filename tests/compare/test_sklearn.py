"""With scikit-learn itself: clones, pipelines, searches, cross-validation, its own checks."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from cblearn.embedding import SOE
from cblearn.utils import check_query_response
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted

from lore_active import LORE, LORECV
from lore_active.simulation.observers import gaussian_space, simulated_answers

pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize. The `disp`:DeprecationWarning")
ITEMS = 12
ANSWERS = simulated_answers(gaussian_space(ITEMS, 2, 1), 400, 2)
FIRST = np.random.default_rng(0).random(400) < 0.5
QUESTIONS = np.where(FIRST[:, None], ANSWERS, ANSWERS[:, [0, 2, 1]])
# Those that do not make up features of their own: answers about items are not a matrix of these.
APPLY = {
    *("check_estimator_cloneable", "check_estimator_tags_renamed", "check_valid_tag_types"),
    *("check_estimator_repr", "check_no_attributes_set_in_init", "check_estimators_unfitted"),
    *("check_do_not_raise_errors_in_init_or_set_params", "check_mixin_order"),
    *("check_parameters_default_constructible", "check_get_params_invariance"),
    *("check_set_params", "check_transformers_unfitted", "check_fit1d"),
}


def checks(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [one for one in estimator_checks_generator(kind()) if name_of(one) in APPLY]


def name_of(pair):
    return pair[1].func.__name__


def title_of(pair):
    return f"{type(pair[0]).__name__}-{name_of(pair)}"


@pytest.mark.parametrize("pair", [*checks(LORE), *checks(LORECV)], ids=title_of)
def test_scikit_learns_own_checks(pair):
    estimator, check = pair
    check(estimator)


@pytest.mark.parametrize("kind", [LORE, LORECV])
def test_all_of_them_were_found(kind):
    assert {name_of(pair) for pair in checks(kind)} == APPLY


@pytest.mark.parametrize("model", [LORE(lam=0.02, n_components=4), LORECV(lambdas=(0.02, 0.01))])
def test_clone_and_fitted_state(model):
    other = clone(model)
    assert other is not model and other.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        check_is_fitted(other)
    check_is_fitted(other.fit(ANSWERS))
    assert not hasattr(clone(other), "embedding_")
    assert get_tags(model).target_tags.required is False


def test_cross_validation_of_answers_and_of_questions_with_y():
    plain = cross_val_score(LORE(), ANSWERS, cv=4, params={"n_objects": ITEMS}, error_score="raise")
    for y in (FIRST, FIRST.astype(int), np.where(FIRST, 1, -1)):
        scores = cross_val_score(LORE(), QUESTIONS, y, cv=4, error_score="raise")
        np.testing.assert_allclose(scores, plain)
    assert plain.min() > 0.7


def test_weights_pass_through_cross_validation():
    heavy = np.where(np.arange(400) < 200, 5.0, 0.1)
    params = {"sample_weight": heavy, "n_objects": ITEMS}
    weighted = cross_val_score(LORE(), ANSWERS, cv=2, params=params, error_score="raise")
    plain = cross_val_score(LORE(), ANSWERS, cv=2, params={"n_objects": ITEMS})
    assert len(weighted) == len(plain) == 2


def test_pipelines_and_searches():
    steps = make_pipeline(FunctionTransformer(), LORE())
    steps.fit(QUESTIONS, FIRST, lore__n_objects=ITEMS)
    wanted = LORE().fit(ANSWERS, n_objects=ITEMS)
    assert steps.score(QUESTIONS, FIRST) == wanted.score(ANSWERS)
    assert steps.set_params(lore__lam=0.05)["lore"].lam == 0.05
    search = GridSearchCV(LORE(), {"lam": [0.01, 0.05]}, cv=3, error_score="raise")
    search.fit(QUESTIONS, FIRST)
    assert search.best_params_["lam"] in (0.01, 0.05)
    train, test, y, y_test = train_test_split(QUESTIONS, FIRST, random_state=0)
    assert LORE().fit(train, y).score(test, y_test) > 0.7


def test_cross_validated_fits_in_pipelines_and_cross_validation():
    steps = make_pipeline(FunctionTransformer(), LORECV())
    steps.fit(QUESTIONS, FIRST, lorecv__n_objects=ITEMS)
    wanted = LORECV().fit(ANSWERS, n_objects=ITEMS)
    assert steps.score(QUESTIONS, FIRST) == wanted.score(ANSWERS)
    params = {"n_objects": ITEMS}
    plain = cross_val_score(LORECV(), ANSWERS, cv=3, params=params, error_score="raise")
    assert plain.min() > 0.7
    np.testing.assert_allclose(
        cross_val_score(LORECV(), QUESTIONS, FIRST, cv=3, error_score="raise"), plain
    )
    twice = {**params, "sample_weight": np.full(len(ANSWERS), 2)}
    assert len(cross_val_score(LORECV(), ANSWERS, cv=2, params=twice, error_score="raise")) == 2
    search = GridSearchCV(LORECV(), {"lambdas": [(0.02,), (0.01, 0.005)]}, cv=2)
    search.fit(QUESTIONS, FIRST)
    assert search.best_params_["lambdas"] in ((0.02,), (0.01, 0.005))


def test_fitting_twice_pickling_and_read_only_memory(tmp_path):
    model = LORE().fit(ANSWERS)
    before = model.embedding_.tobytes()
    assert model.fit(ANSWERS).embedding_.tobytes() == before
    assert pickle.loads(pickle.dumps(model)).score(ANSWERS) == model.score(ANSWERS)
    np.save(tmp_path / "a.npy", ANSWERS)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert LORE().fit(mapped).embedding_.tobytes() == before
    assert LORE().fit(np.asfortranarray(ANSWERS)).embedding_.tobytes() == before
    assert np.array_equal(ANSWERS, np.load(tmp_path / "a.npy"))


@pytest.mark.parametrize("form", ["list-boolean", "list-count", "list-order"])
def test_y_means_what_it_means_to_cblearn(form):
    """The same questions and responses, read by cblearn and by us, are the same answers."""
    taken = check_query_response(ANSWERS, result_format=form)
    query, response = taken if isinstance(taken, tuple) else (taken, None)
    ours = LORE().fit(query, response, n_objects=ITEMS)
    assert ours.embedding_.tobytes() == LORE().fit(ANSWERS, n_objects=ITEMS).embedding_.tobytes()
    theirs = SOE(n_components=2, random_state=0).fit(query, response)
    ours.embedding_ = np.asarray(theirs.embedding_)
    assert ours.score(query, response) == pytest.approx(theirs.score(query, response))
