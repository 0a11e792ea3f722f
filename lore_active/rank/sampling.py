"""Hamiltonian Monte Carlo over an embedding and one further coordinate per item (Neal, 2011).

A state is one row per item, its r coordinates and a standardised further coordinate v, so that the
squared distance of two items is |Δz|² + scale² Δv². A scale of 0 is the model of r dimensions; a
larger scale is the model in which the further dimension has that standard deviation. The last
element of the state is the logarithm of the slope of the response function.

Random numbers are drawn outside and passed in: the same numbers give the same bits.

One module, though long: the density, its gradient and the sampler are compiled as one kernel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lore_active.embedding.kernels import EXP, MAX_EXPONENT, SMOOTHING
from lore_active.embedding.pairs import Pairs
from lore_active.jit import kernel
from lore_active.types import Floats, Indices

# Dual averaging (Hoffman & Gelman, 2014, section 3.2.1), with their constants.
TARGET_ACCEPTANCE = 0.8
SHRINKAGE, DELAY, DECAY = 0.05, 10.0, 0.75
# Step sizes vary by this share around the adapted one, so that no orbit is periodic.
JITTER = 0.2
# Energy errors above this are divergences: the proposal is rejected.
MAX_ENERGY_ERROR = 1000.0


class Likelihood(NamedTuple):
    """Answers, and how they depend on distances; priors of all that is sampled.

    Attributes
    ----------
    first, second, near, far, weight
        Answers as pairs; see `Pairs`. Weights are counts of answers.
    lapse : float
        Share of answers that are guesses.
    precision : array of shape (r,)
        Prior precision of the coordinates on each axis.
    slope_deviation : float
        Prior standard deviation of the log slope; 0 for a slope of 1.
    tail : float
        Degrees of freedom of the further coordinates' prior; 0 for a Gaussian.
    """

    first: Indices
    second: Indices
    near: Indices
    far: Indices
    weight: Floats
    lapse: float
    precision: Floats
    slope_deviation: float
    tail: float


def likelihood(
    pairs: Pairs,
    count: float,
    precision: Floats,
    lapse: float = 0.0,
    slope_deviation: float = 0.0,
    tail: float = 0.0,
) -> Likelihood:
    """Likelihood of answers whose weights add up to `count`."""
    return Likelihood(
        *(pairs.first, pairs.second, pairs.near, pairs.far, pairs.weight * count),
        *(float(lapse), precision, float(slope_deviation), float(tail)),
    )


@kernel
def decay(x: float) -> float:
    """exp(−x) for x ≥ 0: Taylor series at x / 4096, then twelve squarings; vectorisable."""
    y = min(x, MAX_EXPONENT) * (-1.0 / 4096.0)
    e = EXP[8] + y * (EXP[9] + y * EXP[10])
    e = EXP[4] + y * (EXP[5] + y * (EXP[6] + y * (EXP[7] + y * e)))
    e = 1.0 + y * (1.0 + y * (EXP[2] + y * (EXP[3] + y * e)))
    for _ in range(12):
        e *= e
    return e


@kernel
def pair_distances(model: Likelihood, state: Floats, scale: float, out: Floats) -> None:
    """Distances of all pairs; the last column of the state is multiplied by `scale`."""
    last = state.shape[1] - 1
    for q in range(model.first.shape[0]):
        a = model.first[q]
        b = model.second[q]
        further = scale * (state[a, last] - state[b, last])
        total = SMOOTHING * SMOOTHING + further * further
        for k in range(last):
            difference = state[a, k] - state[b, k]
            total += difference * difference
        out[q] = np.sqrt(total)


@kernel
def log_likelihood(model: Likelihood, distance: Floats, slope: float) -> float:
    """Log probability of the answers."""
    guess = 0.5 * model.lapse
    total = 0.0
    for t in range(model.near.shape[0]):
        margin = slope * (distance[model.far[t]] - distance[model.near[t]])
        e = decay(abs(margin))
        if guess > 0.0:
            chosen = 1.0 if margin >= 0.0 else e
            total += model.weight[t] * np.log(guess + (1.0 - model.lapse) * chosen / (1.0 + e))
        else:
            total += model.weight[t] * (min(margin, 0.0) - np.log1p(e))
    return total


@kernel
def distance_gradient(
    model: Likelihood, distance: Floats, slope: float, out: Floats, slopes: Floats
) -> float:
    """Gradient of the log likelihood by the pairs' distances; returns that by the log slope."""
    guess = 0.5 * model.lapse
    count = model.near.shape[0]
    for t in range(count):
        margin = slope * (distance[model.far[t]] - distance[model.near[t]])
        e = decay(abs(margin))
        share = 1.0 / (1.0 + e)
        chosen = (1.0 if margin >= 0.0 else e) * share
        other = (e if margin >= 0.0 else 1.0) * share
        kept = (1.0 - model.lapse) * chosen
        slopes[t] = model.weight[t] * slope * other * kept / (guess + kept)
    out[:] = 0.0
    by_slope = 0.0
    for t in range(count):
        near = model.near[t]
        far = model.far[t]
        out[near] -= slopes[t]
        out[far] += slopes[t]
        by_slope += slopes[t] * (distance[far] - distance[near])
    return by_slope


@kernel
def state_gradient(
    model: Likelihood,
    state: Floats,
    log_slope: float,
    scale: float,
    distance: Floats,
    by_distance: Floats,
    slopes: Floats,
    out: Floats,
) -> float:
    """Gradient of the log posterior by the state; returns that by the log slope."""
    last = state.shape[1] - 1
    pair_distances(model, state, scale, distance)
    by_slope = distance_gradient(model, distance, np.exp(log_slope), by_distance, slopes)
    for a in range(state.shape[0]):
        for k in range(last):
            out[a, k] = -model.precision[k] * state[a, k]
        v = state[a, last]
        # A Student prior is scaled to unit variance.
        if model.tail > 0.0:
            out[a, last] = -(model.tail + 1.0) * v / (model.tail - 2.0 + v * v)
        else:
            out[a, last] = -v
    for q in range(model.first.shape[0]):
        a = model.first[q]
        b = model.second[q]
        coefficient = by_distance[q] / distance[q]
        for k in range(last):
            step = coefficient * (state[a, k] - state[b, k])
            out[a, k] += step
            out[b, k] -= step
        step = coefficient * scale * scale * (state[a, last] - state[b, last])
        out[a, last] += step
        out[b, last] -= step
    if model.slope_deviation > 0.0:
        by_slope -= log_slope / (model.slope_deviation * model.slope_deviation)
    return by_slope


@kernel
def log_prior(model: Likelihood, state: Floats, log_slope: float) -> float:
    """Log prior density of a state, up to a constant."""
    last = state.shape[1] - 1
    total = 0.0
    for a in range(state.shape[0]):
        for k in range(last):
            total -= 0.5 * model.precision[k] * state[a, k] * state[a, k]
        v = state[a, last]
        if model.tail > 0.0:
            total -= 0.5 * (model.tail + 1.0) * np.log1p(v * v / (model.tail - 2.0))
        else:
            total -= 0.5 * v * v
    if model.slope_deviation > 0.0:
        ratio = log_slope / model.slope_deviation
        total -= 0.5 * ratio * ratio
    return total


@kernel
def mass_diagonal(
    model: Likelihood, state: Floats, log_slope: float, scale: float, distance: Floats, out: Floats
) -> None:
    """Prior precision plus the diagonal of the expected information, for each coordinate."""
    last = state.shape[1] - 1
    slope = np.exp(log_slope)
    pair_distances(model, state, scale, distance)
    for a in range(state.shape[0]):
        for k in range(last):
            out[a, k] = model.precision[k]
        out[a, last] = 1.0
    for t in range(model.near.shape[0]):
        near = model.near[t]
        far = model.far[t]
        e = decay(abs(slope * (distance[far] - distance[near])))
        information = model.weight[t] * slope * slope * e / ((1.0 + e) * (1.0 + e))
        for q in (near, far):
            a = model.first[q]
            b = model.second[q]
            for k in range(last):
                direction = (state[a, k] - state[b, k]) / distance[q]
                out[a, k] += information * direction * direction
                out[b, k] += information * direction * direction
            direction = scale * scale * (state[a, last] - state[b, last]) / distance[q]
            out[a, last] += information * direction * direction
            out[b, last] += information * direction * direction


@kernel
def sample(
    model: Likelihood,
    state: Floats,
    log_slope: float,
    scales: Floats,
    normals: Floats,
    uniforms: Floats,
    warmup: int,
    leapfrogs: int,
    step: float,
    out: Floats,
) -> tuple[float, float, float]:
    """Draw from the posterior at `scales[1]`; the state is updated in place.

    Parameters
    ----------
    scales : array of shape (3,)
        Scale of the further dimension at the previous, this and the next point of the path.
    normals : array of shape (n_iterations, n_items * (r + 1) + 1)
        Standard normal numbers, for the momenta.
    uniforms : array of shape (n_iterations, 2)
        Uniform numbers, for the step size and the acceptance.
    out : array of shape (n_iterations - warmup, 4)
        For each draw: log likelihood at the three scales, and its derivative by scale².

    Returns
    -------
    tuple of float
        Log slope, adapted step size, and mean acceptance probability of the draws.
    """
    scale = scales[1]
    items, columns = state.shape
    pairs = model.first.shape[0]
    distance = np.empty(pairs)
    by_distance = np.empty(pairs)
    slopes = np.empty(model.near.shape[0])
    mass = np.empty((items, columns))
    gradient = np.empty((items, columns))
    start_gradient = np.empty((items, columns))
    trial = np.empty((items, columns))
    momentum = np.empty((items, columns))
    mass_diagonal(model, state, log_slope, scale, distance, mass)
    slope_mass = 0.0
    if model.slope_deviation > 0.0:
        slope_mass = 1.0 / (model.slope_deviation * model.slope_deviation) + model.weight.sum() / 8
    pair_distances(model, state, scale, distance)
    here = log_likelihood(model, distance, np.exp(log_slope)) + log_prior(model, state, log_slope)
    start_slope_gradient = state_gradient(
        model, state, log_slope, scale, distance, by_distance, slopes, start_gradient
    )
    centre = np.log(4.0 * step)
    average_error = 0.0
    log_average = np.log(step)
    accepted = 0.0
    iterations = normals.shape[0]
    for n in range(iterations):
        if n == warmup and warmup > 0:
            step = np.exp(log_average)
        length = step * (1.0 + JITTER * (2.0 * uniforms[n, 0] - 1.0))
        kinetic = 0.0
        for a in range(items):
            for k in range(columns):
                normal = normals[n, a * columns + k]
                kinetic += 0.5 * normal * normal
                momentum[a, k] = normal * np.sqrt(mass[a, k])
                trial[a, k] = state[a, k]
                gradient[a, k] = start_gradient[a, k]
        slope_momentum = 0.0
        if slope_mass > 0.0:
            normal = normals[n, items * columns]
            kinetic += 0.5 * normal * normal
            slope_momentum = normal * np.sqrt(slope_mass)
        trial_slope = log_slope
        slope_gradient = start_slope_gradient
        for _ in range(leapfrogs):
            for a in range(items):
                for k in range(columns):
                    momentum[a, k] += 0.5 * length * gradient[a, k]
                    trial[a, k] += length * momentum[a, k] / mass[a, k]
            if slope_mass > 0.0:
                slope_momentum += 0.5 * length * slope_gradient
                trial_slope += length * slope_momentum / slope_mass
            slope_gradient = state_gradient(
                model, trial, trial_slope, scale, distance, by_distance, slopes, gradient
            )
            for a in range(items):
                for k in range(columns):
                    momentum[a, k] += 0.5 * length * gradient[a, k]
            if slope_mass > 0.0:
                slope_momentum += 0.5 * length * slope_gradient
        there = log_likelihood(model, distance, np.exp(trial_slope)) + log_prior(
            model, trial, trial_slope
        )
        end = 0.0
        for a in range(items):
            for k in range(columns):
                end += 0.5 * momentum[a, k] * momentum[a, k] / mass[a, k]
        if slope_mass > 0.0:
            end += 0.5 * slope_momentum * slope_momentum / slope_mass
        change = there - end - here + kinetic
        probability = 0.0
        if change > -MAX_ENERGY_ERROR:
            probability = min(1.0, np.exp(min(change, 0.0)))
        if uniforms[n, 1] < probability:
            state[:] = trial
            start_gradient[:] = gradient
            start_slope_gradient = slope_gradient
            log_slope = trial_slope
            here = there
        if n < warmup:
            m = n + 1.0
            weight = 1.0 / (m + DELAY)
            average_error = (1.0 - weight) * average_error + weight * (
                TARGET_ACCEPTANCE - probability
            )
            log_step = centre - np.sqrt(m) / SHRINKAGE * average_error
            fade = m**-DECAY
            log_average = fade * log_step + (1.0 - fade) * log_average
            step = np.exp(log_step)
            continue
        accepted += probability / (iterations - warmup)
        for side in range(3):
            pair_distances(model, state, scales[side], distance)
            out[n - warmup, side] = log_likelihood(model, distance, np.exp(log_slope))
            if side == 1:
                distance_gradient(model, distance, np.exp(log_slope), by_distance, slopes)
                derivative = 0.0
                for q in range(pairs):
                    change = state[model.first[q], columns - 1]
                    change -= state[model.second[q], columns - 1]
                    derivative += by_distance[q] * change * change / (2.0 * distance[q])
                out[n - warmup, 3] = derivative
    return log_slope, step, accepted
