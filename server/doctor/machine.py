"""The machine: cores, memory, versions, and whether the kernels compile."""

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

# STRICT tables came with this one.
SQLITE = (3, 37, 0)
LITTLE, TOO_LITTLE = 1.5e9, 5e8
THREADS = {0: "single-threaded", 1: "multi-threaded", 3: "serialized"}
GROUP = Path("/sys/fs/cgroup")


def examine() -> Iterator[Finding]:
    """Everything but disk, clock and network."""
    yield _versions()
    yield _database(sqlite3.sqlite_version_info, sqlite3.threadsafety)
    yield _cores(cores())
    yield _memory(memory())
    yield _kernels()


def _versions() -> Finding:
    found = (
        f"lore-active {__version__}, Python {platform.python_version()}, numba "
        f"{numba.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"{platform.system()} {platform.machine()}"
    )
    if sys.maxsize < 2**32:
        return problem("versions", found + ", 32 bits", "Install a Python of 64 bits.")
    return ok("versions", found)


def _database(version: tuple[int, ...], threads: int) -> Finding:
    written = ".".join(map(str, version))
    found = f"SQLite {written}, {THREADS.get(threads, threads)}"
    if version < SQLITE:
        least = ".".join(map(str, SQLITE))
        return problem("SQLite", found, f"Use a Python whose SQLite is {least} or newer.")
    if threads == 0:
        return problem("SQLite", found, "Use a Python whose SQLite was built with threads.")
    return ok("SQLite", found)


def cores() -> float:
    """Processors that this process may use; a container may be given parts of one."""
    try:
        count: float = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    try:
        most, period = (GROUP / "cpu.max").read_text().split()
        return min(count, int(most) / int(period))
    except (OSError, ValueError):
        return count


def _cores(count: float) -> Finding:
    found = f"{count:g} core{'' if count == 1 else 's'}"
    if count < 2:
        return warning(
            "cores",
            found,
            "Enough for a few people at a time. With two, pages do not wait for the learner.",
        )
    return ok("cores", found)


def memory() -> int | None:
    """Bytes that could be had now; None: cannot be told."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(one.split()[1]) * 1024 for one in lines if one.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, OSError, ValueError):
            return None
    try:
        most = int((GROUP / "memory.max").read_text())
        return min(free, most - int((GROUP / "memory.current").read_text()))
    except (OSError, ValueError):
        return free


def _memory(free: int | None) -> Finding:
    if free is None:
        return ok("memory", "cannot be read on this system")
    found = f"{size(free)} available"
    if free < TOO_LITTLE:
        return problem("memory", found, "Close other programs; a study wants about 1 GB.")
    if free < LITTLE:
        return warning("memory", found, "Enough for one study of some hundred items, not more.")
    return ok("memory", found)


def _kernels() -> Finding:
    """Compiles what is not yet compiled, so that the first participants need not wait for it."""
    begun = time.perf_counter()
    warm()
    found = f"the learner's code is ready after {time.perf_counter() - begun:.1f} s"
    if not _kept():
        return warning(
            "kernels",
            found + ", but cannot be kept on disk",
            "Each start compiles it again. Set NUMBA_CACHE_DIR to a folder that can be written.",
        )
    return ok("kernels", found)


def _kept() -> bool:
    """Whether compiled code can be written where numba looks for it."""
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
