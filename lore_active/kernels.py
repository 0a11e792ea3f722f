"""The hot loops: every compiled function of the library.

Answers are held as *pairs*: the distinct unordered item pairs that occur in them (`first`,
`second`), and for each answer the pair that was called nearer (`near`) and the pair called
farther (`far`). A distance is computed once per pair instead of twice per answer, and the loop
over answers touches only scalars, whatever the number of dimensions.
"""

from __future__ import annotations

import math

import numpy as np

from lore_active.jit import kernel
from lore_active.types import Floats, Indices

# d(a, b) = sqrt(|z_a - z_b|^2 + SMOOTHING^2): differentiable where items coincide.
SMOOTHING = 1e-3
# Answers handled at a time: the block's buffers stay in the first-level cache.
BLOCK = 256
# exp(-745) is the last positive double; past this the exponential is taken as this small.
FARTHEST_EXPONENT = 700.0
# A race for a lower objective is given up when, at the pace of its last RACE_STRIDE iterations,
# it would need more than RACE_PATIENCE times as many to get there.
RACE_STRIDE = 10
RACE_PATIENCE = 5.0
# Quasi-Newton steps take over from proximal ones once the rank has held for POLISH_PATIENCE
# iterations and the imbalance is below POLISH_FROM. They remember POLISH_MEMORY steps, halve a
# step at most POLISH_HALVINGS times, and leave when a dimension shrinks by POLISH_COLLAPSE.
POLISH_PATIENCE = 5
POLISH_FROM = 0.3
POLISH_MEMORY = 8
POLISH_HALVINGS = 12
POLISH_COLLAPSE = 0.3
# Added to a singular value in the penalty's slope, so that it stays finite at zero.
SLOPE_FLOOR = 1e-6
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
    """y += factor x. A call, where an array expression would be compiled anew each time."""
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
    """Singular values of x, largest first, and the basis that turns x to its principal axes.

    Through the eigenvectors of x'x, whose size is the number of columns, not of items.
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
def penalty(scale: Floats, lam: float, power: float) -> float:
    """lam times the sum of the singular values' p-th powers."""
    total = 0.0
    for k in range(scale.shape[0]):
        total += scale[k] ** power
    return lam * total


@kernel
def penalty_slope(scale: Floats, lam: float, power: float) -> Floats:
    """Derivative of the penalty by each singular value."""
    out = np.empty(scale.shape[0])
    for k in range(scale.shape[0]):
        out[k] = lam * power * (scale[k] + SLOPE_FLOOR) ** (power - 1.0)
    return out


@kernel
def norm_of(values: Floats) -> float:
    """Euclidean norm of a vector."""
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k] * values[k]
    return float(np.sqrt(total))


@kernel
def imbalance(z: Floats, grad: Floats, scale: Floats, slope: Floats) -> float:
    """How far z is from stationary: the loss's gradient and the penalty's must cancel.

    z stands on its principal axes with singular values `scale`. The norm of the sum over the
    norm of the penalty's part: free of units, of the number of answers and of their weights.
    """
    left = 0.0
    for a in range(z.shape[0]):
        for k in range(z.shape[1]):
            rest = grad[a, k] + z[a, k] * slope[k] / scale[k]
            left += rest * rest
    return float(np.sqrt(left) / norm_of(slope))


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


@kernel
def full_gradient(
    z: Floats, grad: Floats, scale: Floats, basis: Floats, lam: float, power: float
) -> Floats:
    """Gradient of loss and penalty together, where every singular value is positive.

    The penalty's part is z V diag(slope / scale) V', with V the basis of z's principal axes.
    """
    slope = penalty_slope(scale, lam, power)
    bent = np.empty_like(basis)
    for k in range(basis.shape[0]):
        for m in range(basis.shape[1]):
            bent[k, m] = basis[k, m] * slope[m] / scale[m]
    out = rotated(z, rotated(bent, basis.T.copy()))
    add_scaled(out, 1.0, grad)
    return out


@kernel
def polish(
    start: Floats,
    first: Indices,
    second: Indices,
    near: Indices,
    far: Indices,
    weight: Floats,
    margin: float,
    lam: float,
    power: float,
    tolerance: float,
    most: int,
    curvature: float,
    goal: float,
) -> tuple[Floats, Floats, float, float, int]:
    """Limited-memory quasi-Newton steps among embeddings of one rank, where all is smooth.

    Proximal steps find out which dimensions live; once that is settled these steps arrive in a
    fraction of the passes. Stops short when a dimension is dying, which is not theirs to decide.
    Returns embedding, singular values, objective, imbalance and iterations.
    """
    items, columns = start.shape
    distance = np.empty(first.shape[0])
    pull = np.empty(first.shape[0])
    x = start
    scale, basis = principal(x)
    weakest = POLISH_COLLAPSE * scale[columns - 1]
    loss = loss_at(x, first, second, near, far, weight, margin, distance, pull)
    objective = loss + penalty(scale, lam, power)
    grad = gradient_at(x, first, second, distance, pull)
    g = full_gradient(x, grad, scale, basis, lam, power)
    slope = penalty_slope(scale, lam, power)
    off = np.sqrt(inner(g, g)) / norm_of(slope)
    steps = np.empty((POLISH_MEMORY, items, columns))
    turns = np.empty((POLISH_MEMORY, items, columns))
    rho = np.empty(POLISH_MEMORY)
    share = np.empty(POLISH_MEMORY)
    kept = 0
    unit = 1.0 / curvature
    iterations = 0
    checkpoint = objective
    while iterations < most and off > tolerance:
        if iterations % RACE_STRIDE == 0 and iterations > 0:
            if objective - goal > RACE_PATIENCE * (checkpoint - objective):
                break
            checkpoint = objective
        iterations += 1
        way = combined(g, -2.0, g)
        oldest = max(0, kept - POLISH_MEMORY)
        for q in range(kept - 1, oldest - 1, -1):
            m = q % POLISH_MEMORY
            share[m] = rho[m] * inner(steps[m], way)
            add_scaled(way, -share[m], turns[m])
        add_scaled(way, unit - 1.0, way)
        for q in range(oldest, kept):
            m = q % POLISH_MEMORY
            add_scaled(way, share[m] - rho[m] * inner(turns[m], way), steps[m])
        fall = inner(way, g)
        if not fall < 0.0:
            break
        length = 1.0
        taken = False
        for _ in range(POLISH_HALVINGS):
            new = combined(x, length, way)
            new_scale, new_basis = principal(new)
            if new_scale[columns - 1] > weakest:
                loss = loss_at(new, first, second, near, far, weight, margin, distance, pull)
                new_objective = loss + penalty(new_scale, lam, power)
                if new_objective <= objective + 1e-4 * length * fall + 1e-14 * abs(objective):
                    taken = True
                    break
            length *= 0.5
        if not taken:
            break
        grad = gradient_at(new, first, second, distance, pull)
        new_g = full_gradient(new, grad, new_scale, new_basis, lam, power)
        m = kept % POLISH_MEMORY
        steps[m] = combined(new, -1.0, x)
        turns[m] = combined(new_g, -1.0, g)
        bend = inner(steps[m], turns[m])
        size = inner(turns[m], turns[m])
        if bend > 1e-10 * size * unit:
            rho[m] = 1.0 / bend
            unit = bend / size
            kept += 1
        x = new
        g = new_g
        scale = new_scale
        basis = new_basis
        objective = new_objective
        slope = penalty_slope(scale, lam, power)
        off = np.sqrt(inner(g, g)) / norm_of(slope)
    return rotated(x, basis), scale, objective, off, iterations


@kernel
def descend(
    start: Floats,
    first: Indices,
    second: Indices,
    near: Indices,
    far: Indices,
    weight: Floats,
    margin: float,
    lam: float,
    power: float,
    tolerance: float,
    most: int,
    curvature: float,
    goal: float,
) -> tuple[Floats, Floats, float, float, int, float]:
    """Accelerated reweighted proximal iteration from `start` to a stationary point.

    Returns the embedding on its principal axes (live columns only), its singular values, the
    objective, the remaining imbalance, the number of iterations and the step's curvature.
    Columns whose singular value reaches zero are dropped for good.
    """
    distance = np.empty(first.shape[0])
    pull = np.empty(first.shape[0])
    scale, basis = principal(start)
    alive = 0
    while alive < scale.shape[0] and scale[alive] > 1e-7 * scale[0]:
        alive += 1
    z = rotated(start, basis[:, :alive].copy())
    scale = scale[:alive].copy()
    loss = loss_at(z, first, second, near, far, weight, margin, distance, pull)
    objective = loss + penalty(scale, lam, power)
    if alive == 0:
        return z, scale, objective, 0.0, 0, curvature
    grad = gradient_at(z, first, second, distance, pull)
    off = imbalance(z, grad, scale, penalty_slope(scale, lam, power))
    ahead = z
    loss_ahead = loss
    grad_ahead = grad
    momentum = 1.0
    iterations = 0
    steady = POLISH_PATIENCE if off < POLISH_FROM else 0
    checkpoint = objective
    while iterations < most and off > tolerance:
        if iterations % RACE_STRIDE == 0 and iterations > 0:
            if objective - goal > RACE_PATIENCE * (checkpoint - objective):
                break
            checkpoint = objective
        if steady >= POLISH_PATIENCE and off < POLISH_FROM:
            z, scale, objective, off, taken = polish(
                z,
                first,
                second,
                near,
                far,
                weight,
                margin,
                lam,
                power,
                tolerance,
                most - iterations,
                curvature,
                goal,
            )
            iterations += taken
            if off <= tolerance:
                break
            # What is left is for proximal steps again, and for a while.
            steady = -4 * POLISH_PATIENCE
            momentum = 1.0
            ahead = z
            loss_ahead = loss_at(z, first, second, near, far, weight, margin, distance, pull)
            grad_ahead = gradient_at(z, first, second, distance, pull)
            continue
        iterations += 1
        slope = penalty_slope(scale, lam, power)
        alive = z.shape[1]
        while True:
            target = combined(ahead, -1.0 / curvature, grad_ahead)
            strength, basis = principal(target)
            new_scale = np.empty(alive)
            keep = np.empty(alive)
            live = 0
            for k in range(alive):
                new_scale[k] = max(strength[k] - slope[k] / curvature, 0.0)
                keep[k] = new_scale[k] / strength[k] if strength[k] > 0.0 else 0.0
                if new_scale[k] > 0.0:
                    live = k + 1
            here = rotated(ahead, basis)
            grad_here = rotated(grad_ahead, basis)
            new = np.empty((z.shape[0], live))
            squared = 0.0
            linear = 0.0
            for a in range(z.shape[0]):
                for k in range(alive):
                    value = keep[k] * (here[a, k] - grad_here[a, k] / curvature)
                    step = value - here[a, k]
                    squared += step * step
                    linear += step * grad_here[a, k]
                    if k < live:
                        new[a, k] = value
            new_loss = loss_at(new, first, second, near, far, weight, margin, distance, pull)
            bound = loss_ahead + linear + 0.5 * curvature * squared
            if new_loss <= bound + 1e-12 * (1.0 + abs(bound)):
                break
            curvature *= 2.0
        new_scale = new_scale[:live].copy()
        new_objective = new_loss + penalty(new_scale, lam, power)
        if new_objective > objective and momentum > 1.0:
            # The extrapolation overshot: fall back to the last point and lose the momentum.
            momentum = 1.0
            ahead = z
            loss_ahead = loss_at(z, first, second, near, far, weight, margin, distance, pull)
            grad_ahead = gradient_at(z, first, second, distance, pull)
            continue
        old = rotated(z, basis[:, :live].copy())
        z = new
        scale = new_scale
        objective = new_objective
        if live == 0:
            return z, scale, objective, 0.0, iterations, curvature
        steady = steady + 1 if live == alive else 0
        settled = steady >= POLISH_PATIENCE or iterations == most
        if settled and (
            iterations == most or curvature * np.sqrt(squared) < 3.0 * POLISH_FROM * norm_of(slope)
        ):
            grad = gradient_at(z, first, second, distance, pull)
            off = imbalance(z, grad, scale, penalty_slope(scale, lam, power))
        longer = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        push = (momentum - 1.0) / longer
        momentum = longer
        ahead = combined(combined(z, push, z), -push, old)
        curvature *= 0.9
        loss_ahead = loss_at(ahead, first, second, near, far, weight, margin, distance, pull)
        grad_ahead = gradient_at(ahead, first, second, distance, pull)
    return z, scale, objective, off, iterations, curvature


def warm() -> None:
    """Compile every kernel, or load it from the cache, before anybody waits for it."""
    first = np.array([0, 0, 1], dtype=np.int32)
    second = np.array([1, 2, 2], dtype=np.int32)
    near = np.array([0, 1, 0], dtype=np.int32)
    far = np.array([1, 2, 2], dtype=np.int32)
    weight = np.full(3, 1.0 / 3.0)
    z = np.array([[0.0, 0.0], [1.0, 0.5], [0.0, 2.0]])
    distance = np.empty(3)
    pull = np.empty(3)
    distances(z, first, second, distance)
    answers(distance, near, far, weight, 1.0, pull)
    laplacian_times(z, first, second, distance, pull, np.empty_like(z))
    lowest(first, second, distance, pull, 3, 1)
    descend(z, first, second, near, far, weight, 1.0, 0.01, 0.5, 1e-3, 2, 0.1, np.inf)
