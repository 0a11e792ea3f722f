"""Precision of the coordinates: expected information plus prior, as a Cholesky factor."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.linalg import lapack

from lore_active.embedding import information
from lore_active.errors import InvalidParameter
from lore_active.questions.pool import Questions
from lore_active.reproducibility import one_thread
from lore_active.trials.information import Unanswered, add_stages, add_unanswered
from lore_active.trials.stages import Stages
from lore_active.types import Floats

# Beyond this many coordinates the matrix is too large to hold.
MAX_COORDINATES = 4000


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
            information.add_information(z, rows, temperature, matrix)
    matrix[np.diag_indices(z.size)] += np.tile(prior, len(z))
    # LAPACK is column-major: its upper triangle is our lower one, and nothing is copied.
    with one_thread():
        _, failed = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    if failed:
        raise InvalidParameter(
            "The information matrix of the embedding is singular: its covariance is undefined."
        )
    return matrix
