"""Expected Fisher information of trials, about distances and about coordinates (compiled).

At a stage of which one pair is picked, with probabilities p, the information about the distances is
J = diag(p) − p pᵀ: what matters is only how they differ. An answer of several stages has the
expected sum of theirs, an unordered one Σ_A P(A) s_A s_Aᵀ over the sets that can be picked, with
s_A = ∇ log P(A). About the coordinates it is Gᵀ J G, with the gradients of the distances as G.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lore_active.embedding.kernels import SMOOTHING
from lore_active.jit import kernel
from lore_active.questions.kinds import Kind
from lore_active.questions.pool import Questions
from lore_active.trials.likelihood import count_sets, stage_log_probability
from lore_active.trials.stages import Stages
from lore_active.types import Floats, Indices

# Sets that can be picked are enumerated up to this many; with more, the information is that of
# so many choices of one pair.
MAX_SETS = 500
# Minimum weight of the pairs that are left after the first choice: less is rounding error.
MIN_WEIGHT = 1e-9


@kernel
def add_choice(distance: Floats, scale: float, out: Floats) -> None:
    """Add `scale` times the information of picking one pair to `out`; infinite distances are out.

    An infinite distance is that of a pair that has been picked already.
    """
    size = distance.shape[0]
    lowest = distance.min()
    p = np.empty(size)
    total = 0.0
    for m in range(size):
        p[m] = np.exp(lowest - distance[m])
        total += p[m]
    for m in range(size):
        p[m] /= total
    for m in range(size):
        out[m, m] += scale * p[m]
        for n in range(size):
            out[m, n] -= scale * p[m] * p[n]


@kernel
def set_information(distance: Floats, picked: int, out: Floats) -> None:
    """Information of picking several pairs in no order; `out` is overwritten."""
    size = distance.shape[0]
    out[:] = 0.0
    if picked == 1:
        add_choice(distance, 1.0, out)
        return
    if count_sets(size, picked) > MAX_SETS:
        add_choice(distance, float(picked), out)
        return
    subsets = 1 << picked
    g = np.empty(subsets)
    adjoint = np.empty(subsets)
    weights = np.empty(size)
    slopes = np.empty(size)
    order = np.empty(size, np.int64)
    arranged = np.empty(size)
    for chosen in range(1 << size):
        k = 0
        u = picked
        bits = 0
        for m in range(size):
            bits += chosen >> m & 1
        if bits != picked:
            continue
        for m in range(size):
            if chosen >> m & 1:
                order[k] = m
                k += 1
            else:
                order[u] = m
                u += 1
        for m in range(size):
            arranged[m] = distance[order[m]]
        p = np.exp(stage_log_probability(arranged, picked, slopes, weights, g, adjoint))
        for m in range(size):
            for n in range(size):
                out[order[m], order[n]] += p * slopes[m] * slopes[n]


@kernel
def ranking_information(distance: Floats, picked: int, out: Floats) -> None:
    """Information of ranking the nearest `picked` pairs; `out` is overwritten.

    Exact for two; from the third on as if the most probable pairs had been picked before.
    """
    size = distance.shape[0]
    out[:] = 0.0
    if picked == 1:
        add_choice(distance, 1.0, out)
        return
    # With w_m the weights, the second choice has the information q_i (1 − q_i) and −q_i q_j, where
    # q_i = w_i / (Σ w − w_m) if m was picked first; a_m is the probability of that over the square.
    lowest = distance.min()
    w = np.empty(size)
    a = np.empty(size)
    total = 0.0
    for m in range(size):
        w[m] = np.exp(lowest - distance[m])
        total += w[m]
    every = 0.0
    for m in range(size):
        rest = max(total - w[m], MIN_WEIGHT)
        a[m] = w[m] / (total * rest * rest)
        every += a[m]
    for m in range(size):
        for n in range(m):
            value = w[m] * w[n] * (1.0 / (total * total) + every - a[m] - a[n])
            out[m, n] = -value
            out[n, m] = -value
            out[m, m] += value
            out[n, n] += value
    if picked > 2:
        left = distance.copy()
        left[np.argmin(left)] = np.inf
        for _ in range(2, picked):
            left[np.argmin(left)] = np.inf
            add_choice(left, 1.0, out)


@kernel
def trial_information(distance: Floats, picked: int, ordered: bool, out: Floats) -> None:
    """Expected information of a trial about its distances, in units of the temperature."""
    if ordered:
        ranking_information(distance, picked, out)
    else:
        set_information(distance, picked, out)


@kernel
def pair_gradients(
    z: Floats, first: Indices, second: Indices, distance: Floats, unit: Floats
) -> None:
    """Smoothed distances of pairs, and their gradients by the coordinates of the first item."""
    for q in range(first.shape[0]):
        total = SMOOTHING * SMOOTHING
        for k in range(z.shape[1]):
            unit[q, k] = z[first[q], k] - z[second[q], k]
            total += unit[q, k] * unit[q, k]
        distance[q] = np.sqrt(total)
        for k in range(z.shape[1]):
            unit[q, k] /= distance[q]


@kernel
def add_to_coordinates(
    first: Indices, second: Indices, unit: Floats, j: Floats, scale: float, out: Floats
) -> None:
    """Add `scale` · Gᵀ J G of some pairs to the lower triangle of a matrix over coordinates."""
    axes = unit.shape[1]
    for p in range(first.shape[0]):
        for q in range(first.shape[0]):
            weight = scale * j[p, q]
            if weight == 0.0:
                continue
            for side in range(4):
                item = first[p] if side < 2 else second[p]
                other = first[q] if side % 2 == 0 else second[q]
                if item < other:
                    continue
                signed = weight if side in (0, 3) else -weight
                for k in range(axes):
                    for m in range(k + 1 if item == other else axes):
                        out[item * axes + k, other * axes + m] += signed * unit[p, k] * unit[q, m]


@kernel
def add_stage_information(
    z: Floats,
    first: Indices,
    second: Indices,
    start: Indices,
    member: Indices,
    picked: Indices,
    weight: Floats,
    temperature: float,
    out: Floats,
) -> None:
    """Add the expected information of answered stages, given the stages before them."""
    largest = 0
    for s in range(start.shape[0] - 1):
        largest = max(largest, start[s + 1] - start[s])
    distance = np.empty(first.shape[0])
    unit = np.empty((first.shape[0], z.shape[1]))
    pair_gradients(z, first, second, distance, unit)
    near = np.empty(largest)
    whole = np.empty((largest, largest))
    for s in range(start.shape[0] - 1):
        pairs = member[start[s] : start[s + 1]]
        size = pairs.shape[0]
        for m in range(size):
            near[m] = distance[pairs[m]] / temperature
        j = whole[:size, :size]
        set_information(near[:size], picked[s], j)
        add_to_coordinates(
            first[pairs],
            second[pairs],
            unit[pairs],
            j,
            weight[s] / (temperature * temperature),
            out,
        )


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


def add_stages(z: Floats, stages: Stages, temperature: float, out: Floats) -> None:
    """Add the expected information of answered trials to the lower triangle of `out`."""
    add_stage_information(
        np.ascontiguousarray(z),
        *(stages.first, stages.second, stages.start, stages.member, stages.picked),
        *(stages.weight * stages.count, temperature, out),
    )


@dataclass(frozen=True, eq=False)
class Unanswered:
    """Questions of a kind, as rows (anchor, options …), that have not been answered."""

    kind: Kind
    rows: Questions


def add_unanswered(z: Floats, asked: Unanswered, temperature: float, out: Floats) -> None:
    """Add the expected information of unanswered questions to the lower triangle of `out`."""
    z, kind = np.ascontiguousarray(z), asked.kind
    for row in asked.rows:
        first, second = question_pairs(row, kind)
        distance, unit = np.empty(len(first)), np.empty((len(first), z.shape[1]))
        pair_gradients(z, first, second, distance, unit)
        j = np.empty((len(first), len(first)))
        trial_information(distance / temperature, kind.pick, kind.ordered, j)
        add_to_coordinates(first, second, unit, j, 1.0 / temperature**2, out)


def question_pairs(row: NDArray[np.int64], kind: Kind) -> tuple[Indices, Indices]:
    """The pairs of items that a question compares, one for each of its options.

    Those of an odd-one-out question are opposite to its options, so that the nearest pair is
    picked by choosing the odd one.
    """
    options = row[1:].astype(np.int32)
    if kind.has_anchor:
        return np.full(len(options), row[0], dtype=np.int32), options
    return np.roll(options, -1), np.roll(options, 1)
