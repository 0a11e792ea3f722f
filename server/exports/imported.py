"""Imported answers in exports: a separate file in each format, so that they are not mixed up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from server.exports.tables import csv_text
from server.store import imports
from server.store.database import Database
from server.store.imports import ImportedFile
from server.study.config import LoadedStudy

COLUMNS = ("file_number", "file", "sha256", "removed")
# Names of anchor, nearer and farther in each format; formats with numbers also get the keys.
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
    "nearer": "key of the nearer item",
    "farther": "key of the other item",
    "head": "number of the anchor, from 0",
    "winner": "number of the nearer item",
    "loser": "number of the other item",
    "head_filename": "key of the anchor",
    "winner_filename": "key of the nearer item",
    "loser_filename": "key of the other item",
    "file_number": "number of the imported file, from 1",
    "file": "its name",
    "sha256": "SHA-256 of its content",
    "removed": "1 if they were removed from the model",
}


def columns(name: str) -> tuple[str, ...]:
    """Return the columns of a format's file of imported answers."""
    return (*ANSWER[name], *(KEYS if name in NUMBERED else ()), *COLUMNS)


def meanings(database: Database, name: str) -> dict[str, str]:
    """Return their meanings; empty if no answers were imported."""
    if not database.read(imports.every):
        return {}
    return {column: MEANINGS[column] for column in columns(name)}


def dictionary_lines(name: str) -> list[str]:
    """Describe a format's file of imported answers in Markdown."""
    return [
        "Imported answers (`lore-active import`), one per row.",
        "",
        "| column | meaning |",
        "|---|---|",
        *(f"| {column} | {MEANINGS[column]} |" for column in columns(name)),
        "",
    ]


def psych_ds_stem(study: LoadedStudy) -> str:
    """Return the prefix of the names of Psych-DS files."""
    return "study-" + "".join(character for character in study.name if character.isalnum())


def write(database: Database, study: LoadedStudy, folder: Path, name: str) -> list[Path]:
    """Write imported answers in a format; nothing if there are none, or for the log."""
    every = database.read(imports.every)
    if not every or name == "log":
        return []
    if name == "cblearn":
        return [_arrays(database, study, folder, every)]
    path = folder / f"{study.name}_imported.csv"
    if name == "csv":
        path = folder / "imported.csv"
    elif name == "psych-ds":
        path = folder / "data" / f"{psych_ds_stem(study)}_task-imported_data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(_pieces(database, study, every, name))
    if name == "psych-ds":
        # Psych-DS has no such file; its README has the same lines.
        return [path]
    dictionary = folder / "dictionary_imported.md"
    lines = ["# Data dictionary of imported answers", "", *dictionary_lines(name)]
    dictionary.write_text("\n".join(lines), encoding="utf-8")
    return [path, dictionary]


def _pieces(
    database: Database, study: LoadedStudy, every: list[ImportedFile], name: str
) -> Iterator[str]:
    yield csv_text([columns(name)])
    for source in every:
        rows = database.read(lambda c, at=source.id: imports.rows(c, [at]))  # type: ignore[misc]
        marks = (source.id, source.name, source.hash, source.removed)
        yield csv_text(
            (
                *(row if name in NUMBERED else ()),
                *(study.items[item].key for item in row),
                *marks,
            )
            for row in rows
        )


def _arrays(
    database: Database, study: LoadedStudy, folder: Path, every: list[ImportedFile]
) -> Path:
    """Write `triplets` in list order, `file_number` and `items`; only those in use."""
    in_use = [source.id for source in every if not source.removed]
    parts = [(at, database.read(lambda c, at=at: imports.rows(c, [at]))) for at in in_use]  # type: ignore[misc]
    path = folder / f"{study.name}_imported_triplets.npz"
    np.savez(
        path,
        triplets=np.array([row for _, rows in parts for row in rows], dtype=np.int32).reshape(
            -1, 3
        ),
        file_number=np.repeat([at for at, _ in parts], [len(rows) for _, rows in parts]),
        items=np.array([item.key for item in study.items]),
    )
    return path
