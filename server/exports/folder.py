"""Exports to a folder: the files of each format and its data dictionary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from server.exports import imported, log, other_programs, psych_ds
from server.exports.dictionary import dictionary
from server.exports.tables import (
    ANSWERS,
    ITEMS,
    PARTICIPANTS,
    ExportOptions,
    Progress,
    answers_csv,
    embedding_csv,
    events_jsonl,
    items_csv,
    participants_csv,
    private,
    put,
)
from server.status.counting import answer_counts
from server.store.database import Database
from server.store.summaries import AT_ONCE
from server.study.config import LoadedStudy


def write(
    database: Database,
    study: LoadedStudy,
    out: Path,
    formats: list[str],
    choice: ExportOptions,
    progress: Progress = lambda answers: None,
) -> list[Path]:
    """Write these formats to `out`; return the files written."""
    written: list[Path] = []
    for name in formats:
        folder = out if len(formats) == 1 else out / name
        folder.mkdir(parents=True, exist_ok=True)
        written += WRITERS[name](database, study, folder, choice, progress)
        written += imported.write(database, study, folder, name)
    return written


def _csv_files(
    database: Database, study: LoadedStudy, out: Path, choice: ExportOptions, progress: Progress
) -> list[Path]:
    return [
        put(out / "answers.csv", answers_csv(database, study, choice, progress)),
        put(out / "participants.csv", participants_csv(database, choice)),
        put(out / "items.csv", items_csv(study)),
        put(out / "embedding.csv", embedding_csv(database, study)),
        put(out / "events.jsonl", events_jsonl(database, study, choice.pseudonyms)),
        dictionary(
            out / "dictionary.md",
            {"answers.csv": ANSWERS, "participants.csv": PARTICIPANTS, "items.csv": ITEMS},
            database.read(answer_counts),
        ),
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


WRITERS: dict[str, Callable[[Database, LoadedStudy, Path, ExportOptions, Progress], list[Path]]] = {
    "csv": _csv_files,
    "triplettools": other_programs.triplettools,
    "salmon": other_programs.salmon,
    "cblearn": other_programs.cblearn,
    "psych-ds": psych_ds.write,
    "log": _log,
}
