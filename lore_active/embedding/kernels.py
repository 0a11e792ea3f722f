"""Compiled loops over answers: distances, losses, gradients, and the Laplacian.

Answers are represented as *pairs*: the distinct unordered item pairs that occur in them (`first`,
`second`), and for each answer the pair that was judged nearer (`near`) and the pair that was judged
farther (`far`). A distance is computed once per pair instead of twice per answer, and the loop
over answers handles only scalars, whatever the number of dimensions.
"""

from __future__ import annotations

import math

import numpy as np

from lore_active.embedding.algebra import add_scaled, inner
from lore_active.jit import kernel
from lore_active.types import Floats, Indices

# d(a, b) = sqrt(|z_a - z_b|^2 + SMOOTHING^2): differentiable where items coincide.
SMOOTHING = 1e-3
# Answers per block: the buffers of a block stay in the first-level cache.
BLOCK = 256
# exp(-745) is the smallest positive double; larger exponents are clipped to this one.
MAX_EXPONENT = 700.0
# Enough Lanczos steps for the lowest few eigenvalues of thousands of items; exact for fewer items.
LANCZOS_STEPS = 60
# Coefficients of exp(y) = sum y^k / k! and artanh(s) / s = sum s^(k-1) / k: multiplied, since a
# division costs as much as the rest of the loop.
EXP = tuple(1.0 / math.factorial(k) for k in range(11))
LOG = tuple(1.0 / k for k in range(1, 32))


@kernel
def decay(x: float) -> float:
    """exp(−x) for |x| ≤ MAX_EXPONENT: Taylor series at x / 4096, then twelve squarings."""
    y = x * (-1.0 / 4096.0)
    y2 = y * y
    odd = EXP[7] + y2 * EXP[9]
    even = EXP[8] + y2 * EXP[10]
    odd = EXP[5] + y2 * odd
    even = EXP[6] + y2 * even
    odd = EXP[3] + y2 * odd
    even = EXP[4] + y2 * even
    odd = 1.0 + y2 * odd
    even = EXP[2] + y2 * even
    e = 1.0 + y2 * even + y * odd
    for _ in range(12):
        e *= e
    return e


@kernel
def distances(z: Floats, first: Indices, second: Indices, out: Floats) -> None:
    """Smoothed distance of every pair."""
    columns = z.shape[1]
    for q in range(first.shape[0]):
        a = first[q]
        b = second[q]
        total = SMOOTHING * SMOOTHING
        for k in range(columns):
            difference = z[a, k] - z[b, k]
            total += difference * difference
        out[q] = np.sqrt(total)


@kernel
def answers(
    distance: Floats,
    near: Indices,
    far: Indices,
    weight: Floats,
    margin: float,
    pair_gradient: Floats,
) -> float:
    """Weighted logistic loss of the answers; its gradient by pair distance goes to `pair_gradient`.

    exp and log1p are polynomials, so that the block loop is vectorised; their relative error is
    below 1e-12.
    """
    count = near.shape[0]
    pair_gradient[:] = 0.0
    violation = np.empty(BLOCK)
    slope = np.empty(BLOCK)
    cost = np.empty(BLOCK)
    loss = 0.0
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        for t in range(size):
            violation[t] = margin + distance[near[start + t]] - distance[far[start + t]]
        for t in range(size):
            x = violation[t]
            # e = exp(-|x|): Taylor series at |x| / 4096, then twelve squarings.
            y = min(abs(x), MAX_EXPONENT) * (-1.0 / 4096.0)
            y2 = y * y
            odd = EXP[7] + y2 * EXP[9]
            even = EXP[8] + y2 * EXP[10]
            even = EXP[6] + y2 * even
            odd = EXP[5] + y2 * odd
            even = EXP[4] + y2 * even
            odd = EXP[3] + y2 * odd
            even = EXP[2] + y2 * even
            odd = 1.0 + y2 * odd
            even = 1.0 + y2 * even
            e = even + y * odd
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            # log1p(e) = 2 artanh(e / (2 + e)), argument at most 1/3.
            s = e / (2.0 + e)
            s2 = s * s
            s4 = s2 * s2
            odd = LOG[30]
            even = LOG[28]
            odd = LOG[26] + s4 * odd
            even = LOG[24] + s4 * even
            odd = LOG[22] + s4 * odd
            even = LOG[20] + s4 * even
            odd = LOG[18] + s4 * odd
            even = LOG[16] + s4 * even
            odd = LOG[14] + s4 * odd
            even = LOG[12] + s4 * even
            odd = LOG[10] + s4 * odd
            even = LOG[8] + s4 * even
            odd = LOG[6] + s4 * odd
            even = LOG[4] + s4 * even
            odd = LOG[2] + s4 * odd
            even = 1.0 + s4 * even
            series = even + s2 * odd
            w = weight[start + t]
            numerator = 1.0 if x >= 0.0 else e
            slope[t] = w * numerator / (1.0 + e)
            cost[t] = w * (max(x, 0.0) + 2.0 * s * series)
        for t in range(size):
            loss += cost[t]
            pair_gradient[near[start + t]] += slope[t]
            pair_gradient[far[start + t]] -= slope[t]
    return loss


@kernel
def laplacian_times(
    x: Floats, first: Indices, second: Indices, distance: Floats, pair_gradient: Floats, out: Floats
) -> None:
    """L x for the signed graph Laplacian L of the answers at the embedding that gave `distance`.

    With that embedding as x this is the gradient of the loss; with any other column v, v'Lv is
    the second derivative of the loss along a new dimension v.
    """
    columns = x.shape[1]
    out[:] = 0.0
    for q in range(first.shape[0]):
        a = first[q]
        b = second[q]
        coefficient = pair_gradient[q] / distance[q]
        for k in range(columns):
            step = coefficient * (x[a, k] - x[b, k])
            out[a, k] += step
            out[b, k] -= step


@kernel
def loss_at(
    z: Floats,
    first: Indices,
    second: Indices,
    near: Indices,
    far: Indices,
    weight: Floats,
    margin: float,
    distance: Floats,
    pair_gradient: Floats,
) -> float:
    """Loss of the answers at z; `distance` and `pair_gradient` are filled for `gradient_at`."""
    distances(z, first, second, distance)
    return answers(distance, near, far, weight, margin, pair_gradient)


@kernel
def gradient_at(
    z: Floats, first: Indices, second: Indices, distance: Floats, pair_gradient: Floats
) -> Floats:
    """Gradient of the loss at z, from the arrays that `loss_at` filled."""
    out = np.empty_like(z)
    laplacian_times(z, first, second, distance, pair_gradient, out)
    return out


@kernel
def lowest(
    first: Indices, second: Indices, distance: Floats, pair_gradient: Floats, items: int, count: int
) -> tuple[Floats, Floats]:
    """Lowest eigenvalues of the signed Laplacian and their eigenvectors, by Lanczos iteration.

    Restricted to centred vectors (a translation of all items is not a new dimension), with full
    reorthogonalisation. The first vector is fixed and unstructured, so that results are
    reproducible. Returns at most `count` eigenpairs, lowest first; the matrix is never formed.
    """
    steps = min(items - 1, max(LANCZOS_STEPS, 3 * count))
    ones = np.ones((items, 1))
    basis = np.zeros((steps, items, 1))
    diagonal = np.zeros(steps)
    off_diagonal = np.zeros(steps)
    residual = np.empty((items, 1))
    state = 1
    for a in range(items):
        state = (state * 16807) % 2147483647
        residual[a, 0] = state / 2147483647.0
    add_scaled(residual, -inner(residual, ones) / items, ones)
    norm = np.sqrt(inner(residual, residual))
    size = 0.0
    done = 0
    while done < steps:
        add_scaled(basis[done], 1.0 / norm, residual)
        laplacian_times(basis[done], first, second, distance, pair_gradient, residual)
        diagonal[done] = inner(residual, basis[done])
        done += 1
        for _ in range(2):
            for k in range(done):
                add_scaled(residual, -inner(residual, basis[k]), basis[k])
            add_scaled(residual, -inner(residual, ones) / items, ones)
        norm = np.sqrt(inner(residual, residual))
        size = max(size, abs(diagonal[done - 1]), norm)
        off_diagonal[done - 1] = norm
        if norm <= 1e-12 * size:
            break
    tridiagonal = np.zeros((done, done))
    for m in range(done):
        tridiagonal[m, m] = diagonal[m]
        if m + 1 < done:
            tridiagonal[m, m + 1] = off_diagonal[m]
            tridiagonal[m + 1, m] = off_diagonal[m]
    values, vectors = np.linalg.eigh(tridiagonal)
    returned = min(count, done)
    out = np.zeros((items, returned))
    for k in range(returned):
        for m in range(done):
            add_scaled(out[:, k : k + 1], vectors[m, k], basis[m])
    return values[:returned].copy(), out
