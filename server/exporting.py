"""Whole exports into a folder: each format with its files and its data dictionary."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from lore_active import __version__
from lore_active.study import LoadedStudy
from server import exchange, log, prior_files
from server.columns import MEANINGS, dictionary
from server.counting import answer_counts
from server.exports import (
    ANSWERS,
    Choice,
    Progress,
    answers_csv,
    csv_text,
    embedding_csv,
    events_jsonl,
    private,
    put,
    utc,
)
from server.store import monitoring as store
from server.store.database import Database
from server.store.monitoring import AT_ONCE

PARTICIPANTS = (
    *("participant", "excluded", "stage", "trials", "done", "arrived_at_utc"),
    *("finished_at_utc", "external", "entry", "user_agent", "feedback"),
)
ITEMS = ("item", "kind", "label", "alt", "text", "file")


def write(
    database: Database,
    study: LoadedStudy,
    out: Path,
    formats: list[str],
    choice: Choice,
    progress: Progress = lambda answers: None,
) -> list[Path]:
    """Write these formats below `out`; gives the files written."""
    written: list[Path] = []
    for name in formats:
        folder = out if len(formats) == 1 else out / name
        folder.mkdir(parents=True, exist_ok=True)
        written += WRITERS[name](database, study, folder, choice, progress)
        written += prior_files.write(database, study, folder, name)
    return written


def _participants(database: Database, choice: Choice) -> Iterator[str]:
    yield csv_text([PARTICIPANTS])
    for row in database.read(store.participants_for_export):
        cells = dict(zip(PARTICIPANTS, row, strict=True))
        if choice.without_excluded and cells["excluded"]:
            continue
        if choice.pseudonyms:
            cells.update(external="", entry="{}", user_agent="", feedback="")
        cells["arrived_at_utc"] = utc(cells["arrived_at_utc"])
        cells["finished_at_utc"] = utc(cells["finished_at_utc"])
        yield csv_text([cells.values()])


def _items(study: LoadedStudy) -> Iterator[str]:
    yield csv_text([ITEMS])
    yield csv_text(
        (item.key, item.kind, item.label, item.alt, item.text, item.file.name if item.file else "")
        for item in study.items
    )


def _csv_files(
    database: Database, study: LoadedStudy, out: Path, choice: Choice, progress: Progress
) -> list[Path]:
    return [
        put(out / "answers.csv", answers_csv(database, study, choice.without_excluded, progress)),
        put(out / "participants.csv", _participants(database, choice)),
        put(out / "items.csv", _items(study)),
        put(out / "embedding.csv", embedding_csv(database, study)),
        put(out / "events.jsonl", events_jsonl(database, study, choice.pseudonyms)),
        dictionary(
            out / "dictionary.md",
            {"answers.csv": ANSWERS, "participants.csv": PARTICIPANTS, "items.csv": ITEMS},
            database.read(answer_counts),
        ),
    ]


def _psych_ds(
    database: Database, study: LoadedStudy, out: Path, choice: Choice, progress: Progress
) -> list[Path]:
    """A Psych-DS folder: a description, and data files named by keywords."""
    data = out / "data"
    data.mkdir(exist_ok=True)
    stem = prior_files.psych_ds_stem(study)
    measured = {name: MEANINGS[name] for name in (*ANSWERS, *PARTICIPANTS)}
    measured |= prior_files.meanings(database, "psych-ds")
    description = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": study.settings.title,
        "description": (
            f"Triplet comparisons ({study.settings.trial.question}) collected with lore-active "
            f"{__version__}."
        ),
        "variableMeasured": [
            {"@type": "PropertyValue", "name": name, "description": measured[name]}
            for name in sorted(measured)
        ],
    }
    path = out / "dataset_description.json"
    path.write_text(json.dumps(description, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return [
        path,
        put(
            data / f"{stem}_task-answers_data.csv",
            answers_csv(database, study, choice.without_excluded, progress),
        ),
        put(data / f"{stem}_task-participants_data.csv", _participants(database, choice)),
        dictionary(
            out / "README.md",
            {"answers": ANSWERS, "participants": PARTICIPANTS},
            database.read(answer_counts),
        ),
    ]


def _log(
    database: Database, study: LoadedStudy, out: Path, choice: Choice, progress: Progress
) -> list[Path]:
    path = out / f"{study.name}.log.jsonl"
    with open(path, "wb", opener=private) as file:
        for number, line in enumerate(log.lines(database, study, choice.pseudonyms)):
            file.write(line)
            if number % AT_ONCE == 0:
                progress(number)
    return [path]


WRITERS: dict[str, Callable[[Database, LoadedStudy, Path, Choice, Progress], list[Path]]] = {
    "csv": _csv_files,
    "triplettools": exchange.triplettools,
    "salmon": exchange.salmon,
    "cblearn": exchange.cblearn,
    "psych-ds": _psych_ds,
    "log": _log,
}
