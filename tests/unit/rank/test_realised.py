"""Posterior odds of the share that items have, from draws along a path."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from lore_active.rank.sampling.realised import (
    beyond,
    log_bayes_factor_against,
    prior_probability,
    prior_weights,
)
from lore_active.rank.significance import NONE

SHARES = np.array([0.0, 0.01, 0.03, 0.06, 0.1, 0.2])


def draws(*means):
    """Shares of the weakest axis at each point, spread by a quarter."""
    rng = np.random.default_rng(1)
    return np.array(means)[:, None] * np.exp(0.25 * rng.normal(size=(len(means), 400)))


def test_the_prior_adds_up_to_one():
    weights, rest = prior_weights(SHARES)
    assert weights.sum() + rest == pytest.approx(1.0)
    assert weights[0] == NONE
    # Uniform on a logarithmic scale: from 20 to 50 % there is as much as from 4 to 10 %.
    assert rest == pytest.approx(0.5 * log(0.5 / 0.2) / log(0.5 / 0.02))
    assert prior_weights(np.append(SHARES, 0.5))[1] == pytest.approx(0.0)


def test_the_prior_probability_of_a_share_is_that_of_simulated_coordinates():
    rng = np.random.default_rng(2)
    shares = np.exp(rng.uniform(log(0.02), log(0.5), 100_000))
    variances = shares / (1 - shares) * rng.chisquare(19, 100_000) / 20
    simulated = 0.5 * np.mean(variances / (1 + variances) >= 0.1)
    assert prior_probability(0.1, 20.0) == pytest.approx(simulated, abs=0.005)


def test_a_tail_that_no_draw_reached_is_not_empty():
    shares = draws(0.05)
    assert not (shares >= 0.12).any()
    assert beyond(shares, 0.12)[0] == pytest.approx(0.0003, abs=0.0003)
    assert beyond(shares, 0.12)[0] > 0.0
    assert beyond(shares, 0.05)[0] == pytest.approx(0.5, abs=0.05)


def test_a_weak_dimension_speaks_against_a_strong_one_although_both_are_likelier_than_none():
    """The case for which prior variances are no measure: 5 % is there, and 10 % explains it too."""
    factors = np.array([0.0, 1.0, 4.0, 6.0, 5.0, -2.0])
    weakest = draws(0.001, 0.04, 0.045, 0.05, 0.05, 0.055)
    assert log_bayes_factor_against(0.1, SHARES, factors, weakest, 50.0) > log(20.0)
    assert log_bayes_factor_against(0.03, SHARES, factors, weakest, 50.0) < -log(20.0)


def test_what_was_not_sampled_counts_as_there():
    weakest = draws(0.001, 0.004, 0.008, 0.01, 0.01, 0.012)
    falling = np.array([0.0, -0.2, -0.6, -1.5, -3.0, -7.0])
    whole = log_bayes_factor_against(0.1, SHARES, falling, weakest, 50.0)
    part = log_bayes_factor_against(0.1, SHARES[:4], falling[:4], weakest[:4], 50.0)
    assert part < whole
    assert part < log(20.0) < whole
