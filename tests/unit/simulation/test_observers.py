"""Simulated people err in the ways they are told to, and repeat themselves by seed."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active import InvalidParameter
from lore_active.simulation.observers import (
    Observer,
    ObserverNoise,
    crowd,
    gaussian_space,
    left_excess,
    random_questions,
)

SPACE = gaussian_space(30, 2, 0)
ASKED = random_questions(30, 20_000, 1)
TRUTH = left_excess(SPACE, ASKED) < 0


def share_right(observer_noise, seed=0):
    return float((Observer(SPACE, observer_noise, seed).answers(ASKED) == TRUTH).mean())


def test_questions_are_three_different_items_and_uniform():
    assert (ASKED[:, 0] != ASKED[:, 1]).all()
    assert (ASKED[:, 0] != ASKED[:, 2]).all()
    assert (ASKED[:, 1] != ASKED[:, 2]).all()
    for column in ASKED.T:
        counts = np.bincount(column, minlength=30)
        assert counts.min() > 0.8 * 20_000 / 30
    # Every ordered pair of options is about equally frequent.
    joint = np.bincount(ASKED[:, 1] * 30 + ASKED[:, 2], minlength=900).reshape(30, 30)
    assert joint[~np.eye(30, dtype=bool)].min() > 5


def test_without_noise_observers_are_right():
    assert share_right(ObserverNoise(noise=0)) == 1.0


def test_noise_has_the_stated_variance():
    wrong = 1 - share_right(ObserverNoise(noise=0.1))
    excess = np.abs(left_excess(SPACE, ASKED))
    rng = np.random.default_rng(5)
    expected = np.mean(rng.normal(0, np.sqrt(0.1), 20_000) > excess)
    assert wrong == pytest.approx(expected, abs=0.012)


def test_lapses_are_coin_flips():
    assert share_right(ObserverNoise(noise=0, lapse=0.4)) == pytest.approx(0.8, abs=0.015)


def test_side_bias_prefers_left():
    left = Observer(SPACE, ObserverNoise(noise=0.1, side_bias=0.5)).answers(ASKED).mean()
    assert left > 0.6
    right = Observer(SPACE, ObserverNoise(noise=0.1, side_bias=-0.5)).answers(ASKED).mean()
    assert right < 0.4


def test_observers_differ_in_noise():
    shares = [
        (observer.answers(ASKED) == TRUTH).mean()
        for observer in crowd(SPACE, 12, ObserverNoise(noise=0.3, noise_spread=1.0), seed=2)
    ]
    alike = [
        (observer.answers(ASKED) == TRUTH).mean()
        for observer in crowd(SPACE, 12, ObserverNoise(0.3), 2)
    ]
    assert np.std(shares) > 5 * np.std(alike)


def test_drift_reduces_accuracy():
    participant = Observer(SPACE, ObserverNoise(noise=0, drift=0.02), 0)
    right = participant.answers(ASKED[:4000]) == TRUTH[:4000]
    assert right[:100].mean() > 0.85
    assert right[-1000:].mean() < right[:1000].mean() - 0.1


def test_same_seed_same_answers_one_by_one_or_together():
    observer_noise = ObserverNoise(lapse=0.1)
    one = Observer(SPACE, observer_noise, 9)
    other = Observer(SPACE, observer_noise, 9)
    singly = [one.answer(*row) for row in ASKED[:50].tolist()]
    assert singly == [other.answer(*row) for row in ASKED[:50].tolist()]
    batch = Observer(SPACE, observer_noise, 9).answers(ASKED)
    assert (batch == Observer(SPACE, observer_noise, 9).answers(ASKED)).all()
    assert (batch != Observer(SPACE, observer_noise, 10).answers(ASKED)).any()


@pytest.mark.parametrize(
    "bad", [{"noise": -1}, {"lapse": 1.5}, {"drift": float("nan")}, {"side_bias": float("inf")}]
)
def test_invalid_observer_noise(bad):
    with pytest.raises(InvalidParameter, match=next(iter(bad))):
        ObserverNoise(**bad)
