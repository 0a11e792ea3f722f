"""What-if: which settings may be supposed other than they were, and reading them from words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from lore_active.errors import LoreError
from lore_active.problems import Problem, shown, unknown
from lore_active.settings import all_keys, rule_of
from lore_active.study import Study
from server.store.monitoring import Person

OPTION = "--what-if"
PEOPLE = ("exclude", "restore")


class BadChange(LoreError, ValueError):
    """Changes that cannot be supposed: everything that is wrong with them, a line each."""


class Change(Struct, frozen=True):
    """What is supposed: a fixed λ, other settings, and whose answers count.

    `exclude` and `restore` hold numbers of participants: those left out all the time, and those
    taken in all the time, whatever the experimenter decided.
    """

    settings: Study
    lam: float | None = None
    selector: str | None = None
    exclude: tuple[int, ...] = ()
    restore: tuple[int, ...] = ()


# By the name on the command line: the key of study.toml that has the same rule.
_TOML = {
    "selector": "learning.selector",
    "stop.confidence": "stopping.confidence",
    "stop.audits": "stopping.audits",
    "stop.min_answers": "stopping.min_answers",
}
KINDS: dict[str, Any] = {
    "lam": Annotated[float, Meta(gt=0.0)],
    **{name: all_keys()[key].type for name, key in _TOML.items()},
}
KEYS = (*KINDS, *PEOPLE)


def read(words: Sequence[str], settings: Study, people: Sequence[Person]) -> Change:
    """What `key=value` words ask for, or a BadChange with everything that is wrong with them."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            rule = f"must be key=value, with a key of {', '.join(KEYS)}"
            problems.append(Problem(OPTION, word, "a lone word", rule))
        elif key not in KEYS:
            problems.append(unknown(OPTION, key, key, KEYS))
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
        if name in _TOML:
            table, _, key = _TOML[name].partition(".")
            settings = replaced(settings, table, **{key: value})
    return Change(
        settings,
        values.get("lam"),
        values.get("selector"),
        values.get("exclude", ()),
        values.get("restore", ()),
    )


def replaced(settings: Study, table: str, **values: Any) -> Study:
    """Settings with other values in one of their tables."""
    changed = msgspec.structs.replace(getattr(settings, table), **values)
    return msgspec.structs.replace(settings, **{table: changed})


def _value(key: str, text: str, problems: list[Problem]) -> Any:
    try:
        value = msgspec.convert(text, KINDS[key], strict=False)
    except msgspec.ValidationError:
        value = math.nan
    if isinstance(value, float) and not math.isfinite(value):
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
