"""Composition of trials: which options, beside which anchor, are most informative (compiled).

An answer to a trial has the information J about the distances of its pairs. With V the covariance
of these distances, and C the sum over the target margins of the products of their covariances with
the distances, the answer is expected to reduce the targets' variance by tr[C J (I + V J)⁻¹]; with
one pair of distances this is the score of a triplet. Without targets, the score is the expected
information ½ log det(I + V J). Options are added one after another, each time the one with which
the trial is most informative; then each may be exchanged once.
"""

from __future__ import annotations

import numpy as np

from lore_active.jit import kernel
from lore_active.trials.information import pair_gradients, trial_information
from lore_active.types import Floats, Indices


@kernel
def eliminated(matrix: Floats, right: Floats) -> float:
    """Solve matrix · x = right in place, with pivoting; returns the log of the determinant."""
    size = matrix.shape[0]
    log_determinant = 0.0
    for k in range(size):
        pivot = k
        for m in range(k + 1, size):
            if abs(matrix[m, k]) > abs(matrix[pivot, k]):
                pivot = m
        if pivot != k:
            for n in range(size):
                matrix[k, n], matrix[pivot, n] = matrix[pivot, n], matrix[k, n]
            for n in range(right.shape[1]):
                right[k, n], right[pivot, n] = right[pivot, n], right[k, n]
        log_determinant += np.log(abs(matrix[k, k]))
        for m in range(k + 1, size):
            factor = matrix[m, k] / matrix[k, k]
            for n in range(k, size):
                matrix[m, n] -= factor * matrix[k, n]
            for n in range(right.shape[1]):
                right[m, n] -= factor * right[k, n]
    for k in range(size - 1, -1, -1):
        for n in range(right.shape[1]):
            for m in range(k + 1, size):
                right[k, n] -= matrix[k, m] * right[m, n]
            right[k, n] /= matrix[k, k]
    return log_determinant


@kernel
def gain(j: Floats, covariance: Floats, targets: Floats, system: Floats, solved: Floats) -> float:
    """Expected reduction of the targets' variance or, without targets, expected information.

    `solved` becomes J (I + V J)⁻¹, by which an answer changes the covariance of the coordinates.
    """
    size = j.shape[0]
    for m in range(size):
        for n in range(size):
            # (I + V J)ᵀ = I + J V, since both are symmetric.
            total = 1.0 if m == n else 0.0
            for k in range(size):
                total += j[m, k] * covariance[k, n]
            system[m, n] = total
            solved[m, n] = j[m, n]
    log_determinant = eliminated(system, solved)
    if targets.shape[0] == 0:
        return 0.5 * log_determinant
    total = 0.0
    for m in range(size):
        for n in range(size):
            total += targets[m, n] * solved[m, n]
    return total


@kernel
def trial_gain(
    options: Indices,
    count: int,
    picked: int,
    ordered: bool,
    distance: Floats,
    covariance: Floats,
    targets: Floats,
    space: Floats,
) -> float:
    """Gain of a trial of the first `count` options; `space` has the shape (5, count, count)."""
    j = space[0, :count, :count]
    near = space[4, 0, :count]
    v = space[1, :count, :count]
    c = space[2, : count if targets.shape[0] else 0, :count]
    for m in range(count):
        near[m] = distance[options[m]]
        for n in range(count):
            v[m, n] = covariance[options[m], options[n]]
            if targets.shape[0]:
                c[m, n] = targets[options[m], options[n]]
    trial_information(near, min(picked, count - 1), ordered, j)
    return gain(j, v, c, space[3, :count, :count], space[4, 1 : count + 1, :count])


@kernel
def compose(
    count: int,
    picked: int,
    ordered: bool,
    distance: Floats,
    covariance: Floats,
    targets: Floats,
    options: Indices,
) -> float:
    """Compose a trial of `count` of the candidate options; `options` get their places.

    Unordered answers are scored as if they were ordered, which is faster and hardly different.

    Parameters
    ----------
    distance : array of shape (n_candidates,)
        Distance of each candidate from the anchor, in units of the temperature.
    covariance, targets : array of shape (n_candidates, n_candidates)
        V and C of the module's description; `targets` may be empty.

    Returns
    -------
    float
        The gain of the trial.
    """
    candidates = distance.shape[0]
    space = np.empty((5, count + 1, count + 1))
    free = np.ones(candidates, np.bool_)
    best = -np.inf
    pair = np.empty(2, np.int32)
    for m in range(candidates):
        for n in range(m):
            pair[0] = m
            pair[1] = n
            value = trial_gain(pair, 2, 1, True, distance, covariance, targets, space)
            if value > best:
                best = value
                options[0] = m
                options[1] = n
    free[options[0]] = False
    free[options[1]] = False
    for size in range(3, count + 1):
        best = -np.inf
        added = -1
        for m in range(candidates):
            if free[m]:
                options[size - 1] = m
                value = trial_gain(
                    options, size, picked, True, distance, covariance, targets, space
                )
                if value > best:
                    best = value
                    added = m
        options[size - 1] = added
        free[added] = False
    return trial_gain(options, count, picked, ordered, distance, covariance, targets, space)


@kernel
def exchange(
    count: int,
    picked: int,
    ordered: bool,
    distance: Floats,
    covariance: Floats,
    targets: Floats,
    options: Indices,
) -> float:
    """Exchange each option of a trial once, where another candidate tells more; see `compose`."""
    candidates = distance.shape[0]
    space = np.empty((5, count + 1, count + 1))
    free = np.ones(candidates, np.bool_)
    for m in options:
        free[m] = False
    best = trial_gain(options, count, picked, True, distance, covariance, targets, space)
    for place in range(count):
        old = options[place]
        better = old
        for m in range(candidates):
            if free[m]:
                options[place] = m
                value = trial_gain(
                    options, count, picked, True, distance, covariance, targets, space
                )
                if value > best:
                    best = value
                    better = m
        options[place] = better
        free[old] = True
        free[better] = False
    return trial_gain(options, count, picked, ordered, distance, covariance, targets, space)


@kernel
def pair_covariances(
    first: Indices, second: Indices, unit: Floats, covariance: Floats, out: Floats
) -> None:
    """Covariances of the distances of pairs, given the covariance of all coordinates."""
    axes = unit.shape[1]
    for p in range(first.shape[0]):
        for q in range(p + 1):
            total = 0.0
            for k in range(axes):
                row = 0.0
                for m in range(axes):
                    row += unit[q, m] * (
                        covariance[first[p] * axes + k, first[q] * axes + m]
                        - covariance[first[p] * axes + k, second[q] * axes + m]
                        - covariance[second[p] * axes + k, first[q] * axes + m]
                        + covariance[second[p] * axes + k, second[q] * axes + m]
                    )
                total += unit[p, k] * row
            out[p, q] = total
            out[q, p] = total


@kernel
def pair_block_covariances(
    first: Indices, second: Indices, unit: Floats, blocks: Floats, out: Floats
) -> None:
    """The same where the covariance consists of one block for each item."""
    axes = unit.shape[1]
    for p in range(first.shape[0]):
        for q in range(p + 1):
            total = 0.0
            for side in range(4):
                item = first[p] if side < 2 else second[p]
                other = first[q] if side % 2 == 0 else second[q]
                if item == other:
                    sign = 1.0 if side in (0, 3) else -1.0
                    for k in range(axes):
                        for m in range(axes):
                            total += sign * unit[p, k] * blocks[item, k, m] * unit[q, m]
            out[p, q] = total
            out[q, p] = total


@kernel
def pair_images(first: Indices, second: Indices, unit: Floats, matrix: Floats, out: Floats) -> None:
    """Gradients of the pairs' distances times a matrix with one row per coordinate."""
    axes = unit.shape[1]
    for p in range(first.shape[0]):
        out[p] = 0.0
        for k in range(axes):
            coordinate = first[p] * axes + k
            other = second[p] * axes + k
            for column in range(matrix.shape[1]):
                out[p, column] += unit[p, k] * (matrix[coordinate, column] - matrix[other, column])


@kernel
def pool_gains(
    z: Floats,
    first: Indices,
    second: Indices,
    picked: int,
    ordered: bool,
    temperature: float,
    covariance: Floats,
    blocks: Floats,
    images: Floats,
    out: Floats,
) -> None:
    """Gains of trials whose pairs are the rows of `first` and `second`.

    The covariance is that of all coordinates or, if that is empty, one block for each item.
    """
    size = first.shape[1]
    distance = np.empty(size)
    unit = np.empty((size, z.shape[1]))
    j = np.empty((size, size))
    v = np.empty((size, size))
    c = np.empty((size if images.shape[0] else 0, size))
    system = np.empty((size, size))
    solved = np.empty((size, size))
    seen = np.empty((size, images.shape[1]))
    square = temperature * temperature
    for t in range(first.shape[0]):
        pair_gradients(z, first[t], second[t], distance, unit)
        if covariance.shape[0]:
            pair_covariances(first[t], second[t], unit, covariance, v)
        else:
            pair_block_covariances(first[t], second[t], unit, blocks, v)
        for m in range(size):
            distance[m] /= temperature
            for n in range(size):
                v[m, n] /= square
        if images.shape[0]:
            pair_images(first[t], second[t], unit, images, seen)
            for m in range(size):
                for n in range(size):
                    total = 0.0
                    for q in range(seen.shape[1]):
                        total += seen[m, q] * seen[n, q]
                    c[m, n] = total / square
        trial_information(distance, picked, ordered, j)
        out[t] = gain(j, v, c, system, solved)
