"""Words that only this project used do not come back: readers meet those of their own fields."""

from __future__ import annotations

import contextlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# What users read, what they would read if they looked inside, and what contributors read.
READ = (
    *("lore_active", "server", "templates", "static", "docs", "tests", "benchmarks", "deploy"),
    *("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "CITATION.cff"),
)
# The design log tells how things came about, in the words of the time; so do stored formats.
EXEMPT = re.compile(
    r"docs/design-log\.md|docs/screenshots/.*|static/vendor/.*|lore_active/learner/snapshot\.py"
    r"|server/store/sqlite/former_names\.py|tests/golden/.*|tests/unit/project/test_language\.py"
    r"|.*\.(sql|png|svg|json)"
)
# Anywhere: words and phrases, with upper and lower case where a name has it.
PRIVATE = (
    # The model and its fits.
    *(r"the model that asks", r"asker", r"(tells?|teach(es)?) most", r"smooth fits?"),
    *(r"likelier", r"odds against", r"unweighed", r"parsimony", r"held-out loss", r"progressive"),
    *(r"best possible", r"widen(ed)?", r"(one|a) dimension more", r"least_random", r"imbalance"),
    *(r"(no|beyond) luck", r"vouch(es|ed)?", r"witness(es)?", r"stiffer", r"steadied"),
    *(r"unselected answers", r"polish(ed)?", r"(COLD|FIRST)_SPREAD"),
    # People and their answers.
    *(r"whoever", r"somebody", r"newcomers?", r"nameless", r"(?<!a )Person", r"people (?=[=:])"),
    *(r"(Simulated|Logged)People", r"promised", r"is_away", r"practised", r"way out"),
    *(r"Already[T]old", r"Habits|Faces|Wish", r"outlook", r"pulse", r"ledgers?", r"tall(y|ies)"),
    # Imported, excluded, quarantined.
    *(r"brought in", r"prior[_ ](out|answers)", r"set[_ ]aside", r"taken_out(?!_)", r"supposing"),
    *(r"supposition", r"trialling", r"doors?(?! (of|to) )", r"levers?", r"lookers?"),
    r"for looking( only)?",
    # Files and what is stored.
    *(r"_?sealed", r"unsound", r"(be|is|are|database) sound", r"twins?", r"holdings"),
    *(r"(?<!WebM )films?", r"SHUT", r"StoreTrouble"),
    # Names of values.
    *(
        r"(MOST|LEAST|FEWEST)_[A-Z]+",
        r"(\w+_)?ROUGH(_\w+)?",
        r"FINE_[A-Z]+",
        r"fine=",
        r"words(?=\[\")",
    ),
    # Verbs and phrases.
    *(r"anew", r"leave (it|them|this|that) away", r"(?<!there )is no (number|PNG|picture)"),
    *(r"one a line", r"how dear", r"wavers?", r"went on here", r"goes on here"),
)
# In code, also what is fine in a sentence.
IN_CODE = (
    *(r"told(?=( = |\[|\.|\())", r"happened(?=( = |\[|\.|\())", r"(most|least)(?=: int)"),
    *(r"known: SelectorState", r"places(?=: NDArray)", r"class (Ledger|Knowledge|Picks|Turns|Gap)"),
    *(
        r"class (Taken|Facts|Gathered|Watch|Outlook|Tally)",
        r"(?<=for )one(?= in (self|report|c)\.)",
    ),
)
MODULES = {
    *("asking", "telling", "supposing", "trialling", "holding", "opening", "places", "sense"),
    *("growing", "luck", "words", "outlook", "facts", "levers", "doors", "picture", "spread"),
}
# What pages, commands and study.toml said, as they said it.
SENTENCES = (
    *(
        "where you came from",
        "Nothing was stored but",
        "surely more than",
        "By all answers together",
    ),
    *("explains too little", "not well known yet", "cannot be told yet", "To the stop"),
    *(
        "Machine room",
        "data to take home",
        "Twice alike",
        r"heard of \d",
        "Without a model's choice",
    ),
    *("Questions each", "last words", r"Going on\.", r"Open again\.", r"^Made\.$"),
    *("no study of that name", "people in the middle", "time that you take are", "by your first"),
    *("does not lead anywhere", "Asked was", "Chosen was", "rule is content", "load it anew"),
    *("Enough people have taken part", "that we could not use", "on our side is not ready"),
    *("A short pause", "go on here", "for having done so", "most people would say", "Time was up"),
    *("How much worse each", "the first look comes", "Nothing to draw", "every criterion holds"),
    *("rank to weigh", "offered as an answer [0-9]", "Behind by", "[0-9] with people"),
    *("Questions for each person", "for a mail", "Care taken", "Did not come to the end"),
    *("Who decided what", "nobody to ask", r"^written: ", "Put LORE beside", "without looking"),
    *("came out as it was published", "Where all chance", "What stands there"),
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
    assert len(found) > 500
    return found


def lines_with(pattern, texts):
    """Where a pattern matches, line by line."""
    return [
        f"{name}:{at}: {line.strip()}"
        for name, text in texts.items()
        if pattern.search(text)
        for at, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("word", PRIVATE)
def test_readers_meet_the_words_of_their_fields(word, texts):
    # Names with capitals or underscores mean themselves only.
    flags = 0 if re.search(r"[A-Z_]", word) else re.IGNORECASE
    assert lines_with(re.compile(rf"\b(?:{word})\b", flags), texts) == []


@pytest.mark.parametrize("name", IN_CODE)
def test_names_in_code_say_what_they_hold(name, texts):
    code = {file: text for file, text in texts.items() if re.match("(lore_active|server)/", file)}
    assert lines_with(re.compile(rf"\b(?:{name})"), code) == []


@pytest.mark.parametrize("sentence", SENTENCES)
def test_pages_do_not_say_it_in_the_old_words(sentence, texts):
    assert lines_with(re.compile(sentence, re.MULTILINE), texts) == []


def test_modules_are_named_for_what_they_hold(texts):
    assert {Path(name).stem for name in texts if name.endswith(".py")} & MODULES == set()
