"""Imported answers in exports: a separate file in each format, so that they are not mixed up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
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
    "trial": "number of the trial that the comparison belongs to",
    "file_number": "number of the imported file, from 1",
    "file": "its name",
    "sha256": "SHA-256 of its content",
    "removed": "1 if they were removed from the model",
}


def columns(name: str, trials: bool = False) -> tuple[str, ...]:
    """Return the columns of a format's file of imported answers.

    `trials`: some of them have several comparisons.
    """
    own = (*ANSWER[name], *(KEYS if name in NUMBERED else ()))
    return (*own, *(("trial",) if trials else ()), *COLUMNS)


def have_trials(database: Database) -> bool:
    """Return whether some imported trials have several comparisons."""
    return any(
        number is not None
        for source in database.read(imports.every)
        for number in database.read(partial(imports.trial_numbers, number=source.id))
    )


def meanings(database: Database, name: str) -> dict[str, str]:
    """Return their meanings; empty if no answers were imported."""
    if not database.read(imports.every):
        return {}
    return {column: MEANINGS[column] for column in columns(name, have_trials(database))}


def dictionary_lines(database: Database, name: str) -> list[str]:
    """Describe a format's file of imported answers in Markdown."""
    several = have_trials(database)
    return [
        f"Imported {'comparisons' if several else 'answers'} (`lore-active import`), one per row.",
        "",
        "| column | meaning |",
        "|---|---|",
        *(f"| {column} | {MEANINGS[column]} |" for column in columns(name, several)),
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
    lines = ["# Data dictionary of imported answers", "", *dictionary_lines(database, name)]
    dictionary.write_text("\n".join(lines), encoding="utf-8")
    return [path, dictionary]


def _pieces(
    database: Database, study: LoadedStudy, every: list[ImportedFile], name: str
) -> Iterator[str]:
    several = have_trials(database)
    yield csv_text([columns(name, several)])
    trial = 0
    for source in every:
        trials = database.read(partial(imports.trials, numbers=[source.id]))
        rows = [(row, at) for at, rows in enumerate(trials, trial + 1) for row in rows]
        trial += len(trials)
        marks = (source.id, source.name, source.hash, source.removed)
        yield csv_text(
            (
                *(row if name in NUMBERED else ()),
                *(study.items[item].key for item in row),
                *([at] if several else []),
                *marks,
            )
            for row, at in rows
        )


def _arrays(
    database: Database, study: LoadedStudy, folder: Path, every: list[ImportedFile]
) -> Path:
    """Write `triplets` in list order, `file_number` and `items`; only those in use."""
    in_use = [source.id for source in every if not source.removed]
    trials = [(at, database.read(partial(imports.trials, numbers=[at]))) for at in in_use]
    parts = [(at, [row for trial in of for row in trial]) for at, of in trials]
    sizes = [len(trial) for _, of in trials for trial in of]
    path = folder / f"{study.name}_imported_triplets.npz"
    rows = [row for _, of in parts for row in of]
    arrays = {
        "triplets": np.array(rows, dtype=np.int32).reshape(-1, 3),
        "file_number": np.repeat([at for at, _ in parts], [len(of) for _, of in parts]),
        "items": np.array([item.key for item in study.items]),
    }
    if len(sizes) < len(rows):
        arrays["trial"] = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path
