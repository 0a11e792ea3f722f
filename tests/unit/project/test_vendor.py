"""Foreign files are what their record says: nothing added, nothing changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("folder", ["static/vendor", "tests/vendor"])
def test_vendored_files_are_recorded_with_their_sums(folder):
    lines = (ROOT / folder / "README.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    recorded = {row[0]: row for row in rows[2:]}
    present = {file.name for file in (ROOT / folder).iterdir()} - {"README.md"}
    assert set(recorded) == present
    for name, row in recorded.items():
        assert all(row) and row[2] in name, "package, version, licence and path belong there"
        assert hashlib.sha256((ROOT / folder / name).read_bytes()).hexdigest() == row[-1]
