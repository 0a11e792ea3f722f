"""Simulated participants answer every kind of question, with the noise that is stated."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lore_active import InvalidParameter
from lore_active.questions.kinds import kind
from lore_active.simulation.cost import published_seconds, seconds_per_trial
from lore_active.simulation.observers import Observer, ObserverNoise, gaussian_space

SPACE = gaussian_space(9, 2, 0)
OPTIONS = (3, 1, 7, 5)


def answers(label, noise, count, anchor=0, options=OPTIONS):
    observer = Observer(SPACE, noise, seed=1)
    asked = kind(label)
    return Counter(observer.choose(asked, anchor, options) for _ in range(count))


def distances(anchor, options):
    return np.linalg.norm(SPACE[list(options)] - SPACE[anchor], axis=1)


def test_without_noise_the_nearest_are_chosen_in_order():
    nearest = [OPTIONS[place] for place in np.argsort(distances(0, OPTIONS))]
    for picked in (1, 2, 3):
        found = answers(f"rank-{picked}-of-4", ObserverNoise(noise=0.0), 3)
        assert found == {tuple(nearest[:picked]): 3}


def test_noise_on_each_distance_is_that_of_a_triplet():
    count, options = 4000, (4, 8)
    noise = ObserverNoise(noise=1.0)
    shares = [
        answers(label, noise, count, options=options)[options[:1]] / count
        for label in ("triplet", "choose-1-of-2")
    ]
    assert shares[0] == pytest.approx(shares[1], abs=0.04)
    assert 0.05 < shares[0] < 0.95


def test_logistic_noise_is_that_of_plackett_and_luce():
    count, noise = 6000, 1.0
    scale = np.sqrt(3.0 * noise) / np.pi
    weights = np.exp(-distances(0, OPTIONS) / scale)
    found = answers("choose-1-of-4", ObserverNoise(noise=noise, distribution="logistic"), count)
    for option, weight in zip(OPTIONS, weights, strict=True):
        assert found[(option,)] / count == pytest.approx(weight / weights.sum(), abs=0.03)


@pytest.mark.parametrize("distribution", ["gaussian", "logistic", "heavy"])
def test_all_distributions_have_the_stated_variance(distribution):
    observer = Observer(SPACE, ObserverNoise(distribution=distribution), seed=2)
    for drawn in (observer._noise_on_differences(400_000), observer._noise_on_distances(400_000)):
        assert drawn.var() == pytest.approx(1.0, rel=0.15)


def test_lapses_are_guesses_among_all_answers():
    found = answers("rank-2-of-4", ObserverNoise(noise=0.0, lapse=1.0), 3600)
    assert len(found) == 12 and min(found.values()) > 220


def test_the_odd_one_is_not_in_the_nearest_pair():
    items = (2, 4, 6)
    sides = {
        odd: np.linalg.norm(np.subtract(*(SPACE[item] for item in items if item != odd)))
        for odd in items
    }
    found = answers("odd-one-out", ObserverNoise(noise=0.0), 2, anchor=None, options=items)
    assert found == {(min(sides, key=sides.__getitem__),): 2}


def test_an_unknown_distribution_is_refused():
    with pytest.raises(InvalidParameter, match="must be one of gaussian, logistic, heavy"):
        ObserverNoise(distribution="cauchy")


def test_durations_are_the_published_ones_and_between_them():
    seconds = {
        label: published_seconds(kind(label))
        for label in ("triplet", "odd-one-out", "choose-1-of-4", "choose-2-of-4", "rank-2-of-8")
    }
    assert seconds["triplet"] == 3.06 and seconds["rank-2-of-8"] == pytest.approx(8.98)
    assert list(seconds.values()) == sorted(seconds.values())
    grid = kind("rank-2-of-8")
    assert seconds_per_trial(grid) == pytest.approx(4.0 * 8.98 / 3.06)
    assert seconds_per_trial(kind("triplet"), grid, 10.0) == pytest.approx(10.0 * 3.06 / 8.98)
