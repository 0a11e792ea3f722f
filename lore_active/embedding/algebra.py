"""Compiled linear algebra on tall, narrow arrays, in a fixed order of summation.

The same input gives the same bits, whatever the number of BLAS threads.
"""

from __future__ import annotations

import numpy as np

from lore_active.jit import kernel
from lore_active.types import Floats


@kernel
def gram(x: Floats) -> Floats:
    """x'x in a fixed order of summation, whatever the number of BLAS threads."""
    rows, columns = x.shape
    out = np.zeros((columns, columns))
    for a in range(rows):
        for k in range(columns):
            value = x[a, k]
            for m in range(columns):
                out[k, m] += value * x[a, m]
    return out


@kernel
def rotated(x: Floats, basis: Floats) -> Floats:
    """x @ basis in a fixed order of summation."""
    rows, columns = x.shape
    width = basis.shape[1]
    out = np.zeros((rows, width))
    for a in range(rows):
        for k in range(columns):
            value = x[a, k]
            for m in range(width):
                out[a, m] += value * basis[k, m]
    return out


@kernel
def inner(x: Floats, y: Floats) -> float:
    """Sum of the elementwise product."""
    total = 0.0
    for a in range(x.shape[0]):
        for k in range(x.shape[1]):
            total += x[a, k] * y[a, k]
    return total


@kernel
def add_scaled(y: Floats, factor: float, x: Floats) -> None:
    """y += factor x, as a call: an array expression would be compiled again at each use."""
    for a in range(y.shape[0]):
        for k in range(y.shape[1]):
            y[a, k] += factor * x[a, k]


@kernel
def combined(x: Floats, factor: float, y: Floats) -> Floats:
    """x + factor y."""
    out = np.empty_like(x)
    for a in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[a, k] = x[a, k] + factor * y[a, k]
    return out


@kernel
def principal(x: Floats) -> tuple[Floats, Floats]:
    """Singular values of x in descending order, and the basis that rotates x to principal axes.

    Computed from the eigenvectors of x'x, whose size is the number of columns, not of items.
    """
    values, vectors = np.linalg.eigh(gram(x))
    columns = x.shape[1]
    scale = np.empty(columns)
    basis = np.empty((columns, columns))
    for k in range(columns):
        scale[k] = np.sqrt(max(values[columns - 1 - k], 0.0))
        for m in range(columns):
            basis[m, k] = vectors[m, columns - 1 - k]
    return scale, basis


@kernel
def norm_of(values: Floats) -> float:
    """Euclidean norm of a vector."""
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k] * values[k]
    return float(np.sqrt(total))
