"""What-if: which settings may be supposed other than they were, and reading them from words."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from lore_active.errors import LoreError
from server.store.summaries import Person
from server.study.config import Study
from server.study.parsing import all_keys, choices, rule_of
from server.study.problems import Problem, shown

OPTION = "--what-if"
PEOPLE = ("exclude", "restore")


class BadChange(LoreError, ValueError):
    """Changes that cannot be supposed: everything that is wrong with them, a line each."""


class Supposition(Struct, frozen=True):
    """What is supposed: a fixed λ, other settings, and whose answers count.

    `exclude` and `restore` hold numbers of participants: those left out all the time, and those
    taken in all the time, whatever the experimenter decided.
    """

    settings: Study
    lam: float | None = None
    selector: str | None = None
    exclude: tuple[int, ...] = ()
    restore: tuple[int, ...] = ()


# Keys of study.toml that make a difference to answers that are there already.
SETTINGS = (
    "learning.selector",
    "stopping.rule",
    "stopping.confidence",
    "stopping.audits",
    "stopping.min_answers",
)
# As these keys were called before.
OLDER = {
    "selector": "learning.selector",
    "stop.confidence": "stopping.confidence",
    "stop.audits": "stopping.audits",
    "stop.min_answers": "stopping.min_answers",
}
KINDS: dict[str, Any] = {
    **{key: all_keys()[key].type for key in SETTINGS},
    "lam": Annotated[float, Meta(gt=0.0)],
}
KEYS = (*KINDS, *PEOPLE)
MAX_NEAR = 3


def read(words: Sequence[str], settings: Study, people: Sequence[Person]) -> Supposition:
    """What `key=value` words ask for, or a BadChange with everything that is wrong with them."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for word in words:
        given, equals, text = (part.strip() for part in word.partition("="))
        key = OLDER.get(given, given)
        if not equals:
            rule = f"must be key=value, with a key of {', '.join(KEYS)}"
            problems.append(Problem(OPTION, word, "a lone word", rule))
        elif key not in KEYS:
            problems.append(_unknown(key))
        elif key in values:
            problems.append(Problem(OPTION, key, f"given twice ({text})", "may be given once"))
        else:
            reader = _people(people) if key in PEOPLE else _value
            values[key] = reader(key, text, problems)
    both = set(values.get("exclude", ())) & set(values.get("restore", ()))
    for number in sorted(both):
        rule = "nobody can be both excluded and restored"
        problems.append(Problem(OPTION, "restore", f"also {number}", rule))
    if problems:
        raise BadChange("\n".join(str(one) for one in problems))
    for name, value in values.items():
        if name in SETTINGS:
            table, _, key = name.partition(".")
            settings = replaced(settings, table, **{key: value})
    return Supposition(
        settings,
        values.get("lam"),
        values.get("learning.selector"),
        values.get("exclude", ()),
        values.get("restore", ()),
    )


def _unknown(key: str) -> Problem:
    """The problem of a key that cannot be supposed, with those that may have been meant."""
    if key in all_keys():
        what = "a key of study.toml that changes nothing about answers already given"
        return Problem(OPTION, key, what, f"every key must be one of {', '.join(KEYS)}")
    near = difflib.get_close_matches(key, KEYS, n=MAX_NEAR)
    # The table was left out, or has another name: the last part alone may say which key is meant.
    last = {one.rpartition(".")[2]: one for one in KEYS}
    ends = difflib.get_close_matches(key.rpartition(".")[2], last, n=MAX_NEAR)
    found = list(dict.fromkeys([*near, *(last[one] for one in ends)]))[:MAX_NEAR]
    meant = f"; did you mean {' or '.join(found)}?" if found else ""
    return Problem(OPTION, key, "unknown", f"every key must be one of {', '.join(KEYS)}{meant}")


def replaced(settings: Study, table: str, **values: Any) -> Study:
    """Settings with other values in one of their tables."""
    changed = msgspec.structs.replace(getattr(settings, table), **values)
    return msgspec.structs.replace(settings, **{table: changed})


def _value(key: str, text: str, problems: list[Problem]) -> Any:
    # As a line of study.toml has it.
    text = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    try:
        value = msgspec.convert(text, KINDS[key], strict=False)
    except msgspec.ValidationError:
        value = math.nan
    names = choices(KINDS[key])
    unknown = names is not None and value not in names
    if unknown or (isinstance(value, float) and not math.isfinite(value)):
        problems.append(Problem(OPTION, key, shown(text), rule_of(KINDS[key])))
    return value


def _people(people: Sequence[Person]) -> Callable[[str, str, list[Problem]], tuple[int, ...]]:
    """A reader of participants: by number (7, P7, № 7), or as the recruiting service calls them."""
    numbers = {str(one.id): one.id for one in people}
    named = {}
    for one in people:
        if one.external is not None:
            named[one.external] = named[one.external.partition("=")[2]] = one.id

    def reader(key: str, text: str, problems: list[Problem]) -> tuple[int, ...]:
        found = []
        for name in (part.strip() for part in text.split(",")):
            bare = re.sub(r"^(P|№)\s*(?=\d+$)", "", name)
            number = numbers.get(bare, named.get(name))
            if number is None:
                known = f"1 to {len(people)}" if people else "of nobody yet"
                rule = (
                    f"participants are named by their number ({known}; P7 and 7 are the same) or "
                    "as the recruiting service calls them, with commas between"
                )
                problems.append(Problem(OPTION, key, shown(name), rule))
            else:
                found.append(number)
        return tuple(sorted(set(found)))

    return reader
