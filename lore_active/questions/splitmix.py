"""SplitMix64 (Steele, Lea & Flood, 2014): a hash with well mixed bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GOLDEN, _MIX, _MIX_AGAIN = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def hashed(values: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Values of 64 bits that look random, the same for the same value and seed."""
    mixed = values + np.uint64((seed + 1) * _GOLDEN % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_MIX)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_MIX_AGAIN)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
