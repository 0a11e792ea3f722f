"""Compiled minimisation: proximal iterations that find the rank, and quasi-Newton refinement."""

from __future__ import annotations

import numpy as np

from lore_active.embedding.algebra import add_scaled, combined, inner, norm_of, principal, rotated
from lore_active.embedding.kernels import gradient_at, loss_at
from lore_active.embedding.quasi_newton import MAX_HALVINGS, MEMORY, quasi_newton_direction
from lore_active.jit import kernel
from lore_active.types import Floats, Indices

# Early stopping: a descent towards a goal is abandoned when, at the rate of its last
# EARLY_STOP_STRIDE iterations, it would need more than EARLY_STOP_PATIENCE times as many.
EARLY_STOP_STRIDE = 10
EARLY_STOP_PATIENCE = 5.0
# Quasi-Newton refinement begins once the rank has been unchanged for REFINE_PATIENCE iterations
# and the stationarity residual is below REFINE_FROM. It ends when the smallest singular value falls
# below REFINE_COLLAPSE times its initial value.
REFINE_PATIENCE = 5
REFINE_FROM = 0.3
REFINE_COLLAPSE = 0.3
# Added to a singular value in the derivative of the penalty, which is infinite at zero.
SLOPE_FLOOR = 1e-6


@kernel
def penalty(scale: Floats, lam: float, power: float) -> float:
    """Schatten-p penalty: lam times the sum of the p-th powers of the singular values."""
    total = 0.0
    for k in range(scale.shape[0]):
        total += scale[k] ** power
    return lam * total


@kernel
def penalty_slope(scale: Floats, lam: float, power: float) -> Floats:
    """Derivative of the penalty with respect to each singular value."""
    out = np.empty(scale.shape[0])
    for k in range(scale.shape[0]):
        out[k] = lam * power * (scale[k] + SLOPE_FLOOR) ** (power - 1.0)
    return out


@kernel
def stationarity(z: Floats, grad: Floats, scale: Floats, slope: Floats) -> float:
    """Stationarity residual: norm of the total gradient over the norm of the penalty's gradient.

    z is on its principal axes with singular values `scale`. The residual does not depend on units,
    the number of answers or their weights.
    """
    squares = 0.0
    for a in range(z.shape[0]):
        for k in range(z.shape[1]):
            total = grad[a, k] + z[a, k] * slope[k] / scale[k]
            squares += total * total
    return float(np.sqrt(squares) / norm_of(slope))


@kernel
def full_gradient(
    z: Floats, grad: Floats, scale: Floats, basis: Floats, lam: float, power: float
) -> Floats:
    """Gradient of the objective where every singular value is positive.

    The gradient of the penalty is z V diag(slope / scale) V', where V is the basis of z's
    principal axes.
    """
    slope = penalty_slope(scale, lam, power)
    weighted = np.empty_like(basis)
    for k in range(basis.shape[0]):
        for m in range(basis.shape[1]):
            weighted[k, m] = basis[k, m] * slope[m] / scale[m]
    out = rotated(z, rotated(weighted, basis.T.copy()))
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
    max_iter: int,
    curvature: float,
    goal: float,
) -> tuple[Floats, Floats, float, float, int]:
    """Limited-memory quasi-Newton (L-BFGS) steps at a fixed rank, where the objective is smooth.

    Proximal steps determine which dimensions are nonzero; these steps then converge in a fraction
    of the iterations. They end early when a dimension collapses, since only proximal steps can
    remove it. Returns embedding, singular values, objective, residual and iterations.
    """
    items, columns = start.shape
    distance = np.empty(first.shape[0])
    pair_gradient = np.empty(first.shape[0])
    x = start
    scale, basis = principal(x)
    weakest = REFINE_COLLAPSE * scale[columns - 1]
    loss = loss_at(x, first, second, near, far, weight, margin, distance, pair_gradient)
    objective = loss + penalty(scale, lam, power)
    grad = gradient_at(x, first, second, distance, pair_gradient)
    g = full_gradient(x, grad, scale, basis, lam, power)
    slope = penalty_slope(scale, lam, power)
    residual = np.sqrt(inner(g, g)) / norm_of(slope)
    steps = np.empty((MEMORY, items, columns))
    gradient_changes = np.empty((MEMORY, items, columns))
    rho = np.empty(MEMORY)
    stored = 0
    initial_scale = 1.0 / curvature
    iterations = 0
    checkpoint = objective
    while iterations < max_iter and residual > tolerance:
        if iterations % EARLY_STOP_STRIDE == 0 and iterations > 0:
            if objective - goal > EARLY_STOP_PATIENCE * (checkpoint - objective):
                break
            checkpoint = objective
        iterations += 1
        direction = quasi_newton_direction(g, steps, gradient_changes, rho, stored, initial_scale)
        decrease = inner(direction, g)
        if not decrease < 0.0:
            break
        length = 1.0
        taken = False
        for _ in range(MAX_HALVINGS):
            new = combined(x, length, direction)
            new_scale, new_basis = principal(new)
            if new_scale[columns - 1] > weakest:
                loss = loss_at(
                    new, first, second, near, far, weight, margin, distance, pair_gradient
                )
                new_objective = loss + penalty(new_scale, lam, power)
                if new_objective <= objective + 1e-4 * length * decrease + 1e-14 * abs(objective):
                    taken = True
                    break
            length *= 0.5
        if not taken:
            break
        grad = gradient_at(new, first, second, distance, pair_gradient)
        new_g = full_gradient(new, grad, new_scale, new_basis, lam, power)
        m = stored % MEMORY
        steps[m] = combined(new, -1.0, x)
        gradient_changes[m] = combined(new_g, -1.0, g)
        step_curvature = inner(steps[m], gradient_changes[m])
        size = inner(gradient_changes[m], gradient_changes[m])
        if step_curvature > 1e-10 * size * initial_scale:
            rho[m] = 1.0 / step_curvature
            initial_scale = step_curvature / size
            stored += 1
        x = new
        g = new_g
        scale = new_scale
        basis = new_basis
        objective = new_objective
        slope = penalty_slope(scale, lam, power)
        residual = np.sqrt(inner(g, g)) / norm_of(slope)
    return rotated(x, basis), scale, objective, residual, iterations


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
    max_iter: int,
    curvature: float,
    goal: float,
) -> tuple[Floats, Floats, float, float, int, float]:
    """Accelerated, reweighted proximal gradient descent from `start` to a stationary point.

    Returns the embedding on its principal axes (nonzero columns only), its singular values, the
    objective, the stationarity residual, the number of iterations and the curvature (inverse step
    size). Columns whose singular value reaches zero are removed permanently.
    """
    distance = np.empty(first.shape[0])
    pair_gradient = np.empty(first.shape[0])
    scale, basis = principal(start)
    active = 0
    while active < scale.shape[0] and scale[active] > 1e-7 * scale[0]:
        active += 1
    z = rotated(start, basis[:, :active].copy())
    scale = scale[:active].copy()
    loss = loss_at(z, first, second, near, far, weight, margin, distance, pair_gradient)
    objective = loss + penalty(scale, lam, power)
    if active == 0:
        return z, scale, objective, 0.0, 0, curvature
    grad = gradient_at(z, first, second, distance, pair_gradient)
    residual = stationarity(z, grad, scale, penalty_slope(scale, lam, power))
    extrapolated = z
    extrapolated_loss = loss
    extrapolated_grad = grad
    momentum = 1.0
    iterations = 0
    stable_iterations = REFINE_PATIENCE if residual < REFINE_FROM else 0
    checkpoint = objective
    while iterations < max_iter and residual > tolerance:
        if iterations % EARLY_STOP_STRIDE == 0 and iterations > 0:
            if objective - goal > EARLY_STOP_PATIENCE * (checkpoint - objective):
                break
            checkpoint = objective
        if stable_iterations >= REFINE_PATIENCE and residual < REFINE_FROM:
            z, scale, objective, residual, taken = refine(
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
                max_iter - iterations,
                curvature,
                goal,
            )
            iterations += taken
            if residual <= tolerance:
                break
            # Proximal steps continue, for some time before the next refinement.
            stable_iterations = -4 * REFINE_PATIENCE
            momentum = 1.0
            extrapolated = z
            extrapolated_loss = loss_at(
                z, first, second, near, far, weight, margin, distance, pair_gradient
            )
            extrapolated_grad = gradient_at(z, first, second, distance, pair_gradient)
            continue
        iterations += 1
        slope = penalty_slope(scale, lam, power)
        active = z.shape[1]
        while True:
            target = combined(extrapolated, -1.0 / curvature, extrapolated_grad)
            target_scale, basis = principal(target)
            new_scale = np.empty(active)
            shrinkage = np.empty(active)
            remaining = 0
            for k in range(active):
                new_scale[k] = max(target_scale[k] - slope[k] / curvature, 0.0)
                shrinkage[k] = new_scale[k] / target_scale[k] if target_scale[k] > 0.0 else 0.0
                if new_scale[k] > 0.0:
                    remaining = k + 1
            rotated_point = rotated(extrapolated, basis)
            rotated_grad = rotated(extrapolated_grad, basis)
            new = np.empty((z.shape[0], remaining))
            squared = 0.0
            linear = 0.0
            for a in range(z.shape[0]):
                for k in range(active):
                    value = shrinkage[k] * (rotated_point[a, k] - rotated_grad[a, k] / curvature)
                    step = value - rotated_point[a, k]
                    squared += step * step
                    linear += step * rotated_grad[a, k]
                    if k < remaining:
                        new[a, k] = value
            new_loss = loss_at(
                new, first, second, near, far, weight, margin, distance, pair_gradient
            )
            bound = extrapolated_loss + linear + 0.5 * curvature * squared
            if new_loss <= bound + 1e-12 * (1.0 + abs(bound)):
                break
            curvature *= 2.0
        new_scale = new_scale[:remaining].copy()
        new_objective = new_loss + penalty(new_scale, lam, power)
        if new_objective > objective and momentum > 1.0:
            # The extrapolation overshot: restart from the last point without momentum.
            momentum = 1.0
            extrapolated = z
            extrapolated_loss = loss_at(
                z, first, second, near, far, weight, margin, distance, pair_gradient
            )
            extrapolated_grad = gradient_at(z, first, second, distance, pair_gradient)
            continue
        previous = rotated(z, basis[:, :remaining].copy())
        z = new
        scale = new_scale
        objective = new_objective
        if remaining == 0:
            return z, scale, objective, 0.0, iterations, curvature
        stable_iterations = stable_iterations + 1 if remaining == active else 0
        stable = stable_iterations >= REFINE_PATIENCE or iterations == max_iter
        if stable and (
            iterations == max_iter
            or curvature * np.sqrt(squared) < 3.0 * REFINE_FROM * norm_of(slope)
        ):
            grad = gradient_at(z, first, second, distance, pair_gradient)
            residual = stationarity(z, grad, scale, penalty_slope(scale, lam, power))
        next_momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        extrapolation = (momentum - 1.0) / next_momentum
        momentum = next_momentum
        extrapolated = combined(combined(z, extrapolation, z), -extrapolation, previous)
        curvature *= 0.9
        extrapolated_loss = loss_at(
            extrapolated, first, second, near, far, weight, margin, distance, pair_gradient
        )
        extrapolated_grad = gradient_at(extrapolated, first, second, distance, pair_gradient)
    return z, scale, objective, residual, iterations, curvature
