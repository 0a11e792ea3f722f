"""The formats that `lore-active export` writes, and which of their files hold answers.

One place: the command's choices, the reference and the erasure of a participant follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lore_active.questions.kinds import TRIPLET
from server.exports import log, other_programs, psych_ds
from server.exports.answers import COMPARISONS, answer_columns, answers_csv, comparisons_csv
from server.exports.dictionary import dictionary
from server.exports.tables import (
    ITEMS,
    MODELS,
    PARTICIPANTS,
    ExportOptions,
    Progress,
    embedding_csv,
    events_jsonl,
    items_csv,
    models_csv,
    participants_csv,
    private,
    put,
)
from server.status.counting import answer_counts
from server.store.database import Database
from server.store.summaries import AT_ONCE
from server.study.config import LoadedStudy

Write = Callable[[Database, LoadedStudy, Path, ExportOptions, Progress], list[Path]]


@dataclass(frozen=True)
class ExportFormat:
    """A format of files.

    description: what it is for, as a clause. write: writes a study into a folder, and gives the
    files. answer_files: regular expressions of the names of its files that hold answers; a user who
    erases a participant's answers is told that such files still hold them.
    """

    name: str
    description: str
    write: Write
    answer_files: tuple[str, ...]


FORMATS: dict[str, ExportFormat] = {}


def register(format_: ExportFormat) -> None:
    """Make a format known; its name must be new."""
    if format_.name in FORMATS or format_.name == "all":
        raise ValueError(f"There is an export format called {format_.name!r} already.")
    FORMATS[format_.name] = format_


def holds_answers(name: str) -> bool:
    """Whether a file of this name is one that an export writes answers to."""
    return any(
        re.fullmatch(pattern, name)
        for export_format in FORMATS.values()
        for pattern in export_format.answer_files
    )


def _csv_files(
    database: Database, study: LoadedStudy, out: Path, choice: ExportOptions, progress: Progress
) -> list[Path]:
    columns = {
        "answers.csv": answer_columns(study.kind),
        "participants.csv": PARTICIPANTS,
        "items.csv": ITEMS,
        "models.csv": MODELS,
    }
    compared = []
    if study.kind != TRIPLET:
        columns["comparisons.csv"] = COMPARISONS
        compared = [put(out / "comparisons.csv", comparisons_csv(database, study, choice))]
    return [
        put(out / "answers.csv", answers_csv(database, study, choice, progress)),
        *compared,
        put(out / "participants.csv", participants_csv(database, choice)),
        put(out / "items.csv", items_csv(study)),
        put(out / "embedding.csv", embedding_csv(database, study)),
        put(out / "models.csv", models_csv(database)),
        put(out / "events.jsonl", events_jsonl(database, study, choice.pseudonyms)),
        dictionary(out / "dictionary.md", columns, database.read(answer_counts)),
    ]


def _log(
    database: Database, study: LoadedStudy, out: Path, choice: ExportOptions, progress: Progress
) -> list[Path]:
    path = out / f"{study.name}.log.jsonl"
    with open(path, "wb", opener=private) as file:
        for number, line in enumerate(log.lines(database, study, choice.pseudonyms)):
            file.write(line)
            if number % AT_ONCE == 0:
                progress(number)
    return [path]


for _format in (
    ExportFormat(
        "csv",
        "tables for spreadsheets and statistics, with a data dictionary",
        _csv_files,
        (r"answers.*\.csv", r"comparisons.*\.csv"),
    ),
    ExportFormat(
        "triplettools",
        "the tables that R's tripletTools reads",
        other_programs.triplettools,
        (r".*_triplettools\.csv",),
    ),
    ExportFormat(
        "salmon", "the responses that Salmon reads", other_programs.salmon, (r".*_responses\.csv",)
    ),
    ExportFormat("cblearn", "arrays for cblearn", other_programs.cblearn, (r".*_triplets\.npz",)),
    ExportFormat(
        "psych-ds",
        "a Psych-DS dataset, de-identified unless asked otherwise",
        psych_ds.write,
        (r".*_task-answers_data\.csv", r".*_task-comparisons_data\.csv"),
    ),
    ExportFormat("log", "everything, for replay", _log, (r".*\.log\.jsonl",)),
):
    register(_format)
