"""Likelihood of stages and its gradient (compiled).

At a stage, pair m has weight w_m = exp(−d_m). One picked pair has the probability w / Σ w. Several
pairs A, picked in no order, have

    P(A) = Σ over orders of Π w_c / (W_U + those of A that are not yet picked) = Π w_c · g(A),
    g(R) = Σ_{c in R} g(R \\ c) / (W_U + W_R),  g(∅) = 1,

with W_U the weight of the unpicked pairs: a sum over the subsets of A instead of its orders.
"""

from __future__ import annotations

import numpy as np

from lore_active.embedding.kernels import MAX_EXPONENT, decay, distances
from lore_active.jit import kernel
from lore_active.types import Floats, Indices


@kernel
def count_sets(size: int, picked: int) -> float:
    """Number of sets of `picked` of `size` pairs."""
    sets = 1.0
    for k in range(picked):
        sets = sets * (size - k) / (k + 1)
    return sets


@kernel
def stage_log_probability(
    distance: Floats, picked: int, slopes: Floats, weights: Floats, g: Floats, adjoint: Floats
) -> float:
    """Log probability that the first `picked` of some pairs are picked; its gradient by distance.

    `slopes` and `weights` have as many elements as there are distances; `g` and `adjoint` have two
    to the power of `picked`, or are not used if that is 1.
    """
    size = distance.shape[0]
    lowest = distance[0]
    for m in range(1, size):
        lowest = min(lowest, distance[m])
    for m in range(size):
        weights[m] = np.exp(-min(distance[m] - lowest, MAX_EXPONENT))
    if picked > 1:
        beyond = 0.0
        for c in range(picked):
            beyond += distance[c] - lowest
        return set_log_probability(weights, picked, slopes, g, adjoint) - beyond
    total = 0.0
    for m in range(size):
        total += weights[m]
    for m in range(size):
        slopes[m] = weights[m] / total
    slopes[0] -= 1.0
    return float(lowest - distance[0] - np.log(total))


@kernel
def set_log_probability(
    weights: Floats, picked: int, slopes: Floats, g: Floats, adjoint: Floats
) -> float:
    """log g of the first `picked` pairs by the weights; the gradient of log P by distance."""
    size = weights.shape[0]
    unpicked = 0.0
    for m in range(picked, size):
        unpicked += weights[m]
    every = (1 << picked) - 1
    g[0] = 1.0
    for c in range(picked):
        slopes[c] = -1.0
    for subset in range(1, every + 1):
        left = unpicked
        total = 0.0
        for c in range(picked):
            if subset >> c & 1:
                left += weights[c]
                total += g[subset ^ (1 << c)]
        g[subset] = total / left
    adjoint[:] = 0.0
    adjoint[every] = 1.0 / g[every]
    by_unpicked = 0.0
    for subset in range(every, 0, -1):
        left = unpicked
        for c in range(picked):
            if subset >> c & 1:
                left += weights[c]
        share = adjoint[subset] / left
        by_left = -share * g[subset]
        by_unpicked += by_left
        for c in range(picked):
            if subset >> c & 1:
                adjoint[subset ^ (1 << c)] += share
                slopes[c] -= by_left * weights[c]
    for m in range(picked, size):
        slopes[m] = -by_unpicked * weights[m]
    return float(np.log(g[every]))


@kernel
def stages_log_likelihood(
    start: Indices,
    member: Indices,
    picked: Indices,
    weight: Floats,
    lapse: float,
    slope: float,
    distance: Floats,
    sign: float,
    gradient: Floats,
) -> tuple[float, float]:
    """Log likelihood of stages, of which a share `lapse` is guessed; its gradient by log slope.

    Distances are multiplied by `slope`. `sign` times the gradient by distance is added to
    `gradient`, unless that has no elements. Weights of all pairs are computed first: that loop is
    vectorised, and most of the work.
    """
    count = start.shape[0] - 1
    weights = np.empty(member.shape[0])
    lowest = np.empty(count)
    for s in range(count):
        least = distance[member[start[s]]]
        for m in range(start[s] + 1, start[s + 1]):
            least = min(least, distance[member[m]])
        lowest[s] = least
        for m in range(start[s], start[s + 1]):
            weights[m] = slope * (distance[member[m]] - least)
    for m in range(weights.shape[0]):
        weights[m] = decay(min(weights[m], MAX_EXPONENT))
    most = 1
    for s in range(count):
        most = max(most, picked[s])
    g = np.empty(1 << most)
    adjoint = np.empty(1 << most)
    slopes = np.empty(weights.shape[0] if most > 1 else 0)
    wanted = gradient.shape[0] > 0
    value = 0.0
    by_slope = 0.0
    for s in range(count):
        begin = start[s]
        end = start[s + 1]
        beyond = 0.0
        for c in range(begin, begin + picked[s]):
            beyond += distance[member[c]] - lowest[s]
        log_probability = -slope * beyond
        total = 0.0
        if picked[s] == 1:
            for m in range(begin, end):
                total += weights[m]
            log_probability -= np.log(total)
        else:
            log_probability += set_log_probability(
                weights[begin:end], picked[s], slopes[begin:end], g, adjoint
            )
        share = weight[s]
        if lapse > 0.0:
            likely = (1.0 - lapse) * np.exp(log_probability)
            guess = lapse / count_sets(end - begin, picked[s])
            log_probability = np.log(guess + likely)
            share *= likely / (guess + likely)
        value += weight[s] * log_probability
        if not wanted:
            continue
        share *= slope
        if picked[s] == 1:
            by_slope -= share * beyond
            gradient[member[begin]] -= sign * share
            share /= total
            for m in range(begin, end):
                by = share * weights[m]
                by_slope += by * (distance[member[m]] - lowest[s])
                gradient[member[m]] += sign * by
        else:
            for m in range(begin, end):
                by = share * slopes[m]
                by_slope += by * (distance[member[m]] - lowest[s])
                gradient[member[m]] += sign * by
    return value, by_slope


@kernel
def stages_loss_at(
    z: Floats,
    first: Indices,
    second: Indices,
    start: Indices,
    member: Indices,
    picked: Indices,
    weight: Floats,
    distance: Floats,
    pair_gradient: Floats,
) -> float:
    """Loss of the stages at z; `distance` and `pair_gradient` are filled for `gradient_at`."""
    distances(z, first, second, distance)
    pair_gradient[:] = 0.0
    value, _ = stages_log_likelihood(
        start, member, picked, weight, 0.0, 1.0, distance, -1.0, pair_gradient
    )
    return -value
