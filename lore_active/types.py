"""Type aliases that several modules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
Flags = NDArray[np.bool_]
# Held-out margins of answers, by rank and strength of the penalty or prior.
HeldOut = dict[tuple[int, float], Floats]
# `map`, or a function that does the same in parallel.
Mapper = Callable[[Callable[[int], HeldOut], Iterable[int]], Iterable[HeldOut]]
