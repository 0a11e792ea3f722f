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
from server.exports import imported
from server.exports.dictionary import MEANINGS, dictionary, simulated_note
from server.exports.tables import (
    ANSWERS,
    ITEMS,
    PARTICIPANTS,
    ExportOptions,
    Progress,
    answer_rows,
    answers_csv,
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


def answer_columns(choice: ExportOptions) -> tuple[str, ...]:
    """Return the columns of the file of answers."""
    if choice.identified:
        return ANSWERS
    return (*(name for name in ANSWERS if name not in IDENTIFYING_ANSWERS), *COARSE_ANSWERS)


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
    answers, participants = answer_columns(choice), participant_columns(choice)
    if choice.identified:
        answer_pieces = answers_csv(database, study, choice, progress)
        participant_pieces = participants_csv(database, choice)
    else:
        answer_pieces = _answers(database, choice, progress)
        participant_pieces = _participants(database, choice)
    measured = {name: MEANINGS[name] for name in (*answers, *participants, *ITEMS)}
    measured |= {
        name: f"coordinate of the item on principal axis {number} of the embedding, strongest first"
        for number, name in enumerate(dimensions, 1)
    }
    of_imports = imported.meanings(database, "psych-ds")
    for name, meaning in of_imports.items():
        # A column may have another meaning there.
        other = measured.get(name, meaning)
        measured[name] = meaning if other == meaning else f"{other}; imported answers: {meaning}"
    about = "" if choice.identified else DE_IDENTIFIED
    description = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": study.settings.title,
        "description": " ".join(
            filter(
                None,
                (
                    f"Triplet comparisons ({study.settings.trial.question}) collected with "
                    f"lore-active {__version__}.",
                    simulated_note(counts),
                    about,
                ),
            )
        ),
        "keywords": ["triplet comparisons", "similarity", "embedding"],
        "variableMeasured": [
            {"@type": "PropertyValue", "name": name, "description": measured[name]}
            for name in sorted(measured)
        ],
    }
    path = out / "dataset_description.json"
    path.write_text(json.dumps(description, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return [
        path,
        put(data / f"{stem}_task-answers_data.csv", answer_pieces),
        put(data / f"{stem}_task-participants_data.csv", participant_pieces),
        put(data / f"{stem}_task-items_data.csv", items_csv(study)),
        put(data / f"{stem}_task-embedding_data.csv", embedding_csv(database, study)),
        dictionary(
            out / "README.md",
            {"answers": answers, "participants": participants, "items": ITEMS},
            counts,
            [
                *(["## imported", ""] if of_imports else []),
                *(imported.dictionary_lines("psych-ds") if of_imports else []),
                "## embedding",
                "",
                "One row per item: its key (`item`), and its coordinates on the principal axes of "
                "the embedding (`dim_0`, …), strongest first.",
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
    return [f"dim_{number}" for number in range(z.shape[1])]


def _answers(database: Database, choice: ExportOptions, progress: Progress) -> Iterator[str]:
    columns = answer_columns(choice)
    yield csv_text([columns])
    arrived = {row[0]: row[_ARRIVED] for row in database.read(summaries.participants_for_export)}
    for rows in answer_rows(database, choice, progress):
        yield csv_text(_answer(row, columns, arrived) for row in rows)


def _answer(row: tuple[Any, ...], columns: tuple[str, ...], arrived: dict[int, int]) -> list[Any]:
    cells = dict(zip(ANSWERS, row, strict=True))
    received = cells["received_at_utc"]
    cells["day_utc"] = utc(received)[:10]
    cells["session_ms"] = max(0, received - arrived[cells["participant"]])
    return [cells[name] for name in columns]


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
