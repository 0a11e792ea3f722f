"""Problems of a study: each with its file, key, value and rule."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from lore_active.data.lookalikes import appearance, peculiar
from lore_active.errors import LoreError


class Problem(Struct, frozen=True):
    """One problem: in `file`, `key` is `value`, but `rule`.

    `file` is relative to the study's folder, or the folder itself. An empty `key` means the whole
    file.
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
    """An invalid study folder; `problems` lists everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def printable(text: str) -> str:
    """Escape line ends, control characters and invalid bytes, for one line of a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def shown(value: Any, max_length: int = 60) -> str:
    """Format a value as in the file, truncated if it is long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError:  # an integer with more digits than Python prints
        text = "a huge number"
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Suggest the closest known name; empty if none is close."""
    names, looks = list(known), appearance(name)
    for other in names:
        if other != name and appearance(other) == looks:
            mine, theirs = peculiar(name, other), peculiar(other, name)
            return f"; did you mean {other}{theirs} instead of {name}{mine}?"
    close = difflib.get_close_matches(name[:100], names, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def unknown(file: str, key: str, name: str, known: Iterable[str], what: str = "key") -> Problem:
    """Describe an unknown name, with a suggestion."""
    names = list(known)
    rule = f"every {what} must be one of {', '.join(names)}{suggestion(name, names)}"
    return Problem(file, key, f"an unknown {what}", rule)
