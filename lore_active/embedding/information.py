"""Fisher information of an embedding: what is known, and what a question would add (compiled).

Coordinates are numbered item by item: parameter a·r + k is item a's coordinate on axis k. The
margin of a question (a, i, j) is d(a,j) − d(a,i); its gradient has 3r entries that are not zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lore_active.jit import kernel
from lore_active.types import Floats

Questions = NDArray[np.int64]
Places = NDArray[np.int64]
SMOOTHING = 1e-3


@kernel
def margin_gradient(z: Floats, a: int, i: int, j: int, slope: Floats, place: Places) -> float:
    """Margin of one question; its gradient's entries and their places go to `slope`, `place`."""
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
        slope[k] = to_far - to_near
        slope[axes + k] = to_near
        slope[2 * axes + k] = -to_far
        place[k] = a * axes + k
        place[axes + k] = i * axes + k
        place[2 * axes + k] = j * axes + k
    return float(far - near)


@kernel
def weight_at(margin: float, temperature: float) -> float:
    """Information of one answer about its margin: p (1 − p) / temperature²."""
    e = np.exp(-abs(margin) / temperature)
    return float(e / ((1.0 + e) ** 2 * temperature**2))


@kernel
def add_information(z: Floats, questions: Questions, temperature: float, out: Floats) -> None:
    """Add each question's expected information to the lower triangle of the matrix `out`."""
    size = 3 * z.shape[1]
    slope = np.empty(size)
    place = np.empty(size, np.int64)
    for t in range(questions.shape[0]):
        margin = margin_gradient(z, questions[t, 0], questions[t, 1], questions[t, 2], slope, place)
        weight = weight_at(margin, temperature)
        for x in range(size):
            for y in range(x + 1):
                row, column = max(place[x], place[y]), min(place[x], place[y])
                # Slopes first: the same bits when a question's sides are exchanged.
                out[row, column] += weight * (slope[x] * slope[y])


@kernel
def mirror(matrix: Floats) -> None:
    """Copy the lower triangle of a matrix to its upper one, in blocks that stay in the cache."""
    many = matrix.shape[0]
    block = 64
    for top in range(0, many, block):
        for left in range(0, top + block, block):
            for row in range(top, min(top + block, many)):
                for column in range(left, min(left + block, row)):
                    matrix[column, row] = matrix[row, column]


@kernel
def gradients(
    z: Floats, questions: Questions, margins: Floats, slopes: Floats, places: Places
) -> None:
    """Margin of each question, and a row with its gradient's entries and one with their places."""
    for t in range(questions.shape[0]):
        margins[t] = margin_gradient(
            z, questions[t, 0], questions[t, 1], questions[t, 2], slopes[t], places[t]
        )


@kernel
def spread(slopes: Floats, places: Places, covariance: Floats, variances: Floats) -> None:
    """Variance of each margin."""
    for t in range(slopes.shape[0]):
        total = 0.0
        for x in range(slopes.shape[1]):
            row = 0.0
            for y in range(slopes.shape[1]):
                row += covariance[places[t, x], places[t, y]] * slopes[t, y]
            total += row * slopes[t, x]
        variances[t] = total


@kernel
def images(slopes: Floats, places: Places, matrix: Floats, out: Floats) -> None:
    """out[t] = gradient t through the rows of a matrix: slopes @ matrix[places]."""
    for t in range(slopes.shape[0]):
        out[t] = 0.0
        for x in range(slopes.shape[1]):
            for column in range(matrix.shape[1]):
                out[t, column] += slopes[t, x] * matrix[places[t, x], column]


@kernel
def learn(
    best: int,
    weight: float,
    covariance: Floats,
    slopes: Floats,
    places: Places,
    learnt: int,
    shrunk: Floats,
    factors: Floats,
    seen: Floats,
    variances: Floats,
) -> None:
    """Bring candidates up to date with an answer to one of them, as if it had been given.

    The covariance stays as it was: of each of the `learnt` answers before, `factors` and rows of
    `shrunk` hold what it took from it, factor · row rowᵀ, and they get one more. `seen` holds the
    candidates' gradients through the targets, `variances` their margins' variances.
    """
    size = slopes.shape[1]
    image = shrunk[learnt]
    images(slopes[best : best + 1], places[best : best + 1], covariance, shrunk[learnt:])
    for before in range(learnt):
        along = 0.0
        for x in range(size):
            along += slopes[best, x] * shrunk[before, places[best, x]]
        share = factors[before] * along
        for column in range(image.shape[0]):
            image[column] -= share * shrunk[before, column]
    variance = 0.0
    for x in range(size):
        variance += slopes[best, x] * image[places[best, x]]
    factor = weight / (1.0 + weight * variance)
    factors[learnt] = factor
    own = seen[best].copy()
    for t in range(slopes.shape[0]):
        shared = 0.0
        for x in range(size):
            shared += slopes[t, x] * image[places[t, x]]
        variances[t] -= factor * shared * shared
        share = factor * shared
        for q in range(own.shape[0]):
            seen[t, q] -= share * own[q]
