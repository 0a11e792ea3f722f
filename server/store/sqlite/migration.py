"""Migrations of a study's database: numbered, each in its own transaction."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from lore_active.errors import LoreError
from server.store.hash_chain import records as chain
from server.store.hash_chain import verification as chain_verification
from server.store.hash_chain.recorder import Recorder
from server.store.sqlite.connection import Connection
from server.store.sqlite.former_names import RENAMED_BY


class NewerDatabase(LoreError):
    """The database was written by a newer version of lore-active."""


def _migrations() -> list[tuple[int, str, str]]:
    """Return (number, name, SQL) of all migrations, in order; the schema is number 1."""
    here = resources.files("server.store")
    migrations = [(1, "schema", (here / "schema.sql").read_text(encoding="utf-8"))]
    for file in (here / "migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            migrations.append((int(number), name, file.read_text(encoding="utf-8")))
    return sorted(migrations)


def _statements(script: str) -> list[str]:
    """Split a script into statements, since executescript would commit between them."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def migrate(connection: Connection, path: Path, now: int) -> None:
    """Migrate the database to the current version, each migration in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migrations "
        "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"
    )
    connection.execute("COMMIT")
    known = _migrations()
    have = connection.execute("SELECT max(number) FROM migrations").fetchone()[0] or 0
    newest = known[-1][0]
    # A chain created now starts after the last migration.
    began_before = _has_chain(connection)
    why = chain.UPGRADE if have else chain.NEW
    if have > newest:
        raise NewerDatabase(
            f"{path} has version {have}, but this lore-active supports versions up to {newest}. "
            "Please update lore-active; the file was not changed."
        )
    for number, name, script in known:
        with _immediate(connection):
            done = {row[0]: row[1] for row in connection.execute("SELECT * FROM migrations")}
            if number not in done:
                # Up to that one, no migration changed values, and tables had other names.
                records = began_before and number > RENAMED_BY
                recorder = Recorder(connection) if records else None
                for statement in _statements(script):
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (number, name, now))
                if recorder is not None:
                    recorder.append(now)
                    recorder.close()
                if number >= RENAMED_BY:
                    if began_before:
                        chain_verification.keep_covered(connection, now, chain.SCHEMA)
                    else:
                        chain.begin_again(connection, now, why)
    with _immediate(connection):
        # Any other change of the tables was made by another program.
        chain_verification.keep_covered(connection, now, chain.ALTERED)


def _has_chain(connection: Connection) -> bool:
    """Return whether there are records of a hash chain; none of a file from before there was one.

    An upgrade that was interrupted after the migration that added the table has none either.
    """
    there = "SELECT 1 FROM sqlite_schema WHERE name = 'chain'"
    if connection.execute(there).fetchone() is None:
        return False
    return connection.execute("SELECT 1 FROM chain LIMIT 1").fetchone() is not None


@contextlib.contextmanager
def _immediate(connection: Connection) -> Iterator[None]:
    """Run a write transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
