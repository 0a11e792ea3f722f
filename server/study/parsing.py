"""Parsing of study.toml: settings, and everything that is wrong with it."""

from __future__ import annotations

import math
import re
import tomllib
from typing import Any

import msgspec
from msgspec import Struct, inspect
from msgspec.structs import FieldInfo

from lore_active.registry import load_plugins
from server.study.config import Study
from server.study.problems import Problem, shown, unknown

FILE = "study.toml"
# Description of each pattern.
PATTERNS = {
    r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$": " such as en, de or pt-BR",
    r"^#[0-9A-Fa-f]{6}$": ' such as "#ebebeb": # and six hexadecimal digits',
}


class ParsedSettings(Struct, frozen=True):
    """A parsed study.toml: its settings, the keys given, and those that are invalid.

    An invalid or missing key has its default in `study`, so that validation can continue.
    """

    study: Study
    given: frozenset[str]
    wrong: frozenset[str]

    def valid(self, *keys: str) -> bool:
        """Return whether these keys, and the tables around them, are valid."""
        return not any(
            wrong == key or key.startswith(wrong + ".") for wrong in self.wrong for key in keys
        )


def read(text: str, problems: list[Problem]) -> ParsedSettings | None:
    """Parse settings; return None if it is not TOML, and add problems to `problems`."""
    document = parse_toml(text, FILE, problems)
    if document is None:
        return None
    # Selectors and stopping rules may come from plugins.
    load_plugins()
    invalid: list[Problem] = []
    given: set[str] = set()
    study = _struct(Study, document, "", invalid, given)
    problems.extend(invalid)
    return ParsedSettings(study, frozenset(given), frozenset(problem.key for problem in invalid))


def parse_toml(text: str, file: str, problems: list[Problem]) -> dict[str, Any] | None:
    """Parse TOML; return None, with a problem that quotes the line, if it is invalid."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        lines = text.split("\n")
        at = re.search(r" \(at line (\d+), column \d+\)$", str(error))
        number = int(at[1]) if at else len(lines)
        message = str(error).removesuffix(at[0]) if at else str(error)
        rule = f"must be TOML ({message[:1].lower()}{message[1:]})"
        value = shown(lines[number - 1].strip())
        problems.append(Problem(file, f"line {number}", value, rule))
    except ValueError:
        rule = "must be TOML with numbers of reasonable length"
        problems.append(Problem(file, "", "unreadable", rule))
    except RecursionError:
        rule = "must be TOML without deeply nested values"
        problems.append(Problem(file, "", "unreadable", rule))
    return None


def _struct(
    kind: type[Any], table: dict[str, Any], path: str, problems: list[Problem], given: set[str]
) -> Any:
    """Convert key by key, so that all invalid values are reported."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    for name in table:
        if name not in fields:
            problems.append(unknown(FILE, path + name, name, fields))
    values: dict[str, Any] = {}
    for name, field in fields.items():
        key = path + name
        nested = _is_table(field.type)
        if name not in table:
            if field.required:
                problems.append(Problem(FILE, key, "missing", rule_of(field.type)))
                values[name] = ""
            continue
        given.add(key)
        value = table[name]
        if nested and isinstance(value, dict):
            values[name] = _struct(field.type, value, key + ".", problems, given)
        elif nested:
            rule = f"must be a table, [{key}]"
            problems.append(Problem(FILE, key, shown(value), rule))
        elif _allowed(value, field.type):
            values[name] = msgspec.convert(value, field.type)
        else:
            problems.append(Problem(FILE, key, shown(value), rule_of(field.type)))
            if field.required:
                values[name] = ""
    return kind(**values)


def _allowed(value: Any, kind: Any) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    names = choices(kind)
    return names is None or value in names


def all_keys(kind: type[Any] = Study, path: str = "") -> dict[str, FieldInfo]:
    """Return every key of study.toml by its dotted name, in order."""
    keys: dict[str, FieldInfo] = {}
    for field in msgspec.structs.fields(kind):
        if _is_table(field.type):
            keys |= all_keys(field.type, f"{path}{field.name}.")
        else:
            keys[path + field.name] = field
    return keys


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def choices(kind: Any) -> tuple[str, ...] | None:
    """The names that a key may have whose values are registered; None for other keys."""
    info = inspect.type_info(kind)
    while isinstance(info, inspect.Metadata):
        if info.extra and "registry" in info.extra:
            return tuple(info.extra["registry"])
        info = info.type
    return None


def rule_of(kind: Any) -> str:
    """Describe the allowed values of a type."""
    if (names := choices(kind)) is not None:
        return "must be " + " or ".join(f'"{name}"' for name in names)
    info = inspect.type_info(kind)
    while isinstance(info, inspect.Metadata):
        info = info.type
    if isinstance(info, inspect.BoolType):
        return "must be true or false"
    if isinstance(info, inspect.LiteralType):
        return "must be " + " or ".join(f'"{value}"' for value in info.values)
    if isinstance(info, inspect.StrType):
        return "must be text" + _text_limits(info)
    if isinstance(info, inspect.IntType):
        return "must be a whole number" + _limits(info)
    if isinstance(info, inspect.FloatType):
        return "must be a number" + _limits(info)
    raise TypeError(f"study.toml has no description of the type {kind!r}")


def _limits(info: inspect.IntType | inspect.FloatType) -> str:
    if info.ge is not None and info.le is not None:
        return f" from {_plain(info.ge)} to {_plain(info.le)}"
    above = "" if info.ge is None else f" of {info.ge:g} or more"
    above = above if info.gt is None else f" above {info.gt:g}"
    below = "" if info.lt is None else f" below {info.lt}"
    return f"{above}{' and' * bool(above and below)}{below}"


def _plain(limit: float) -> str:
    """Format a limit as 10000000, not 1e+07."""
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def _text_limits(info: inspect.StrType) -> str:
    if info.pattern is not None:
        return PATTERNS[info.pattern]
    if info.min_length is not None and info.max_length is not None:
        return f" of {info.min_length} to {info.max_length} characters"
    if info.max_length is not None:
        return f" of at most {info.max_length} characters"
    return ""
