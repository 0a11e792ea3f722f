"""What-if: which settings can be changed in a replay, and how they are parsed."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from lore_active.errors import LoreError
from server.store.summaries import ParticipantSummary
from server.study.config import Study
from server.study.parsing import all_keys, choices, rule_of
from server.study.problems import Problem, shown

OPTION = "--what-if"
PARTICIPANTS = ("exclude", "restore")


class BadChange(LoreError, ValueError):
    """Invalid changes: everything that is wrong with them, one problem per line."""


class WhatIfChange(Struct, frozen=True):
    """Changes for a what-if replay: a fixed λ, other settings, and whose answers count.

    `exclude` and `restore` hold numbers of participants who are excluded or included throughout,
    whatever the experimenter decided.
    """

    settings: Study
    lam: float | None = None
    selector: str | None = None
    exclude: tuple[int, ...] = ()
    restore: tuple[int, ...] = ()


# Keys of study.toml that matter for answers already collected.
SETTINGS = (
    "learning.selector",
    "stopping.rule",
    "stopping.confidence",
    "stopping.audits",
    "stopping.min_answers",
    "stopping.smallest_dimension",
    "stopping.evidence",
)
# Former names of these keys.
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
KEYS = (*KINDS, *PARTICIPANTS)
MAX_NEAR = 3


def read(
    terms: Sequence[str], settings: Study, participants: Sequence[ParticipantSummary]
) -> WhatIfChange:
    """Parse `key=value` terms; raise BadChange with everything that is wrong with them."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for term in terms:
        given, equals, text = (part.strip() for part in term.partition("="))
        key = OLDER.get(given, given)
        if not equals:
            rule = f"must be key=value, with a key of {', '.join(KEYS)}"
            problems.append(Problem(OPTION, term, "without a value", rule))
        elif key not in KEYS:
            problems.append(_unknown(key))
        elif key in values:
            problems.append(Problem(OPTION, key, f"given twice ({text})", "may be given once"))
        else:
            reader = _participants(participants) if key in PARTICIPANTS else _value
            values[key] = reader(key, text, problems)
    both = set(values.get("exclude", ())) & set(values.get("restore", ()))
    for number in sorted(both):
        rule = "a participant cannot be both excluded and restored"
        problems.append(Problem(OPTION, "restore", f"also {number}", rule))
    if problems:
        raise BadChange("\n".join(str(problem) for problem in problems))
    for name, value in values.items():
        if name in SETTINGS:
            table, _, key = name.partition(".")
            settings = replaced(settings, table, **{key: value})
    return WhatIfChange(
        settings,
        values.get("lam"),
        values.get("learning.selector"),
        values.get("exclude", ()),
        values.get("restore", ()),
    )


def _unknown(key: str) -> Problem:
    """Describe an invalid key, with suggestions."""
    if key in all_keys():
        what = "a key of study.toml that does not affect answers already collected"
        return Problem(OPTION, key, what, f"every key must be one of {', '.join(KEYS)}")
    near = difflib.get_close_matches(key, KEYS, n=MAX_NEAR)
    # The table may be missing or wrong, so the last part of the key is matched as well.
    last = {name.rpartition(".")[2]: name for name in KEYS}
    ends = difflib.get_close_matches(key.rpartition(".")[2], last, n=MAX_NEAR)
    suggestions = list(dict.fromkeys([*near, *(last[name] for name in ends)]))[:MAX_NEAR]
    meant = f"; did you mean {' or '.join(suggestions)}?" if suggestions else ""
    return Problem(OPTION, key, "unknown", f"every key must be one of {', '.join(KEYS)}{meant}")


def replaced(settings: Study, table: str, **values: Any) -> Study:
    """Return settings with other values in one table."""
    changed = msgspec.structs.replace(getattr(settings, table), **values)
    return msgspec.structs.replace(settings, **{table: changed})


def _value(key: str, text: str, problems: list[Problem]) -> Any:
    # Quoted as in study.toml.
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


def _participants(
    participants: Sequence[ParticipantSummary],
) -> Callable[[str, str, list[Problem]], tuple[int, ...]]:
    """Return a parser of participants: by number (7, P7, № 7) or recruitment id."""
    numbers = {str(participant.id): participant.id for participant in participants}
    named = {}
    for participant in participants:
        if participant.external is not None:
            named[participant.external] = named[participant.external.partition("=")[2]] = (
                participant.id
            )

    def reader(key: str, text: str, problems: list[Problem]) -> tuple[int, ...]:
        chosen = []
        for name in (part.strip() for part in text.split(",")):
            bare = re.sub(r"^(P|№)\s*(?=\d+$)", "", name)
            number = numbers.get(bare, named.get(name))
            if number is None:
                known = f"1 to {len(participants)}" if participants else "none yet"
                rule = (
                    f"participants are given by number ({known}; P7 and 7 are the same) or by "
                    "recruitment id, separated by commas"
                )
                problems.append(Problem(OPTION, key, shown(name), rule))
            else:
                chosen.append(number)
        return tuple(sorted(set(chosen)))

    return reader
