"""SQL of imported answers: the files and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lore_active.questions.kinds import Comparison
from server.store import collection
from server.store.database import Connection

WHO = "import"
# Comparisons (anchor, nearer, farther) that one answer consists of.
Trial = list[Comparison]


@dataclass(frozen=True)
class ImportedFile:
    """An imported file of answers; `removed` if it was removed and no longer counts."""

    id: int
    hash: str
    name: str
    answers: int
    at: int
    removed: int


def every(c: Connection) -> list[ImportedFile]:
    """List all imported files in order, including removed ones."""
    rows = c.execute("SELECT id, hash, name, answers, at, removed FROM imported_files ORDER BY id")
    return [ImportedFile(*row) for row in rows]


def counting(c: Connection) -> int:
    """Count the imported answers in use."""
    row = c.execute("SELECT coalesce(sum(answers), 0) FROM imported_files WHERE NOT removed")
    return int(row.fetchone()[0])


def add(
    c: Connection,
    digest: str,
    name: str,
    rows: Sequence[Comparison],
    now: int,
    trials: Sequence[int | None] = (),
) -> int:
    """Import a file: its rows (anchor, nearer, farther), and the event that notifies the worker.

    `trials` gives the number of the trial of each row, if some trials have several.
    """
    answers = len(set(trials)) or len(rows)
    cursor = c.execute(
        "INSERT INTO imported_files (hash, name, answers, at) VALUES (?, ?, ?, ?)",
        (digest, name, answers, now),
    )
    number = cursor.lastrowid
    assert number is not None
    c.executemany(
        "INSERT INTO imported_answers (file, anchor, nearer, farther, trial) "
        "VALUES (?, ?, ?, ?, ?)",
        (
            (number, *row, trial)
            for row, trial in zip(rows, trials or (None,) * len(rows), strict=True)
        ),
    )
    collection.add_event(
        c, "import", WHO, now, number=number, file=name, sha256=digest, answers=answers
    )
    return number


def remove(c: Connection, imported: ImportedFile, now: int) -> None:
    """Remove a file's answers from the model; they stay on record."""
    c.execute("UPDATE imported_files SET removed = 1 WHERE id = ?", (imported.id,))
    collection.add_event(
        c,
        "import_removed",
        WHO,
        now,
        number=imported.id,
        file=imported.name,
        sha256=imported.hash,
        answers=imported.answers,
    )


def counted(c: Connection) -> list[Trial]:
    """List the trials of every imported answer in use."""
    return trials(c, [file.id for file in every(c) if not file.removed])


def trials(c: Connection, numbers: Iterable[int]) -> list[Trial]:
    """List the trials of these files' answers, in order."""
    result: list[Trial] = []
    for number in numbers:
        known: dict[int, Trial] = {}
        for row, trial in zip(rows(c, [number]), trial_numbers(c, number), strict=True):
            if trial is None:
                result.append([row])
                continue
            if trial not in known:
                result.append(known.setdefault(trial, []))
            known[trial].append(row)
    return result


def trial_numbers(c: Connection, number: int) -> list[int | None]:
    """List the number of the trial of each of a file's rows; None for a trial of its own."""
    sql = "SELECT trial FROM imported_answers WHERE file = ? ORDER BY id"
    return [row[0] for row in c.execute(sql, (number,))]


def rows(c: Connection, numbers: Iterable[int]) -> list[Comparison]:
    """List (anchor, nearer, farther) of these files' answers, in order."""
    triplets: list[Comparison] = []
    for number in numbers:
        triplets += (
            (row[0], row[1], row[2])
            for row in c.execute(
                "SELECT anchor, nearer, farther FROM imported_answers WHERE file = ? ORDER BY id",
                (number,),
            )
        )
    return triplets
