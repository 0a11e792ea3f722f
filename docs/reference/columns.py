"""The reference page of every exported file and its columns."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from docs.reference.meanings import (
    ARRAYS,
    EMBEDDING,
    EVENTS,
    FIT,
    IMPORTED_ARRAYS,
    KINDS,
    LOG,
    ROWS,
)
from docs.reference.parts import NOTE, application, table
from lore_active.questions.kinds import TRIPLET, Kind
from server.exports import psych_ds
from server.exports.answers import ANSWERS, COMPARISONS, answer_columns
from server.exports.dictionary import MEANINGS, meaning
from server.exports.downloads import DOWNLOADS
from server.exports.imported import MEANINGS as IMPORTED
from server.exports.imported import columns as imported_columns
from server.exports.other_programs import (
    SALMON,
    TRIPLETTOOLS,
    TRIPLETTOOLS_EMBEDDING,
    TRIPLETTOOLS_ITEMS,
)
from server.exports.tables import ITEMS, MODELS, PARTICIPANTS, ExportOptions
from server.store import archive
from server.store.sqlite.tables import SECRET


def columns() -> Iterator[str]:
    """Every exported file, with every column."""
    yield from ["# Columns of every export", "", NOTE, ""]
    yield from [
        "`lore-active export DIR --format FORMAT` writes the files below; most folders also have",
        "their own data dictionary. Texts are UTF-8, times UTC. Texts that a spreadsheet would run",
        "as a formula begin with an apostrophe. Some files can be downloaded from the monitor:",
        "",
    ]
    yield from table(
        ("on the monitor", "holds"),
        ((f"`{download.name}`", download.description) for download in DOWNLOADS.values()),
    )
    yield from ["## csv", ""]
    items = tuple(ITEMS)
    for file, names in (
        ("answers.csv", ANSWERS),
        ("participants.csv", PARTICIPANTS),
        ("items.csv", items),
        ("models.csv", MODELS),
    ):
        yield from _file(file, ((name, MEANINGS[name]) for name in names))
    yield from _of_kinds()
    yield from _file("imported.csv (if answers were imported)", _imported("csv"))
    yield from _file("embedding.csv", EMBEDDING.items())
    yield from _file("events.jsonl", EVENTS.items())
    yield from ["Kinds of events:", ""]
    yield from table(
        ("kind", "meaning"), ((f"`{kind}`", meaning) for kind, meaning in KINDS.items())
    )
    yield from ["## triplettools", ""]
    for file, names in (
        ("STUDY_triplettools.csv", TRIPLETTOOLS),
        ("STUDY_triplettools_items.csv", TRIPLETTOOLS_ITEMS),
        ("STUDY_triplettools_embedding.csv", TRIPLETTOOLS_EMBEDDING),
    ):
        yield from _file(file, ((name, MEANINGS[name]) for name in names))
    yield from _file("STUDY_imported.csv (if answers were imported)", _imported("triplettools"))
    yield from ["## salmon", ""]
    yield from _file("STUDY_responses.csv", ((name, MEANINGS[name]) for name in SALMON))
    yield from [
        "`STUDY_targets.csv`: keys of the items, one per line, target 0 first.",
        "`STUDY_embedding.csv`: coordinates of the newest model, one row per target and one column",
        "per dimension.",
        "",
    ]
    yield from _file("STUDY_imported.csv (if answers were imported)", _imported("salmon"))
    yield from ["## cblearn", ""]
    yield from _file("STUDY_triplets.npz", ARRAYS.items())
    yield from _file(
        "STUDY_imported_triplets.npz (if answers were imported)", IMPORTED_ARRAYS.items()
    )
    yield from [
        "## psych-ds",
        "",
        "`dataset_description.json` describes every column. De-identified unless exported with",
        "`--identified`: then answers and participants have the columns of `answers.csv` and",
        "`participants.csv` above.",
        "",
    ]
    safe = ExportOptions(comments=True)
    for task, names in {
        "answers": psych_ds.shown_columns(TRIPLET, safe),
        "participants": psych_ds.participant_columns(safe),
        "items": ITEMS,
    }.items():
        kept = {name: MEANINGS[name] for name in names}
        if "feedback" in kept:
            kept["feedback"] += " (only with `--comments`)"
        yield from _file(f"data/study-STUDY_task-{task}_data.csv", kept.items())
    yield from [
        "`data/study-STUDY_task-embedding_data.csv` has the columns of `embedding.csv`,",
        "`data/study-STUDY_task-imported_data.csv` those of `imported.csv`, if there is one.",
        "",
        "## log",
        "",
    ]
    yield from _file("STUDY.log.jsonl", LOG.items())
    yield from ["`row` of a line whose `kind` is …", ""]
    for rows, names in _stored().items():
        yield from [f"**{rows}**", ""]
        fields = sorted(set(names) - {SECRET.get(rows)})
        yield from table(("field", "meaning"), ((f"`{n}`", ROWS[rows][n]) for n in fields))
    yield from ["## What `lore-active fit --out` writes", ""]
    yield from _file("embedding.csv", EMBEDDING.items())
    yield from _file("fit.json", FIT.items())


def _imported(name: str) -> Iterator[tuple[str, str]]:
    return ((column, IMPORTED[column]) for column in imported_columns(name))


def _of_kinds() -> Iterator[str]:
    """The files of answers to questions of other kinds than triplets."""
    own = [name for name in answer_columns(Kind("rank", 8, 2)) if name not in ANSWERS]
    shown = [name for name in own if "_" not in name or name.endswith("_1")]
    yield from [
        "### Answers to other kinds of questions",
        "",
        "In studies of other kinds of questions, `answers.csv` has these columns instead of",
        "`left`, `right`, `side` and `chosen` (an `option_…` for each option, a `chosen_…` for",
        "each pick):",
        "",
    ]
    yield from table(("column", "meaning"), ((f"`{name}`", meaning(name)) for name in shown))
    yield from _file(
        "comparisons.csv (except in studies of triplets)",
        ((name, meaning(name)) for name in COMPARISONS),
    )
    yield from [
        "Files for other programs then have a row for each comparison, and a last column `trial`",
        "(in `.npz` an array): the number of the answer.",
        "",
    ]


def _file(name: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from [f"### {name}", ""]
    yield from table(("column", "meaning"), ((f"`{column}`", meaning) for column, meaning in rows))


def _stored() -> dict[str, dict[str, str]]:
    with tempfile.TemporaryDirectory() as home:
        app = application(Path(home))
        (served,) = app.extensions["studies"].values()
        stored: dict[str, dict[str, str]] = served.database.read(
            lambda c: {name: archive.columns(c, name) for name in archive.LOGGED}
        )
        served.database.close()
    return stored
