"""Likelihood of stages in the sampler, and Bayes factors of further dimensions from trials."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active.data.comparisons import as_triplets
from lore_active.embedding import map as map_embedding
from lore_active.questions.kinds import Kind, kind
from lore_active.rank.further_dimension import further_dimension
from lore_active.rank.sampling.hamiltonian import mass_diagonal
from lore_active.rank.sampling.likelihood import (
    distance_gradient,
    likelihood,
    log_likelihood,
    pair_distances,
    state_gradient,
    workspace,
)
from lore_active.rank.sampling.settings import SamplingSettings
from lore_active.simulation.observers import Observer, ObserverNoise, gaussian_space
from lore_active.trials.stages import as_stages, as_trials


def answered(asked: Kind, items: int, count: int, dimensions: int, noise: float = 0.1):
    rng = np.random.default_rng(2)
    observer = Observer(gaussian_space(items, dimensions, 1), ObserverNoise(noise), seed=3)
    rows, trials = [], []
    for number in range(count):
        shown = rng.permutation(items)[: asked.items].tolist()
        anchor, options = (shown[0], shown[1:]) if asked.has_anchor else (None, shown)
        comparisons = asked.comparisons(anchor, options, observer.choose(asked, anchor, options))
        rows += comparisons
        trials += [number] * len(comparisons)
    frame = dict(zip(("anchor", "nearer", "farther"), np.array(rows).T, strict=True))
    return as_triplets({**frame, "trial": trials}, items)


@pytest.mark.parametrize("lapse", [0.0, 0.1])
@pytest.mark.parametrize("items", [8, 30])
@pytest.mark.parametrize("label", ["rank-2-of-4", "choose-2-of-4", "odd-one-out"])
def test_gradients_agree_with_differences(label, items, lapse):
    """With few items the distances of all pairs are computed, with many those that occur."""
    triplets = answered(kind(label), items, 40, 2)
    model = likelihood(
        as_stages(triplets), len(triplets), np.array([0.3, 0.5]), lapse, slope_deviation=0.4
    )
    work = workspace(model)
    state = np.random.default_rng(1).normal(size=(3, items))
    scale, log_slope = 0.7, 0.2

    def value(at, slope):
        pair_distances(model, at, scale, work)
        prior = (0.3 * at[0] ** 2 + 0.5 * at[1] ** 2 + at[2] ** 2).sum() + (slope / 0.4) ** 2
        return log_likelihood(model, np.exp(slope), work) - 0.5 * prior

    gradient = np.empty_like(state)
    by_slope = state_gradient(model, state, log_slope, scale, work, gradient)
    for k, a in ((0, 1), (1, 4), (2, 2), (2, 7)):
        step = np.zeros_like(state)
        step[k, a] = 1e-5
        expected = (value(state + step, log_slope) - value(state - step, log_slope)) / 2e-5
        assert gradient[k, a] == pytest.approx(expected, abs=1e-5)
    expected = (value(state, log_slope + 1e-5) - value(state, log_slope - 1e-5)) / 2e-5
    assert by_slope == pytest.approx(expected, abs=1e-5)
    mass = np.empty_like(state)
    mass_diagonal(model, state, log_slope, scale, work, mass)
    assert (mass >= np.array([[0.3], [0.5], [1.0]])).all()


def test_trials_of_one_comparison_have_the_likelihood_of_triplets():
    triplets = answered(kind("triplet"), 10, 200, 2)
    state = np.random.default_rng(1).normal(size=(2, 10))
    values = []
    for answers in (as_trials(triplets), as_stages(triplets)):
        model = likelihood(answers, len(triplets), np.array([0.3]), lapse=0.05)
        work = workspace(model)
        pair_distances(model, state, 0.5, work)
        value = log_likelihood(model, 1.3, work)
        distance_gradient(model, 1.3, work)
        values.append((value, sorted(work.by_distance[work.by_distance != 0.0].round(9))))
    assert values[0][0] == pytest.approx(values[1][0], rel=1e-9)
    assert values[0][1] == pytest.approx(values[1][1], abs=1e-6)


def test_a_further_dimension_is_found_in_trials_and_ruled_out():
    asked = kind("rank-2-of-6")
    settings = SamplingSettings(slope_deviation=0.5)
    for dimensions, there in ((2, True), (1, False)):
        triplets = answered(asked, 14, 150, dimensions)
        z, _ = map_embedding.fitted(
            as_trials(triplets), len(triplets), 0.12, gaussian_space(14, 1, 9), final=True
        )
        test = further_dimension(triplets, z, 0.3, seed=1, precision=0.12, settings=settings)
        assert test.found() if there else test.ruled_out()
