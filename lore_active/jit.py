"""Compilation of kernels: nogil, and cached on disk if a cache folder is writable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

# Compiled code calls SciPy's LAPACK, and would load it only then: too late for callers that limit
# the loaded libraries to one thread.
import scipy.linalg  # noqa: F401

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile `function` with numba, keeping its Python type for the type checker.

    `error_model="numpy"` drops the zero-division branches that would stop loops from being
    vectorised, and `contract` fuses multiplications with additions. Sums are never reordered:
    on the same machine the same input gives the same bits.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    try:
        compiled = numba.njit(function, cache=True, **options)
    except RuntimeError:
        # Neither the package's folder nor the user's cache folder is writable (a read-only
        # installation): compile in each process instead of failing to import.
        compiled = numba.njit(function, **options)
    return cast(Kernel, compiled)
