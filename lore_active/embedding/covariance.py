"""Covariance of the coordinates: of all of them together, or of each item alone (compiled).

The covariance of all coordinates is the inverse of the expected information plus the prior
precision, which `factored` returns as a Cholesky factor.

Where that matrix is too large, it is approximated by one block for each item. A block is the
inverse of the information that the item's answers carry about it, where the other two items of an
answer are uncertain by their own blocks: their uncertainty adds to the noise of that answer. So
blocks depend on each other, and are found by iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.linalg import lapack

from lore_active.embedding.information import add_information, margin_gradient, weight_at
from lore_active.errors import InvalidParameter
from lore_active.jit import kernel
from lore_active.questions.pool import Questions
from lore_active.reproducibility import one_thread
from lore_active.trials.information import Unanswered, add_stages, add_unanswered
from lore_active.trials.stages import Stages
from lore_active.types import Floats

# Beyond this many coordinates the matrix is too large to hold.
MAX_COORDINATES = 4000
# After two iterations the variances of margins are 5 % below those of the full covariance, after
# one 18 %; the order of the questions is the same.
ITERATIONS = 2


def factored(
    z: Floats, asked: Iterable[Questions | Stages | Unanswered], temperature: float, prior: Floats
) -> Floats:
    """Cholesky factor, in the lower triangle, of the expected information plus a prior precision.

    `asked` are triplet questions as rows, or trials. `prior` holds one precision for each
    axis. Entries above the diagonal are undefined.
    """
    z = np.ascontiguousarray(z)
    matrix = np.zeros((z.size, z.size))
    for rows in asked:
        if isinstance(rows, Stages):
            add_stages(z, rows, temperature, matrix)
        elif isinstance(rows, Unanswered):
            add_unanswered(z, rows, temperature, matrix)
        else:
            add_information(z, rows, temperature, matrix)
    matrix[np.diag_indices(z.size)] += np.tile(prior, len(z))
    # LAPACK is column-major: its upper triangle is our lower one, and nothing is copied.
    with one_thread():
        _, failed = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    if failed:
        raise InvalidParameter(
            "The information matrix of the embedding is singular: its covariance is undefined."
        )
    return matrix


@kernel
def quadratic(slope: Floats, matrix: Floats) -> float:
    """slope' matrix slope."""
    total = 0.0
    for k in range(slope.shape[0]):
        row = 0.0
        for m in range(slope.shape[0]):
            row += matrix[k, m] * slope[m]
        total += row * slope[k]
    return total


@kernel
def add_block_information(
    z: Floats, questions: Questions, temperature: float, blocks: Floats, out: Floats
) -> None:
    """Add what each question tells about each of its items, given the blocks of the other two."""
    axes = z.shape[1]
    entry = np.empty(3 * axes)
    index = np.empty(3 * axes, np.int64)
    variance = np.empty(3)
    for t in range(questions.shape[0]):
        margin = margin_gradient(z, questions[t, 0], questions[t, 1], questions[t, 2], entry, index)
        weight = weight_at(margin, temperature)
        for x in range(3):
            item = questions[t, x]
            variance[x] = quadratic(entry[x * axes : (x + 1) * axes], blocks[item])
        total = variance[0] + variance[1] + variance[2]
        for x in range(3):
            item = questions[t, x]
            own = weight / (1.0 + weight * (total - variance[x]))
            for k in range(axes):
                for m in range(axes):
                    out[item, k, m] += own * (entry[x * axes + k] * entry[x * axes + m])


@kernel
def add_sensitivity(slopes: Floats, questions: Questions, weights: Floats, out: Floats) -> None:
    """Add the weighted squares of the gradients of questions' margins, by item."""
    axes = out.shape[1]
    for t in range(questions.shape[0]):
        for x in range(3):
            item = questions[t, x]
            for k in range(axes):
                for m in range(axes):
                    product = slopes[t, x * axes + k] * slopes[t, x * axes + m]
                    out[item, k, m] += weights[t] * product


@kernel
def block_variances(slopes: Floats, questions: Questions, blocks: Floats, out: Floats) -> None:
    """Variance of each margin, by the delta method."""
    axes = blocks.shape[1]
    for t in range(questions.shape[0]):
        out[t] = 0.0
        for x in range(3):
            out[t] += quadratic(slopes[t, x * axes : (x + 1) * axes], blocks[questions[t, x]])


@kernel
def block_reductions(
    slopes: Floats, questions: Questions, blocks: Floats, sensitivity: Floats, out: Floats
) -> None:
    """By how much each question would reduce the targets' variance if it had no noise of its own.

    The sum over its items of (block slope)' sensitivity (block slope).
    """
    axes = blocks.shape[1]
    image = np.empty(axes)
    for t in range(questions.shape[0]):
        out[t] = 0.0
        for x in range(3):
            item = questions[t, x]
            for k in range(axes):
                image[k] = 0.0
                for m in range(axes):
                    image[k] += blocks[item, k, m] * slopes[t, x * axes + m]
            out[t] += quadratic(image, sensitivity[item])


@kernel
def learn_block(block: Floats, slope: Floats, weight: float) -> None:
    """Update the block of one item as if an answer with this slope and weight were known."""
    axes = block.shape[0]
    image = np.empty(axes)
    variance = 0.0
    for k in range(axes):
        image[k] = 0.0
        for m in range(axes):
            image[k] += block[k, m] * slope[m]
        variance += image[k] * slope[k]
    factor = weight / (1.0 + weight * variance)
    for k in range(axes):
        for m in range(axes):
            block[k, m] -= factor * image[k] * image[m]


def item_blocks(z: Floats, asked: Sequence[Questions], temperature: float, prior: Floats) -> Floats:
    """Covariance of each item's coordinates (items × axes × axes).

    `prior` holds one precision for each axis.
    """
    z = np.ascontiguousarray(z)
    blocks: Floats = np.zeros((len(z), z.shape[1], z.shape[1]))
    for _ in range(ITERATIONS):
        precision = np.tile(np.diag(prior), (len(z), 1, 1))
        for rows in asked:
            add_block_information(z, rows, temperature, blocks, precision)
        with one_thread():
            blocks = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    return blocks
