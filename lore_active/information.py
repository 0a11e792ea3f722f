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
SMOOTHING = 1e-3


@kernel
def margin_gradient(
    z: Floats, a: int, i: int, j: int, slope: Floats, place: NDArray[np.int64]
) -> float:
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
    """Add each question's expected information to the matrix `out`."""
    size = 3 * z.shape[1]
    slope = np.empty(size)
    place = np.empty(size, np.int64)
    for t in range(questions.shape[0]):
        margin = margin_gradient(z, questions[t, 0], questions[t, 1], questions[t, 2], slope, place)
        weight = weight_at(margin, temperature)
        for x in range(size):
            share = weight * slope[x]
            for y in range(size):
                out[place[x], place[y]] += share * slope[y]


@kernel
def spread(
    z: Floats, covariance: Floats, questions: Questions, margins: Floats, variances: Floats
) -> None:
    """Margin of each question and the variance of that margin."""
    size = 3 * z.shape[1]
    slope = np.empty(size)
    place = np.empty(size, np.int64)
    for t in range(questions.shape[0]):
        margins[t] = margin_gradient(
            z, questions[t, 0], questions[t, 1], questions[t, 2], slope, place
        )
        total = 0.0
        for x in range(size):
            row = 0.0
            for y in range(size):
                row += covariance[place[x], place[y]] * slope[y]
            total += row * slope[x]
        variances[t] = total


@kernel
def images(z: Floats, matrix: Floats, questions: Questions, out: Floats) -> None:
    """out[:, t] = matrix @ gradient of question t, for a symmetric matrix."""
    size = 3 * z.shape[1]
    slope = np.empty(size)
    place = np.empty(size, np.int64)
    for t in range(questions.shape[0]):
        margin_gradient(z, questions[t, 0], questions[t, 1], questions[t, 2], slope, place)
        for row in range(matrix.shape[0]):
            total = 0.0
            for x in range(size):
                total += matrix[row, place[x]] * slope[x]
            out[row, t] = total


@kernel
def reach(z: Floats, targets: Floats, questions: Questions, out: Floats) -> None:
    """Squared length of each question's gradient seen through the targets' columns."""
    size = 3 * z.shape[1]
    slope = np.empty(size)
    place = np.empty(size, np.int64)
    seen = np.empty(targets.shape[1])
    for t in range(questions.shape[0]):
        margin_gradient(z, questions[t, 0], questions[t, 1], questions[t, 2], slope, place)
        seen[:] = 0.0
        for x in range(size):
            for q in range(targets.shape[1]):
                seen[q] += slope[x] * targets[place[x], q]
        total = 0.0
        for q in range(targets.shape[1]):
            total += seen[q] * seen[q]
        out[t] = total


@kernel
def learn(
    z: Floats, covariance: Floats, targets: Floats, a: int, i: int, j: int, temperature: float
) -> None:
    """Shrink the covariance, and the targets seen through it, as one more answer would."""
    size = 3 * z.shape[1]
    slope = np.empty(size)
    place = np.empty(size, np.int64)
    weight = weight_at(margin_gradient(z, a, i, j, slope, place), temperature)
    many = covariance.shape[0]
    image = np.zeros(many)
    for row in range(many):
        for x in range(size):
            image[row] += covariance[row, place[x]] * slope[x]
    variance = 0.0
    for x in range(size):
        variance += slope[x] * image[place[x]]
    factor = weight / (1.0 + weight * variance)
    seen = np.zeros(targets.shape[1])
    for x in range(size):
        for q in range(targets.shape[1]):
            seen[q] += slope[x] * targets[place[x], q]
    for row in range(many):
        share = factor * image[row]
        for column in range(many):
            covariance[row, column] -= share * image[column]
        for q in range(targets.shape[1]):
            targets[row, q] -= share * seen[q]
