"""Rescue copies: what an open database holds whose file has lost its place in the study's folder.

It lives on only while some process has it open. A copy in `backups/` keeps it.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lore_active.errors import LoreError
from server.store.database import Database
from server.store.recovery import backups, copies
from server.store.sqlite.connection import Connection, create_private, read_only
from server.store.sqlite.errors import Damaged, DiskError, StoreError


class CannotRescue(LoreError):
    """No copy could be made; `readable` tells whether there is still something to copy."""

    def __init__(self, why: str, readable: bool) -> None:
        super().__init__(why)
        self.readable = readable


class RescueAhead(LoreError):
    """A rescue copy holds answers that the database does not."""


@dataclass(frozen=True)
class Rescued:
    """The copy; `damage` says what is wrong with it, empty if nothing."""

    path: Path
    answers: int
    damage: str


def save(database: Database, now: int) -> Rescued:
    """Copy all that the open database holds to where it will be found."""
    folder, moment = database.path.parent, _moment(now)
    failed = []
    for home, name in _places(folder, moment):
        try:
            return _save(database, home, name)
        except (Damaged, DiskError) as error:
            raise CannotRescue(str(error.__cause__ or error.name), readable=False) from error
        except (OSError, sqlite3.Error, StoreError) as error:
            failed.append(f"{home}: {error}")
    raise CannotRescue("; ".join(failed), readable=True)


def put_aside(database: Database, now: int) -> None:
    """Move the log of a database that was replaced out of the way of the one that replaced it.

    Whoever opens that one next would take the log for its own and mix the two.
    """
    left = database.files.left_behind()
    if not left:
        return
    home = database.path.parent / backups.FOLDER / f"damaged-{_moment(now)}"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in left:
        path.rename(home / path.name)


def refuse_ahead(database: Database) -> None:
    """Raise RescueAhead if a rescue copy beside the database holds answers that it does not."""
    copies_there = sorted((database.path.parent / backups.FOLDER).glob(backups.RESCUED))
    if not copies_there:
        return
    have = database.read(_answered)
    for path in copies_there:
        try:
            with closing(read_only(path)) as connection:
                more = len(_answered(connection) - have)
        except sqlite3.Error:
            continue
        if more:
            raise RescueAhead(
                f"{path} holds {more} answers that {database.path} does not: the file was replaced "
                f"while it was being served. Run `lore-active recover {database.path.parent}` to "
                "put both together; if you do not want those answers, move that copy elsewhere."
            )


def _places(folder: Path, moment: str) -> Iterator[tuple[Path, str]]:
    if folder.is_dir():
        yield folder / backups.FOLDER, f"rescued-{moment}.db"
    # The folder itself may be gone, or its disk full.
    for home in (folder.absolute().parent, Path(tempfile.gettempdir())):
        if home.is_dir():
            yield home, f"{folder.name}-rescued-{moment}.db"


def _save(database: Database, home: Path, name: str) -> Rescued:
    home.mkdir(mode=0o700, exist_ok=True)
    part = home / f".{name}{backups.PART}"
    try:
        create_private(part)
        answers = database.read_apart(lambda c: _copy(c, part))
        damage = backups.unsound(part)
        part.replace(home / name)
    finally:
        part.unlink(missing_ok=True)
    backups.sync(home)
    return Rescued(home / name, answers, damage)


def _copy(c: Connection, part: Path) -> int:
    answers = int(c.execute("SELECT count(*) FROM answers").fetchone()[0])
    copies.write_out(c, part)
    return answers


def _answered(c: Connection) -> set[str]:
    """The tokens of every question that has an answer; nothing else has the same in two files."""
    rows = c.execute("SELECT q.token FROM answers a JOIN queries q ON q.id = a.query")
    return {str(row[0]) for row in rows}


def _moment(now: int) -> str:
    return datetime.fromtimestamp(now / 1000, UTC).strftime(backups.TIME)
