"""Likelihood of stages with a free slope and lapses, for the sampler (compiled).

Distances are multiplied by the slope. A share `lapse` of the picks are guesses.
"""

from __future__ import annotations

import numpy as np

from lore_active.jit import kernel
from lore_active.trials.information import count_sets
from lore_active.trials.likelihood import largest_stage, stage_log_probability
from lore_active.types import Floats, Indices


@kernel
def stages_log_likelihood(
    start: Indices,
    member: Indices,
    picked: Indices,
    weight: Floats,
    lapse: float,
    slope: float,
    distance: Floats,
) -> float:
    """Log probability of the stages at these distances."""
    largest = largest_stage(start)
    near = np.empty(largest)
    slopes = np.empty(largest)
    weights = np.empty(largest)
    subsets = 1 << int(picked.max())
    g = np.empty(subsets)
    adjoint = np.empty(subsets)
    total = 0.0
    for s in range(start.shape[0] - 1):
        begin = start[s]
        size = start[s + 1] - begin
        for m in range(size):
            near[m] = slope * distance[member[begin + m]]
        value = stage_log_probability(
            near[:size], picked[s], slopes[:size], weights[:size], g, adjoint
        )
        if lapse > 0.0:
            guess = lapse / count_sets(size, picked[s])
            value = np.log(guess + (1.0 - lapse) * np.exp(value))
        total += weight[s] * value
    return total


@kernel
def stages_distance_gradient(
    start: Indices,
    member: Indices,
    picked: Indices,
    weight: Floats,
    lapse: float,
    slope: float,
    distance: Floats,
    out: Floats,
) -> float:
    """Gradient of the log likelihood by the distances; returns that by the log slope."""
    largest = largest_stage(start)
    near = np.empty(largest)
    slopes = np.empty(largest)
    weights = np.empty(largest)
    subsets = 1 << int(picked.max())
    g = np.empty(subsets)
    adjoint = np.empty(subsets)
    out[:] = 0.0
    by_slope = 0.0
    for s in range(start.shape[0] - 1):
        begin = start[s]
        size = start[s + 1] - begin
        for m in range(size):
            near[m] = slope * distance[member[begin + m]]
        value = stage_log_probability(
            near[:size], picked[s], slopes[:size], weights[:size], g, adjoint
        )
        share = weight[s]
        if lapse > 0.0:
            likely = (1.0 - lapse) * np.exp(value)
            share *= likely / (lapse / count_sets(size, picked[s]) + likely)
        for m in range(size):
            out[member[begin + m]] += share * slope * slopes[m]
            by_slope += share * slopes[m] * near[m]
    return by_slope


@kernel
def stages_distance_information(
    start: Indices,
    member: Indices,
    picked: Indices,
    weight: Floats,
    slope: float,
    distance: Floats,
    out: Floats,
) -> None:
    """Diagonal of the expected information about the distances, as if picks were separate."""
    out[:] = 0.0
    for s in range(start.shape[0] - 1):
        begin = start[s]
        end = start[s + 1]
        lowest = np.inf
        for m in range(begin, end):
            lowest = min(lowest, distance[member[m]])
        total = 0.0
        for m in range(begin, end):
            total += np.exp(slope * (lowest - distance[member[m]]))
        for m in range(begin, end):
            p = np.exp(slope * (lowest - distance[member[m]])) / total
            out[member[m]] += weight[s] * picked[s] * slope * slope * p * (1.0 - p)
