"""Whole exports into a folder: each format with its files and its data dictionary."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lore_active import __version__
from lore_active.study import LoadedStudy
from server import log, prior_files
from server.exports import (
    ANSWERS,
    Progress,
    answer_rows,
    answers_csv,
    csv_text,
    embedding_csv,
    events_jsonl,
    utc,
)
from server.store import monitoring as store
from server.store.database import Database
from server.store.monitoring import AT_ONCE

MEANINGS = {
    "seq": "place in the order in which answers were stored, from 1",
    "participant": "number of the participant, from 1, in order of arrival",
    "excluded": "1 if the participant is excluded from the model now",
    "slot": "place in the participant's session, from 0; practice is below 0",
    "purpose": "cover, active (chosen by the model), random, catch, repeat or practice",
    "origin": "learner, schedule, or fallback (the queue was empty)",
    "anchor": "key of the item that the two options were compared with",
    "left": "key of the option shown on the left",
    "right": "key of the option shown on the right",
    "side": "left, right, skip or timeout",
    "chosen": "key of the option chosen; empty if skipped or timed out",
    "known_answer": "key of the right option of catch and practice questions",
    "repeats_question": "the question that this one repeats with sides swapped",
    "rt_ms": "milliseconds from the painted stimuli to the answer, measured by the page",
    "late": "1 if the answer came after the question's lease had run out",
    "received_at_utc": "when the server received the answer (ISO 8601)",
    "asked_at_utc": "when the question was given to the participant (ISO 8601)",
    "model_version": "version of the model when the question was made; 0: none yet",
    "question": "number of the question",
    "arrived_at_utc": "when the participant came (ISO 8601)",
    "finished_at_utc": "when the participant finished or declined (ISO 8601)",
    "stage": "how far the participant got",
    "external": "the recruiting service's name for the participant",
    "entry": "JSON of the parameters of the link",
    "user_agent": "what the browser said that it is",
    "trials": "questions promised to the participant",
    "done": "questions answered, skipped ones included",
    "feedback": "what the participant wrote at the end",
    "item": "key of the item",
    "kind": "text, image, audio or video",
    "label": "name for the experimenter",
    "alt": "text alternative",
    "text": "the text of a text item",
    "file": "name of the stimulus file",
    "worker_id": "number of the participant, from 1",
    "rt": "response time in milliseconds",
    "Center": "anchor",
    "Left": "option shown on the left",
    "Right": "option shown on the right",
    "Answer": "option chosen",
    "sampleAlg": "how the question was chosen: random, adaptive, check or repeat",
    "sampleSet": "train for questions chosen by the model, test for random ones",
    "head": "anchor",
    "winner": "option chosen (nearer)",
    "loser": "the other option (farther)",
}
PARTICIPANTS = (
    *("participant", "excluded", "stage", "trials", "done", "arrived_at_utc"),
    *("finished_at_utc", "external", "entry", "user_agent", "feedback"),
)
TRIPLETTOOLS = (
    *("worker_id", "rt", "Center", "Left", "Right", "Answer"),
    *("sampleAlg", "sampleSet", "head", "winner", "loser"),
)
ITEMS = ("item", "kind", "label", "alt", "text", "file")
_ALGORITHMS = {"random": "random", "catch": "check", "repeat": "repeat"}


@dataclass(frozen=True)
class Choice:
    """What to leave out: excluded people, and who people are."""

    without_excluded: bool = False
    pseudonyms: bool = False


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


def _put(path: Path, pieces: Iterator[str]) -> Path:
    with open(path, "w", encoding="utf-8", newline="", opener=_private) as file:
        for piece in pieces:
            file.write(piece)
    return path


def _private(path: str, flags: int) -> int:
    """Made for its owner only: it may tell who people are."""
    return os.open(path, flags, 0o600)


def _rows(database: Database, choice: Choice, progress: Progress) -> Iterator[list[dict[str, Any]]]:
    """Answers as named cells, some thousand at once."""
    for rows in answer_rows(database, choice.without_excluded, progress):
        yield [dict(zip(ANSWERS, row, strict=True)) for row in rows]


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


def _dictionary(path: Path, columns: dict[str, tuple[str, ...]]) -> Path:
    lines = ["# Data dictionary", ""]
    for file, names in columns.items():
        lines += [f"## {file}", "", "| column | meaning |", "|---|---|"]
        lines += [f"| {name} | {MEANINGS[name]} |" for name in names] + [""]
    lines += ["Texts that a spreadsheet would run as a formula begin with an apostrophe.", ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _csv_files(
    database: Database, study: LoadedStudy, out: Path, choice: Choice, progress: Progress
) -> list[Path]:
    return [
        _put(out / "answers.csv", answers_csv(database, study, choice.without_excluded, progress)),
        _put(out / "participants.csv", _participants(database, choice)),
        _put(out / "items.csv", _items(study)),
        _put(out / "embedding.csv", embedding_csv(database, study)),
        _put(out / "events.jsonl", events_jsonl(database, study, choice.pseudonyms)),
        _dictionary(
            out / "dictionary.md",
            {"answers.csv": ANSWERS, "participants.csv": PARTICIPANTS, "items.csv": ITEMS},
        ),
    ]


def _triplettools(
    database: Database, study: LoadedStudy, out: Path, choice: Choice, progress: Progress
) -> list[Path]:
    def pieces() -> Iterator[str]:
        yield csv_text([TRIPLETTOOLS])
        for rows in _rows(database, choice, progress):
            yield csv_text(_triplettools_row(row) for row in rows if _counts(row))

    return [
        _put(out / f"{study.name}_triplettools.csv", pieces()),
        _dictionary(out / "dictionary.md", {f"{study.name}_triplettools.csv": TRIPLETTOOLS}),
    ]


def _counts(row: dict[str, Any]) -> bool:
    return row["purpose"] != "practice" and row["chosen"] is not None


def _triplettools_row(row: dict[str, Any]) -> list[Any]:
    loser = row["right"] if row["side"] == "left" else row["left"]
    return [
        row["participant"],
        row["rt_ms"],
        row["anchor"],
        row["left"],
        row["right"],
        row["chosen"],
        _ALGORITHMS.get(row["purpose"], "adaptive"),
        "test" if row["purpose"] == "random" else "train",
        row["anchor"],
        row["chosen"],
        loser,
    ]


def _cblearn(
    database: Database, study: LoadedStudy, out: Path, choice: Choice, progress: Progress
) -> list[Path]:
    """Arrays for cblearn: `triplets` in list order (anchor, nearer, farther), all that count."""
    number = {item.key: at for at, item in enumerate(study.items)}
    parts: list[np.ndarray[Any, Any]] = []
    for rows in _rows(database, choice, progress):
        found = [
            (
                number[row["anchor"]],
                number[row["chosen"]],
                number[row["right"] if row["side"] == "left" else row["left"]],
                row["participant"],
            )
            for row in rows
            if _counts(row) and row["purpose"] != "catch"
        ]
        parts.append(np.array(found, dtype=np.int32).reshape(-1, 4))
    held = np.concatenate(parts) if parts else np.zeros((0, 4), dtype=np.int32)
    path = out / f"{study.name}_triplets.npz"
    np.savez(
        path,
        triplets=held[:, :3],
        participant=held[:, 3],
        items=np.array([item.key for item in study.items]),
    )
    words = [
        "# Data dictionary",
        "",
        f"`{path.name}` (NumPy, no pickle):",
        "",
        "- `triplets`: one row an answer: anchor, nearer, farther (cblearn's list order), numbers",
        "  from 0. No practice, catch, skipped or timed-out questions.",
        "- `participant`: who answered.",
        "- `items`: keys of the items, by number.",
        "",
    ]
    (out / "dictionary.md").write_text("\n".join(words), encoding="utf-8")
    return [path, out / "dictionary.md"]


def _psych_ds(
    database: Database, study: LoadedStudy, out: Path, choice: Choice, progress: Progress
) -> list[Path]:
    """A Psych-DS folder: a description, and data files named by keywords."""
    data = out / "data"
    data.mkdir(exist_ok=True)
    stem = "study-" + "".join(sign for sign in study.name if sign.isalnum())
    description = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": study.settings.title,
        "description": (
            f"Triplet comparisons ({study.settings.trial.question}) collected with lore-active "
            f"{__version__}."
        ),
        "variableMeasured": [
            {"@type": "PropertyValue", "name": name, "description": MEANINGS[name]}
            for name in sorted({*ANSWERS, *PARTICIPANTS})
        ],
    }
    path = out / "dataset_description.json"
    path.write_text(json.dumps(description, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return [
        path,
        _put(
            data / f"{stem}_task-answers_data.csv",
            answers_csv(database, study, choice.without_excluded, progress),
        ),
        _put(data / f"{stem}_task-participants_data.csv", _participants(database, choice)),
        _dictionary(out / "README.md", {"answers": ANSWERS, "participants": PARTICIPANTS}),
    ]


def _log(
    database: Database, study: LoadedStudy, out: Path, choice: Choice, progress: Progress
) -> list[Path]:
    path = out / f"{study.name}.log.jsonl"
    with open(path, "wb", opener=_private) as file:
        for number, line in enumerate(log.lines(database, study, choice.pseudonyms)):
            file.write(line)
            if number % AT_ONCE == 0:
                progress(number)
    return [path]


WRITERS: dict[str, Callable[[Database, LoadedStudy, Path, Choice, Progress], list[Path]]] = {
    "csv": _csv_files,
    "triplettools": _triplettools,
    "cblearn": _cblearn,
    "psych-ds": _psych_ds,
    "log": _log,
}
