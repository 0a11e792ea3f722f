"""Versions of a study's database: numbered migrations, each in a transaction of its own."""

from __future__ import annotations

import sqlite3
from importlib import resources
from pathlib import Path

from lore_active.errors import LoreError
from server.store.connection import Connection


class NewerDatabase(LoreError):
    """The database was written by a newer version of lore-active."""


def _migrations() -> list[tuple[int, str, str]]:
    """(number, name, SQL) of all there are, in order; the schema is number 1."""
    here = resources.files("server.store")
    found = [(1, "schema", (here / "schema.sql").read_text(encoding="utf-8"))]
    for file in (here / "migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, file.read_text(encoding="utf-8")))
    return sorted(found)


def _statements(script: str) -> list[str]:
    """The script's statements one by one: executescript would commit between them."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def migrate(connection: Connection, path: Path, now: int) -> None:
    """Bring the database to this version, each migration with its record in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migrations "
        "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"
    )
    connection.execute("COMMIT")
    known = _migrations()
    have = connection.execute("SELECT max(number) FROM migrations").fetchone()[0] or 0
    newest = known[-1][0]
    if have > newest:
        raise NewerDatabase(
            f"{path} has version {have}, but this lore-active knows versions up to {newest}. "
            "Please update lore-active; the file was not touched."
        )
    for number, name, script in known:
        connection.execute("BEGIN IMMEDIATE")
        try:
            done = connection.execute("SELECT 1 FROM migrations WHERE number = ?", (number,))
            if done.fetchone() is None:
                for statement in _statements(script):
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (number, name, now))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
