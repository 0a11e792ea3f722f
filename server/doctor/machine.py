"""Checks of the machine: cores, memory, versions, and whether the kernels compile."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import scipy

from lore_active import __version__, embedding
from lore_active.warmup import warm
from server.doctor.finding import Finding, ok, problem, size, warning

# The first version with STRICT tables.
SQLITE = (3, 37, 0)
LITTLE, TOO_LITTLE = 1.5e9, 5e8
THREADS = {0: "single-threaded", 1: "multi-threaded", 3: "serialized"}
GROUP = Path("/sys/fs/cgroup")


def examine() -> Iterator[Finding]:
    """Check everything except disk, clock and network."""
    yield _versions()
    yield _database(sqlite3.sqlite_version_info, sqlite3.threadsafety)
    yield _cores(cores())
    yield _memory(memory())
    yield _kernels()


def _versions() -> Finding:
    versions = (
        f"lore-active {__version__}, Python {platform.python_version()}, numba "
        f"{numba.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"{platform.system()} {platform.machine()}"
    )
    if sys.maxsize < 2**32:
        return problem("versions", versions + ", 32-bit", "Install a 64-bit Python.")
    return ok("versions", versions)


def _database(version: tuple[int, ...], threads: int) -> Finding:
    written = ".".join(map(str, version))
    build = f"SQLite {written}, {THREADS.get(threads, threads)}"
    if version < SQLITE:
        oldest = ".".join(map(str, SQLITE))
        return problem("SQLite", build, f"Use a Python whose SQLite is {oldest} or newer.")
    if threads == 0:
        return problem("SQLite", build, "Use a Python whose SQLite was built with threads.")
    return ok("SQLite", build)


def cores() -> float:
    """Return the number of processors available; in a container it may be a fraction."""
    try:
        count: float = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    try:
        quota, period = (GROUP / "cpu.max").read_text().split()
        return min(count, int(quota) / int(period))
    except (OSError, ValueError):
        return count


def _cores(count: float) -> Finding:
    number = f"{count:g} core{'' if count == 1 else 's'}"
    if count < 2:
        return warning(
            "cores",
            number,
            "Enough for a few participants at a time. With two, pages do not wait for the worker.",
        )
    return ok("cores", number)


def memory() -> int | None:
    """Return the available memory in bytes; None if that is unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")
        )
    except (OSError, StopIteration, ValueError):
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, OSError, ValueError):
            return None
    try:
        limit = int((GROUP / "memory.max").read_text())
        return min(free, limit - int((GROUP / "memory.current").read_text()))
    except (OSError, ValueError):
        return free


def _memory(free: int | None) -> Finding:
    if free is None:
        return ok("memory", "not available on this system")
    available = f"{size(free)} available"
    if free < TOO_LITTLE:
        return problem("memory", available, "Close other programs; a study needs about 1 GB.")
    if free < LITTLE:
        return warning("memory", available, "Enough for one study of a few hundred items.")
    return ok("memory", available)


def _kernels() -> Finding:
    """Compile the kernels now, so that the first participants need not wait for it."""
    begun = time.perf_counter()
    warm()
    timing = f"the learner's code was compiled or loaded in {time.perf_counter() - begun:.1f} s"
    if not _cacheable():
        return warning(
            "kernels",
            timing + ", but cannot be cached",
            "It is compiled again at each start. Set NUMBA_CACHE_DIR to a writable folder.",
        )
    return ok("kernels", timing)


def _cacheable() -> bool:
    """Return whether numba can cache compiled code on disk."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(named)] if named else [Path(embedding.__file__).parent / "__pycache__"]
    if not named:
        places.append(Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")))
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                return True
        except OSError:
            continue
    return False
