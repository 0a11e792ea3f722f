"""Prior answers in exports: a file of their own in each format, so that nobody mixes them up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from server.exports.tables import csv_text
from server.store import imports
from server.store.database import Database
from server.store.imports import Prior
from server.study.config import LoadedStudy

COLUMNS = ("prior", "file", "sha256", "taken_out")
# How each format calls anchor, nearer and farther; where it wants numbers, keys are beside them.
ANSWER = {
    "csv": ("anchor", "nearer", "farther"),
    "triplettools": ("head", "winner", "loser"),
    "salmon": ("head", "winner", "loser"),
    "psych-ds": ("anchor", "nearer", "farther"),
}
NUMBERED = ("triplettools", "salmon")
KEYS = ("head_filename", "winner_filename", "loser_filename")
MEANINGS = {
    "anchor": "key of the anchor",
    "nearer": "key of the item that it was called nearer to",
    "farther": "key of the other item",
    "head": "number of the anchor, from 0",
    "winner": "number of the item that it was called nearer to",
    "loser": "number of the other item",
    "head_filename": "key of the anchor",
    "winner_filename": "key of the item that it was called nearer to",
    "loser_filename": "key of the other item",
    "prior": "number of the file they came in, from 1",
    "file": "its name",
    "sha256": "of its content",
    "taken_out": "1 if they no longer count for the model",
}


def columns(name: str) -> tuple[str, ...]:
    """The columns of a format's file of imported answers."""
    return (*ANSWER[name], *(KEYS if name in NUMBERED else ()), *COLUMNS)


def meanings(database: Database, name: str) -> dict[str, str]:
    """What they mean; empty where no answers were imported."""
    if not database.read(imports.every):
        return {}
    return {column: MEANINGS[column] for column in columns(name)}


def dictionary_lines(name: str) -> list[str]:
    """What a format's file of imported answers holds, in Markdown."""
    return [
        "Answers from elsewhere (`lore-active import`), one per row.",
        "",
        "| column | meaning |",
        "|---|---|",
        *(f"| {column} | {MEANINGS[column]} |" for column in columns(name)),
        "",
    ]


def psych_ds_stem(study: LoadedStudy) -> str:
    """How the names of Psych-DS files begin."""
    return "study-" + "".join(sign for sign in study.name if sign.isalnum())


def write(database: Database, study: LoadedStudy, folder: Path, name: str) -> list[Path]:
    """The files of prior answers of a format; none if there are none, or it has them (the log)."""
    every = database.read(imports.every)
    if not every or name == "log":
        return []
    if name == "cblearn":
        return [_arrays(database, study, folder, every)]
    path = folder / f"{study.name}_prior.csv"
    if name == "csv":
        path = folder / "prior.csv"
    elif name == "psych-ds":
        path = folder / "data" / f"{psych_ds_stem(study)}_task-prior_data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(_pieces(database, study, every, name))
    if name == "psych-ds":
        # Psych-DS knows no such file; its README has the same lines.
        return [path]
    dictionary = folder / "dictionary_prior.md"
    lines = ["# Data dictionary of imported answers", "", *dictionary_lines(name)]
    dictionary.write_text("\n".join(lines), encoding="utf-8")
    return [path, dictionary]


def _pieces(database: Database, study: LoadedStudy, every: list[Prior], name: str) -> Iterator[str]:
    yield csv_text([columns(name)])
    for one in every:
        rows = database.read(lambda c, at=one.id: imports.rows(c, [at]))  # type: ignore[misc]
        marks = (one.id, one.name, one.hash, one.taken_out)
        yield csv_text(
            (
                *(row if name in NUMBERED else ()),
                *(study.items[item].key for item in row),
                *marks,
            )
            for row in rows
        )


def _arrays(database: Database, study: LoadedStudy, folder: Path, every: list[Prior]) -> Path:
    """`triplets` in list order, `prior` (which file) and `items`; only what counts."""
    inside = [one.id for one in every if not one.taken_out]
    parts = [(at, database.read(lambda c, at=at: imports.rows(c, [at]))) for at in inside]  # type: ignore[misc]
    path = folder / f"{study.name}_prior_triplets.npz"
    np.savez(
        path,
        triplets=np.array([row for _, rows in parts for row in rows], dtype=np.int32).reshape(
            -1, 3
        ),
        prior=np.repeat([at for at, _ in parts], [len(rows) for _, rows in parts]),
        items=np.array([item.key for item in study.items]),
    )
    return path
