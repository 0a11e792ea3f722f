"""The hash chain over a study's rows: every commit records its changes, linked to the last record.

Each row is recorded by salted digests of its values before and after the commit. Editing the file
by other means breaks that sequence, and `verification` names the row. Rows about a participant use
a salt of their own. It is erased with the participant, so that digests of erased data cannot be
compared with guesses.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from server.store.sqlite.tables import SALTS, SECRET, TABLES, key_of

Connection = sqlite3.Connection
Layout = dict[str, list[str]]
Key = tuple[str, int]

HASH_BYTES = 16
SALT_BYTES = 32
DAY_MS = 86_400_000
# The first records of a period are split: a single one of a large study would need too much memory.
MAX_ENTRIES = 20_000
NOBODY = 0

# Why a period started: all rows were recorded as they were then.
NEW = "new"
UPGRADE = "upgrade"
SCHEMA = "schema"
LOG = "log"
PSEUDONYMS = "pseudonyms"
MISSING = "missing"
ALTERED = "altered"
RECOVERY = "recovery"


class RowChange(msgspec.Struct, frozen=True, array_like=True):
    """Change of one row: the index of its table in the layout, its number, its digests.

    `after` uses the salt of `owner`. Without `before` the row is new, without `after` it was
    deleted. Without both it differed from the chain when a new period started.
    """

    table: int
    row: int
    owner: int
    before: bytes | None
    after: bytes | None


class Opening(msgspec.Struct, frozen=True):
    """Note of the first record of a period: time, reason, number of rows, and their columns."""

    at: int
    why: str
    rows: int
    layout: Layout


@dataclass(frozen=True)
class ChainHead:
    """The last record, which the next one continues."""

    last: int
    hash: bytes


@dataclass(frozen=True)
class Differing:
    """Rows that differ from the chain: changed or deleted ones, and ones never recorded."""

    changed: frozenset[Key] = frozenset()
    added: frozenset[Key] = frozenset()


@dataclass(frozen=True)
class Difference:
    """A difference from the chain: table, row (None if not a single one), and description."""

    table: str
    row: int | None
    what: str


@dataclass
class Verified:
    """Result of a verification.

    `rows` match the chain; for those older than `covered_from` (`rows_before`), their state at that
    time. `periods` says why each period started. Without `covered_from` there is no chain.
    """

    rows: int = 0
    records: int = 0
    covered_from: int | None = None
    rows_before: int = 0
    periods: list[str] = field(default_factory=list)
    last_hash: str = ""
    differences: list[Difference] = field(default_factory=list)


_encode = msgspec.msgpack.encode
_entries = msgspec.msgpack.Decoder(list[RowChange])
_opening = msgspec.json.Decoder(Opening)


def decode_entries(packed: bytes) -> list[RowChange]:
    """Decode a record's entries; raise msgspec.DecodeError if they are not readable."""
    return _entries.decode(packed)


def decode_note(note: str) -> Opening:
    """Decode the note of a period's first record; raise msgspec.DecodeError if not readable."""
    return _opening.decode(note)


def digest(salt: bytes, table: str, values: Iterable[Any]) -> bytes:
    """Return the salted digest of a row."""
    return hashlib.sha256(salt + table.encode() + _encode(values)).digest()[:HASH_BYTES]


def linked(before: bytes, number: int, day: int, note: str, packed: bytes) -> bytes:
    """Return the hash of a record that follows one with the hash `before`."""
    return hashlib.sha256(_encode((before, number, day, note, packed))).digest()[:HASH_BYTES]


def layout(c: Connection) -> Layout:
    """Return the columns that digests cover: all but a row's number and secrets.

    The number is recorded with the digest, so that two rows that were swapped are recognised.
    """
    return {
        table: [
            row[1]
            for row in c.execute(f"PRAGMA main.table_info({table})")
            if row[1] not in (key_of(table), SECRET.get(table))
        ]
        for table in (*TABLES, SALTS)
    }


def head(c: Connection) -> ChainHead | None:
    """Return the stored end of the chain; None if it is missing."""
    row = tuples(c).execute("SELECT last, hash FROM main.chain_head").fetchone()
    return None if row is None else ChainHead(*row)


def quoted(names: Iterable[str], prefix: str = "") -> str:
    """Quote column names for SQL, since a layout may come from an untrusted file."""
    return ", ".join(prefix + '"' + name.replace('"', '""') + '"' for name in names)


def owner_sql(table: str, row: str, column: str) -> str:
    """Return SQL for the owner of a row's salt; `column` (ABOUT) refers to them."""
    if table == "participants":
        return row
    if table in ("queries", "events"):
        return f"coalesce({column}, {NOBODY})"
    if table == "answers":
        asked = f"SELECT q.participant FROM main.queries q WHERE q.id = {column}"
        return f"coalesce(({asked}), {NOBODY})"
    return str(NOBODY)


ABOUT = {"queries": "participant", "events": "participant", "answers": "query"}


class Salts:
    """Salts by participant, each read or generated on first use."""

    def __init__(self, c: Connection) -> None:
        self._c = c
        self._known: dict[int, bytes] = {}
        self.made: dict[int, bytes] = {}

    def of(self, owner: int) -> bytes:
        """Return the salt of a participant's rows."""
        if owner not in self._known:
            row = tuples(self._c).execute(
                f"SELECT salt FROM main.{SALTS} WHERE participant = ?", (owner,)
            )
            stored = row.fetchone()
            if stored is None:
                return self.renewed(owner)
            self._known[owner] = stored[0]
        return self._known[owner]

    def renewed(self, owner: int) -> bytes:
        """Generate a new salt, which overwrites the old one."""
        salt = self._known[owner] = self.made[owner] = secrets.token_bytes(SALT_BYTES)
        self._c.execute(f"INSERT OR REPLACE INTO main.{SALTS} VALUES (?, ?)", (owner, salt))
        return salt


def salt_digest(salt: bytes) -> bytes:
    """Return the digest of a salt, which needs no salt itself."""
    return digest(b"", SALTS, [salt])


def begin_period(c: Connection, now: int, why: str, differing: Differing = Differing()) -> None:
    """Start a period by recording every row as it is.

    Rows in `differing` stay marked as different.
    """
    form = layout(c)
    rows = sum(int(c.execute(f"SELECT count(*) FROM main.{t}").fetchone()[0]) for t in TABLES)
    note = msgspec.json.encode(Opening(now, why, rows, form)).decode()
    at, entries = end(c) or _last(c), _all_entries(c, form, differing)
    while (part := list(islice(entries, MAX_ENTRIES))) or note:
        at = add(c, at, now, note, part)
        note = ""
    c.execute("INSERT OR REPLACE INTO main.chain_head VALUES (1, ?, ?)", (at.last, at.hash))


def begin_again(c: Connection, now: int, why: str) -> None:
    """Start a new chain by recording every row as it is."""
    for table in ("chain", "chain_head", SALTS):
        c.execute(f"DELETE FROM main.{table}")
    begin_period(c, now, why)


def end(c: Connection) -> ChainHead | None:
    """Return the end to continue from, never before an existing record, whatever the head says."""
    row = tuples(c).execute(
        "SELECT max(last, coalesce((SELECT max(id) FROM main.chain), 0)), hash FROM main.chain_head"
    )
    last = row.fetchone()
    return None if last is None else ChainHead(*last)


def _last(c: Connection) -> ChainHead:
    """Return the last record, without a stored end."""
    row = c.execute("SELECT id, hash FROM main.chain ORDER BY id DESC LIMIT 1").fetchone()
    return ChainHead(0, b"") if row is None else ChainHead(row[0], row[1])


def _all_entries(c: Connection, form: Layout, differing: Differing) -> Iterator[RowChange]:
    codes, salts = {table: code for code, table in enumerate(form)}, Salts(c)
    left_out = differing.changed | differing.added
    for table in TABLES:
        whose = owner_sql(table, "t.rowid", f"t.{ABOUT.get(table)}")
        sql = f"SELECT t.rowid, {whose}, {quoted(form[table], 't.')} FROM main.{table} t"
        for number, owner, *values in tuples(c).execute(f"{sql} ORDER BY t.rowid"):
            if (table, number) not in left_out:
                after = digest(salts.of(owner), table, values)
                yield RowChange(codes[table], number, owner, None, after)
    for number, salt in tuples(c).execute(f"SELECT participant, salt FROM main.{SALTS}"):
        if (SALTS, number) not in left_out:
            yield RowChange(codes[SALTS], number, NOBODY, None, salt_digest(salt))
    for table, number in sorted(differing.changed):
        yield RowChange(codes[table], number, NOBODY, None, None)


def add(c: Connection, at: ChainHead, now: int, note: str, entries: list[RowChange]) -> ChainHead:
    number, day, packed = at.last + 1, now - now % DAY_MS, _encode(entries)
    hashed = linked(at.hash, number, day, note, packed)
    c.execute("INSERT INTO main.chain VALUES (?, ?, ?, ?, ?)", (number, day, note, packed, hashed))
    return ChainHead(number, hashed)


def tuples(c: Connection) -> sqlite3.Cursor:
    cursor = c.cursor()
    cursor.row_factory = None
    return cursor
