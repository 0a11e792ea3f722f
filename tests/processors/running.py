"""Processes whose libraries are told, or emulated, to be on another processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lore_active.reproducibility import VARIABLE

ROOT = Path(__file__).parent.parent.parent
FIXED = ("OPENBLAS_CORETYPE", "NUMBA_CPU_", "NPY_", VARIABLE)


def environment(**chosen: str) -> dict[str, str]:
    """As on a machine where nobody has chosen any instructions yet, but for `chosen`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FIXED)}
    return {**kept, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **chosen}


def run(*arguments: object, emulator: tuple[str, ...] = (), **chosen: str) -> str:
    """What a Python process prints, started in the project's folder."""
    result = subprocess.run(
        [*emulator, sys.executable, *(str(argument) for argument in arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(**chosen),
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
