"""The sources of a recovery: the study's own file, its backups and its rescue copies."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from lore_active.errors import LoreError
from server.store import collection
from server.store.database import Database
from server.store.hash_chain import verification as chain_verification
from server.store.recovery import backups, copies
from server.store.recovery.salvage import Broken, Layout, Recorded, Source, Valid
from server.store.recovery.write_ahead import read_log
from server.store.sqlite.connection import Connection, connect
from server.store.sqlite.migration import NewerDatabase
from server.study.workspace import DATABASE


def find_sources(folder: Path, place: Path, clock: Callable[[], int]) -> list[Source]:
    """List every file that may hold data, the study's own first."""
    with closing(new_database(place / "empty.db", clock)) as connection:
        layout = Layout.of(connection)
    sources: list[Source] = []
    current = folder / DATABASE
    log = current.with_name(f"{DATABASE}-wal")
    if current.exists() or log.exists():
        lost = _log_lost(current)
        opened = open_copy(current, place / "current.db", clock, DATABASE)
        sources += [opened] if isinstance(opened, Valid) else []
        if lost or isinstance(opened, str):
            damage = opened if isinstance(opened, str) else lost
            sources.append(Broken(DATABASE, current, damage, layout))
    for number, path in enumerate(sorted((folder / backups.FOLDER).glob(backups.RESCUED))):
        name = path.relative_to(folder).as_posix()
        opened = open_copy(path, place / f"rescued{number}.db", clock, name)
        sources.append(opened if isinstance(opened, Valid) else Broken(name, path, opened, layout))
    damaged_backups = []
    for path in reversed(backups.every(folder)):
        name = path.relative_to(folder).as_posix()
        opened = open_copy(path, place / "backup.db", clock, name)
        if isinstance(opened, Valid):
            if (
                sources
                and isinstance(sources[0], Valid)
                and (why := _restorable(sources[0], opened))
            ):
                sources[0] = Broken(DATABASE, current, why, layout)
            return [*sources, opened]
        damaged_backups.append(Broken(name, path, opened, layout))
    return [*sources, *damaged_backups[:1]]


def _restorable(current: Valid, backup: Valid) -> str:
    """Describe changed rows that the backup still has as recorded in the hash chain.

    Empty if there are none, or if not all can be restored: then the database stays as it is.
    """
    with closing(connect(current.path)) as connection:
        recorded = Recorded(connection)
        changed = chain_verification.differing(connection).changed
    if not recorded.whole or not changed:
        return ""
    tables = {table for table, _ in changed}
    kept = {(table, row): values for table in tables for row, values in backup.rows(table)}
    if not all(key in kept and recorded.agrees(*key, kept[key]) for key in changed):
        return ""
    count = len(changed)
    return (
        "1 of its rows differs from the hash chain"
        if count == 1
        else f"{count} of its rows differ from the hash chain"
    )


def new_database(path: Path, clock: Callable[[], int]) -> Connection:
    Database(path, clock).close()
    return connect(path)


def _log_lost(path: Path) -> str:
    log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    return read_log(*(file.read_bytes() if file.is_file() else b"" for file in (log, index))).lost


def open_copy(path: Path, to: Path, clock: Callable[[], int], name: str) -> Valid | str:
    """Make a valid copy in the current format, or say what is wrong with the file."""
    for end in ("", "-wal", "-shm"):
        to.with_name(to.name + end).unlink(missing_ok=True)
    if not path.exists():
        return "it is missing"
    try:
        copies.copy(path, to)
        with closing(connect(to)) as connection:
            if wrong := damage_of(connection):
                return wrong
        Database(to, clock).close()
        with closing(connect(to)) as connection:
            if not collection.has_begun(connection):
                return "it is empty"
            if collection.state(connection) is None:
                return "the row of its table `state` is missing"
    except NewerDatabase:
        raise
    except UnicodeDecodeError:
        # SQLite quotes bytes that Python cannot decode.
        return "malformed database schema"
    except (sqlite3.Error, LoreError) as error:
        cause = error.__cause__
        return str(cause if isinstance(cause, sqlite3.Error) else error)
    return Valid(name, to)


def damage_of(c: Connection) -> str:
    errors = [str(row[0]) for row in c.execute("PRAGMA integrity_check(1)")]
    if errors != ["ok"]:
        # The first line only names the database of the connection.
        return errors[0].splitlines()[-1] if errors else "its integrity cannot be checked"
    row = c.execute("PRAGMA foreign_key_check").fetchone()
    return "" if row is None else f"a row of {row[0]} refers to a missing row of {row[2]}"
