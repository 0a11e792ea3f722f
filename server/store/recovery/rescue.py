"""Rescue copies of an open database whose file was deleted or replaced.

Its data exist only while a process has it open; a copy in `backups/` preserves them.
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
from lore_active.wording import many
from server.store.database import Database
from server.store.recovery import backups, copies
from server.store.sqlite.connection import Connection, create_private, read_only
from server.store.sqlite.errors import Damaged, DiskError, StoreError


class CannotRescue(LoreError):
    """No copy could be made; `readable` says whether there is still something to copy."""

    def __init__(self, why: str, readable: bool) -> None:
        super().__init__(why)
        self.readable = readable


class RescueAhead(LoreError):
    """A rescue copy contains answers that the database lacks."""


@dataclass(frozen=True)
class Rescued:
    """A rescue copy; `damage` says what is wrong with it, empty if nothing."""

    path: Path
    answers: int
    damage: str


def save(database: Database, now: int) -> Rescued:
    """Copy the open database to `backups/`, or elsewhere if that fails."""
    folder, stamp = database.path.parent, _stamp(now)
    failed = []
    for home, name in _places(folder, stamp):
        try:
            return _save(database, home, name)
        except (Damaged, DiskError) as error:
            raise CannotRescue(str(error.__cause__ or error.name), readable=False) from error
        except (OSError, sqlite3.Error, StoreError) as error:
            failed.append(f"{home}: {error}")
    raise CannotRescue("; ".join(failed), readable=True)


def put_aside(database: Database, now: int) -> None:
    """Move the log of a replaced database away from the file that replaced it.

    The next process to open that file would take the log for its own and mix the two.
    """
    left = database.files.left_behind()
    if not left:
        return
    home = database.path.parent / backups.FOLDER / f"damaged-{_stamp(now)}"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in left:
        path.rename(home / path.name)


def refuse_ahead(database: Database) -> None:
    """Raise RescueAhead if a rescue copy contains answers that the database lacks."""
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
                f"{path} contains {many(more, 'answer')} that {database.path} lacks: the file was "
                "replaced while the server was running. Run `lore-active recover "
                f"{database.path.parent}` to combine both; if you do not want those answers, move "
                "that copy elsewhere."
            )


def _places(folder: Path, stamp: str) -> Iterator[tuple[Path, str]]:
    if folder.is_dir():
        yield folder / backups.FOLDER, f"rescued-{stamp}.db"
    # The folder itself may be missing, or its disk full.
    for home in (folder.absolute().parent, Path(tempfile.gettempdir())):
        if home.is_dir():
            yield home, f"{folder.name}-rescued-{stamp}.db"


def _save(database: Database, home: Path, name: str) -> Rescued:
    home.mkdir(mode=0o700, exist_ok=True)
    part = home / f".{name}{backups.PART}"
    try:
        create_private(part)
        answers = database.read_apart(lambda c: _copy(c, part))
        damage = backups.damage_in(part)
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
    """Return the tokens of all answered questions, which are unique across files."""
    rows = c.execute("SELECT q.token FROM answers a JOIN queries q ON q.id = a.query")
    return {str(row[0]) for row in rows}


def _stamp(now: int) -> str:
    return datetime.fromtimestamp(now / 1000, UTC).strftime(backups.TIME)
