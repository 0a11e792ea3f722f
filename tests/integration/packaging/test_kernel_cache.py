"""Compiled kernels: kept when other packages are upgraded, compiled again when they change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
# Imports the other package as well: it may change, but not the kernel.
CODE = """
import other, numpy as np
from lore_active.embedding import algebra
algebra.inner(np.eye(2), np.eye(2))
stats = algebra.inner.stats
print(other.__version__, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


# A kernel that calls another one, in another file.
LOSS = """
import numpy as np
from lore_active.trials.likelihood import stages_loss_at
first, second = np.array([0, 0], dtype=np.int32), np.array([1, 2], dtype=np.int32)
start, member = np.array([0, 2], dtype=np.int32), np.array([0, 1], dtype=np.int32)
z, picked, empty = np.array([[0.0], [1.0], [3.0]]), np.array([1], dtype=np.int32), np.empty(2)
print(stages_loss_at(z, first, second, start, member, picked, np.ones(1), empty, empty.copy()))
"""


def install(site: Path, version: str) -> None:
    """Install a version of another package, as pip does it: files and metadata are replaced."""
    for old in site.glob("other*"):
        shutil.rmtree(old)
    (site / "other").mkdir()
    (site / "other" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    metadata = site / f"other-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: other\nVersion: {version}\n")


def compiled(site: Path, cache: Path, code: str = CODE) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(cache)}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=site, env=environment
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.split()


def copied(folder: Path) -> tuple[Path, Path]:
    """A copy of the library, and a folder for its compiled kernels."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lore_active", folder / "site" / "lore_active", ignore=ignored)
    return folder / "site", folder / "cache"


def test_an_upgrade_of_another_package_keeps_the_compiled_kernels(tmp_path):
    site, cache = copied(tmp_path)
    install(site, "1.0")
    assert compiled(site, cache) == ["1.0", "0", "1"]
    install(site, "2.0")
    assert compiled(site, cache) == ["2.0", "1", "0"]
    # An upgrade of lore-active itself writes the kernels' sources again.
    source = site / "lore_active" / "embedding" / "algebra.py"
    source.write_text(source.read_text() + "\n")
    assert compiled(site, cache) == ["2.0", "0", "1"]


def test_a_change_of_a_kernel_changes_those_that_call_it(tmp_path):
    site, cache = copied(tmp_path)
    (before,) = compiled(site, cache, LOSS)
    assert compiled(site, cache, LOSS) == [before]
    source = site / "lore_active" / "embedding" / "kernels.py"
    text = source.read_text()
    changed = text.replace("out[q] = np.sqrt(total)", "out[q] = 2.0 * np.sqrt(total)")
    assert changed != text
    source.write_text(changed)
    (after,) = compiled(site, cache, LOSS)
    # log(1 + exp(1 - 3)), and with distances twice as long.
    assert abs(float(before) - 0.126928) < 1e-4
    assert abs(float(after) - 0.018150) < 1e-4
