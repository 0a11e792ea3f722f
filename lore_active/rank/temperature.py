"""Temperature of margins: the scale at which they predict held-out answers best."""

from __future__ import annotations

import numpy as np

from lore_active.jit import kernel
from lore_active.types import Floats

# Range of temperatures relative to the mean size of a margin, and accuracy of their logarithm.
COLDEST, HOTTEST = 0.02, 50.0
TOLERANCE = 1e-4
MAX_STEPS = 30


@kernel
def _slopes(column: Floats, inverse: float) -> tuple[float, float]:
    """First and second derivative of the mean log-loss by the inverse temperature."""
    first = 0.0
    second = 0.0
    for t in range(column.shape[0]):
        margin = column[t]
        # Probability of the other answer.
        p = 1.0 / (1.0 + np.exp(min(inverse * margin, 700.0)))
        first -= margin * p
        second += margin * margin * p * (1.0 - p)
    return first / column.shape[0], second / column.shape[0]


@kernel
def log_losses(column: Floats, temperature: float) -> Floats:
    """Log-loss of each answer, from its margin."""
    out = np.empty(column.shape[0])
    for t in range(column.shape[0]):
        x = column[t] / temperature
        out[t] = max(-x, 0.0) + np.log1p(np.exp(-abs(x)))
    return out


def best_temperature(column: Floats) -> float:
    """The temperature at which margins have the lowest log-loss.

    The loss is convex in the inverse temperature: Newton's steps, kept between bounds that close
    in on the optimum.
    """
    size = max(float(np.abs(column).mean()), 1e-9)
    low, high = 1.0 / (HOTTEST * size), 1.0 / (COLDEST * size)
    inverse = 1.0 / size
    for _ in range(MAX_STEPS):
        first, second = _slopes(column, inverse)
        if first > 0.0:
            high = inverse
        else:
            low = inverse
        step = inverse - first / second if second > 0.0 else inverse
        following = step if low < step < high else (low * high) ** 0.5
        close = abs(following - inverse) <= TOLERANCE * inverse
        inverse = following
        if close:
            break
    return 1.0 / inverse
