"""docs/security.md holds: every threat names tests that exist, every personal column is told of."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

THREAT = re.compile(r"^(\d+)\. \*\*", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def threats():
    text = (ROOT / "docs" / "security.md").read_text()
    starts = [found.start() for found in THREAT.finditer(text)]
    numbers = [int(found[1]) for found in THREAT.finditer(text)]
    ends = [*starts[1:], text.index("\n## ", starts[-1])]
    return numbers, [text[start:end] for start, end in zip(starts, ends, strict=True)]


def test_every_threat_names_a_test_that_exists():
    numbers, parts = threats()
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 20
    for number, part in zip(numbers, parts, strict=True):
        named = TEST.findall(part)
        assert named, f"threat {number} names no test"
        for file, name in named:
            assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), (
                f"threat {number} names {file}::{name}, which is not there"
            )


def test_every_personal_column_is_in_the_page():
    """A column that is added must be thought about."""
    schema = (ROOT / "server" / "store" / "schema.sql").read_text()
    table = re.search(r"CREATE TABLE participants \((.*?)\) STRICT", schema, re.DOTALL)[1]
    columns = re.findall(r"^    (\w+) (?:TEXT|INTEGER)", table, re.MULTILINE)
    text = (ROOT / "docs" / "security.md").read_text()
    assert len(columns) > 10
    for column in columns:
        assert f"`{column}`" in text, column
