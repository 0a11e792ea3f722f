"""How kernels are compiled: nogil, cached on disk where that can be written, in memory else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

# Compiled code calls SciPy's LAPACK, and would load it only then: too late for whoever holds the
# libraries that are loaded to one thread.
import scipy.linalg  # noqa: F401

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile `function` with numba, keeping its Python type for the checker.

    `error_model="numpy"` drops the zero-division branches that would stop loops from being
    vectorised, and `contract` fuses multiplications with additions. Sums are never reordered:
    on the same machine the same input gives the same bits.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    try:
        compiled = numba.njit(function, cache=True, **options)
    except RuntimeError:
        # Neither the package's folder nor the user's cache folder can be written (a read-only
        # install): compile afresh in each process instead of refusing to import.
        compiled = numba.njit(function, **options)
    return cast(Kernel, compiled)
