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


def install(site: Path, version: str) -> None:
    """Install a version of another package, as pip does it: files and metadata are replaced."""
    for old in site.glob("other*"):
        shutil.rmtree(old)
    (site / "other").mkdir()
    (site / "other" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    metadata = site / f"other-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: other\nVersion: {version}\n")


def compiled(site: Path, cache: Path) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(cache)}
    found = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, cwd=site, env=environment
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.split()


def test_an_upgrade_of_another_package_keeps_the_compiled_kernels(tmp_path):
    site, cache = tmp_path / "site", tmp_path / "cache"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lore_active", site / "lore_active", ignore=ignored)
    install(site, "1.0")
    assert compiled(site, cache) == ["1.0", "0", "1"]
    install(site, "2.0")
    assert compiled(site, cache) == ["2.0", "1", "0"]
    # An upgrade of lore-active itself writes the kernels' sources again.
    source = site / "lore_active" / "embedding" / "algebra.py"
    source.write_text(source.read_text() + "\n")
    assert compiled(site, cache) == ["2.0", "0", "1"]
