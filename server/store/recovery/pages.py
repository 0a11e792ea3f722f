"""Rows of a damaged SQLite file, read from its pages without SQLite.

SQLite stops at the first page that makes no sense, and everything behind it is out of reach. Here
every page stands for itself: whatever leaf of a table is whole gives its rows, whether or not a way
leads to it. The format is described at https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from server.store.recovery.write_ahead import Log

MAGIC = b"SQLite format 3\0"
PAGE_BYTES = 4096
INTERIOR, LEAF = 0x05, 0x0D
FIRST = 100  # bytes before the first page's own header
MAX_PAYLOAD = 1 << 28
# A number that is whole is stored as one, also in a column of real numbers.
KINDS: dict[str, tuple[type, ...]] = {
    "INTEGER": (int,),
    "REAL": (int, float),
    "TEXT": (str,),
    "BLOB": (bytes,),
}
Values = tuple[Any, ...]


@dataclass(frozen=True)
class Column:
    """What a value must be: a type of a strict table, and whether it may be missing."""

    kind: str
    required: bool
    is_key: bool

    def takes(self, value: Any) -> bool:
        """Whether a stored value can be this column's."""
        if self.is_key:
            return value is None  # it is the number of the row
        if value is None:
            return not self.required
        return isinstance(value, KINDS[self.kind])


Shapes = Mapping[str, tuple[Column, ...]]


@dataclass(frozen=True, order=True)
class RowPlace:
    """Where a row is: how new its page is (0: not from the log), and the cell."""

    recency: int
    reached: bool
    page: int
    offset: int


class Image:
    """A database's pages as of its last commit: those of the file, and newer ones of its log."""

    def __init__(self, file: bytes, log: Log) -> None:
        self._file, self.log = file, log
        whole = file[:16] == MAGIC
        size = int.from_bytes(file[16:18], "big") if whole else 0
        size = 65536 if size == 1 else size
        if log.pages:
            size = len(next(iter(log.pages.values()))[1])
        self.size = size if size >= 512 and not size & (size - 1) else PAGE_BYTES
        self._usable = self.size - (file[20] if whole and file[20] < 32 else 0)
        self.count = log.count or -(-len(file) // self.size)

    def page(self, number: int) -> bytes:
        """A page; empty if it is not there in full."""
        if number in self.log.pages:
            return self.log.pages[number][1]
        if not 1 <= number <= self.count:
            return b""
        found = self._file[(number - 1) * self.size : number * self.size]
        return found if len(found) == self.size else b""

    def _recency(self, number: int) -> int:
        return self.log.pages[number][0] if number in self.log.pages else 0

    # ---- which rows there are -------------------------------------------------------------------

    def places(self, shapes: Shapes) -> dict[str, dict[int, RowPlace]]:
        """Where each table's rows are, by their number; the newest of those with the same one."""
        found: dict[str, dict[int, RowPlace]] = {table: {} for table in shapes}
        owners = self._owners()
        for number in range(1, self.count + 1):
            cells = list(self._cells(number))
            read = [(cell, self._values(number, cell[1])) for cell in cells]
            table = _table_of([one for _, one in read if one], shapes, owners.get(number))
            if table is None:
                continue
            reached = owners.get(number) == table
            for (row, offset), values in read:
                place = RowPlace(self._recency(number), reached, number, offset)
                if values is not None and fits(values, shapes[table]):
                    found[table][row] = max(place, found[table].get(row, place))
        return found

    def values(self, place: RowPlace) -> Values:
        """A row's values, the first of them None for its own number."""
        found = self._values(place.page, place.offset)
        assert found is not None
        return found

    def _owners(self) -> dict[int, str]:
        """Which table each page belongs to, as far as a way leads to it."""
        roots = {1: "sqlite_schema"}
        for leaf in self._leaves(1):
            for _, offset in self._cells(leaf):
                row = self._values(leaf, offset)
                if row and len(row) == 5 and row[0] == "table" and isinstance(row[3], int):
                    roots[row[3]] = str(row[1])
        return {leaf: name for root, name in roots.items() for leaf in self._leaves(root)}

    def _leaves(self, root: int) -> Iterator[int]:
        """The leaves of a table below a page; each page once, whatever leads where."""
        ahead, seen = [root], set[int]()
        while ahead:
            number = ahead.pop()
            content = self.page(number)
            if number in seen or not content:
                continue
            seen.add(number)
            start = FIRST if number == 1 else 0
            if content[start] == LEAF:
                yield number
            elif content[start] == INTERIOR:
                ahead.append(int.from_bytes(content[start + 8 : start + 12], "big"))
                for offset in self._pointers(content, start, 12):
                    ahead.append(int.from_bytes(content[offset : offset + 4], "big"))

    def _pointers(self, content: bytes, start: int, header: int) -> Iterator[int]:
        count = int.from_bytes(content[start + 3 : start + 5], "big")
        first = start + header
        last = first + 2 * count
        if last > self.size:
            return
        for at in range(first, last, 2):
            offset = int.from_bytes(content[at : at + 2], "big")
            if last <= offset < self._usable - 3:
                yield offset

    def _cells(self, number: int) -> Iterator[tuple[int, int]]:
        """(number of the row, where its cell is) of a table's leaf, numbers rising."""
        content, start = self.page(number), FIRST if number == 1 else 0
        if not content or content[start] != LEAF:
            return
        found = []
        for offset in self._pointers(content, start, 8):
            _, after = _varint(content, offset)
            row, _ = _varint(content, after)
            found.append((row - (1 << 64) if row >> 63 else row, offset))
        yield from _rising(found)

    # ---- one row --------------------------------------------------------------------------------

    def _values(self, number: int, offset: int) -> Values | None:
        """The values of a cell; None if it makes no sense."""
        try:
            return _record(self._payload(self.page(number), offset))
        except (ValueError, IndexError, struct.error):
            return None

    def _payload(self, content: bytes, offset: int) -> bytes:
        length, at = _varint(content, offset)
        _, at = _varint(content, at)
        if length > MAX_PAYLOAD:
            raise ValueError("longer than any row")
        usable = self._usable
        if length <= usable - 35:
            here, more = length, 0
        else:
            least = (usable - 12) * 32 // 255 - 23
            here = least + (length - least) % (usable - 4)
            here = here if here <= usable - 35 else least
            more = int.from_bytes(content[at + here : at + here + 4], "big")
        parts = [content[at : at + here]]
        if at + here > usable:
            raise ValueError("goes beyond its page")
        left = length - here
        while left > 0:
            content = self.page(more)
            part = content[4 : 4 + min(left, usable - 4)]
            if not part:
                raise ValueError("its continuation is gone")
            parts.append(part)
            left -= len(part)
            more = int.from_bytes(content[:4], "big")
        return b"".join(parts)


def _table_of(rows: list[Values], shapes: Shapes, owner: str | None) -> str | None:
    """Whose leaf it is: by the tree it belongs to, or else by what its rows look like."""
    if owner is not None:
        return owner if owner in shapes and any(fits(row, shapes[owner]) for row in rows) else None
    fitting = {table: sum(fits(row, shapes[table]) for row in rows) for table in shapes}
    best = [table for table, many in fitting.items() if many and many == max(fitting.values())]
    whole = [table for table in best if all(len(row) == len(shapes[table]) for row in rows)]
    return whole[0] if len(whole) == 1 else None


def fits(row: Values, columns: tuple[Column, ...]) -> bool:
    """Whether a row can be of a table; one from before its last columns were added is shorter."""
    if len(row) > len(columns) or any(one.required for one in columns[len(row) :]):
        return False
    return all(one.takes(value) for one, value in zip(columns, row, strict=False))


def _rising(cells: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most cells whose numbers rise: one that is out of order has a number that was changed."""
    if all(one < other for (one, _), (other, _) in pairwise(cells)):
        return cells
    tails: list[int] = []
    chains: list[list[tuple[int, int]]] = []
    for cell in cells:
        place = bisect_left(tails, cell[0])
        longer = [*chains[place - 1], cell] if place else [cell]
        tails[place : place + 1] = [cell[0]]
        chains[place : place + 1] = [longer]
    return chains[-1]


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = content[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | content[at], at + 1


def _record(payload: bytes) -> Values:
    """The values of a record; ValueError or IndexError if it is none."""
    length, at = _varint(payload, 0)
    kinds = []
    while at < length:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    if at != length:
        raise ValueError("its header does not end where it says")
    values = []
    for kind in kinds:
        value, at = _value(payload, kind, at)
        values.append(value)
    if at != len(payload):
        raise ValueError("its values do not end where it does")
    return tuple(values)


def _value(payload: bytes, kind: int, at: int) -> tuple[Any, int]:
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind in (10, 11):
        raise ValueError("a type that no file has")
    if kind >= 12:
        end = at + (kind - 12) // 2
        part = payload[at:end]
        if len(part) != end - at:
            raise ValueError("a value that is cut off")
        return (part.decode() if kind & 1 else part), end
    width = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}[kind]
    part = payload[at : at + width]
    if len(part) != width:
        raise ValueError("a value that is cut off")
    if kind == 7:
        return struct.unpack(">d", part)[0], at + width
    return int.from_bytes(part, "big", signed=True), at + width
