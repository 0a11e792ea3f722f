"""A study as a Psych-DS dataset: described, with items and embedding, de-identified by default.

The rules (psych-ds.github.io): `dataset_description.json` is a schema.org Dataset; data files are
UTF-8 CSV in `data/`, named by keywords and values; every column of every file is in
`variableMeasured`. Its validator warns about other files, so there are none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lore_active import __version__
from lore_active.data.formats import dimension_names
from lore_active.questions.kinds import TRIPLET, Kind
from server.exports import imported
from server.exports.answers import (
    COMPARISONS,
    answer_cells,
    answer_columns,
    answer_records,
    comparisons_csv,
)
from server.exports.dictionary import dictionary, meaning, simulated_note
from server.exports.tables import (
    ITEMS,
    PARTICIPANTS,
    ExportOptions,
    Progress,
    csv_text,
    embedding_csv,
    items_csv,
    participants_csv,
    put,
    utc,
)
from server.monitor.map import embedding_of
from server.status.counting import answer_counts, simulated_left_out
from server.store import models, summaries
from server.store.database import Database
from server.study.config import LoadedStudy

# Identifying columns; exact times can be matched with the recruitment site's records.
IDENTIFYING_ANSWERS = ("received_at_utc", "asked_at_utc")
IDENTIFYING = ("external", "entry", "user_agent", "arrived_at_utc", "finished_at_utc")
COMMENTS = "feedback"
COARSE_ANSWERS = ("day_utc", "session_ms")
COARSE_PARTICIPANTS = ("day_utc", "duration_ms")
DE_IDENTIFIED = (
    "De-identified: no recruitment ids, link parameters or browsers; days and durations instead of "
    "exact times."
)


def shown_columns(kind: Kind, choice: ExportOptions) -> tuple[str, ...]:
    """Return the columns of the file of answers."""
    columns = answer_columns(kind)
    if choice.identified:
        return columns
    return (*(name for name in columns if name not in IDENTIFYING_ANSWERS), *COARSE_ANSWERS)


def participant_columns(choice: ExportOptions) -> tuple[str, ...]:
    """Return the columns of the file of participants."""
    if choice.identified:
        return PARTICIPANTS
    hidden = IDENTIFYING if choice.comments else (*IDENTIFYING, COMMENTS)
    return (*(name for name in PARTICIPANTS if name not in hidden), *COARSE_PARTICIPANTS)


def write(
    database: Database, study: LoadedStudy, out: Path, choice: ExportOptions, progress: Progress
) -> list[Path]:
    """Write the dataset to a folder."""
    data = out / "data"
    data.mkdir(exist_ok=True)
    stem = imported.psych_ds_stem(study)
    counts = database.read(answer_counts)
    dimensions = _dimensions(database, study)
    answers, participants = shown_columns(study.kind, choice), participant_columns(choice)
    participant_pieces = (
        participants_csv(database, choice) if choice.identified else _participants(database, choice)
    )
    tables = {"answers": answers, "participants": participants, "items": ITEMS}
    compared = []
    if study.kind != TRIPLET:
        tables["comparisons"] = COMPARISONS
        path = data / f"{stem}_task-comparisons_data.csv"
        compared = [put(path, comparisons_csv(database, study, choice))]
    measured = {name: meaning(name) for columns in tables.values() for name in columns}
    measured |= {
        name: f"coordinate of the item on principal axis {number} of the embedding, strongest first"
        for number, name in enumerate(dimensions, 1)
    }
    of_imports = imported.meanings(database, "psych-ds")
    for name, text in of_imports.items():
        # A column may have another meaning there.
        other = measured.get(name, text)
        measured[name] = text if other == text else f"{other}; imported answers: {text}"
    about = "" if choice.identified else DE_IDENTIFIED
    description = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": study.settings.title,
        "description": " ".join(
            filter(
                None,
                (
                    f"{_comparisons(study.kind)} ({study.settings.trial.question}) collected with "
                    f"lore-active {__version__}.",
                    simulated_note(counts),
                    about,
                ),
            )
        ),
        "keywords": [_comparisons(study.kind).lower(), "similarity", "embedding"],
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
            _answers(database, study, choice, answers, progress),
        ),
        *compared,
        put(data / f"{stem}_task-participants_data.csv", participant_pieces),
        put(data / f"{stem}_task-items_data.csv", items_csv(study)),
        put(data / f"{stem}_task-embedding_data.csv", embedding_csv(database, study)),
        dictionary(
            out / "README.md",
            tables,
            counts,
            [
                *(["## imported", ""] if of_imports else []),
                *(imported.dictionary_lines(database, "psych-ds") if of_imports else []),
                "## embedding",
                "",
                "One row per item: its key (`item`), and its coordinates on the principal axes of "
                "the embedding (`dim_1`, …), strongest first.",
                "",
                "## All files",
                "",
                "Rows are identified by `seq` in `answers`, by `participant` in `participants`, by "
                "`item` in `items` and `embedding`.",
                *(["", about] if about else []),
                "",
            ],
        ),
    ]


def _dimensions(database: Database, study: LoadedStudy) -> list[str]:
    z = embedding_of(database.read(models.latest_model), len(study.items))
    return dimension_names(z.shape[1])


def _comparisons(kind: Kind) -> str:
    return "Triplet comparisons" if kind == TRIPLET else f"Similarity judgements ({kind.label})"


def _answers(
    database: Database,
    study: LoadedStudy,
    choice: ExportOptions,
    columns: tuple[str, ...],
    progress: Progress,
) -> Iterator[str]:
    yield csv_text([columns])
    arrived = {row[0]: row[_ARRIVED] for row in database.read(summaries.participants_for_export)}
    for records in answer_records(database, study, choice, progress):
        yield csv_text(
            answer_cells(_coarse(record, arrived), study.kind, columns) for record in records
        )


def _coarse(record: dict[str, Any], arrived: dict[int, int]) -> dict[str, Any]:
    """The answer with its day, and its time since the participant's arrival."""
    received = record["received_at_utc"]
    return {
        **record,
        "day_utc": utc(received)[:10],
        "session_ms": max(0, received - arrived[record["participant"]]),
    }


def _participants(database: Database, choice: ExportOptions) -> Iterator[str]:
    columns = participant_columns(choice)
    yield csv_text([columns])
    left_out = database.read(simulated_left_out)
    for row in database.read(summaries.participants_for_export):
        cells = dict(zip(PARTICIPANTS, row, strict=True))
        if not choice.keeps(bool(cells["excluded"]), bool(cells["simulated"]), left_out):
            continue
        begun, ended = cells["arrived_at_utc"], cells["finished_at_utc"]
        cells["day_utc"] = utc(begun)[:10]
        cells["duration_ms"] = "" if ended is None else max(0, ended - begun)
        yield csv_text([[cells[name] for name in columns]])


_ARRIVED = PARTICIPANTS.index("arrived_at_utc")
