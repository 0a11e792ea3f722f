"""The compiled loops over answers: distances, losses, gradients, and the Laplacian.

Answers are held as *pairs*: the distinct unordered item pairs that occur in them (`first`,
`second`), and for each answer the pair that was called nearer (`near`) and the pair called
farther (`far`). A distance is computed once per pair instead of twice per answer, and the loop
over answers touches only scalars, whatever the number of dimensions.
"""

from __future__ import annotations

import math

import numpy as np

from lore_active.embedding.algebra import add_scaled, inner
from lore_active.jit import kernel
from lore_active.types import Floats, Indices

# d(a, b) = sqrt(|z_a - z_b|^2 + SMOOTHING^2): differentiable where items coincide.
SMOOTHING = 1e-3
# Answers handled at a time: the block's buffers stay in the first-level cache.
BLOCK = 256
# exp(-745) is the last positive double; past this the exponential is taken as this small.
FARTHEST_EXPONENT = 700.0
# Enough Lanczos steps for the lowest few eigenvalues of thousands of items; exact below this size.
LANCZOS_STEPS = 60
# Coefficients of exp(y) = sum y^k / k! and artanh(s) / s = sum s^(k-1) / k: multiplied, since a
# division costs as much as the rest of the loop.
EXP = tuple(1.0 / math.factorial(k) for k in range(11))
LOG = tuple(1.0 / k for k in range(1, 32))


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
    distance: Floats, near: Indices, far: Indices, weight: Floats, margin: float, pull: Floats
) -> float:
    """Weighted logistic loss of the answers, and in `pull` its derivative by each pair's distance.

    exp and log1p are written as polynomials so that the block loop is vectorised; both are
    within 1e-12 relative of the library functions.
    """
    count = near.shape[0]
    pull[:] = 0.0
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
            y = min(abs(x), FARTHEST_EXPONENT) * (-1.0 / 4096.0)
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
            pull[near[start + t]] += slope[t]
            pull[far[start + t]] -= slope[t]
    return loss


@kernel
def laplacian_times(
    x: Floats, first: Indices, second: Indices, distance: Floats, pull: Floats, out: Floats
) -> None:
    """L x for the answers' signed graph Laplacian L at the embedding that gave the distances.

    With that embedding as x this is the gradient of the loss; with any other column v, v'Lv is
    the second derivative of the loss along a new dimension v.
    """
    columns = x.shape[1]
    out[:] = 0.0
    for q in range(first.shape[0]):
        a = first[q]
        b = second[q]
        force = pull[q] / distance[q]
        for k in range(columns):
            step = force * (x[a, k] - x[b, k])
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
    pull: Floats,
) -> float:
    """Loss of the answers at z; distances and pulls are left for `gradient_at`."""
    distances(z, first, second, distance)
    return answers(distance, near, far, weight, margin, pull)


@kernel
def gradient_at(
    z: Floats, first: Indices, second: Indices, distance: Floats, pull: Floats
) -> Floats:
    """Gradient of the loss at z, from what `loss_at` left."""
    out = np.empty_like(z)
    laplacian_times(z, first, second, distance, pull, out)
    return out


@kernel
def lowest(
    first: Indices, second: Indices, distance: Floats, pull: Floats, items: int, count: int
) -> tuple[Floats, Floats]:
    """The lowest eigenvalues of the signed Laplacian and their eigenvectors, by Lanczos steps.

    Works in the space of centred vectors (shifting all items is no new dimension), with full
    reorthogonalisation. The first vector is a fixed, structureless one, so that results repeat.
    Returns at most `count` pairs, lowest first; the Laplacian itself is never formed.
    """
    steps = min(items - 1, max(LANCZOS_STEPS, 3 * count))
    ones = np.ones((items, 1))
    basis = np.zeros((steps, items, 1))
    diagonal = np.zeros(steps)
    beside = np.zeros(steps)
    rest = np.empty((items, 1))
    state = 1
    for a in range(items):
        state = (state * 16807) % 2147483647
        rest[a, 0] = state / 2147483647.0
    add_scaled(rest, -inner(rest, ones) / items, ones)
    norm = np.sqrt(inner(rest, rest))
    size = 0.0
    done = 0
    while done < steps:
        add_scaled(basis[done], 1.0 / norm, rest)
        laplacian_times(basis[done], first, second, distance, pull, rest)
        diagonal[done] = inner(rest, basis[done])
        done += 1
        for _ in range(2):
            for k in range(done):
                add_scaled(rest, -inner(rest, basis[k]), basis[k])
            add_scaled(rest, -inner(rest, ones) / items, ones)
        norm = np.sqrt(inner(rest, rest))
        size = max(size, abs(diagonal[done - 1]), norm)
        beside[done - 1] = norm
        if norm <= 1e-12 * size:
            break
    small = np.zeros((done, done))
    for m in range(done):
        small[m, m] = diagonal[m]
        if m + 1 < done:
            small[m, m + 1] = beside[m]
            small[m + 1, m] = beside[m]
    values, vectors = np.linalg.eigh(small)
    found = min(count, done)
    out = np.zeros((items, found))
    for k in range(found):
        for m in range(done):
            add_scaled(out[:, k : k + 1], vectors[m, k], basis[m])
    return values[:found].copy(), out
