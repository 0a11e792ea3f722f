"""Expected Fisher information of an embedding, and how questions would add to it (compiled).

Coordinates are numbered item by item: parameter a·r + k is item a's coordinate on axis k. The
margin of a question (a, i, j) is d(a,j) − d(a,i); its gradient has 3r nonzero entries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lore_active.jit import kernel
from lore_active.questions.pool import Questions
from lore_active.types import Floats

Indices64 = NDArray[np.int64]
SMOOTHING = 1e-3


@kernel
def margin_gradient(z: Floats, a: int, i: int, j: int, entry: Floats, index: Indices64) -> float:
    """Margin of a question; the nonzero gradient entries and their indices go to the arrays."""
    axes = z.shape[1]
    near = SMOOTHING * SMOOTHING
    far = SMOOTHING * SMOOTHING
    for k in range(axes):
        near += (z[a, k] - z[i, k]) ** 2
        far += (z[a, k] - z[j, k]) ** 2
    near = np.sqrt(near)
    far = np.sqrt(far)
    for k in range(axes):
        to_near = (z[a, k] - z[i, k]) / near
        to_far = (z[a, k] - z[j, k]) / far
        entry[k] = to_far - to_near
        entry[axes + k] = to_near
        entry[2 * axes + k] = -to_far
        index[k] = a * axes + k
        index[axes + k] = i * axes + k
        index[2 * axes + k] = j * axes + k
    return float(far - near)


@kernel
def weight_at(margin: float, temperature: float) -> float:
    """Fisher information of one answer about its margin: p (1 − p) / temperature²."""
    e = np.exp(-abs(margin) / temperature)
    return float(e / ((1.0 + e) ** 2 * temperature**2))


@kernel
def add_information(z: Floats, questions: Questions, temperature: float, out: Floats) -> None:
    """Add each question's expected information to the lower triangle of the matrix `out`."""
    size = 3 * z.shape[1]
    entry = np.empty(size)
    index = np.empty(size, np.int64)
    for t in range(questions.shape[0]):
        margin = margin_gradient(z, questions[t, 0], questions[t, 1], questions[t, 2], entry, index)
        weight = weight_at(margin, temperature)
        for x in range(size):
            for y in range(x + 1):
                row, column = max(index[x], index[y]), min(index[x], index[y])
                # The product of entries first: the same bits when the options are swapped.
                out[row, column] += weight * (entry[x] * entry[y])


@kernel
def mirror(matrix: Floats) -> None:
    """Copy the lower triangle of a matrix to the upper one, in blocks that fit in the cache."""
    size = matrix.shape[0]
    block = 64
    for top in range(0, size, block):
        for left in range(0, top + block, block):
            for row in range(top, min(top + block, size)):
                for column in range(left, min(left + block, row)):
                    matrix[column, row] = matrix[row, column]


@kernel
def gradients(
    z: Floats, questions: Questions, margins: Floats, slopes: Floats, indices: Indices64
) -> None:
    """Margins of questions, and rows with the gradient's nonzero entries and their indices."""
    for t in range(questions.shape[0]):
        margins[t] = margin_gradient(
            z, questions[t, 0], questions[t, 1], questions[t, 2], slopes[t], indices[t]
        )


@kernel
def margin_variances(
    slopes: Floats, indices: Indices64, covariance: Floats, variances: Floats
) -> None:
    """Variance of each margin, by the delta method."""
    for t in range(slopes.shape[0]):
        total = 0.0
        for x in range(slopes.shape[1]):
            row = 0.0
            for y in range(slopes.shape[1]):
                row += covariance[indices[t, x], indices[t, y]] * slopes[t, y]
            total += row * slopes[t, x]
        variances[t] = total


@kernel
def images(slopes: Floats, indices: Indices64, matrix: Floats, out: Floats) -> None:
    """out[t] = gradient t times a matrix: slopes[t] @ matrix[indices[t]].

    A question has three items, so entries come by threes: each pass over the columns adds three
    rows of the matrix, in order, and writes the sum once.
    """
    for t in range(slopes.shape[0]):
        row = out[t]
        row[:] = 0.0
        for x in range(0, slopes.shape[1], 3):
            first, second, third = slopes[t, x], slopes[t, x + 1], slopes[t, x + 2]
            m, n, o = matrix[indices[t, x]], matrix[indices[t, x + 1]], matrix[indices[t, x + 2]]
            for column in range(row.shape[0]):
                total = row[column] + first * m[column]
                total += second * n[column]
                row[column] = total + third * o[column]


@kernel
def learn(
    best: int,
    weight: float,
    covariance: Floats,
    slopes: Floats,
    indices: Indices64,
    learnt: int,
    shrunk: Floats,
    factors: Floats,
    seen: Floats,
    variances: Floats,
) -> None:
    """Update candidates as if one of them had been answered (rank-one update of the covariance).

    The covariance itself is not changed: each of the `learnt` earlier answers reduced it by
    factor · row rowᵀ, with the factor in `factors` and the row in `shrunk`; one more of both is
    added. `seen` holds the products of the candidates' gradients with the targets, `variances` the
    variances of their margins.
    """
    size = slopes.shape[1]
    image = shrunk[learnt]
    images(slopes[best : best + 1], indices[best : best + 1], covariance, shrunk[learnt:])
    for before in range(learnt):
        product = 0.0
        for x in range(size):
            product += slopes[best, x] * shrunk[before, indices[best, x]]
        scaled = factors[before] * product
        for column in range(image.shape[0]):
            image[column] -= scaled * shrunk[before, column]
    variance = 0.0
    for x in range(size):
        variance += slopes[best, x] * image[indices[best, x]]
    factor = weight / (1.0 + weight * variance)
    factors[learnt] = factor
    own = seen[best].copy()
    for t in range(slopes.shape[0]):
        shared = 0.0
        for x in range(size):
            shared += slopes[t, x] * image[indices[t, x]]
        variances[t] -= factor * shared * shared
        scaled = factor * shared
        for q in range(own.shape[0]):
            seen[t, q] -= scaled * own[q]
