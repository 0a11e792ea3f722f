"""Whether every row is as the hash chain last recorded it, and which are not."""

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
from server.store.tables import CHAIN, SALTS, TABLES, key_of

OUTSIDE = "outside lore-active"
# Periods that only began because somebody else had changed something.
_WRONG = {
    chain.MISSING: "the chain was missing, and was begun again on",
    chain.ALTERED: f"columns of tables were added or removed {OUTSIDE} before",
}
# Of so many changed rows of a table it is said whether they only changed places.
MAX_MOVED = 500


class _Expected(NamedTuple):
    """What a row should be; without digest it was not as recorded when a period began."""

    record: int
    owner: int
    digest: bytes | None


@dataclass
class _Rows:
    """A table's rows that are not as recorded; what the first of them hold now."""

    changed: set[int] = field(default_factory=set)
    added: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)
    values: dict[int, list[Any]] = field(default_factory=dict)


def verify(c: Connection) -> Verified:
    """Compare every covered row with the chain, and the chain with itself; nothing is written."""
    found = Verified()
    there = {row[0] for row in c.execute("SELECT name FROM main.sqlite_schema")}
    if not there.issuperset(CHAIN):
        if c.execute("SELECT 1 FROM migrations WHERE name = 'chain'").fetchone():
            found.differences.append(Difference("chain", None, "the tables of the chain are gone."))
        return found
    walk = Walk(c, found)
    walk.through()
    for table, rows in walk.compared():
        _name(walk, table, rows)
    return found


def differing(c: Connection) -> Differing:
    """The rows that are not as recorded, for a new period to remember."""
    walk = Walk(c, Verified())
    walk.through()
    found = list(walk.compared())
    return Differing(
        frozenset((table, row) for table, rows in found for row in rows.changed | rows.deleted),
        frozenset((table, row) for table, rows in found for row in rows.added),
    )


def keep_covered(c: Connection, now: int, why: str) -> None:
    """Before anything is written: the chain must be there, and cover the columns there are.

    `why` says how it comes that these may be others than before.
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
    """Whether the chain once ended with this hash, as a log exported then says."""
    return c.execute("SELECT 1 FROM chain WHERE hash = ?", (wanted,)).fetchone() is not None


def _opening(note: str) -> Opening | None:
    """A note, if it is one: the file may come from somebody else."""
    try:
        opening = chain.decode_note(note)
    except msgspec.DecodeError:
        return None
    return opening if set(opening.layout) <= {*TABLES, SALTS} else None


class Walk:
    """Goes through the chain from its first record, and holds what rows should be at its end."""

    def __init__(self, c: Connection, found: Verified) -> None:
        self.c, self.found = c, found
        self.layout: Layout = {}
        self.expected: dict[str, dict[int, _Expected]] = {}
        rows = c.execute(f"SELECT participant, salt FROM main.{SALTS}")
        self.salts: dict[int, bytes] = {row[0]: row[1] for row in rows}
        # By participant: up to which record their rows cannot be compared, for want of the salt.
        self.unsalted: dict[int, float] = {}
        # Changes between two records, with whose salt they were recorded.
        self.between: list[tuple[int, str, int, str]] = []
        self.broken = False
        self.altered = 0

    def differs(self, table: str, row: int | None, what: str) -> None:
        """Take note of what is not as recorded, in a sentence."""
        self.found.differences.append(Difference(table, row, what))

    def accuse(self, table: str, row: int, what: str) -> None:
        """A row is not as recorded; where records are gone, they may have said why."""
        hedge = " Or the records that are missing or changed say why." if self.broken else ""
        self.differs(table, row, f"{table} row {row} {what}{hedge}")

    def when(self, number: int) -> str:
        """A record, with its day."""
        row = self.c.execute("SELECT day FROM chain WHERE id = ?", (number,)).fetchone()
        return f"{_day(row)} (chain record {number})"

    def through(self) -> None:
        """Check each record's link, and take in what it says."""
        number, hashed = 0, b""
        with _any_text(self.c):
            rows = self.c.execute("SELECT id, day, note, entries, hash FROM chain ORDER BY id")
            for now, day, note, packed, given in rows:
                self.found.records += 1
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
                self.accuse(table, row, what)

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
        if self.found.covered_from is None:
            self.found.covered_from, self.found.rows_before = opening.at, opening.rows
        self.found.periods.append(opening.why)
        self.layout = opening.layout
        self.expected = {table: {} for table in self.layout}

    def _take_in(self, number: int, packed: bytes) -> None:
        tables = list(self.layout)
        if not tables:
            return  # The record that says what entries are about is gone, and was named.
        try:
            for entry in chain.decode_entries(packed):
                self._row(tables[entry.table], entry, number)
        except (msgspec.DecodeError, IndexError):
            self._altered(number)

    def _row(self, table: str, entry: RowChange, number: int) -> None:
        """One row's change: it must begin with what was recorded before."""
        rows = self.expected[table]
        known = rows.get(entry.row)
        if entry.before is None and entry.after is None:
            what = f"was changed or deleted {OUTSIDE} before {self.when(number)}."
            self.accuse(table, entry.row, what)
        elif known is None:
            if entry.before is not None:
                self.accuse(table, entry.row, f"was added {OUTSIDE} before {self.when(number)}.")
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
            what = "chain_head: the row that says where the chain ends is gone."
            self.differs("chain_head", None, what)
            return
        self.found.last_hash = head.hash.hex()
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
        """Each table's rows that are not as the chain last recorded them."""
        present = chain.layout(self.c)
        for table, columns in self.layout.items():
            lost = [name for name in columns if name not in present[table]]
            if lost:
                self.differs(table, None, f"{table} no longer has its column {lost[0]!r}.")
                continue
            yield table, self._compared(table)

    def _compared(self, table: str) -> _Rows:
        found, expected = _Rows(), self.expected[table]
        found.deleted = {row for row, known in expected.items() if known.digest is not None}
        columns = chain.quoted([key_of(table), *self.layout[table]])
        with _any_text(self.c):
            sql = f"SELECT {columns} FROM main.{table}"
            for row, *values in chain.tuples(self.c).execute(sql):
                known = expected.get(row)
                found.deleted.discard(row)
                if known is not None and not self.comparable(table, known):
                    continue
                if known is not None and self.holds(table, values, known):
                    self.found.rows += table != SALTS
                    continue
                (found.added if known is None else found.changed).add(row)
                if len(found.values) < MAX_MOVED:
                    found.values[row] = values
        return found

    def comparable(self, table: str, known: _Expected) -> bool:
        """Whether there is something to compare a row with."""
        salted = table == SALTS or known.record >= self.unsalted.get(known.owner, 0)
        return salted and known.digest is not None

    def holds(self, table: str, values: list[Any], known: _Expected) -> bool:
        """Whether a row's values are those that were recorded."""
        salt = b"" if table == SALTS else self.salts.get(known.owner, b"")
        return chain.digest(salt, table, values) == known.digest


def _name(walk: Walk, table: str, rows: _Rows) -> None:
    """Say of each row what happened to it."""
    expected, told = walk.expected[table], set[int]()
    gone = sorted(rows.changed | rows.deleted)[:MAX_MOVED]
    # Whose place has it taken? By row: the one whose recorded values it holds now.
    taken = {
        row: other
        for row, values in rows.values.items()
        for other in gone
        if other != row and walk.holds(table, values, expected[other])
    }
    for row in sorted(rows.changed | rows.added):
        if row in told:
            continue
        other = taken.get(row)
        since = f" after {walk.when(expected[row].record)}" if row in rows.changed else ""
        if other is None:
            what = f"was {'changed' if row in rows.changed else 'added'} {OUTSIDE}{since}."
        elif row in rows.added and other in rows.deleted:
            what = f"was row {other}, and was renumbered {OUTSIDE}."
            told.add(other)
        elif row in rows.changed and taken.get(other) == row:
            what = f"and row {other} changed places {OUTSIDE}{since}."
            told.add(other)
        else:
            what = f"holds what was in row {other}; it was changed {OUTSIDE}{since}."
        walk.accuse(table, row, what + _consequence(table, row))
    for row in sorted(rows.deleted - told):
        what = f"was deleted {OUTSIDE} after {walk.when(expected[row].record)}."
        walk.accuse(table, row, what + _consequence(table, row))


def _consequence(table: str, row: int) -> str:
    whose = "about nobody" if row == NOBODY else f"about participant {row}"
    return f" Rows {whose} cannot be compared." if table == SALTS else ""


def _day(row: tuple[int] | None) -> str:
    try:
        return str(datetime.fromtimestamp(row[0] / 1000, UTC).date()) if row else "?"
    except (ValueError, OverflowError, OSError):
        return "?"


@contextmanager
def _any_text(c: Connection) -> Iterator[None]:
    """Texts that are no UTF-8 can only come from outside: they must be named, not end it all."""
    before = c.text_factory
    c.text_factory = any_text
    try:
        yield
    finally:
        c.text_factory = before
