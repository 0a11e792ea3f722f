"""Combining a study's rows from its damaged file and its copies."""

from __future__ import annotations

import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from server.store.hash_chain.records import Key, Verified
from server.store.hash_chain.verification import Walk
from server.store.recovery.pages import Column, Image, RowPlace, Shapes
from server.store.recovery.write_ahead import read_log
from server.store.sqlite.connection import Connection
from server.store.sqlite.former_names import complete_row
from server.store.sqlite.tables import CHAIN, SECRET, TABLES

# Tables whose rows never change.
ADDED = ("answers", "imported_answers", "events", "steps", "models", "decisions", "chain")
# In an order in which rows can be inserted: those that others depend on come first.
ORDER = (*CHAIN, *TABLES, "snapshot", "links")
# Not recovered: experimenters sign in again, the worker writes a new heartbeat.
REMADE = ("sessions", "attempts", "heartbeat", "migrations")
# A number this far beyond all others must be damaged.
MAX_GAP = 100_000
Row = dict[str, Any]
Heads = tuple[int, int, int]


@dataclass(frozen=True)
class Layout:
    """Columns of each table, for reading pages and for SQL."""

    shapes: Shapes
    names: dict[str, list[str]]
    keys: dict[str, str | None]

    @classmethod
    def of(cls, c: Connection) -> Layout:
        """Read the layout of a database of the current version."""
        shapes: dict[str, tuple[Column, ...]] = {}
        names: dict[str, list[str]] = {}
        keys: dict[str, str | None] = {}
        for table in (*ORDER, *REMADE):
            columns = c.execute(f"PRAGMA table_info({table})").fetchall()
            key = next((row[1] for row in columns if row[5] and row[2] == "INTEGER"), None)
            names[table], keys[table] = [row[1] for row in columns], key
            shapes[table] = tuple(
                Column(row[2], bool(row[3]) and row[4] is None, row[1] == key) for row in columns
            )
        return cls(shapes, names, keys)


@dataclass(frozen=True)
class Valid:
    """A copy that SQLite finds valid."""

    name: str
    path: Path
    damage: str = ""
    lost: str = ""

    def rows(self, table: str) -> Iterator[tuple[int, Row]]:
        """Yield (number, columns) of a table's rows, in order."""
        with closing(self._reader()) as connection:
            for row in connection.execute(f"SELECT rowid AS _row, * FROM {table} ORDER BY rowid"):
                held = dict(row)
                yield held.pop("_row"), held

    def heads(self) -> Heads:
        """Return the highest answer, event and question."""
        with closing(self._reader()) as connection:
            return heads(connection)

    def _reader(self) -> Connection:
        connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        return connection


class Broken:
    """A damaged file with its log: the rows of every intact page."""

    def __init__(self, name: str, path: Path, damage: str, layout: Layout) -> None:
        self.name, self.damage, self._layout = name, damage, layout
        log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
        read = read_log(_content(log), _content(index))
        self.lost = f"{log.name}: {read.lost}" if read.lost else ""
        self._image = Image(_content(path), read)
        places = self._image.places(layout.shapes)
        self._places = {table: _plausible(positions) for table, positions in places.items()}

    def rows(self, table: str) -> Iterator[tuple[int, Row]]:
        """Yield (number, columns) of a table's readable rows, in order."""
        names, key = self._layout.names[table], self._layout.keys[table]
        kinds = [column.kind for column in self._layout.shapes[table]]
        for number, place in sorted(self._places[table].items()):
            values = self._image.values(place)
            row = {
                name: float(value) if kind == "REAL" and isinstance(value, int) else value
                for name, kind, value in zip(names, kinds, values, strict=False)
            }
            if key is not None:
                row[key] = number
            yield number, row

    def heads(self) -> Heads:
        """Return the highest answer, event and question."""
        first, second, third = (
            max(self._places[table], default=0) for table in ("answers", "events", "queries")
        )
        return first, second, third


Source = Valid | Broken


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _plausible(places: dict[int, RowPlace]) -> dict[int, RowPlace]:
    kept, last = {}, 0
    for number in sorted(places):
        if 0 <= number <= last + MAX_GAP:
            kept[number], last = places[number], number
    return kept


def heads(c: Connection) -> Heads:
    """Return the highest answer, event and question."""
    row = c.execute(
        "SELECT (SELECT coalesce(max(seq), 0) FROM answers), "
        "(SELECT coalesce(max(id), 0) FROM events), (SELECT coalesce(max(id), 0) FROM queries)"
    ).fetchone()
    return row[0], row[1], row[2]


class Recorded:
    """Expected rows according to the hash chain.

    `whole`: no record is missing or changed, so that the chain knows every row.
    """

    def __init__(self, c: Connection) -> None:
        self._walk = Walk(c, Verified())
        self._walk.through()
        self.whole = bool(self._walk.layout) and not self._walk.broken

    def agrees(self, table: str, number: int, row: Row) -> bool | None:
        """Return whether a row matches the chain; None if it cannot be compared."""
        known = self._walk.expected.get(table, {}).get(number)
        columns = self._walk.layout.get(table, [])
        if known is None or not self._walk.comparable(table, known):
            return None
        if not row.keys() >= {*columns}:
            return None
        return self._walk.holds(table, [row[name] for name in columns], known)

    def accepts(self, table: str, number: int, row: Row) -> bool:
        """Return whether a row from a damaged page may be used."""
        agrees = self.agrees(table, number, row)
        if agrees is None:
            # Unknown, unless the chain is complete.
            return not self.whole or table not in TABLES or self.knows(table, number)
        # With records missing, one of them may have changed the row.
        return agrees or (not self.whole and table not in ADDED)

    def knows(self, table: str, number: int) -> bool:
        """Return whether the chain has this row."""
        return number in self._walk.expected.get(table, {})

    def rows(self) -> Iterator[Key]:
        """Yield all rows that should exist."""
        for table, rows in self._walk.expected.items():
            yield from ((table, row) for row, known in rows.items() if known.digest is not None)


# ---- combining ----------------------------------------------------------------------------------


@dataclass
class Merged:
    """What one source contributed.

    `unusable` rows could be read but not used: they differ from the chain, refer to lost rows, or
    contradict others. `identity_lost` are participants of whom only questions and answers remain.
    """

    added: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    unconfirmed: int = 0
    unusable: dict[str, list[int]] = field(default_factory=dict)
    identity_lost: list[int] = field(default_factory=list)


def parted_at(c: Connection, source: Source) -> int | None:
    """Return from which answer on the source has different ones; None if it has none.

    Then collection was continued from an older copy, and the histories diverge.
    """
    first, others = None, 0
    for number, row in source.rows("answers"):
        existing = c.execute(
            "SELECT query, outcome, chosen, side, received_at FROM answers WHERE seq = ?", (number,)
        ).fetchone()
        if existing is None:
            continue
        if all(row.get(name) in (None, value) for name, value in dict(existing).items()):
            first, others = None, 0
        else:
            first, others = first or number, others + 1
    # A damaged page may contain one or two changed answers.
    return first if others > (2 if source.damage else 0) else None


def merge(c: Connection, source: Source) -> Merged:
    """Add rows of the source that the database lacks or has in an older state."""
    result, newer = Merged(), source.heads() >= heads(c)
    for table in CHAIN:
        _put_all(c, source, table, newer, None, result)
    recorded = Recorded(c) if source.damage else None
    for table in ORDER:
        if table not in CHAIN:
            _put_all(c, source, table, newer, recorded, result)
    return result


def _put_all(
    c: Connection,
    source: Source,
    table: str,
    newer: bool,
    recorded: Recorded | None,
    result: Merged,
) -> None:
    for number, row in source.rows(table):
        existing = c.execute(f"SELECT * FROM {table} WHERE rowid = ?", (number,)).fetchone()
        if existing is not None:
            same = all(existing[name] == value for name, value in row.items())
            if same or not newer or table in ADDED:
                continue
            if recorded is not None and (secret := SECRET.get(table)) and existing[secret]:
                # Not covered by the chain, and never changed once it is set.
                row[secret] = existing[secret]
        try:
            if recorded is not None and not recorded.accepts(table, number, row):
                raise sqlite3.IntegrityError
            _put(c, table, number, row, existing is None, result)
        except sqlite3.IntegrityError:
            result.unusable.setdefault(table, []).append(number)
        else:
            if recorded is not None and not recorded.agrees(table, number, row):
                result.unconfirmed += 1


def _put(c: Connection, table: str, number: int, row: Row, new: bool, result: Merged) -> None:
    if not new:
        assignments = ", ".join(f'"{name}" = ?' for name in row)
        values = [*row.values(), number]
        c.execute(f"UPDATE {table} SET {assignments} WHERE rowid = ?", values)
        result.changed[table] += 1
        return
    if table in ("queries", "events") and row.get("participant") is not None:
        _known_participant(c, row["participant"], result)
    if row.get("repeats") is not None and not _has(c, "queries", row["repeats"]):
        row = {**row, "repeats": None}
    try:
        row = complete_row(c, table, row)
    except TypeError as error:
        raise sqlite3.IntegrityError(str(error)) from error
    names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" for _ in row)
    c.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))
    result.added[table] += 1


def _has(c: Connection, table: str, number: int) -> bool:
    row = c.execute(f"SELECT 1 FROM {table} WHERE rowid = ?", (number,)).fetchone()
    return row is not None


def _known_participant(c: Connection, number: int, result: Merged) -> None:
    """Add a placeholder for a lost participant, so that their answers are kept."""
    if not _has(c, "participants", number):
        c.execute(
            "INSERT INTO participants "
            "(id, token, entry, agent, stage, trials, arrived_at, seen_at, simulated) "
            # Simulated if all known participants are.
            "VALUES (?, ?, '{}', '', 'expired', 0, 0, 0, "
            "(SELECT coalesce(min(simulated), 0) FROM participants))",
            (number, secrets.token_urlsafe(18)),
        )
        result.identity_lost.append(number)
