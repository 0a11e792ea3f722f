"""Type aliases that several modules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
Flags = NDArray[np.bool_]
# `map` over numbers, or a function that does the same in parallel.
Mapper = Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]
