"""Ratios of marginal likelihoods along a path of posteriors, from draws of each (Bennett, 1976)."""

from __future__ import annotations

import numpy as np

from lore_active.jit import kernel
from lore_active.types import Floats

# Blocks of successive draws that the jackknife leaves out in turn.
BLOCKS = 8
TOLERANCE = 1e-10
MAX_STEPS = 200


@kernel
def _ratio(forward: Floats, backward: Floats, left_out: int) -> float:
    """Log ratio by Bennett's equation, without one block of draws (none if it is negative).

    The equation is monotonic in the ratio: Newton's steps, kept between bounds that close in.
    """
    count = forward.shape[0]
    low, high = min(forward.min(), backward.min()) - 1.0, max(forward.max(), backward.max()) + 1.0
    ratio = 0.5 * (forward.mean() + backward.mean())
    for _ in range(MAX_STEPS):
        value = 0.0
        slope = 0.0
        for t in range(count):
            if t * BLOCKS // count == left_out:
                continue
            p = 1.0 / (1.0 + np.exp(ratio - forward[t]))
            q = 1.0 / (1.0 + np.exp(backward[t] - ratio))
            value += p - q
            slope += p * (1.0 - p) + q * (1.0 - q)
        if value > 0.0:
            low = ratio
        else:
            high = ratio
        following = ratio + value / slope if slope > 0.0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        close = abs(following - ratio) <= TOLERANCE
        ratio = following
        if close:
            break
    return float(ratio)


def log_ratios(draws: Floats) -> Floats:
    """Log ratios of the marginal likelihoods at each point of a path to that at the point before.

    A draw of one point becomes one of the next in two ways: with the same standardised further
    coordinates, or with the same coordinates themselves. Which of them changes the density less
    depends on whether the prior or the answers determine the further dimension; that way is taken.

    Parameters
    ----------
    draws : array of shape (n_points, n_draws, ≥ 5)
        See `hamiltonian.sample`.

    Returns
    -------
    array of shape (n_points - 1, 1 + BLOCKS)
        From all draws, and without each block of successive draws.
    """
    out = np.empty((len(draws) - 1, 1 + BLOCKS))
    for k in range(len(draws) - 1):
        forward, backward = min(_ways(draws[k], draws[k + 1]), key=_spread)
        out[k] = [_ratio(forward, backward, block) for block in range(-1, BLOCKS)]
    return out


def _ways(lower: Floats, upper: Floats) -> list[tuple[Floats, Floats]]:
    """Log density ratios of neighbouring points at the draws of each, in both ways."""
    ways = [(lower[:, 2] - lower[:, 1], upper[:, 1] - upper[:, 0])]
    # At the first point there is no further dimension whose coordinates could stay.
    if lower[:, 4].any():
        ways.append((lower[:, 4].copy(), -upper[:, 3]))
    return ways


def _spread(way: tuple[Floats, Floats]) -> float:
    return sum(float(changes.var()) for changes in way)


def total(ratios: Floats) -> tuple[float, float]:
    """Log ratio of the last to the first point of a path, and its jackknife standard error."""
    value, *without = ratios.sum(axis=0)
    deviations = np.array(without) - np.mean(without)
    return float(value), float(np.sqrt((BLOCKS - 1) * np.mean(deviations**2)))
