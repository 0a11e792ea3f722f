"""What results can differ by in their last bits: versions, BLAS, processor."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

import numba
import numpy as np
import scipy
from llvmlite import binding
from threadpoolctl import threadpool_info

from lore_active import __version__


@cache
def fingerprint() -> str:
    """One line; the same line means that the same calls give the same bits."""
    blas = sorted(
        {
            f"{one['internal_api']} {one['version']} {one.get('architecture', '')}".strip()
            for one in threadpool_info()
            if one["user_api"] == "blas"
        }
    )
    return "; ".join(
        [
            f"lore-active {__version__} ({_code()})",
            f"Python {platform.python_version()}",
            f"NumPy {np.__version__}",
            f"SciPy {scipy.__version__}",
            f"numba {numba.__version__}",
            *blas,
            f"{platform.system()} {platform.machine()} {binding.get_host_cpu_name()}",
        ]
    )


def _code() -> str:
    """A digest of the library itself: a version under development has many forms."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:8]
