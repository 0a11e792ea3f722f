"""Likelihood of stages, its gradient, and its information about distances (compiled).

At a stage, pair m has weight w_m = exp(−d_m). One picked pair has the probability w / Σ w. Several
pairs A, picked in no order, have

    P(A) = Σ over orders of Π w_c / (W_U + those of A that are not yet picked) = Π w_c · g(A),
    g(R) = Σ_{c in R} g(R \\ c) / (W_U + W_R),  g(∅) = 1,

with W_U the weight of the unpicked pairs: a sum over the subsets of A instead of its orders.
"""

from __future__ import annotations

import numpy as np

from lore_active.embedding.kernels import distances
from lore_active.jit import kernel
from lore_active.types import Floats, Indices

# Distances are compared with the smallest one of their stage; weights are at least exp(−700).
MAX_EXPONENT = 700.0


@kernel
def largest_stage(start: Indices) -> int:
    """Number of pairs of the largest stage."""
    largest = 0
    for s in range(start.shape[0] - 1):
        largest = max(largest, start[s + 1] - start[s])
    return largest


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
    total = 0.0
    for m in range(size):
        weights[m] = np.exp(-min(distance[m] - lowest, MAX_EXPONENT))
        total += weights[m]
    if picked == 1:
        for m in range(size):
            slopes[m] = weights[m] / total
        slopes[0] -= 1.0
        return float(lowest - distance[0] - np.log(total))
    unpicked = 0.0
    for m in range(picked, size):
        unpicked += weights[m]
    every = (1 << picked) - 1
    g[0] = 1.0
    log_probability = 0.0
    for c in range(picked):
        log_probability -= distance[c] - lowest
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
    return float(log_probability + np.log(g[every]))


@kernel
def stages_loss(
    distance: Floats,
    start: Indices,
    member: Indices,
    picked: Indices,
    weight: Floats,
    pair_gradient: Floats,
) -> float:
    """Weighted loss of all stages; its gradient by pair distance goes to `pair_gradient`."""
    largest = largest_stage(start)
    near = np.empty(largest)
    slopes = np.empty(largest)
    weights = np.empty(largest)
    subsets = 1 << int(picked.max())
    g = np.empty(subsets)
    adjoint = np.empty(subsets)
    pair_gradient[:] = 0.0
    loss = 0.0
    for s in range(start.shape[0] - 1):
        begin = start[s]
        size = start[s + 1] - begin
        for m in range(size):
            near[m] = distance[member[begin + m]]
        loss -= weight[s] * stage_log_probability(
            near[:size], picked[s], slopes[:size], weights[:size], g, adjoint
        )
        for m in range(size):
            pair_gradient[member[begin + m]] -= weight[s] * slopes[m]
    return loss


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
    return stages_loss(distance, start, member, picked, weight, pair_gradient)
