"""A new study: a commented study.toml and sample stimuli that run as they are."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from lore_active.errors import InvalidParameter
from lore_active.folder import NAME
from lore_active.meanings import MEANINGS, TABLES
from lore_active.settings import all_keys, rule_of
from server import colours, png

Sample = Literal["foods", "colours"]

INTRODUCTION = """\
A study of lore-active. Every key stands here with what it means and what it must be.
A key that is left out has its default; docs/study.md lists them all.
`lore-active check` reports everything that is wrong."""

FOODS = (
    "apple", "pear", "orange", "lemon", "honey", "chocolate",
    "bread", "rice", "cheese", "yoghurt", "chilli", "mustard",
)  # fmt: skip
FOOD_CATCHES = (
    ("apple", "pear", "mustard"),
    ("orange", "lemon", "bread"),
    ("rice", "bread", "lemon"),
    ("chilli", "mustard", "yoghurt"),
)


def write_study(folder: Path, sample: Sample, seed: int) -> None:
    """Write a whole study into `folder`, which must be new or empty."""
    folder = folder.absolute()
    if not NAME.fullmatch(folder.name):
        raise InvalidParameter(
            f"{folder} has the name {folder.name!r}, but a study's folder must have a name of "
            "letters (a to z), digits, - and _: it becomes part of the study's address."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidParameter(
            f"{folder} exists and is not empty, but a new study needs a folder of its own."
        )
    files = _colours(seed) if sample == "colours" else _foods(seed)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def study_toml(values: Mapping[str, Any]) -> str:
    """The text of a study.toml with every key; `values` by dotted key replace the defaults."""
    lines = _comment(INTRODUCTION)
    table = None
    for key, field in all_keys().items():
        name = key.rpartition(".")[0]
        if name != table:
            table = name
            lines += ["", *([f"[{name}]"] if name else []), *_comment(TABLES[name])]
        default = "" if field.default is msgspec.NODEFAULT else field.default
        value = values.get(key, default)
        rule = rule_of(field.type).removeprefix("must be ")
        lines += ["", *_comment(MEANINGS[key] + (f" ({rule})" if rule != "text" else ""))]
        lines.append(f"{key.rpartition('.')[2]} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for paragraph in text.splitlines() for line in textwrap.wrap(paragraph, 96)]


def _toml(value: Any) -> str:
    if isinstance(value, str):
        # JSON's escapes are also TOML's; paragraphs are easier to edit as they will be read.
        quoted = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        if "\n\n" in value:
            return '"""\n' + quoted[1:-1].replace("\\n", "\n") + '"""'
        return quoted
    return json.dumps(value)


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _foods(seed: int) -> dict[str, str | bytes]:
    settings = {
        "title": "How foods taste",
        "seed": seed,
        "stimuli.list": "items.csv",
        "stimuli.catches": "catches.csv",
        "trial.question": "Which of the two tastes more like the one above?",
    }
    return {
        "items.csv": _table(("key", "text"), ((food, food) for food in FOODS)),
        "catches.csv": _table(("anchor", "nearer", "farther"), FOOD_CATCHES),
        "study.toml": study_toml(settings),
    }


def _colours(seed: int) -> dict[str, str | bytes]:
    settings = {
        "title": "Colours",
        "seed": seed,
        "stimuli.list": "items.csv",
        "stimuli.catches": "catches.csv",
        "trial.question": "Which of the two colours is more like the one above?",
        "session.trials": 40,
        "session.break_every": 20,
        "budget.answers": 2000,
        "bots.positions": "positions.csv",
    }
    files: dict[str, str | bytes] = {}
    items, positions = [], []
    for colour in colours.colours():
        name = f"stimuli/{colour.key}.png"
        files[name] = png.patch(*colour.srgb)
        items.append((colour.key, name, colour.name, colour.description))
        positions.append((colour.key, *(f"{value:.4f}" for value in colour.position)))
    files["items.csv"] = _table(("key", "file", "label", "alt"), items)
    files["catches.csv"] = _table(("anchor", "nearer", "farther"), colours.catches())
    files["positions.csv"] = _table(("item", "x1", "x2"), positions)
    files["study.toml"] = study_toml(settings)
    return files
