"""docs/security.md and docs/ethics.md: threats name tests that exist, pages name what is stored."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]

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


# What the page for ethics boards calls each column.
IN_PLAIN_WORDS = {
    **dict.fromkeys(("external", "entry"), "recruitment id and all parameters of the link"),
    "agent": "what the browser says it is (user agent)",
    "token": "a random token",
    **dict.fromkeys(
        ("arrived_at", "consented_at", "seen_at", "finished_at"),
        "times of arrival, consent, last activity and end",
    ),
    **dict.fromkeys(
        ("stage", "trials", "done", "practice_done", "break_done", "visit", "excluded"),
        "progress: stage, trials done, breaks, window number, exclusion",
    ),
    "feedback": "a comment at the end",
    "id": "kept, under a number",
    "simulated": "**Simulated participants** are marked",
}


def columns():
    schema = (ROOT / "server" / "store" / "schema.sql").read_text()
    table = re.search(r"CREATE TABLE participants \((.*?)\) STRICT", schema, re.DOTALL)[1]
    names = re.findall(r"^    (\w+) (?:TEXT|INTEGER)", table, re.MULTILINE)
    for file in sorted((ROOT / "server" / "store" / "migrations").glob("*.sql")):
        text = file.read_text()
        names += re.findall(r"ALTER TABLE participants ADD COLUMN (\w+)", text)
        renamed = re.findall(r"ALTER TABLE participants RENAME COLUMN (\w+) TO (\w+)", text)
        names = [dict(renamed).get(name, name) for name in names]
    assert len(names) > 10
    return names


def test_every_personal_column_is_in_the_page():
    """A column that is added must be thought about."""
    text = (ROOT / "docs" / "security.md").read_text()
    for column in columns():
        assert f"`{column}`" in text, column


def test_the_page_for_ethics_boards_names_everything_that_is_stored():
    text = (ROOT / "docs" / "ethics.md").read_text()
    assert set(columns()) == set(IN_PLAIN_WORDS)
    for column, phrase in IN_PLAIN_WORDS.items():
        assert phrase in text, column
    # What the schema does not have cannot be stored.
    schema = (ROOT / "server" / "store" / "schema.sql").read_text()
    assert not re.search(r"(?i)\b(ip|ip_address|email|e_mail|location)\b", schema)
