"""Ratios of marginal likelihoods along a path of posteriors, from draws of each (Bennett, 1976)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from lore_active.types import Floats

# Blocks of successive draws that the jackknife leaves out in turn.
BLOCKS = 8


def acceptance_ratio(draws: Floats) -> float:
    """Log ratio of the marginal likelihoods at the last and the first point of a path (Bennett).

    `draws` has the shape (n_points, n_draws, ≥ 3): log likelihoods at the previous, this and the
    next point.
    """
    total = 0.0
    for lower, upper in pairwise(draws):
        forward = lower[:, 2] - lower[:, 1]
        backward = upper[:, 1] - upper[:, 0]
        both = np.concatenate([forward, backward])
        least, most = float(both.min()), float(both.max())
        if most - least < 1e-12:
            total += 0.5 * (least + most)
            continue
        total += brentq(_imbalance, least - 1.0, most + 1.0, args=(forward, backward), xtol=1e-10)
    return total


def _imbalance(ratio: float, forward: Floats, backward: Floats) -> float:
    return float(expit(forward - ratio).mean() - expit(ratio - backward).mean())


def jackknife_error(draws: Floats) -> float:
    """Standard error of `acceptance_ratio`, by leaving out blocks of successive draws."""
    count = draws.shape[1]
    block = np.arange(count) * BLOCKS // count
    values = np.array([acceptance_ratio(draws[:, block != b]) for b in range(BLOCKS)])
    return float(np.sqrt((BLOCKS - 1) * np.mean((values - values.mean()) ** 2)))
