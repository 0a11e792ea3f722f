"""Hamiltonian Monte Carlo over an embedding and one further coordinate per item (Neal, 2011).

Random numbers are drawn outside and passed in: the same numbers give the same bits.
"""

from __future__ import annotations

import numpy as np

from lore_active.jit import kernel
from lore_active.rank.sampling.likelihood import (
    MAX_MARGIN,
    Likelihood,
    Workspace,
    decay,
    log_likelihood,
    log_prior,
    mix,
    pair_distances,
    rescaling,
    state_gradient,
)
from lore_active.trials.information import stages_distance_information
from lore_active.types import Floats

# Dual averaging (Hoffman & Gelman, 2014, section 3.2.1), with their constants.
TARGET_ACCEPTANCE = 0.8
SHRINKAGE, DELAY, DECAY = 0.05, 10.0, 0.75
# Step sizes vary by this share around the adapted one, so that no orbit is periodic.
JITTER = 0.2
# Energy errors above this are divergences: the proposal is rejected.
MAX_ENERGY_ERROR = 1000.0


@kernel
def sample(
    model: Likelihood,
    work: Workspace,
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
    normals : array of shape (n_iterations, (r + 1) * n_items + 1)
        Standard normal numbers, for the momenta.
    uniforms : array of shape (n_iterations, 2)
        Uniform numbers, for the step size and the acceptance.
    out : array of shape (n_iterations - warmup, 7)
        For each draw: log likelihood at the three scales with the same standardised coordinates;
        change of the log density from this scale to the previous and the next with the same
        coordinates themselves (see `rescaling`); log slope; see `weakest_share`.

    Returns
    -------
    tuple of float
        Log slope, adapted step size, and mean acceptance probability of the draws.
    """
    scale = scales[1]
    columns, items = state.shape
    mass = np.empty((columns, items))
    root = np.empty((columns, items))
    inverse = np.empty((columns, items))
    gradient = np.empty((columns, items))
    start_gradient = np.empty((columns, items))
    trial = np.empty((columns, items))
    momentum = np.empty((columns, items))
    mass_diagonal(model, state, log_slope, scale, work, mass)
    root[:] = np.sqrt(mass)
    inverse[:] = 1.0 / root
    common, gain = common_scale(model, state, log_slope, mass, work)
    shrink = 1.0 / np.sqrt(1.0 + gain) - 1.0
    slope_mass = 0.0
    if model.slope_deviation > 0.0:
        slope_mass = 1.0 / (model.slope_deviation * model.slope_deviation) + model.weight.sum() / 8
    start_slope_gradient = state_gradient(model, state, log_slope, scale, work, start_gradient)
    likelihood_here = log_likelihood(model, np.exp(log_slope), work)
    here = likelihood_here + log_prior(model, state, log_slope)
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
        along = 0.0
        for k in range(columns):
            for a in range(items):
                along += normals[n, k * items + a] * common[k, a]
        for k in range(columns):
            for a in range(items):
                normal = normals[n, k * items + a]
                kinetic += 0.5 * normal * normal
                momentum[k, a] = (normal + shrink * along * common[k, a]) * root[k, a]
        trial[:] = state
        gradient[:] = start_gradient
        slope_momentum = 0.0
        if slope_mass > 0.0:
            normal = normals[n, items * columns]
            kinetic += 0.5 * normal * normal
            slope_momentum = normal * np.sqrt(slope_mass)
        trial_slope = log_slope
        slope_gradient = start_slope_gradient
        for _ in range(leapfrogs):
            along = 0.0
            for k in range(columns):
                for a in range(items):
                    momentum[k, a] += 0.5 * length * gradient[k, a]
                    along += momentum[k, a] * inverse[k, a] * common[k, a]
            along *= gain
            for k in range(columns):
                for a in range(items):
                    velocity = momentum[k, a] * inverse[k, a] + along * common[k, a]
                    trial[k, a] += length * velocity * inverse[k, a]
            if slope_mass > 0.0:
                slope_momentum += 0.5 * length * slope_gradient
                trial_slope += length * slope_momentum / slope_mass
            slope_gradient = state_gradient(model, trial, trial_slope, scale, work, gradient)
            for k in range(columns):
                for a in range(items):
                    momentum[k, a] += 0.5 * length * gradient[k, a]
            if slope_mass > 0.0:
                slope_momentum += 0.5 * length * slope_gradient
        likelihood_there = log_likelihood(model, np.exp(trial_slope), work)
        there = likelihood_there + log_prior(model, trial, trial_slope)
        along = 0.0
        end = 0.0
        for k in range(columns):
            for a in range(items):
                velocity = momentum[k, a] * inverse[k, a]
                along += velocity * common[k, a]
                end += 0.5 * velocity * velocity
        end += 0.5 * gain * along * along
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
            likelihood_here = likelihood_there
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
        slope = np.exp(log_slope)
        row = out[n - warmup]
        row[0], row[1], row[2] = likelihood_here, likelihood_here, likelihood_here
        row[3], row[4], row[5] = 0.0, 0.0, log_slope
        trial[:] = state
        mix(model, trial)
        row[6] = weakest_share(trial, scale)
        for side in range(2):
            other = scales[2 * side]
            if other != scale:
                pair_distances(model, state, other, work)
                row[2 * side] = log_likelihood(model, slope, work)
            if other != scale and other > 0.0 and scale > 0.0:
                row[3 + side] = rescaling(model, state, scale / other)
    return log_slope, step, accepted


@kernel
def mass_diagonal(
    model: Likelihood, state: Floats, log_slope: float, scale: float, work: Workspace, out: Floats
) -> None:
    """Prior precision plus the diagonal of the expected information, for each coordinate."""
    last, items = state.shape[0] - 1, state.shape[1]
    slope = np.exp(log_slope)
    pair_distances(model, state, scale, work)
    x, distance, information = work.scaled, work.distance, work.by_distance
    information[:] = 0.0
    if model.start.shape[0]:
        stages_distance_information(
            model.start, model.near, model.far, model.weight, slope, distance, information
        )
    for t in range(0 if model.start.shape[0] else model.near.shape[0]):
        near = model.near[t]
        far = model.far[t]
        e = decay(min(abs(slope * (distance[far] - distance[near])), MAX_MARGIN))
        w = model.weight[t] * slope * slope * e / ((1.0 + e) * (1.0 + e))
        information[near] += w
        information[far] += w
    out[:] = 0.0
    for q in range(distance.shape[0]):
        if information[q] > 0.0:
            a = q // items if model.dense else model.first[q]
            b = q % items if model.dense else model.second[q]
            for k in range(last + 1):
                direction = (x[k, a] - x[k, b]) / distance[q]
                if k == last:
                    direction *= scale
                out[k, a] += information[q] * direction * direction
                out[k, b] += information[q] * direction * direction
    mix_squares(model, out)
    for k in range(last + 1):
        for a in range(items):
            out[k, a] += model.precision[k] if k < last else 1.0


@kernel
def mix_squares(model: Likelihood, axes: Floats) -> None:
    """Information about independent coordinates, as a diagonal, from that about the items'."""
    member, common, own = model.mixing.member, model.mixing.common, model.mixing.own
    if member.shape[0] == 0:
        return
    for k in range(axes.shape[0]):
        sums = np.zeros(common.shape[0])
        for a in range(member.shape[0]):
            sums[member[a]] += axes[k, a]
        for a in range(member.shape[0]):
            c = common[member[a]]
            axes[k, a] = c * c * sums[member[a]] + own * (own + 2.0 * c) * axes[k, a]


@kernel
def common_scale(
    model: Likelihood, state: Floats, log_slope: float, mass: Floats, work: Workspace
) -> tuple[Floats, float]:
    """Direction in which the whole map grows, as a unit vector, and by how much it is slower.

    Answers determine the common scale of the coordinates far less than their places, so that a
    diagonal mass matrix makes all steps along it too short. Along the map itself the derivative of
    a margin is the margin, so that the information about the scale needs no matrix.

    Expects the distances of the state in the workspace.
    """
    last, items = state.shape[0] - 1, state.shape[1]
    direction = np.zeros(state.shape)
    slope = np.exp(log_slope)
    information, assumed = 0.0, 0.0
    if model.start.shape[0]:
        return direction, 0.0
    for t in range(model.near.shape[0]):
        margin = slope * (work.distance[model.far[t]] - work.distance[model.near[t]])
        e = decay(min(abs(margin), MAX_MARGIN))
        information += model.weight[t] * margin * margin * e / ((1.0 + e) * (1.0 + e))
    for k in range(last):
        for a in range(items):
            square = state[k, a] * state[k, a]
            information += model.precision[k] * square
            assumed += mass[k, a] * square
            direction[k, a] = np.sqrt(mass[k, a]) * state[k, a]
    direction /= np.sqrt(assumed)
    return direction, max(assumed / information - 1.0, 0.0)


@kernel
def weakest_share(coordinates: Floats, scale: float) -> float:
    """Share of the variance on the weakest axis of the map and the further coordinates together.

    Not that of the further coordinates: where they lie along the map, or take the place of one of
    its axes, they are no further dimension.
    """
    columns, items = coordinates.shape
    centred = np.empty((columns, items))
    for k in range(columns):
        mean = 0.0
        for a in range(items):
            mean += coordinates[k, a] / items
        factor = scale if k == columns - 1 else 1.0
        for a in range(items):
            centred[k, a] = factor * (coordinates[k, a] - mean)
    squares = np.empty((columns, columns))
    total = 0.0
    for k in range(columns):
        for m in range(k + 1):
            product = 0.0
            for a in range(items):
                product += centred[k, a] * centred[m, a]
            squares[k, m] = product
            squares[m, k] = product
        total += squares[k, k]
    return float(max(np.linalg.eigvalsh(squares)[0], 0.0) / total)
