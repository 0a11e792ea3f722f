"""Posterior density of an embedding with one further coordinate per item, and its gradient.

A state has one column per item: its r coordinates and a standardised further coordinate v, so that
the squared distance of two items is |Δz|² + scale² Δv². A scale of 0 is the model of r dimensions;
a larger scale is the model in which the further dimension has that standard deviation. In addition
there is the logarithm of the slope of the response function.

One module, though long: the density, its gradient and its curvature share one representation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lore_active.embedding.kernels import EXP, LOG, SMOOTHING
from lore_active.embedding.pairs import Pairs
from lore_active.jit import kernel
from lore_active.rank.clusters import Mixing, mixing
from lore_active.trials.likelihood import stages_log_likelihood
from lore_active.trials.stages import Stages
from lore_active.types import Floats, Indices

# Margins are clipped to this size: beyond it an answer is certain to the last bits.
MAX_MARGIN = 40.0
# With at most this many pairs of items for each that was asked about, the distances of all are
# computed: without indices these loops are vectorised, and several times as fast.
DENSE_RATIO = 6


class Likelihood(NamedTuple):
    """Answers, and how they depend on distances; priors of all that is sampled.

    Attributes
    ----------
    items : int
        Number of items.
    dense : bool
        Whether pair a·items + b is that of the items a < b; otherwise pairs are listed.
    first, second, near, far, weight, start
        Answers as pairs, or as stages if there are starts: `near` and `far` are then the `member`
        and `picked` of `Stages`. Weights are counts of answers.
    lapse : float
        Share of answers that are guesses.
    precision : array of shape (r,)
        Prior precision of the coordinates on each axis.
    slope_deviation : float
        Prior standard deviation of the log slope; 0 for a slope of 1.
    tail : float
        Degrees of freedom of the further coordinates' prior; 0 for a Gaussian.
    mixing : Mixing
        How coordinates on each axis depend on the independent ones that a state holds.
    """

    items: int
    dense: bool
    first: Indices
    second: Indices
    near: Indices
    far: Indices
    weight: Floats
    start: Indices
    lapse: float
    precision: Floats
    slope_deviation: float
    tail: float
    mixing: Mixing

    @property
    def n_pairs(self) -> int:
        """Number of distances."""
        return self.items * self.items if self.dense else len(self.first)


class Workspace(NamedTuple):
    """Arrays that the kernels overwrite: distances, derivatives by them, and by margins."""

    distance: Floats
    by_distance: Floats
    coefficient: Floats
    by_margin: Floats
    scaled: Floats


def likelihood(
    answers: Pairs | Stages,
    count: float,
    precision: Floats,
    lapse: float = 0.0,
    slope_deviation: float = 0.0,
    tail: float = 0.0,
    mixed: Mixing | None = None,
) -> Likelihood:
    """Likelihood of answers whose weights add up to `count`."""
    items = answers.n_objects
    if isinstance(answers, Stages):
        near, far, start = answers.member, answers.picked, answers.start
    else:
        near, far, start = answers.near, answers.far, np.empty(0, dtype=np.int32)
    dense = items * items <= DENSE_RATIO * len(answers.first)
    if dense:
        low = np.minimum(answers.first, answers.second)
        number = low * np.int32(items) + np.maximum(answers.first, answers.second)
        near, far = number[near], far if len(start) else number[far]
    return Likelihood(
        *(items, dense, answers.first, answers.second, near, far, answers.weight * count, start),
        *(float(lapse), precision, float(slope_deviation), float(tail)),
        mixing(None, items, 0) if mixed is None else mixed,
    )


def workspace(model: Likelihood) -> Workspace:
    """Arrays for the kernels."""
    size = model.n_pairs
    return Workspace(
        *(np.empty(size), np.empty(size), np.zeros(size if model.dense else 0)),
        *(np.empty(len(model.near)), np.empty((len(model.precision) + 1, model.items))),
    )


@kernel
def decay(x: float) -> float:
    """exp(−x) for |x| ≤ MAX_MARGIN: Taylor series at x / 128, then seven squarings.

    The relative error is below 1e-11 for |x| ≤ 10, and grows only where an answer is certain.
    """
    y = x * (-1.0 / 128.0)
    y2 = y * y
    odd = EXP[5] + y2 * EXP[7]
    even = EXP[4] + y2 * EXP[6]
    odd = EXP[3] + y2 * odd
    even = EXP[2] + y2 * even
    odd = 1.0 + y2 * odd
    e = 1.0 + y2 * even + y * odd
    for _ in range(7):
        e *= e
    return e


@kernel
def mix(model: Likelihood, axes: Floats) -> None:
    """Coordinates of the items from the independent ones, in place; also the gradient, back."""
    member, common, own = model.mixing.member, model.mixing.common, model.mixing.own
    if member.shape[0] == 0:
        return
    for k in range(axes.shape[0]):
        sums = np.zeros(common.shape[0])
        for a in range(member.shape[0]):
            sums[member[a]] += axes[k, a]
        for a in range(member.shape[0]):
            axes[k, a] = own * axes[k, a] + common[member[a]] * sums[member[a]]


@kernel
def pair_distances(model: Likelihood, state: Floats, scale: float, work: Workspace) -> None:
    """Distances of all pairs; the last axis is multiplied by `scale`."""
    x = work.scaled
    columns, items = state.shape
    x[:] = state
    mix(model, x)
    for a in range(items):
        x[columns - 1, a] *= scale
    distance = work.distance
    if model.dense:
        for a in range(items):
            out = distance[a * items + a + 1 : (a + 1) * items]
            later = out.shape[0]
            for b in range(later):
                out[b] = SMOOTHING * SMOOTHING
            for k in range(columns):
                here, line = x[k, a], x[k, a + 1 :]
                for b in range(later):
                    difference = line[b] - here
                    out[b] += difference * difference
            for b in range(later):
                out[b] = np.sqrt(out[b])
        return
    for q in range(model.first.shape[0]):
        a = model.first[q]
        b = model.second[q]
        total = SMOOTHING * SMOOTHING
        for k in range(columns):
            difference = x[k, a] - x[k, b]
            total += difference * difference
        distance[q] = np.sqrt(total)


@kernel
def log_likelihood(model: Likelihood, slope: float, work: Workspace) -> float:
    """Log probability of the answers, at the distances in the workspace."""
    if model.start.shape[0]:
        value, _ = stages_log_likelihood(
            *(model.start, model.near, model.far, model.weight, model.lapse, slope),
            *(work.distance, 1.0, work.by_distance[:0]),
        )
        return value
    margin = work.by_margin
    count = margin.shape[0]
    distance = work.distance
    for t in range(count):
        margin[t] = slope * (distance[model.far[t]] - distance[model.near[t]])
    if model.lapse > 0.0:
        total = 0.0
        for t in range(count):
            e = decay(min(max(margin[t], -MAX_MARGIN), MAX_MARGIN))
            total += model.weight[t] * np.log(0.5 * model.lapse + (1.0 - model.lapse) / (1.0 + e))
        return float(total)
    for t in range(count):
        x = margin[t]
        e = decay(min(abs(x), MAX_MARGIN))
        # log1p(e) = 2 artanh(e / (2 + e)), argument at most 1/3.
        s = e / (2.0 + e)
        s2 = s * s
        s4 = s2 * s2
        odd = LOG[26]
        even = LOG[24]
        odd = LOG[22] + s4 * odd
        even = LOG[20] + s4 * even
        odd = LOG[18] + s4 * odd
        even = LOG[16] + s4 * even
        odd = LOG[14] + s4 * odd
        even = LOG[12] + s4 * even
        odd = LOG[10] + s4 * odd
        even = LOG[8] + s4 * even
        odd = LOG[6] + s4 * odd
        even = LOG[4] + s4 * even
        odd = LOG[2] + s4 * odd
        even = 1.0 + s4 * even
        margin[t] = model.weight[t] * (min(x, 0.0) - 2.0 * s * (even + s2 * odd))
    total = 0.0
    for t in range(count):
        total += margin[t]
    return float(total)


@kernel
def distance_gradient(model: Likelihood, slope: float, work: Workspace) -> float:
    """Gradient of the log likelihood by the pairs' distances; returns that by the log slope."""
    distance, out, slopes = work.distance, work.by_distance, work.by_margin
    if model.start.shape[0]:
        out[:] = 0.0
        _, by_slope = stages_log_likelihood(
            *(model.start, model.near, model.far, model.weight, model.lapse, slope),
            *(distance, 1.0, out),
        )
        return by_slope
    count = slopes.shape[0]
    for t in range(count):
        slopes[t] = distance[model.far[t]] - distance[model.near[t]]
    guess, kept = 0.5 * model.lapse, 1.0 - model.lapse
    if model.slope_deviation > 0.0 or guess > 0.0:
        by_slope = 0.0
        for t in range(count):
            difference = slopes[t]
            e = decay(min(max(slope * difference, -MAX_MARGIN), MAX_MARGIN))
            likely = kept / (1.0 + e)
            slopes[t] = model.weight[t] * slope * e / (1.0 + e) * (likely / (guess + likely))
            by_slope += slopes[t] * difference
    else:
        by_slope = 0.0
        for t in range(count):
            e = decay(min(max(slope * slopes[t], -MAX_MARGIN), MAX_MARGIN))
            slopes[t] = model.weight[t] * slope * e / (1.0 + e)
    out[:] = 0.0
    for t in range(count):
        out[model.near[t]] -= slopes[t]
        out[model.far[t]] += slopes[t]
    return by_slope


@kernel
def coordinate_gradient(model: Likelihood, work: Workspace, out: Floats) -> None:
    """Add the gradient by the scaled coordinates, from that by the distances."""
    x, distance, by_distance = work.scaled, work.distance, work.by_distance
    columns, items = x.shape
    if not model.dense:
        for q in range(model.first.shape[0]):
            a = model.first[q]
            b = model.second[q]
            ratio = by_distance[q] / distance[q]
            for k in range(columns):
                step = ratio * (x[k, a] - x[k, b])
                out[k, a] += step
                out[k, b] -= step
        return
    # A symmetric matrix: whole rows are vectorised.
    ratios = work.coefficient
    for a in range(items):
        low, high = a * items + a + 1, (a + 1) * items
        row, force, length = ratios[low:high], by_distance[low:high], distance[low:high]
        for b in range(row.shape[0]):
            row[b] = force[b] / length[b]
        for b in range(row.shape[0]):
            ratios[(a + 1 + b) * items + a] = row[b]
    total = np.zeros(items)
    for a in range(items):
        row = ratios[a * items : (a + 1) * items]
        for b in range(items):
            total[b] += row[b]
        for k in range(columns):
            line = out[k]
            here = x[k, a]
            for b in range(items):
                line[b] -= row[b] * here
    for k in range(columns):
        line, column = out[k], x[k]
        for b in range(items):
            line[b] += total[b] * column[b]


@kernel
def state_gradient(
    model: Likelihood, state: Floats, log_slope: float, scale: float, work: Workspace, out: Floats
) -> float:
    """Gradient of the log posterior by the state; returns that by the log slope."""
    last, items = state.shape[0] - 1, state.shape[1]
    pair_distances(model, state, scale, work)
    by_slope = distance_gradient(model, np.exp(log_slope), work)
    out[:] = 0.0
    coordinate_gradient(model, work, out)
    mix(model, out)
    for k in range(last):
        for a in range(items):
            out[k, a] -= model.precision[k] * state[k, a]
    for a in range(items):
        v = state[last, a]
        out[last, a] *= scale
        # A Student prior is scaled to unit variance.
        if model.tail > 0.0:
            out[last, a] -= (model.tail + 1.0) * v / (model.tail - 2.0 + v * v)
        else:
            out[last, a] -= v
    if model.slope_deviation > 0.0:
        by_slope -= log_slope / (model.slope_deviation * model.slope_deviation)
    return by_slope


@kernel
def log_prior(model: Likelihood, state: Floats, log_slope: float) -> float:
    """Log prior density of a state, up to a constant."""
    last = state.shape[0] - 1
    total = 0.0
    for a in range(state.shape[1]):
        for k in range(last):
            total -= 0.5 * model.precision[k] * state[k, a] * state[k, a]
        v = state[last, a]
        if model.tail > 0.0:
            total -= 0.5 * (model.tail + 1.0) * np.log1p(v * v / (model.tail - 2.0))
        else:
            total -= 0.5 * v * v
    if model.slope_deviation > 0.0:
        ratio = log_slope / model.slope_deviation
        total -= 0.5 * ratio * ratio
    return float(total)


@kernel
def rescaling(model: Likelihood, state: Floats, factor: float) -> float:
    """Change of the log density where the scale is divided by `factor` and coordinates stay.

    The further coordinates u = scale · v are then as likely under the answers as before; their
    standardised values v are multiplied by `factor`, and only their prior density changes.
    """
    further = state[state.shape[0] - 1]
    total = further.shape[0] * np.log(factor)
    for v in further:
        w = factor * v
        if model.tail > 0.0:
            change = np.log1p(w * w / (model.tail - 2.0)) - np.log1p(v * v / (model.tail - 2.0))
            total -= 0.5 * (model.tail + 1.0) * change
        else:
            total -= 0.5 * (w * w - v * v)
    return float(total)
