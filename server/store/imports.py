"""SQL of imported answers: the files and their rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from server.store import collection
from server.store.database import Connection

WHO = "import"


@dataclass(frozen=True)
class Prior:
    """An imported file of answers; `taken_out` if it was removed and no longer counts."""

    id: int
    hash: str
    name: str
    answers: int
    at: int
    taken_out: int


def every(c: Connection) -> list[Prior]:
    """List all imported files in order, including removed ones."""
    rows = c.execute("SELECT id, hash, name, answers, at, taken_out FROM priors ORDER BY id")
    return [Prior(*row) for row in rows]


def counting(c: Connection) -> int:
    """Count the imported answers in use."""
    row = c.execute("SELECT coalesce(sum(answers), 0) FROM priors WHERE NOT taken_out")
    return int(row.fetchone()[0])


def add(c: Connection, digest: str, name: str, rows: list[tuple[int, int, int]], now: int) -> int:
    """Import a file: its rows (anchor, nearer, farther), and the event that notifies the worker."""
    cursor = c.execute(
        "INSERT INTO priors (hash, name, answers, at) VALUES (?, ?, ?, ?)",
        (digest, name, len(rows), now),
    )
    number = cursor.lastrowid
    assert number is not None
    c.executemany(
        "INSERT INTO prior_answers (prior, anchor, nearer, farther) VALUES (?, ?, ?, ?)",
        ((number, *row) for row in rows),
    )
    collection.add_event(
        c, "prior", WHO, now, prior=number, file=name, sha256=digest, answers=len(rows)
    )
    return number


def take_out(c: Connection, prior: Prior, now: int) -> None:
    """Remove a file's answers from the model; they stay on record."""
    c.execute("UPDATE priors SET taken_out = 1 WHERE id = ?", (prior.id,))
    collection.add_event(
        c,
        "prior_out",
        WHO,
        now,
        prior=prior.id,
        file=prior.name,
        sha256=prior.hash,
        answers=prior.answers,
    )


def counted(c: Connection) -> list[tuple[int, int, int]]:
    """List (anchor, nearer, farther) of every imported answer in use."""
    return rows(c, [prior.id for prior in every(c) if not prior.taken_out])


def rows(c: Connection, numbers: Iterable[int]) -> list[tuple[int, int, int]]:
    """List (anchor, nearer, farther) of these files' answers, in order."""
    triplets: list[tuple[int, int, int]] = []
    for number in numbers:
        triplets += (
            (row[0], row[1], row[2])
            for row in c.execute(
                "SELECT anchor, nearer, farther FROM prior_answers WHERE prior = ? ORDER BY id",
                (number,),
            )
        )
    return triplets
