"""Bitwise reproducibility: one instruction set for all x86-64 machines, and a fingerprint.

OpenBLAS, numba and NumPy each detect the processor and use its widest instructions, which changes
the order of summation: results of the same study then differ in the last bits between machines.
The instruction set can be configured, but only before these libraries are loaded. That is why
`lore_active/__init__.py` calls `fix_instruction_set` before anything else.
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import sys
import warnings
from contextlib import AbstractContextManager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lore_active._version import __version__
from lore_active.errors import ReproducibilityWarning

# The microarchitecture level that x86-64 processors with AVX2 share.
PORTABLE = "x86-64-v3"
# Environment variable: "portable" (the default), or "native" for the processor's own set.
VARIABLE = "LORE_ACTIVE_INSTRUCTION_SET"
# Linux's names of the processor flags of that level that kernels use.
_FLAGS = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"})
_FEATURES = (
    "avx avx2 bmi bmi2 cmov crc32 cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 "
    "sse4.1 sse4.2 ssse3 x87 xsave"
)
NUMBA_FEATURES = ",".join(f"+{feature}" for feature in _FEATURES.split())
OPENBLAS_CORE = "Haswell"
# NumPy named single features before 2.4, and levels since.
NUMPY_LEVELS = ("X86_V3",)
NUMPY_FEATURES = ("SSSE3", "SSE41", "POPCNT", "SSE42", "AVX", "F16C", "FMA3", "AVX2")
_WINDOWS_AVX2 = 40  # PF_AVX2_INSTRUCTIONS_AVAILABLE


def fix_instruction_set() -> bool:
    """Configure the numerical libraries to use the portable instruction set.

    Returns whether they do. They do not if NumPy was loaded before, on processors without AVX2,
    and if the user has chosen the native set: results then agree with those of other machines
    within a tolerance, not bit for bit.
    """
    if os.environ.get(VARIABLE, "portable") == "native" or not _has_avx2():
        return False
    wanted = {
        "OPENBLAS_CORETYPE": OPENBLAS_CORE,
        "NUMBA_CPU_NAME": PORTABLE,
        "NUMBA_CPU_FEATURES": NUMBA_FEATURES,
        "NPY_ENABLE_CPU_FEATURES": " ".join(_numpy_features()),
    }
    if "numpy" in sys.modules:
        # Too late, unless the process was started with these variables.
        return wanted.items() <= os.environ.items()
    os.environ.update(wanted)
    # NumPy does not accept both a list of enabled and a list of disabled features.
    os.environ.pop("NPY_DISABLE_CPU_FEATURES", None)
    return True


def warn_if_not_portable() -> None:
    """Warn that NumPy was loaded too early for bitwise reproducible results."""
    if os.environ.get(VARIABLE, "portable") == "native" or not _has_avx2():
        return
    used = instruction_set()
    if used != PORTABLE:
        warnings.warn(
            f"NumPy was loaded before lore_active, so this process uses the processor's own "
            f"instruction set ({used}). On another machine the same answers will give the same "
            "result within a tolerance, not bit for bit. Import lore_active before NumPy, or set "
            f"{VARIABLE}=native to accept this.",
            ReproducibilityWarning,
            stacklevel=3,
        )


def _numpy_features() -> tuple[str, ...]:
    try:
        major, minor = (int(part) for part in version("numpy").split(".")[:2])
    except (PackageNotFoundError, ValueError):
        return NUMPY_LEVELS
    return NUMPY_LEVELS if (major, minor) >= (2, 4) else NUMPY_FEATURES


@cache
def _has_avx2() -> bool:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    if sys.platform == "win32":
        import ctypes

        return bool(ctypes.windll.kernel32.IsProcessorFeaturePresent(_WINDOWS_AVX2))
    if sys.platform == "darwin":
        import ctypes

        supported, size = ctypes.c_int(0), ctypes.c_size_t(4)
        libc = ctypes.CDLL(None)
        libc.sysctlbyname(
            b"hw.optional.avx2_0",
            ctypes.byref(supported),
            ctypes.byref(size),
            None,
            ctypes.c_size_t(0),
        )
        return bool(supported.value)
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as lines:
            flags = next(line for line in lines if line.startswith("flags"))
    except (OSError, StopIteration):
        return False
    return set(flags.split()) >= _FLAGS


@cache
def instruction_set() -> str:
    """The instruction set that the loaded libraries use: PORTABLE, or what each has detected."""
    import numba
    import numpy as np
    from llvmlite import binding

    core = np._core if hasattr(np, "_core") else np.core
    umath = core._multiarray_umath
    used = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]]
    settings: Any = numba.config
    compiled_for = settings.CPU_NAME, settings.CPU_FEATURES
    cores = {
        library.get("architecture") for library in _blas() if library["internal_api"] == "openblas"
    }
    if (
        compiled_for == (PORTABLE, NUMBA_FEATURES)
        and set(used) <= {*NUMPY_LEVELS, *NUMPY_FEATURES}
        and cores <= {OPENBLAS_CORE}
    ):
        return PORTABLE
    name, features = compiled_for
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    digest = hashlib.sha256(features.encode()).hexdigest()[:8]
    return (
        f"native: numba {name or binding.get_host_cpu_name()} ({digest}), "
        f"NumPy {' '.join(used) or 'baseline'}"
    )


@cache
def fingerprint() -> str:
    """One line that identifies code, libraries and machine: equal lines give equal bits."""
    import numba
    import numpy as np
    import scipy

    blas = {
        f"{library['internal_api']} {library['version']} {library.get('architecture', '')}".strip()
        for library in _blas()
    }
    system = f"{platform.system()} {platform.machine()} {' '.join(platform.libc_ver())}".strip()
    return "; ".join(
        [
            f"lore-active {__version__} ({_code()})",
            f"Python {platform.python_version()}",
            f"NumPy {np.__version__}",
            f"SciPy {scipy.__version__}",
            f"numba {numba.__version__}",
            *sorted(blas),
            # Exponentials and logarithms come from the system's library.
            system,
            instruction_set(),
        ]
    )


def one_thread() -> AbstractContextManager[Any]:
    """Limit linear algebra to one thread, for the few calls whose bits depend on the number.

    The default number of threads depends on the machine.
    """
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _blas() -> list[dict[str, str]]:
    # SciPy has its own library, and loads it only when it is needed.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return [library for library in threadpool_info() if library["user_api"] == "blas"]


# The packages and modules on which numerical results depend.
_NUMERICS = (
    *("acquisition", "data/comparisons.py", "data/triplets.py", "embedding", "jit.py", "learner"),
    *("questions", "rank", "row_table.py", "stopping/rules.py", "stopping/sensitivity.py"),
    *("stopping/smallest_dimension.py", "trials"),
)


def numerical_modules() -> list[Path]:
    """Modules whose code the fingerprint covers: all that a learner's results depend on."""
    here = Path(__file__).parent
    parts = [here / part for part in _NUMERICS]
    return [
        file
        for path in parts
        for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))
    ]


def _code() -> str:
    """Digest of the numerical code, since a version under development changes without a number.

    Comments and docstrings are omitted, so that rewording them does not change the fingerprint.
    """
    here, digest = Path(__file__).parent, hashlib.sha256()
    for file in numerical_modules():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        digest.update(file.relative_to(here).as_posix().encode())
        digest.update(ast.dump(_without_docstrings(tree)).encode())
    return digest.hexdigest()[:8]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            kept = [
                part
                for part in node.body
                if not (
                    isinstance(part, ast.Expr)
                    and isinstance(part.value, ast.Constant)
                    and isinstance(part.value.value, str)
                )
            ]
            node.body = kept
    return tree
