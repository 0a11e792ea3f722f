"""SQL of imported answers: the files and their rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from server.store import collection
from server.store.database import Connection

WHO = "import"


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


def add(c: Connection, digest: str, name: str, rows: list[tuple[int, int, int]], now: int) -> int:
    """Import a file: its rows (anchor, nearer, farther), and the event that notifies the worker."""
    cursor = c.execute(
        "INSERT INTO imported_files (hash, name, answers, at) VALUES (?, ?, ?, ?)",
        (digest, name, len(rows), now),
    )
    number = cursor.lastrowid
    assert number is not None
    c.executemany(
        "INSERT INTO imported_answers (file, anchor, nearer, farther) VALUES (?, ?, ?, ?)",
        ((number, *row) for row in rows),
    )
    collection.add_event(
        c, "import", WHO, now, number=number, file=name, sha256=digest, answers=len(rows)
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


def counted(c: Connection) -> list[tuple[int, int, int]]:
    """List (anchor, nearer, farther) of every imported answer in use."""
    return rows(c, [file.id for file in every(c) if not file.removed])


def rows(c: Connection, numbers: Iterable[int]) -> list[tuple[int, int, int]]:
    """List (anchor, nearer, farther) of these files' answers, in order."""
    triplets: list[tuple[int, int, int]] = []
    for number in numbers:
        triplets += (
            (row[0], row[1], row[2])
            for row in c.execute(
                "SELECT anchor, nearer, farther FROM imported_answers WHERE file = ? ORDER BY id",
                (number,),
            )
        )
    return triplets
