"""SQL of answers brought in from elsewhere: which files there were, and what they say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from server.store import collection
from server.store.database import Connection

WHO = "import"


@dataclass(frozen=True)
class Prior:
    """A file of answers that was brought in; `taken_out`: it does not count any more."""

    id: int
    hash: str
    name: str
    answers: int
    at: int
    taken_out: int


def every(c: Connection) -> list[Prior]:
    """All files in the order in which they came, those taken out again too."""
    rows = c.execute("SELECT id, hash, name, answers, at, taken_out FROM priors ORDER BY id")
    return [Prior(*row) for row in rows]


def counting(c: Connection) -> int:
    """How many answers from elsewhere count now."""
    row = c.execute("SELECT coalesce(sum(answers), 0) FROM priors WHERE NOT taken_out")
    return int(row.fetchone()[0])


def add(c: Connection, digest: str, name: str, rows: list[tuple[int, int, int]], now: int) -> int:
    """Bring a file in: its rows (anchor, nearer, farther), and the event that tells the worker."""
    made = c.execute(
        "INSERT INTO priors (hash, name, answers, at) VALUES (?, ?, ?, ?)",
        (digest, name, len(rows), now),
    )
    number = made.lastrowid
    assert number is not None
    c.executemany(
        "INSERT INTO prior_answers (prior, anchor, nearer, farther) VALUES (?, ?, ?, ?)",
        ((number, *row) for row in rows),
    )
    collection.add_event(
        c, "prior", WHO, now, prior=number, file=name, sha256=digest, answers=len(rows)
    )
    return number


def take_out(c: Connection, one: Prior, now: int) -> None:
    """Let a file's answers no longer count; they stay on record."""
    c.execute("UPDATE priors SET taken_out = 1 WHERE id = ?", (one.id,))
    collection.add_event(
        c, "prior_out", WHO, now, prior=one.id, file=one.name, sha256=one.hash, answers=one.answers
    )


def counted(c: Connection) -> list[tuple[int, int, int]]:
    """(anchor, nearer, farther) of every answer from elsewhere that counts now."""
    return rows(c, [one.id for one in every(c) if not one.taken_out])


def rows(c: Connection, numbers: Iterable[int]) -> list[tuple[int, int, int]]:
    """(anchor, nearer, farther) of these files' answers, in order."""
    found: list[tuple[int, int, int]] = []
    for number in numbers:
        found += (
            (row[0], row[1], row[2])
            for row in c.execute(
                "SELECT anchor, nearer, farther FROM prior_answers WHERE prior = ? ORDER BY id",
                (number,),
            )
        )
    return found
