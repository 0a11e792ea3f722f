"""What is wrong with a study: each problem with its file, its key, the value found and the rule."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from lore_active.data.lookalikes import appearance, peculiar
from lore_active.errors import LoreError


class Problem(Struct, frozen=True):
    """One thing wrong: in `file`, `key` is `value`, but `rule`.

    `file` is relative to the study's folder, or the folder itself. An empty `key` stands for the
    whole file.
    """

    file: str
    key: str
    value: str
    rule: str

    def __str__(self) -> str:
        subject = f" {printable(self.key)}" if self.key else ""
        rule = printable(self.rule)
        end = "" if self.rule.endswith("?") else "."
        return f"{printable(self.file)}:{subject} is {printable(self.value)}, but {rule}{end}"


class InvalidStudy(LoreError, ValueError):
    """A study folder that cannot be used; `problems` holds everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def printable(text: str) -> str:
    """Text for one line of a terminal: line ends, control characters and broken bytes escaped."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def shown(value: Any, most: int = 60) -> str:
    """A value as it stood in the file, cut where it gets long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError:  # an integer beyond the digits that Python is willing to print
        text = "a huge number"
    return text if len(text) <= most else text[: most - 1] + "…"


def suggestion(name: str, known: Iterable[str]) -> str:
    """The offer of the nearest known name, or nothing where none is near."""
    names, face = list(known), appearance(name)
    for other in names:
        if other != name and appearance(other) == face:
            mine, theirs = peculiar(name, other), peculiar(other, name)
            return f"; did you mean {other}{theirs} instead of {name}{mine}?"
    near = difflib.get_close_matches(name[:100], names, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def unknown(file: str, key: str, name: str, known: Iterable[str], what: str = "key") -> Problem:
    """The problem of a name that is not among those known."""
    names = list(known)
    rule = f"every {what} must be one of {', '.join(names)}{suggestion(name, names)}"
    return Problem(file, key, f"an unknown {what}", rule)
