"""Coordinates of the items for simulated participants, from a CSV file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lore_active.types import Floats
from server.study.config import Item
from server.study.items.files import read_table, read_text
from server.study.problems import InvalidStudy, Problem, shown, suggestion


def read_positions(path: Path, items: Sequence[Item]) -> Floats:
    """Read the coordinates of the items, one row per item in the order of `items`.

    The header is `item` and one name per coordinate; each item's key occurs in one line.
    """
    problems: list[Problem] = []
    positions = examine(path, path.name, items, problems)
    if positions is None:
        raise InvalidStudy(problems)
    return positions


def examine(path: Path, file: str, items: Sequence[Item], problems: list[Problem]) -> Floats | None:
    """Like `read_positions`, but add problems to `problems` and return None if there are any."""
    before = len(problems)
    text = read_text(path, file)
    if isinstance(text, Problem):
        problems.append(text)
        return None
    header, lines = read_table(text, file, problems)
    if len(problems) == before and (header[:1] != ["item"] or len(header) < 2):
        rule = "must be item and the names of one or more coordinates, such as item,x1,x2"
        problems.append(Problem(file, "line 1", shown(",".join(header)), rule))
    if not header or header[0] != "item":
        return None
    keys = {item.key for item in items}
    rows: dict[str, list[float]] = {}
    for line in lines:
        place = f"line {line.number}, item"
        key = line.cells["item"]
        if key not in keys:
            rule = f"must be the key of an item{suggestion(key, keys)}"
            problems.append(Problem(file, place, shown(key), rule))
        elif key in rows:
            problems.append(Problem(file, place, shown(key), "must occur in one line only"))
        rows[key] = [
            _number(line.cells[name], file, f"line {line.number}, {name}", problems)
            for name in header[1:]
        ]
    for item in items:
        if item.key not in rows:
            rule = "every item must have a position"
            problems.append(Problem(file, f"item {shown(item.key)}", "missing", rule))
    if len(problems) > before:
        return None
    return np.array([rows[item.key] for item in items], dtype=np.float64)


def _number(cell: str, file: str, key: str, problems: list[Problem]) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        problems.append(Problem(file, key, shown(cell), "must be a finite number"))
    return value


def read_space(path: Path) -> Floats:
    """Read the coordinates of any items: the header is `item` and one name per coordinate."""
    problems: list[Problem] = []
    text = read_text(path, path.name)
    if isinstance(text, Problem):
        raise InvalidStudy([text])
    header, lines = read_table(text, path.name, problems)
    if not problems and (header[:1] != ["item"] or len(header) < 2):
        rule = "must be item and the names of one or more coordinates, such as item,dim_1,dim_2"
        problems.append(Problem(path.name, "line 1", shown(",".join(header)), rule))
    if not problems:
        rows = [
            [
                _number(line.cells[name], path.name, f"line {line.number}, {name}", problems)
                for name in header[1:]
            ]
            for line in lines
        ]
    if problems:
        raise InvalidStudy(problems)
    return np.array(rows, dtype=np.float64).reshape(-1, len(header) - 1)
