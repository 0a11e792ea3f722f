"""A study's rows put together again, from its damaged file and from its copies."""

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
from server.store.tables import CHAIN, SECRET, TABLES

# Rows of these never change once they are there.
ADDED = ("answers", "prior_answers", "events", "steps", "models", "decisions", "chain")
# In an order in which rows can be put: what others refer to, or are checked by, comes first.
ORDER = (*CHAIN, *TABLES, "snapshot", "links")
# Made again by whoever needs them: experimenters sign in again, the worker says that it lives.
REMADE = ("sessions", "attempts", "heartbeat", "migrations")
# A number this far beyond all others was not given by counting: its bytes were changed.
MAX_GAP = 100_000
Row = dict[str, Any]
Heads = tuple[int, int, int]


@dataclass(frozen=True)
class Layout:
    """What the rows of each table look like: for pages, and for statements."""

    shapes: Shapes
    names: dict[str, list[str]]
    keys: dict[str, str | None]

    @classmethod
    def of(cls, c: Connection) -> Layout:
        """The layout of a database of this version."""
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
    """A copy that SQLite finds nothing wrong with."""

    name: str
    path: Path
    damage: str = ""
    lost: str = ""

    def rows(self, table: str) -> Iterator[tuple[int, Row]]:
        """(number, columns) of a table's rows, in order."""
        with closing(self._reader()) as connection:
            for row in connection.execute(f"SELECT rowid AS _row, * FROM {table} ORDER BY rowid"):
                held = dict(row)
                yield held.pop("_row"), held

    def heads(self) -> Heads:
        """The highest answer, event and question."""
        with closing(self._reader()) as connection:
            return heads(connection)

    def _reader(self) -> Connection:
        connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        return connection


class Broken:
    """A damaged file with its log: the rows of every page that is whole."""

    def __init__(self, name: str, path: Path, damage: str, layout: Layout) -> None:
        self.name, self.damage, self._layout = name, damage, layout
        log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
        read = read_log(_content(log), _content(index))
        self.lost = f"{log.name}: {read.lost}" if read.lost else ""
        self._image = Image(_content(path), read)
        places = self._image.places(layout.shapes)
        self._places = {table: _plausible(found) for table, found in places.items()}

    def rows(self, table: str) -> Iterator[tuple[int, Row]]:
        """(number, columns) of a table's rows, in order, as far as they can be read."""
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
        """The highest answer, event and question."""
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
    """The highest answer, event and question."""
    row = c.execute(
        "SELECT (SELECT coalesce(max(seq), 0) FROM answers), "
        "(SELECT coalesce(max(id), 0) FROM events), (SELECT coalesce(max(id), 0) FROM queries)"
    ).fetchone()
    return row[0], row[1], row[2]


class Recorded:
    """What rows should be, by the hash chain.

    `whole`: no record is missing or changed, so that there is no row that the chain does not know.
    """

    def __init__(self, c: Connection) -> None:
        self._walk = Walk(c, Verified())
        self._walk.through()
        self.whole = bool(self._walk.layout) and not self._walk.broken

    def agrees(self, table: str, number: int, row: Row) -> bool | None:
        """Whether a row is as recorded; None if there is nothing that it can be compared with."""
        known = self._walk.expected.get(table, {}).get(number)
        columns = self._walk.layout.get(table, [])
        if known is None or not self._walk.comparable(table, known):
            return None
        if not row.keys() >= {*columns}:
            return None
        return self._walk.holds(table, [row[name] for name in columns], known)

    def accepts(self, table: str, number: int, row: Row) -> bool:
        """Whether a row from a damaged page may be used."""
        agrees = self.agrees(table, number, row)
        if agrees is None:
            # Nobody can tell, unless all that there ever was is known.
            return not self.whole or table not in TABLES or self.knows(table, number)
        # With records missing, a row that changes may have done so in one of those.
        return agrees or (not self.whole and table not in ADDED)

    def knows(self, table: str, number: int) -> bool:
        """Whether something is recorded of such a row."""
        return number in self._walk.expected.get(table, {})

    def rows(self) -> Iterator[Key]:
        """All that should be there."""
        for table, rows in self._walk.expected.items():
            yield from ((table, row) for row, known in rows.items() if known.digest is not None)


# ---- putting together ---------------------------------------------------------------------------


@dataclass
class Merged:
    """What one source brought.

    `unusable` are rows that could be read, but not used: they are not as recorded, what they refer
    to is lost, or they contradict others. `nameless` are participants of whom only questions and
    answers are left.
    """

    added: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    unconfirmed: int = 0
    unusable: dict[str, list[int]] = field(default_factory=dict)
    nameless: list[int] = field(default_factory=list)


def parted_at(c: Connection, source: Source) -> int | None:
    """From which answer on the source has others under the same numbers; None if it has not.

    Then somebody went on with an older copy, and both have a history of their own.
    """
    first, others = None, 0
    for number, row in source.rows("answers"):
        held = c.execute(
            "SELECT query, side, received_at FROM answers WHERE seq = ?", (number,)
        ).fetchone()
        if held is None:
            continue
        if tuple(held) == (row["query"], row["side"], row["received_at"]):
            first, others = None, 0
        else:
            first, others = first or number, others + 1
    # A page that was damaged may well hold one or two that were changed.
    return first if others > (2 if source.damage else 0) else None


def merge(c: Connection, source: Source) -> Merged:
    """Put what the source has, and the database lacks, or has in an older state."""
    found, newer = Merged(), source.heads() >= heads(c)
    for table in CHAIN:
        _put_all(c, source, table, newer, None, found)
    recorded = Recorded(c) if source.damage else None
    for table in ORDER:
        if table not in CHAIN:
            _put_all(c, source, table, newer, recorded, found)
    return found


def _put_all(
    c: Connection,
    source: Source,
    table: str,
    newer: bool,
    recorded: Recorded | None,
    found: Merged,
) -> None:
    for number, row in source.rows(table):
        held = c.execute(f"SELECT * FROM {table} WHERE rowid = ?", (number,)).fetchone()
        if held is not None:
            same = all(held[name] == value for name, value in row.items())
            if same or not newer or table in ADDED:
                continue
            if recorded is not None and (secret := SECRET.get(table)) and held[secret]:
                # The chain does not cover it, and it stays the same from when it is given.
                row[secret] = held[secret]
        try:
            if recorded is not None and not recorded.accepts(table, number, row):
                raise sqlite3.IntegrityError
            _put(c, table, number, row, held is None, found)
        except sqlite3.IntegrityError:
            found.unusable.setdefault(table, []).append(number)
        else:
            if recorded is not None and not recorded.agrees(table, number, row):
                found.unconfirmed += 1


def _put(c: Connection, table: str, number: int, row: Row, new: bool, found: Merged) -> None:
    if not new:
        assignments = ", ".join(f'"{name}" = ?' for name in row)
        values = [*row.values(), number]
        c.execute(f"UPDATE {table} SET {assignments} WHERE rowid = ?", values)
        found.changed[table] += 1
        return
    if table in ("queries", "events") and row.get("participant") is not None:
        _known_participant(c, row["participant"], found)
    if row.get("repeats") is not None and not _has(c, "queries", row["repeats"]):
        row = {**row, "repeats": None}
    names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" for _ in row)
    c.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))
    found.added[table] += 1


def _has(c: Connection, table: str, number: int) -> bool:
    found = c.execute(f"SELECT 1 FROM {table} WHERE rowid = ?", (number,)).fetchone()
    return found is not None


def _known_participant(c: Connection, number: int, found: Merged) -> None:
    """Answers are kept even where who gave them is lost: they are then nobody's in particular."""
    if not _has(c, "participants", number):
        c.execute(
            "INSERT INTO participants "
            "(id, token, entry, agent, stage, trials, arrived_at, seen_at, simulated) "
            # Where all that is known of is simulated, so is this.
            "VALUES (?, ?, '{}', '', 'expired', 0, 0, 0, "
            "(SELECT coalesce(min(simulated), 0) FROM participants))",
            (number, secrets.token_urlsafe(18)),
        )
        found.nameless.append(number)
