"""The compiled way down: proximal iterations that find the rank, quasi-Newton ones that arrive."""

from __future__ import annotations

import numpy as np

from lore_active.embedding.algebra import add_scaled, combined, inner, norm_of, principal, rotated
from lore_active.embedding.kernels import gradient_at, loss_at
from lore_active.jit import kernel
from lore_active.types import Floats, Indices

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
def stationarity(z: Floats, grad: Floats, scale: Floats, slope: Floats) -> float:
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
def refine(
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
    off = stationarity(z, grad, scale, penalty_slope(scale, lam, power))
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
            z, scale, objective, off, taken = refine(
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
            off = stationarity(z, grad, scale, penalty_slope(scale, lam, power))
        longer = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        push = (momentum - 1.0) / longer
        momentum = longer
        ahead = combined(combined(z, push, z), -push, old)
        curvature *= 0.9
        loss_ahead = loss_at(ahead, first, second, near, far, weight, margin, distance, pull)
        grad_ahead = gradient_at(ahead, first, second, distance, pull)
    return z, scale, objective, off, iterations, curvature
