"""Limited-memory quasi-Newton steps (L-BFGS; Nocedal & Wright, 2006), compiled."""

from __future__ import annotations

import numpy as np

from lore_active.embedding.algebra import add_scaled, combined, inner, principal, rotated
from lore_active.embedding.kernels import gradient_at, loss_at
from lore_active.jit import kernel
from lore_active.trials.likelihood import stages_loss_at
from lore_active.types import Floats, Indices

# Steps that are remembered, and how often a step may be halved.
MEMORY = 8
MAX_HALVINGS = 12
# A step is taken if the objective falls by this share of what the gradient promises.
SUFFICIENT_DECREASE = 1e-4
# Length of the first step along the gradient, relative to that of the coordinates.
FIRST_STEP = 0.1


@kernel
def quasi_newton_direction(
    gradient: Floats,
    steps: Floats,
    gradient_changes: Floats,
    rho: Floats,
    stored: int,
    initial_scale: float,
) -> Floats:
    """Minus the approximate inverse Hessian times the gradient (two-loop recursion).

    `steps` and `gradient_changes` are ring buffers of which `stored` entries have been written;
    `rho` holds the inverses of their inner products.
    """
    memory = rho.shape[0]
    alpha = np.empty(memory)
    direction = combined(gradient, -2.0, gradient)
    oldest = max(0, stored - memory)
    for q in range(stored - 1, oldest - 1, -1):
        m = q % memory
        alpha[m] = rho[m] * inner(steps[m], direction)
        add_scaled(direction, -alpha[m], gradient_changes[m])
    add_scaled(direction, initial_scale - 1.0, direction)
    for q in range(oldest, stored):
        m = q % memory
        add_scaled(direction, alpha[m] - rho[m] * inner(gradient_changes[m], direction), steps[m])
    return direction


@kernel
def _loss_at(
    z: Floats,
    first: Indices,
    second: Indices,
    near: Indices,
    far: Indices,
    weight: Floats,
    starts: Indices,
    distance: Floats,
    pair_gradient: Floats,
) -> float:
    if starts.shape[0]:
        return stages_loss_at(z, first, second, starts, near, far, weight, distance, pair_gradient)
    return loss_at(z, first, second, near, far, weight, 0.0, distance, pair_gradient)


@kernel
def minimise(
    start: Floats,
    first: Indices,
    second: Indices,
    near: Indices,
    far: Indices,
    weight: Floats,
    starts: Indices,
    prior: float,
    tolerance: float,
    max_iter: int,
) -> tuple[Floats, float, int]:
    """Minimise the logistic loss of the answers plus `prior` / 2 times the sum of squares.

    Without `starts`, answers are pairs of pairs; see `Pairs`. Otherwise they are stages, and the
    arrays `starts`, `near` and `far` are the `start`, `member` and `picked` of `Stages`.

    Ends when the objective falls by less than the share `tolerance` in two iterations in a row.
    Returns the embedding on its principal axes, the objective and the number of iterations.
    """
    items, columns = start.shape
    distance = np.empty(first.shape[0])
    pair_gradient = np.empty(first.shape[0])
    x = start.copy()
    loss = _loss_at(x, first, second, near, far, weight, starts, distance, pair_gradient)
    objective = loss + 0.5 * prior * inner(x, x)
    g = gradient_at(x, first, second, distance, pair_gradient)
    add_scaled(g, prior, x)
    steps = np.empty((MEMORY, items, columns))
    gradient_changes = np.empty((MEMORY, items, columns))
    rho = np.empty(MEMORY)
    stored = 0
    size = np.sqrt(inner(g, g))
    length = np.sqrt(inner(x, x))
    initial_scale = FIRST_STEP * max(length, 1e-3) / size if size > 0.0 else 1.0
    iterations = 0
    idle = 0
    while iterations < max_iter and size > 0.0 and idle < 2:
        iterations += 1
        direction = quasi_newton_direction(g, steps, gradient_changes, rho, stored, initial_scale)
        decrease = inner(direction, g)
        if not decrease < 0.0:
            break
        length = 1.0
        taken = False
        for _ in range(MAX_HALVINGS):
            new = combined(x, length, direction)
            loss = _loss_at(new, first, second, near, far, weight, starts, distance, pair_gradient)
            new_objective = loss + 0.5 * prior * inner(new, new)
            if new_objective <= objective + SUFFICIENT_DECREASE * length * decrease:
                taken = True
                break
            length *= 0.5
        if not taken:
            break
        new_g = gradient_at(new, first, second, distance, pair_gradient)
        add_scaled(new_g, prior, new)
        m = stored % MEMORY
        steps[m] = combined(new, -1.0, x)
        gradient_changes[m] = combined(new_g, -1.0, g)
        curvature = inner(steps[m], gradient_changes[m])
        change = inner(gradient_changes[m], gradient_changes[m])
        if curvature > 1e-10 * change * initial_scale:
            rho[m] = 1.0 / curvature
            initial_scale = curvature / change
            stored += 1
        idle = idle + 1 if objective - new_objective <= tolerance * abs(objective) else 0
        x = new
        g = new_g
        objective = new_objective
    return rotated(x, principal(x)[1]), objective, iterations
