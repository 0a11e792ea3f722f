"""Files of other projects are the ones that were looked at, and every one of them is on record."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECORD = json.loads((ROOT / "static/vendor/vendor.json").read_text())


@pytest.mark.parametrize("one", RECORD, ids=lambda one: one["name"])
def test_it_is_what_it_was(one):
    assert hashlib.sha256((ROOT / one["file"]).read_bytes()).hexdigest() == one["sha256"]
    assert one["licence"] and one["version"] in one["file"]


def test_every_file_is_on_record():
    found = {
        str(path.relative_to(ROOT))
        for folder in ("static/vendor", "tests/vendor")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in (".json", ".md")
    }
    assert found == {one["file"] for one in RECORD}
