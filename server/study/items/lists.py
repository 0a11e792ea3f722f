"""Lists of items and of catch questions, as CSV or TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from lore_active.questions.kinds import MAX_OPTIONS, Kind
from server.study.config import Catch, Item
from server.study.items.files import find, read_table, read_text
from server.study.parsing import FILE, parse_toml
from server.study.problems import Problem, shown, unknown

ITEM_FIELDS = ("key", "file", "text", "label", "alt")
CATCH_FIELDS = ("anchor", "nearer", "farther")
# Of questions with more than two options.
OTHER_FIELDS = tuple(f"farther_{number}" for number in range(2, MAX_OPTIONS))


class ListedItem(Struct, frozen=True):
    """An item or catch question as declared: its file, its place there, and its fields."""

    file: str
    place: str
    fields: dict[str, str]


class Listing(Struct, frozen=True):
    """Contents of a list; `entries` is None if it could not be read."""

    entries: list[ListedItem] | None
    catches: list[ListedItem]


def read_list(folder: Path, path: str, problems: list[Problem]) -> Listing:
    """Read the items (and, from TOML, the catch questions) of a list."""
    text = _text(folder, path, "stimuli.list", problems)
    if text is None:
        return Listing(None, [])
    if path.lower().endswith(".toml"):
        return _from_toml(text, path, problems)
    if path.lower().endswith(".csv"):
        needed = ("file", "text")
        return Listing(_from_csv(text, path, ITEM_FIELDS, needed, problems), [])
    rule = "must name a list that ends in .csv or .toml"
    problems.append(Problem(FILE, "stimuli.list", shown(path), rule))
    return Listing(None, [])


def read_catches(
    folder: Path,
    path: str,
    listed: list[ListedItem],
    items: list[Item],
    kind: Kind,
    problems: list[Problem],
) -> tuple[Catch, ...]:
    """Return catch questions by item number, from the list and from the file `path` (or "").

    Some may name fewer options than a question of this kind shows, but not more.
    """
    entries = list(listed)
    if path:
        text = _text(folder, path, "stimuli.catches", problems)
        if text is not None:
            fields = (*CATCH_FIELDS, *OTHER_FIELDS)
            entries += _from_csv(text, path, fields, CATCH_FIELDS, problems) or []
    number = {item.key: at for at, item in enumerate(items)}
    catches: dict[Catch, ListedItem] = {}
    for entry in entries:
        catch = _catch(entry, number, kind, problems)
        if catch is None:
            continue
        first = catches.setdefault(catch, entry)
        if first is not entry:
            rule = "each catch question may occur only once"
            value = f"the same as {first.place} of {first.file}"
            problems.append(Problem(entry.file, entry.place, value, rule))
    return tuple(catches)


def _catch(
    entry: ListedItem, number: dict[str, int], kind: Kind, problems: list[Problem]
) -> Catch | None:
    before = len(problems)
    others = [field for field in OTHER_FIELDS if entry.fields.get(field)]
    for field in (*CATCH_FIELDS, *others):
        key = entry.fields.get(field, "")
        if key not in number:
            # There may be many items; the closest name is more helpful than all of them.
            problem = unknown(entry.file, f"{entry.place}, {field}", key, number, "item")
            hint = problem.rule.partition("; did you mean ")[2]
            rule = "must be the key of an item" + (f"; did you mean {hint}" if hint else "")
            problems.append(Problem(problem.file, problem.key, shown(key), rule))
    if len(problems) > before:
        return None
    anchor, nearer, farther, *more = (entry.fields[field] for field in (*CATCH_FIELDS, *others))
    # The anchor may also be the nearer item: the question then offers the anchor itself.
    for field, key, different in zip(
        ("farther", *others),
        (farther, *more),
        ((anchor, nearer), *((anchor, nearer, farther, *more[:at]) for at in range(len(more)))),
        strict=True,
    ):
        if key in different:
            rule = "must differ from anchor and nearer" + " and the other options" * bool(others)
            problems.append(Problem(entry.file, f"{entry.place}, {field}", shown(key), rule))
            return None
    # An odd-one-out question shows all three, and the farther one is the odd one.
    most = kind.options - 2 if kind.has_anchor else 0
    if len(others) > most:
        rule = f"must be omitted: a question of the kind {kind.label} has {kind.options} options"
        problems.append(
            Problem(entry.file, f"{entry.place}, {others[most]}", shown(more[most]), rule)
        )
        return None
    return Catch(
        number[anchor], number[nearer], number[farther], tuple(number[key] for key in more)
    )


def _text(folder: Path, path: str, key: str, problems: list[Problem]) -> str | None:
    found = find(folder, path, FILE, key)
    if not isinstance(found, Problem):
        text = read_text(found, path)
        if not isinstance(text, Problem):
            return text
        found = text
    problems.append(found)
    return None


def _from_csv(
    text: str,
    file: str,
    fields: tuple[str, ...],
    needed: tuple[str, ...],
    problems: list[Problem],
) -> list[ListedItem] | None:
    before = len(problems)
    header, lines = read_table(text, file, problems)
    if not header:
        if len(problems) == before:
            rule = f"must start with a header with the columns {', '.join(fields)}"
            problems.append(Problem(file, "", "empty", rule))
        return None
    for name in header:
        if name not in fields:
            problems.append(unknown(file, f"line 1, {name or 'a column'}", name, fields, "column"))
    missing = [name for name in needed if name not in header]
    # A catch question needs all three columns, an item one of the two.
    every = needed == CATCH_FIELDS
    if missing and (every or len(missing) == len(needed)):
        word = " and " if every else " or "
        rule = f"must have the column{'s' * every} {word.join(needed)}"
        problems.append(Problem(file, "line 1", shown(",".join(header)), rule))
        return None
    return [ListedItem(file, f"line {line.number}", line.cells) for line in lines]


def _from_toml(text: str, file: str, problems: list[Problem]) -> Listing:
    document = parse_toml(text, file, problems)
    if document is None:
        return Listing(None, [])
    for name in document:
        if name not in ("item", "catch"):
            problems.append(unknown(file, name, name, ("item", "catch")))
    return Listing(
        _tables(document, "item", ITEM_FIELDS, file, problems),
        _tables(document, "catch", (*CATCH_FIELDS, *OTHER_FIELDS), file, problems) or [],
    )


def _tables(
    document: dict[str, Any],
    name: str,
    fields: tuple[str, ...],
    file: str,
    problems: list[Problem],
) -> list[ListedItem] | None:
    tables = document.get(name, [])
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        problems.append(Problem(file, name, shown(tables), f"must be tables, [[{name}]]"))
        return None
    entries = []
    for at, table in enumerate(tables, start=1):
        place = f"{name} {at}"
        entry: dict[str, str] = {}
        for key, value in table.items():
            if key not in fields:
                problems.append(unknown(file, f"{place}, {key}", key, fields))
            elif not isinstance(value, str):
                problems.append(Problem(file, f"{place}, {key}", shown(value), "must be text"))
            else:
                entry[key] = value
        entries.append(ListedItem(file, place, entry))
    return entries
