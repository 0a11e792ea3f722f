"""Words that only this project used do not come back: readers meet those of their own fields."""

from __future__ import annotations

import contextlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# What users read, what they would read if they looked inside, and what contributors read.
READ = ("lore_active", "server", "templates", "static", "docs", "tests", "benchmarks", "README.md")
# The design log tells how things came about, in the words of the time; so do stored formats.
EXEMPT = re.compile(
    r"docs/design-log\.md|docs/screenshots/.*|static/vendor/.*|lore_active/learner/snapshot\.py"
    r"|server/store/sqlite/former_names\.py|tests/golden/.*|tests/unit/project/test_language\.py"
    r"|.*\.(sql|png|svg|json)"
)
PRIVATE = (
    *(r"anew", r"whoever", r"somebody", r"vouch(es|ed)?", r"witness(es)?", r"likelier", r"asker"),
    *(
        r"the model that asks",
        r"for looking( only)?",
        r"parsimony",
        r"ledgers?",
        r"tally",
        r"twins",
    ),
    *(r"levers?", r"lookers?", r"(no|beyond) luck", r"supposing", r"trialling", r"machine room"),
    *(r"(?<!there )is no (number|PNG|picture)", r"leave (it|them) away", r"went on here"),
    *(r"brought in", r"(MOST|LEAST|FEWEST)_[A-Z]+", r"set[_ ]aside", r"prior_(out|answers)"),
    *(
        r"progressive",
        r"newcomers?",
        r"nameless",
        r"promised",
        r"imbalance",
        r"stiffer",
        r"steadied",
    ),
    *(
        r"supposition",
        r"(Simulated|Logged)People",
        r"(?<!a )Person",
        r"people (?=[=:])",
        r"is_away",
    ),
    *(r"_?sealed", r"taken_out(?!_)", r"practised", r"unsound", r"holdings", r"outlook", r"pulse"),
)


@pytest.fixture(scope="module")
def texts():
    """Each file's text, by its name; pictures and deleted files have none."""
    listed = subprocess.run(
        ["git", "ls-files", *READ], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    found = {}
    for name in listed.split("\n"):
        if name and not EXEMPT.fullmatch(name):
            with contextlib.suppress(UnicodeDecodeError, FileNotFoundError):
                found[name] = (ROOT / name).read_text("utf-8")
    return found


@pytest.mark.parametrize("word", PRIVATE)
def test_readers_meet_the_words_of_their_fields(word, texts):
    pattern = re.compile(rf"\b{word}\b", 0 if re.search("[A-Z_]", word) else re.IGNORECASE)
    found = []
    for name, text in texts.items():
        if not pattern.search(text):
            continue
        found += [f"{name}:{at}: {line.strip()}" for at, line in enumerate(text.splitlines(), 1)
                  if pattern.search(line)]  # fmt: skip
    assert found == []
