"""Compilation of kernels: nogil, and cached on disk if a cache folder is writable.

A kernel contains the kernels that it calls, but numba compiles it again only if its own file has
changed. Compiled kernels that are older than any file of this package are therefore removed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
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
        _remove_outdated(compiled.stats.cache_path)
    except RuntimeError:
        # Neither the package's folder nor the user's cache folder is writable (a read-only
        # installation): compile in each process instead of failing to import.
        compiled = numba.njit(function, **options)
    return cast(Kernel, compiled)


@cache
def _remove_outdated(folder: str) -> None:
    """Remove the indexes of compiled kernels that are older than the package's newest file."""
    for index in Path(folder).glob("*.nbi"):
        # Another process may have removed it, and some folders can only be read.
        with contextlib.suppress(OSError):
            if index.stat().st_mtime < _newest_source():
                index.unlink()


@cache
def _newest_source() -> float:
    return max(file.stat().st_mtime for file in Path(__file__).parent.rglob("*.py"))
