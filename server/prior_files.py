"""Prior answers in exports: a file of their own in each format, so that nobody mixes them up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lore_active.study import LoadedStudy
from server.exports import csv_text
from server.store import priors
from server.store.database import Database
from server.store.priors import Prior

COLUMNS = ("prior", "file", "sha256", "taken_out")
# How each format calls anchor, nearer and farther.
ANSWER = {
    "csv": ("anchor", "nearer", "farther"),
    "triplettools": ("head", "winner", "loser"),
    "psych-ds": ("anchor", "nearer", "farther"),
}
WORDS = """
# Data dictionary of prior answers

Answers that were brought in from elsewhere with `lore-active import`, one a row: {names}.

- `prior`: number of the file they came in, from 1; `file`: its name; `sha256`: of its content.
- `taken_out`: 1 if they no longer count for the model.
"""


def write(database: Database, study: LoadedStudy, folder: Path, name: str) -> list[Path]:
    """The files of prior answers of a format; none if there are none, or it has them (the log)."""
    every = database.read(priors.every)
    if not every or name == "log":
        return []
    if name == "cblearn":
        return [_arrays(database, study, folder, every)]
    path = folder / f"{study.name}_prior.csv"
    if name == "csv":
        path = folder / "prior.csv"
    elif name == "psych-ds":
        stem = "study-" + "".join(sign for sign in study.name if sign.isalnum())
        path = folder / "data" / f"{stem}_task-prior_data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(_pieces(database, study, every, ANSWER[name]))
    words = folder / "dictionary_prior.md"
    names = ", ".join(f"`{column}`" for column in ANSWER[name])
    words.write_text(WORDS.format(names=names).lstrip(), encoding="utf-8")
    return [path, words]


def _pieces(
    database: Database, study: LoadedStudy, every: list[Prior], answer: tuple[str, ...]
) -> Iterator[str]:
    yield csv_text([(*answer, *COLUMNS)])
    for one in every:
        rows = database.read(lambda c, at=one.id: priors.rows(c, [at]))  # type: ignore[misc]
        marks = (one.id, one.name, one.hash, one.taken_out)
        yield csv_text((*(study.items[item].key for item in row), *marks) for row in rows)


def _arrays(database: Database, study: LoadedStudy, folder: Path, every: list[Prior]) -> Path:
    """`triplets` in list order, `prior` (which file) and `items`; only what counts."""
    inside = [one.id for one in every if not one.taken_out]
    parts = [(at, database.read(lambda c, at=at: priors.rows(c, [at]))) for at in inside]  # type: ignore[misc]
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
