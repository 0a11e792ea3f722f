"""Verification of every row against the hash chain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from typing import Any, NamedTuple

import msgspec

from server.store.hash_chain import records as chain
from server.store.hash_chain.records import (
    NOBODY,
    Connection,
    Difference,
    Differing,
    Layout,
    Opening,
    RowChange,
    Verified,
)
from server.store.sqlite.connection import any_text
from server.store.sqlite.former_names import current_column, current_table
from server.store.sqlite.tables import CHAIN, SALTS, TABLES, key_of

OUTSIDE = "outside lore-active"
# Reasons of periods that started because of changes by other programs.
_WRONG = {
    chain.MISSING: "the chain was missing and was started again on",
    chain.ALTERED: f"columns of tables were added or removed {OUTSIDE} before",
}
# Up to this many changed rows per table are checked for having been swapped.
MAX_MOVED = 500


class _Expected(NamedTuple):
    """Expected state of a row; no digest if it differed when a period started."""

    record: int
    owner: int
    digest: bytes | None


@dataclass
class _Rows:
    """Rows of a table that differ from the chain, and the current values of the first ones."""

    changed: set[int] = field(default_factory=set)
    added: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)
    values: dict[int, list[Any]] = field(default_factory=dict)


def verify(c: Connection) -> Verified:
    """Verify every covered row and the chain itself; nothing is written."""
    result = Verified()
    tables = {row[0] for row in c.execute("SELECT name FROM main.sqlite_schema")}
    if not tables.issuperset(CHAIN):
        if c.execute("SELECT 1 FROM migrations WHERE name = 'chain'").fetchone():
            result.differences.append(
                Difference("chain", None, "the tables of the chain are missing.")
            )
        return result
    walk = Walk(c, result)
    walk.through()
    for table, rows in walk.compared():
        _name(walk, table, rows)
    return result


def differing(c: Connection) -> Differing:
    """Return the rows that differ from the chain, to be marked in a new period."""
    walk = Walk(c, Verified())
    walk.through()
    compared = list(walk.compared())
    return Differing(
        frozenset((table, row) for table, rows in compared for row in rows.changed | rows.deleted),
        frozenset((table, row) for table, rows in compared for row in rows.added),
    )


def keep_covered(c: Connection, now: int, why: str) -> None:
    """Start a new period if the chain is missing or does not cover the current columns.

    `why` is the reason why the columns may have changed.
    """
    sql = "SELECT note FROM chain WHERE note <> '' ORDER BY id DESC LIMIT 1"
    with _any_text(c):
        row = c.execute(sql).fetchone()
    opening = None if row is None else _opening(row[0])
    if opening is None or chain.head(c) is None:
        chain.begin_period(c, now, chain.MISSING)
    elif opening.layout != chain.layout(c):
        chain.begin_period(c, now, why, differing(c))


def continues(c: Connection, wanted: bytes) -> bool:
    """Return whether the chain contains this hash, such as the last one of an earlier log."""
    return c.execute("SELECT 1 FROM chain WHERE hash = ?", (wanted,)).fetchone() is not None


def _opening(note: str) -> Opening | None:
    """Decode a note; None if it is not valid, since the file may be untrusted."""
    try:
        opening = chain.decode_note(note)
    except msgspec.DecodeError:
        return None
    return opening if set(map(current_table, opening.layout)) <= {*TABLES, SALTS} else None


class Walk:
    """Reads the chain from its first record, and keeps the expected state of every row."""

    def __init__(self, c: Connection, result: Verified) -> None:
        self.c, self.result = c, result
        # With current names; digests cover the names that tables had when they were recorded.
        self.layout: Layout = {}
        self._recorded_as: dict[str, str] = {}
        self.expected: dict[str, dict[int, _Expected]] = {}
        rows = c.execute(f"SELECT participant, salt FROM main.{SALTS}")
        self.salts: dict[int, bytes] = {row[0]: row[1] for row in rows}
        # By participant: up to which record their rows cannot be compared, since the salt is lost.
        self.unsalted: dict[int, float] = {}
        # Changes between two records, with the owner of the salt.
        self.between: list[tuple[int, str, int, str]] = []
        self.broken = False
        self.altered = 0

    def differs(self, table: str, row: int | None, what: str) -> None:
        """Record a difference."""
        self.result.differences.append(Difference(table, row, what))

    def row_differs(self, table: str, row: int, what: str) -> None:
        """Record a row that differs; missing records may have explained it."""
        hedge = (
            " Alternatively, missing or changed records may explain this." if self.broken else ""
        )
        self.differs(table, row, f"{table} row {row} {what}{hedge}")

    def when(self, number: int) -> str:
        """Describe a record by its day."""
        row = self.c.execute("SELECT day FROM chain WHERE id = ?", (number,)).fetchone()
        return f"{_day(row)} (chain record {number})"

    def through(self) -> None:
        """Verify each record's hash, and apply its changes."""
        number, hashed = 0, b""
        with _any_text(self.c):
            rows = self.c.execute("SELECT id, day, note, entries, hash FROM chain ORDER BY id")
            for now, day, note, packed, given in rows:
                self.result.records += 1
                if now != number + 1:
                    self._missing(number + 1, now - 1)
                elif chain.linked(hashed, now, day, note, packed) != given:
                    self._altered(now)
                number, hashed = now, given
                if note:
                    self._open(now, note)
                self._take_in(now, packed)
        self._end(number, hashed)
        for owner, known in self.expected.get(SALTS, {}).items():
            if not self.holds(SALTS, [self.salts.get(owner)], known):
                self.unsalted[owner] = inf
        for owner, table, row, what in self.between:
            if self.unsalted.get(owner) != inf:
                self.row_differs(table, row, what)

    def _missing(self, first: int, last: int) -> None:
        self.broken = True
        which = f"record {first} is" if first == last else f"records {first} to {last} are"
        self.differs("chain", first, f"chain {which} missing.")

    def _altered(self, number: int) -> None:
        self.broken = True
        if number != self.altered:
            self.altered = number
            what = f"chain record {number}, or the one before it, was changed."
            self.differs("chain", number, what)

    def _open(self, number: int, note: str) -> None:
        opening = _opening(note)
        if opening is None:
            self._altered(number)
            return
        if opening.why in _WRONG:
            self.differs("chain", number, f"{_WRONG[opening.why]} {self.when(number)}.")
        if self.result.covered_from is None:
            self.result.covered_from, self.result.rows_before = opening.at, opening.rows
        self.result.periods.append(opening.why)
        self._recorded_as = {current_table(name): name for name in opening.layout}
        self.layout = {
            table: [current_column(table, column) for column in opening.layout[name]]
            for table, name in self._recorded_as.items()
        }
        self.expected = {table: {} for table in self.layout}

    def _take_in(self, number: int, packed: bytes) -> None:
        tables = list(self.layout)
        if not tables:
            return  # The record with the layout is missing, which was reported.
        try:
            for entry in chain.decode_entries(packed):
                self._row(tables[entry.table], entry, number)
        except (msgspec.DecodeError, IndexError):
            self._altered(number)

    def _row(self, table: str, entry: RowChange, number: int) -> None:
        """Apply the change of one row, which must start from the recorded state."""
        rows = self.expected[table]
        known = rows.get(entry.row)
        if entry.before is None and entry.after is None:
            what = f"was changed or deleted {OUTSIDE} before {self.when(number)}."
            self.row_differs(table, entry.row, what)
        elif known is None:
            if entry.before is not None:
                self.row_differs(
                    table, entry.row, f"was added {OUTSIDE} before {self.when(number)}."
                )
        elif known.digest != entry.before and self.comparable(table, known):
            what = "deleted" if entry.before is None else "changed"
            when = f"after {self.when(known.record)} and before {self.when(number)}"
            what = f"was {what} {OUTSIDE} {when}."
            self.between.append((known.owner, table, entry.row, what))
            if table == SALTS:
                self.unsalted[entry.row] = number
        if entry.after is None and entry.before is not None:
            rows.pop(entry.row, None)
        else:
            rows[entry.row] = _Expected(number, entry.owner, entry.after)

    def _end(self, number: int, hashed: bytes) -> None:
        head = chain.head(self.c)
        if head is None:
            self.broken = True
            what = "chain_head: the row that records the end of the chain is missing."
            self.differs("chain_head", None, what)
            return
        self.result.last_hash = head.hash.hex()
        if head.last > number:
            self._missing(number + 1, head.last)
        elif head.last < number:
            self.broken = True
            what = f"chain_head says that the chain ends with record {head.last}, not {number}."
            self.differs("chain_head", 1, what)
        elif head.hash != hashed:
            self.broken = True
            what = f"chain_head has another hash than chain record {number}."
            self.differs("chain_head", 1, what)

    def compared(self) -> Iterator[tuple[str, _Rows]]:
        """Yield the rows of each table that differ from the chain."""
        present = chain.layout(self.c)
        for table, columns in self.layout.items():
            lost = [name for name in columns if name not in present[table]]
            if lost:
                self.differs(table, None, f"{table} no longer has its column {lost[0]!r}.")
                continue
            yield table, self._compared(table)

    def _compared(self, table: str) -> _Rows:
        rows, expected = _Rows(), self.expected[table]
        rows.deleted = {row for row, known in expected.items() if known.digest is not None}
        columns = chain.quoted([key_of(table), *self.layout[table]])
        with _any_text(self.c):
            sql = f"SELECT {columns} FROM main.{table}"
            for row, *values in chain.tuples(self.c).execute(sql):
                known = expected.get(row)
                rows.deleted.discard(row)
                if known is not None and not self.comparable(table, known):
                    continue
                if known is not None and self.holds(table, values, known):
                    self.result.rows += table != SALTS
                    continue
                (rows.added if known is None else rows.changed).add(row)
                if len(rows.values) < MAX_MOVED:
                    rows.values[row] = values
        return rows

    def comparable(self, table: str, known: _Expected) -> bool:
        """Return whether there is a digest, and its salt, to compare a row with."""
        salted = table == SALTS or known.record >= self.unsalted.get(known.owner, 0)
        return salted and known.digest is not None

    def holds(self, table: str, values: list[Any], known: _Expected) -> bool:
        """Return whether a row's values match the chain."""
        salt = b"" if table == SALTS else self.salts.get(known.owner, b"")
        return chain.digest(salt, self._recorded_as.get(table, table), values) == known.digest


def _name(walk: Walk, table: str, rows: _Rows) -> None:
    """Describe what happened to each row."""
    expected, described = walk.expected[table], set[int]()
    gone = sorted(rows.changed | rows.deleted)[:MAX_MOVED]
    # By row: the row whose recorded values it has now.
    taken = {
        row: other
        for row, values in rows.values.items()
        for other in gone
        if other != row and walk.holds(table, values, expected[other])
    }
    for row in sorted(rows.changed | rows.added):
        if row in described:
            continue
        other = taken.get(row)
        since = f" after {walk.when(expected[row].record)}" if row in rows.changed else ""
        if other is None:
            what = f"was {'changed' if row in rows.changed else 'added'} {OUTSIDE}{since}."
        elif row in rows.added and other in rows.deleted:
            what = f"was row {other}, and was renumbered {OUTSIDE}."
            described.add(other)
        elif row in rows.changed and taken.get(other) == row:
            what = f"and row {other} were swapped {OUTSIDE}{since}."
            described.add(other)
        else:
            what = f"has the values of row {other}; it was changed {OUTSIDE}{since}."
        walk.row_differs(table, row, what + _consequence(table, row))
    for row in sorted(rows.deleted - described):
        what = f"was deleted {OUTSIDE} after {walk.when(expected[row].record)}."
        walk.row_differs(table, row, what + _consequence(table, row))


def _consequence(table: str, row: int) -> str:
    whose = "about no participant" if row == NOBODY else f"about participant {row}"
    return f" Rows {whose} cannot be compared." if table == SALTS else ""


def _day(row: tuple[int] | None) -> str:
    try:
        return str(datetime.fromtimestamp(row[0] / 1000, UTC).date()) if row else "?"
    except (ValueError, OverflowError, OSError):
        return "?"


@contextmanager
def _any_text(c: Connection) -> Iterator[None]:
    """Decode invalid UTF-8, which can only come from outside: it must be reported, not fail."""
    before = c.text_factory
    c.text_factory = any_text
    try:
        yield
    finally:
        c.text_factory = before
