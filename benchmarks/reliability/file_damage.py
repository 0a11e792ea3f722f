"""A study's files damaged at random: what does `recover` bring back, and does it tell the truth?"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.collection import START, collecting
from server.maintenance.recovery import NotNeeded, put_in_place, recovered
from server.store.recovery import backups
from server.store.sqlite.connection import for_reading
from server.study.loading import load
from server.study.workspace import open_study

PAGE = 4096
ITEMS = 20
Answers = dict[int, tuple[Any, ...]]


@dataclass(frozen=True)
class Original:
    """A study's files with their newest answers still in the log, and what they hold."""

    folder: Path
    answers: Answers
    backed_up: int


def original(home: Path, answers: int, trials: int = 100, every: int = 100) -> Original:
    """Collect a study through the service and the real worker; its last backup is a little old."""
    folder, kept, backed_up = home / "words", home / "crashed" / "words", 0
    for study in collecting(folder, ITEMS, answers, trials, practice=1):
        if study.answers % every == 0:
            study.worker.turn()
        if not backed_up and study.answers >= 0.9 * answers:
            assert backups.take(study.database.path, study.now) is not None
            backed_up = study.answers
        if study.answers == answers:
            # As a crash leaves it: the copies are taken while everything is open.
            shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("study.lock*"))
    return Original(kept, held(folder / "study.db"), backed_up)


def held(path: Path) -> Answers:
    """Every answer with all that it is about."""
    connection = for_reading(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True))
    try:
        rows = connection.execute(
            "SELECT a.seq, a.query, a.outcome, a.chosen, a.late, a.received_at, a.rt_ms, "
            "a.timings, q.purpose, q.anchor, q.options, q.participant, q.slot FROM answers a "
            "JOIN queries q ON q.id = a.query"
        )
        return {row[0]: row[1:] for row in rows}
    finally:
        connection.close()


# ---- damage -------------------------------------------------------------------------------------

Harm = Callable[[bytearray, np.random.Generator], bytearray]


def _pages(content: bytearray, rng: np.random.Generator) -> Iterator[int]:
    """The first bytes of one to five pages, anywhere."""
    count = max(1, len(content) // PAGE)
    for number in rng.choice(count, size=min(count, int(rng.integers(1, 6))), replace=False):
        yield int(number) * PAGE


def zeros(content: bytearray, rng: np.random.Generator) -> bytearray:
    """Pages of zeros, as a disk returns that lost them."""
    for at in _pages(content, rng):
        content[at : at + PAGE] = bytes(PAGE)
    return content


def noise(content: bytearray, rng: np.random.Generator) -> bytearray:
    """Pages of noise."""
    for at in _pages(content, rng):
        content[at : at + PAGE] = rng.bytes(PAGE)
    return content


def sectors(content: bytearray, rng: np.random.Generator) -> bytearray:
    """Sectors of zeros inside pages."""
    for at in _pages(content, rng):
        start = at + 512 * int(rng.integers(0, 8))
        content[start : start + 512] = bytes(512)
    return content


def flips(content: bytearray, rng: np.random.Generator) -> bytearray:
    """A few changed bytes anywhere."""
    for at in rng.integers(0, len(content), int(rng.integers(1, 20))):
        content[int(at)] ^= int(rng.integers(1, 256))
    return content


def misplaced(content: bytearray, rng: np.random.Generator) -> bytearray:
    """Pages in the place of others, as a disk writes that mistakes an address."""
    pages = list(_pages(content, rng))
    for at in pages:
        other = PAGE * int(rng.integers(0, len(content) // PAGE))
        content[at : at + PAGE] = content[other : other + PAGE]
    return content


def cut(content: bytearray, rng: np.random.Generator) -> bytearray:
    """The rest of the file is missing, as after a copy that was broken off."""
    return content[: int(rng.integers(0, len(content)))]


def head(content: bytearray, rng: np.random.Generator) -> bytearray:
    """Other bytes at the beginning."""
    many = int(rng.integers(1, 2 * PAGE))
    content[:many] = rng.bytes(many)
    return content


def gone(content: bytearray, rng: np.random.Generator) -> bytearray:
    """No file at all."""
    return bytearray()


HARMS: tuple[Harm, ...] = (zeros, noise, sectors, flips, misplaced, cut, head, gone)
FILES = ("study.db", "study.db", "study.db", "study.db", "study.db-wal")


def damaged(made: Original, to: Path, harm: Harm, file: str, rng: np.random.Generator) -> Path:
    """A copy of the study with one of its files damaged."""
    shutil.copytree(made.folder, to)
    path = to / file
    content = harm(bytearray(path.read_bytes()), rng)
    if harm is gone:
        path.unlink()
    else:
        path.write_bytes(content)
    return to


@dataclass(frozen=True)
class Outcome:
    """What became of one damaged study.

    All from `unnamed` on should be 0, False or empty: answers that are missing without a word,
    that never were, that are other ones without a warning; a claim that nothing is missing.
    """

    harm: str
    file: str
    backup: bool
    answers: int
    recovered: int
    without_names: int
    invented: int
    altered: int
    false_nothing: bool
    error: str = ""


def outcome(
    made: Original, home: Path, harm: Harm, file: str, backup: bool, rng: np.random.Generator
) -> Outcome:
    """Damage a copy, recover it, and compare what is there and what is said with the truth."""
    folder = damaged(made, home / "words", harm, file, rng)
    if not backup:
        shutil.rmtree(folder / "backups")
    truth, name = made.answers, harm.__name__
    nothing, named, unknown, doubted = True, set[int](), False, False
    try:
        with recovered(load(folder, begun=True), lambda: START) as found:
            if isinstance(found, NotNeeded):
                nothing = not found.not_as_recorded
                doubted = not nothing
            else:
                nothing = found.missing.nothing and not found.apart
                unknown = bool(found.missing.unknown)
                doubted = bool(found.missing.unconfirmed)
                ranges = found.missing.rows.get("answers", [])
                named = {n for first, last in ranges for n in range(first, last + 1)}
                put_in_place(folder, found, START)
        open_study(folder, lambda: START)[1].close()
        there = held(folder / "study.db")
    except Exception as error:
        return Outcome(name, file, backup, len(truth), 0, 0, 0, 0, False, repr(error))
    lost = truth.keys() - there.keys()
    altered = {seq for seq in there.keys() & truth.keys() if there[seq] != truth[seq]}
    return Outcome(
        harm=name,
        file=file,
        backup=backup,
        answers=len(truth),
        recovered=len(there.keys() & truth.keys()),
        without_names=0 if unknown else len(lost - named),
        invented=len(there.keys() - truth.keys()),
        altered=0 if doubted else len(altered),
        false_nothing=nothing and bool(lost or altered),
    )


def numbered(made: Original, number: int) -> Outcome:
    """One of a series that goes through all kinds of damage, files, with and without a backup."""
    harm = HARMS[number % len(HARMS)]
    turn = number // len(HARMS)
    rng = np.random.default_rng([1, number])
    with tempfile.TemporaryDirectory() as home:
        return outcome(made, Path(home), harm, FILES[turn % len(FILES)], turn % 2 == 0, rng)
