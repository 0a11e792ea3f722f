"""Rows of a damaged SQLite file, read from its pages without SQLite.

SQLite stops at the first invalid page, and everything behind it is out of reach. Here every page is
read on its own: each intact leaf of a table gives its rows, whether or not the tree leads to it.
The format is described at https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from server.store.recovery.write_ahead import Log
from server.store.sqlite.former_names import current_table

MAGIC = b"SQLite format 3\0"
PAGE_BYTES = 4096
INTERIOR, LEAF = 0x05, 0x0D
FIRST = 100  # bytes before the first page's own header
MAX_PAYLOAD = 1 << 28
# Integers are stored as such, even in a column of real numbers.
KINDS: dict[str, tuple[type, ...]] = {
    "INTEGER": (int,),
    "REAL": (int, float),
    "TEXT": (str,),
    "BLOB": (bytes,),
}
Values = tuple[Any, ...]


@dataclass(frozen=True)
class Column:
    """Constraints on a value: its type in a strict table, and whether it is required."""

    kind: str
    required: bool
    is_key: bool

    def takes(self, value: Any) -> bool:
        """Return whether a stored value is valid in this column."""
        if self.is_key:
            return value is None  # it is the number of the row
        if value is None:
            return not self.required
        return isinstance(value, KINDS[self.kind])


Shapes = Mapping[str, tuple[Column, ...]]


@dataclass(frozen=True, order=True)
class RowPlace:
    """Position of a row: how new its page is (0: not from the log), and the cell."""

    recency: int
    reached: bool
    page: int
    offset: int


class Image:
    """Pages of a database as of its last commit: of the file, and newer ones of its log."""

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
        """Return a page; empty if it is not complete."""
        if number in self.log.pages:
            return self.log.pages[number][1]
        if not 1 <= number <= self.count:
            return b""
        content = self._file[(number - 1) * self.size : number * self.size]
        return content if len(content) == self.size else b""

    def _recency(self, number: int) -> int:
        return self.log.pages[number][0] if number in self.log.pages else 0

    # ---- which rows there are -------------------------------------------------------------------

    def places(self, shapes: Shapes) -> dict[str, dict[int, RowPlace]]:
        """Find the rows of each table by number; of several with the same number, the newest."""
        places: dict[str, dict[int, RowPlace]] = {table: {} for table in shapes}
        owners = self._owners()
        for number in range(1, self.count + 1):
            cells = list(self._cells(number))
            read = [(cell, self._values(number, cell[1])) for cell in cells]
            table = _table_of([values for _, values in read if values], shapes, owners.get(number))
            if table is None:
                continue
            reached = owners.get(number) == table
            for (row, offset), values in read:
                place = RowPlace(self._recency(number), reached, number, offset)
                if values is not None and fits(values, shapes[table]):
                    places[table][row] = max(place, places[table].get(row, place))
        return places

    def values(self, place: RowPlace) -> Values:
        """Return a row's values; None for its own number."""
        values = self._values(place.page, place.offset)
        assert values is not None
        return values

    def _owners(self) -> dict[int, str]:
        """Map pages to tables, as far as the trees lead to them."""
        roots = {1: "sqlite_schema"}
        for leaf in self._leaves(1):
            for _, offset in self._cells(leaf):
                row = self._values(leaf, offset)
                if row and len(row) == 5 and row[0] == "table" and isinstance(row[3], int):
                    roots[row[3]] = current_table(str(row[1]))
        return {leaf: name for root, name in roots.items() for leaf in self._leaves(root)}

    def _leaves(self, root: int) -> Iterator[int]:
        """Yield the leaves of a table below a page, each page once, even with damaged pointers."""
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
        """Yield (row number, offset of its cell) of a table's leaf, in ascending order."""
        content, start = self.page(number), FIRST if number == 1 else 0
        if not content or content[start] != LEAF:
            return
        cells = []
        for offset in self._pointers(content, start, 8):
            _, after = _varint(content, offset)
            row, _ = _varint(content, after)
            cells.append((row - (1 << 64) if row >> 63 else row, offset))
        yield from _rising(cells)

    # ---- one row --------------------------------------------------------------------------------

    def _values(self, number: int, offset: int) -> Values | None:
        """Decode the values of a cell; None if it is invalid."""
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
            raise ValueError("exceeds its page")
        left = length - here
        while left > 0:
            content = self.page(more)
            part = content[4 : 4 + min(left, usable - 4)]
            if not part:
                raise ValueError("its continuation is missing")
            parts.append(part)
            left -= len(part)
            more = int.from_bytes(content[:4], "big")
        return b"".join(parts)


def _table_of(rows: list[Values], shapes: Shapes, owner: str | None) -> str | None:
    """Return the table of a leaf: by its tree, or else by the form of its rows."""
    if owner is not None:
        return owner if owner in shapes and any(fits(row, shapes[owner]) for row in rows) else None
    fitting = {table: sum(fits(row, shapes[table]) for row in rows) for table in shapes}
    best = [table for table, many in fitting.items() if many and many == max(fitting.values())]
    whole = [table for table in best if all(len(row) == len(shapes[table]) for row in rows)]
    return whole[0] if len(whole) == 1 else None


def fits(row: Values, columns: tuple[Column, ...]) -> bool:
    """Return whether a row fits a table; it is shorter if columns were added later."""
    if len(row) > len(columns) or any(column.required for column in columns[len(row) :]):
        return False
    return all(column.takes(value) for column, value in zip(columns, row, strict=False))


def _rising(cells: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest ascending subsequence: a cell out of order has a damaged number."""
    if all(first < other for (first, _), (other, _) in pairwise(cells)):
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
    """Decode a record; raise ValueError or IndexError if it is invalid."""
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
        raise ValueError("an invalid type")
    if kind >= 12:
        end = at + (kind - 12) // 2
        part = payload[at:end]
        if len(part) != end - at:
            raise ValueError("a truncated value")
        return (part.decode() if kind & 1 else part), end
    width = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}[kind]
    part = payload[at : at + width]
    if len(part) != width:
        raise ValueError("a truncated value")
    if kind == 7:
        return struct.unpack(">d", part)[0], at + width
    return int.from_bytes(part, "big", signed=True), at + width
