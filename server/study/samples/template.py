"""Write a new study: a commented study.toml and sample stimuli, ready to run."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lore_active.errors import InvalidParameter
from server.study.descriptions import MEANINGS, TABLES
from server.study.loading import NAME
from server.study.parsing import all_keys, rule_of
from server.study.samples import colours, png

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Item, Table

Sample = Literal["foods", "colours"]

INTRODUCTION = """\
Settings of a lore-active study. Above each key: what it means and which values it allows.
Keys that you omit have their defaults; docs/study.md lists them.
`lore-active check` reports every error in this file."""

# Coordinates for the bots: sweet, sour, hot. Invented, but plausible.
FOODS = {
    "apple": (1.0, 0.4, -0.6),
    "pear": (1.2, 0.0, -0.7),
    "orange": (0.9, 1.2, -0.4),
    "lemon": (-0.2, 2.2, 0.0),
    "honey": (2.2, -0.9, -0.5),
    "chocolate": (1.7, -1.2, 0.1),
    "bread": (-0.6, -1.1, -0.8),
    "rice": (-0.8, -1.2, -1.1),
    "cheese": (-1.3, -0.3, 0.2),
    "yoghurt": (-0.2, 0.8, -0.9),
    "chilli": (-1.3, 0.0, 2.3),
    "mustard": (-1.1, 0.7, 1.7),
}
TASTES = ("sweet", "sour", "hot")
FOOD_CATCHES = (
    ("apple", "pear", "mustard"),
    ("orange", "lemon", "bread"),
    ("rice", "bread", "lemon"),
    ("chilli", "mustard", "yoghurt"),
)

# What ethics committees usually require; `check` warns while anything is left to fill in.
CONSENT = """\
Researchers: [FILL IN: names], [FILL IN: institution]
Contact: [FILL IN: e-mail address or telephone number]
Ethics approval: [FILL IN: committee and number]

Purpose: We study how similar things seem to people. [FILL IN: the purpose in one or two sentences]

What you will do: You will see a few items at a time and choose by how similar they seem to you. \
There are no right or wrong answers. It takes about [FILL IN: number] minutes.

Payment: [FILL IN: amount and how it is paid, or that there is none]

What is stored: your answers, your response times, the type of your browser and the size of its \
window, any comment that you leave, and the participant number that the recruitment site gives us. \
Your name is not stored. The data are kept for [FILL IN: how long] and used for [FILL IN: \
research, publication, sharing with other researchers].

Withdrawal: Taking part is voluntary. You can stop at any time by closing this page, without \
giving a reason. To have your answers deleted later, write to [FILL IN: contact]."""


def write_study(folder: Path, sample: Sample, seed: int) -> None:
    """Write a complete study into `folder`, which must be new or empty."""
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
    """Text of a study.toml with every key; `values`, by dotted key, replace the defaults."""
    import tomlkit  # Only commands that write a study need it.

    document = tomlkit.document()
    _comment(document, INTRODUCTION)
    table: TOMLDocument | Table = document
    name = None
    for key, field in all_keys().items():
        home, _, own = key.rpartition(".")
        if home != name:
            name = home
            table.add(tomlkit.nl())
            if home:
                table = tomlkit.table()
                document.add(home, table)
            _comment(table, TABLES[home])
        default = "" if field.default is msgspec.NODEFAULT else field.default
        rule = rule_of(field.type).removeprefix("must be ")
        table.add(tomlkit.nl())
        _comment(table, MEANINGS[key] + (f" ({rule})" if rule != "text" else ""))
        table.add(own, _value(values.get(key, default)))
    return tomlkit.dumps(document)


def _comment(table: TOMLDocument | Table, text: str) -> None:
    import tomlkit

    for paragraph in text.splitlines():
        for line in textwrap.wrap(paragraph, 96):
            table.add(tomlkit.comment(line))


def _value(value: Any) -> Item:
    import tomlkit

    if isinstance(value, str) and "\n\n" in value and not value.startswith("\n"):
        # Paragraphs are easier to edit on separate lines; TOML ignores the first line end.
        quoted = tomlkit.string(value, multiline=True).as_string()
        return tomlkit.value('"""\n' + quoted.removeprefix('"""'))
    item: Item = tomlkit.item(value)
    return item


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
        "texts.consent_title": "Consent",
        "texts.consent": CONSENT,
        "bots.positions": "positions.csv",
    }
    return {
        "items.csv": _table(("key", "text"), ((food, food) for food in FOODS)),
        "catches.csv": _table(("anchor", "nearer", "farther"), FOOD_CATCHES),
        "positions.csv": _table(("item", *TASTES), ((food, *at) for food, at in FOODS.items())),
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
