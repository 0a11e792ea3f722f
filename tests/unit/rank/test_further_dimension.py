"""The Bayes factor of a further dimension, beside plain Monte Carlo and in known spaces."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import log

import numpy as np
import pytest

from lore_active.data.comparisons import as_triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.kernels import SMOOTHING
from lore_active.embedding.pairs import as_pairs
from lore_active.errors import InvalidParameter
from lore_active.rank.bayes_factor import BAYES_FACTOR
from lore_active.rank.clusters import Clusters, clusters, mixing
from lore_active.rank.further_dimension import further_dimension, further_dimensions
from lore_active.rank.sampling import likelihood
from lore_active.rank.sampling.realised import prior_probability
from lore_active.rank.sampling.settings import SamplingSettings
from lore_active.rank.significance import GUARD, LEAST, MOST, NONE
from lore_active.simulation.observers import ObserverNoise, simulated_answers
from lore_active.simulation.worlds import space

PRECISION = 0.12


def answered(world, rank, items, count, seed):
    coordinates = space(world, items, rank, seed)
    rows = simulated_answers(coordinates, count, seed + 1, ObserverNoise(noise=0.1))
    return as_triplets(rows, items)


def map_of(triplets, rank):
    fits = map_embedding.fits_by_rank(
        as_pairs(triplets), len(triplets), PRECISION, rank, final=True, min_rank=rank
    )
    return fits[rank][0]


def covariance_root(found):
    """The symmetric square root of the covariance of coordinates with clusters."""
    same = found.member[:, None] == found.member
    covariance = found.between * same + (1.0 - found.between) * np.eye(len(same))
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(values) @ vectors.T


def log_posterior(triplets, state, log_slope, scale, lapse, slope_deviation, tail):
    """The sampled density, written down plainly."""
    weights = np.append(np.ones(state.shape[1] - 1), scale)

    def distance(a, b):
        difference = (state[a] - state[b]) * weights
        return np.sqrt((difference**2).sum(axis=1) + SMOOTHING**2)

    near = distance(triplets.anchor, triplets.nearer)
    far = distance(triplets.anchor, triplets.farther)
    likely = 1.0 / (1.0 + np.exp(-np.exp(log_slope) * (far - near)))
    total = (triplets.weight * np.log(0.5 * lapse + (1.0 - lapse) * likely)).sum()
    total -= 0.5 * PRECISION * (state[:, :-1] ** 2).sum()
    v = state[:, -1]
    if tail:
        total -= 0.5 * (tail + 1.0) * np.log1p(v**2 / (tail - 2.0)).sum()
    else:
        total -= 0.5 * (v**2).sum()
    return total - (0.5 * (log_slope / slope_deviation) ** 2 if slope_deviation else 0.0)


@pytest.mark.parametrize("dense", [100, 0], ids=["all pairs", "listed pairs"])
def test_with_clusters_the_gradient_is_that_of_the_mixed_coordinates(dense, monkeypatch):
    triplets = answered("equal", 2, 7, 60, seed=11)
    monkeypatch.setattr(likelihood, "DENSE_RATIO", dense)
    found = Clusters(np.array([0, 0, 1, 1, 1, 0, 1], dtype=np.int32), 0.8)
    mixed = mixing(found, 7, rank=0)
    model = likelihood.likelihood(
        as_pairs(triplets), float(len(triplets)), np.full(2, PRECISION), mixed=mixed
    )
    work = likelihood.workspace(model)
    state = np.random.default_rng(12).normal(size=(3, 7))

    def density(at):
        likelihood.pair_distances(model, at, 0.7, work)
        likely = likelihood.log_likelihood(model, 1.0, work)
        return likely + likelihood.log_prior(model, at, 0.0)

    coordinates = (covariance_root(found) @ state.T) * [1.0, 1.0, 0.7]
    plain = log_posterior(triplets, coordinates, 0.0, 1.0, 0.0, 0.0, 0.0)
    prior = PRECISION * (coordinates[:, :2] ** 2).sum() + (coordinates[:, 2] ** 2).sum()
    likely = density(state) - likelihood.log_prior(model, state, 0.0)
    assert likely == pytest.approx(plain + 0.5 * prior, rel=1e-9)
    gradient = np.empty_like(state)
    likelihood.state_gradient(model, state, 0.0, 0.7, work, gradient)
    for place in np.ndindex(*state.shape):
        shift = np.zeros_like(state)
        shift[place] = 1e-5
        rise = density(state + shift) - density(state - shift)
        assert gradient[place] == pytest.approx(rise / 2e-5, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "noise", [(0.0, 0.0, 0.0), (0.05, 0.5, 4.0)], ids=["logistic", "lapses, slope and tails"]
)
@pytest.mark.parametrize("dense", [100, 0], ids=["all pairs", "listed pairs"])
def test_the_gradient_is_that_of_the_plainly_written_density(noise, dense, monkeypatch):
    triplets = answered("equal", 2, 7, 60, seed=11)
    state = np.random.default_rng(12).normal(size=(7, 3))
    pairs, precision = as_pairs(triplets), np.full(2, PRECISION)
    monkeypatch.setattr(likelihood, "DENSE_RATIO", dense)
    model = likelihood.likelihood(pairs, float(len(triplets)), precision, *noise)
    work, columns = likelihood.workspace(model), np.ascontiguousarray(state.T)
    gradient = np.empty_like(columns)
    log_slope, scale, step = 0.2, 0.7, 1e-5
    by_slope = likelihood.state_gradient(model, columns, log_slope, scale, work, gradient)
    likely = likelihood.log_likelihood(model, np.exp(log_slope), work)
    prior = likelihood.log_prior(model, columns, log_slope)
    assert likely + prior == pytest.approx(
        log_posterior(triplets, state, log_slope, scale, *noise), rel=1e-9
    )

    def density(point, log_slope):
        return log_posterior(triplets, point, log_slope, scale, *noise)

    expected = np.empty_like(state)
    for place in np.ndindex(*state.shape):
        shift = np.zeros_like(state)
        shift[place] = step
        rise = density(state + shift, log_slope) - density(state - shift, log_slope)
        expected[place] = rise / (2 * step)
    assert pytest.approx(expected, rel=1e-5, abs=1e-6) == gradient.T
    if not noise[1]:
        # The slope is fixed.
        return
    rise = density(state, log_slope + step) - density(state, log_slope - step)
    assert by_slope == pytest.approx(rise / (2 * step), rel=1e-5, abs=1e-6)


def brute_force(triplets, embedding, share, draws, seed):
    """Log Bayes factor by averaging the likelihood over draws from the prior."""
    rng = np.random.default_rng(seed)
    items, rank = embedding.shape
    centred = embedding - embedding.mean(axis=0)
    scale = np.sqrt(share / (1 - share) * (centred**2).sum(axis=1).mean())
    z = rng.normal(0.0, PRECISION**-0.5, (draws, items, rank))
    u = rng.normal(0.0, scale, (draws, items, 1))

    def mean_likelihood(points):
        def distance(a, b):
            return np.sqrt(((points[:, a] - points[:, b]) ** 2).sum(axis=2) + SMOOTHING**2)

        near = distance(triplets.anchor, triplets.nearer)
        far = distance(triplets.anchor, triplets.farther)
        return np.exp(-np.logaddexp(0.0, near - far).sum(axis=1)).mean()

    wider = mean_likelihood(np.concatenate([z, u], axis=2))
    return float(np.log(wider) - np.log(mean_likelihood(z)))


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_it_agrees_with_averaging_over_the_prior(seed):
    triplets = answered("equal", 2, 5, 14, seed)
    embedding = map_of(triplets, 1)
    expected = brute_force(triplets, embedding, 0.3, 300_000, seed)
    found = further_dimension(
        triplets, embedding, 0.3, seed, precision=PRECISION, settings=SamplingSettings(draws=600)
    )
    assert found.agree
    assert found.log_bayes_factor == pytest.approx(expected, abs=0.15)
    assert found.integral == pytest.approx(expected, abs=0.3)


def weakest_share(points):
    """Share of the variance on the weakest axis, for many configurations."""
    centred = points - points.mean(axis=1, keepdims=True)
    squares = np.linalg.svd(centred, compute_uv=False) ** 2
    return squares[:, -1] / squares.sum(axis=1)


@pytest.mark.parametrize("seed", [21, 22])
def test_the_odds_of_a_share_agree_with_weighting_draws_from_the_prior(seed):
    """Further coordinates of every share, weighted by the likelihood of the answers."""
    triplets = answered("equal", 2, 5, 14, seed)
    embedding = map_of(triplets, 1)
    rng, draws, share = np.random.default_rng(seed), 400_000, 0.2
    variance = float(((embedding - embedding.mean(axis=0)) ** 2).sum(axis=1).mean())
    shares = np.exp(rng.uniform(np.log(LEAST), np.log(MOST), draws)) * (rng.random(draws) > NONE)
    z = rng.normal(0.0, PRECISION**-0.5, (draws, 5, 1))
    scale = np.sqrt(shares / (1 - shares) * variance)
    points = np.concatenate([z, scale[:, None, None] * rng.normal(size=(draws, 5, 1))], axis=2)

    def distance(a, b):
        return np.sqrt(((points[:, a] - points[:, b]) ** 2).sum(axis=2) + SMOOTHING**2)

    margins = distance(triplets.anchor, triplets.farther) - distance(
        triplets.anchor, triplets.nearer
    )
    weights = np.exp(-np.logaddexp(0.0, -margins).sum(axis=1))
    larger = (weakest_share(points) >= GUARD * share) & (shares > 0.0)
    odds = np.log(weights[~larger].sum() / weights[larger].sum())
    prior = prior_probability(GUARD * share, 5.0)
    expected = odds - np.log((1.0 - prior) / prior)
    tests = further_dimensions(
        *(triplets, embedding, (share, 0.5), seed),
        precision=PRECISION,
        settings=SamplingSettings(draws=1500, slope_deviation=0.0),
    )
    assert tests[0].against == pytest.approx([expected] * 2, abs=0.25)


def test_a_missing_dimension_is_found_and_a_needless_one_is_not():
    triplets = answered("equal", 2, 20, 900, seed=31)
    too_few = further_dimension(triplets, map_of(triplets, 1), 0.2, 1, precision=PRECISION)
    enough = further_dimension(triplets, map_of(triplets, 2), 0.2, 1, precision=PRECISION)
    assert too_few.found()
    assert enough.log_bayes_factor < 0.0
    assert not enough.found()


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    triplets = answered("equal", 1, 8, 80, seed=41)
    embedding = map_of(triplets, 1)
    first, again, other = (
        further_dimensions(triplets, embedding, (0.1, 0.3), seed, precision=PRECISION)
        for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other


def test_a_weight_of_two_is_the_same_answer_twice():
    rows = np.array([[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0], [4, 0, 1], [0, 2, 4]])
    once = as_triplets(rows, 5)
    weighted = replace(once, weight=np.full(len(rows), 2.0))
    twice = as_triplets(np.vstack([rows, rows]), 5)
    embedding = map_of(once, 1)
    values = [
        further_dimension(triplets, embedding, 0.3, 3, precision=PRECISION).log_bayes_factor
        for triplets in (weighted, twice)
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_sampling_can_be_interrupted_between_points():
    class Interrupted(Exception):
        pass

    def progress(done, total):
        assert done <= total
        if done == 2:
            raise Interrupted

    triplets = answered("equal", 1, 8, 80, seed=51)
    with pytest.raises(Interrupted):
        further_dimension(triplets, map_of(triplets, 1), 0.2, 1, progress=progress)


def test_an_estimate_whose_error_leaves_the_verdict_open_is_computed_again():
    # With so few draws the errors are large; some of these studies are clear all the same.
    coarse = SamplingSettings(draws=16, warmup=2, leapfrogs=3)
    again = set()
    for seed, count in itertools.product(range(3), (60, 180)):
        triplets = answered("equal", 2, 14, count, seed=100 + 10 * seed)
        calls = []

        def progress(done, total, calls=calls):
            calls.append(done / total)

        embedding = map_of(triplets, 1)
        test = further_dimension(triplets, embedding, 0.2, seed, settings=coarse, progress=progress)
        # After one pass, half of all points, it says that the rest is not needed.
        once = not any(0.5 < done < 1.0 for done in calls)
        needed, error = log(BAYES_FACTOR), test.standard_error
        agreed = not min(test.against) < needed <= max(test.against)
        clear = error <= 0.5 or abs(test.log_bayes_factor - needed) >= 2.0 * error
        assert (agreed and clear) or not once
        again.add(not once)
    assert again == {True, False}


@pytest.mark.parametrize("shares", [(), (0.2, 0.1), (0.0,), (0.95,)])
def test_impossible_shares_are_refused(shares):
    triplets = answered("equal", 1, 8, 80, seed=71)
    with pytest.raises(InvalidParameter, match="share"):
        further_dimensions(triplets, map_of(triplets, 1), shares)


def test_a_dimension_that_separates_clusters_is_not_ruled_out_by_neighbours():
    """Four clusters at the corners of a flat tetrahedron, of which the map has two dimensions."""
    corners = np.array([[2.0, 0.0, 0.7], [-2.0, 0.0, 0.7], [0.0, 2.0, -0.7], [0.0, -2.0, -0.7]])
    rng = np.random.default_rng(61)
    items = 36
    coordinates = corners[np.arange(items) % 4] + rng.normal(0.0, 0.15, (items, 3))
    rows = simulated_answers(coordinates, 900, 62, ObserverNoise(noise=0.1))
    triplets = as_triplets(rows, items)
    assert clusters(map_of(triplets, 3)) is not None
    tests = further_dimensions(triplets, map_of(triplets, 2), (0.05, 0.1, 0.2), 1)
    assert not any(test.ruled_out() for test in tests)
