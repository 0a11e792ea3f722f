"""Names for what passes between modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
Flags = NDArray[np.bool_]
# Margins of answers that the fits did not see, by rank and strength of the penalty.
HeldOut = dict[tuple[int, float], Floats]
# `map`, or what does the same on several cores.
Mapper = Callable[[Callable[[int], HeldOut], Iterable[int]], Iterable[HeldOut]]
