"""Files in, files out: tables of answers, embeddings. Content is checked elsewhere."""

from __future__ import annotations

import csv
import io
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from lore_active.errors import InvalidTriplets
from lore_active.types import Floats

# The header names understood, in the order (anchor, nearer, farther).
HEADERS = (("anchor", "nearer", "farther"), ("head", "winner", "loser"))
WEIGHT = "weight"
# A hundred million answers with weights.
MOST_UNPACKED_BYTES = 4_000_000_000
# Salmon names its numbered targets in columns of their own.
NAMES = ("head_filename", "winner_filename", "loser_filename")
# What this program writes (answers.csv): the options as shown, and the one chosen.
SHOWN = ("anchor", "left", "right", "chosen")
# Rows with these cells are no judgements of similarity that anybody's model should fit.
SET_ASIDE = {"purpose": ("practice", "catch"), "samplealg": ("check",), "excluded": ("1",)}


@dataclass(frozen=True)
class Table:
    """Rows of three cells as they stood in a file, and where each row stood."""

    name: str
    rows: Any
    lines: Sequence[int] | None = None
    weights: Any = None
    labels: tuple[str, ...] | None = None
    # The same cells by name, where the file has both numbers and names.
    names: Any = None
    # How many rows were set aside: practice, checks, skipped questions, excluded people.
    set_aside: int = 0

    def place(self, row: int) -> str:
        """How to tell a person where a row is."""
        if self.lines is None:
            return f"row {row} (counted from 0) of {self.name}"
        return f"line {self.lines[row]} of {self.name}"


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a CSV, `.npy` or `.npz` file of answers."""
    file = Path(path)
    try:
        if file.suffix.lower() in (".npy", ".npz"):
            return _read_numpy(file)
        return _read_csv(file)
    except FileNotFoundError:
        raise InvalidTriplets(f"There is no file {file}.") from None
    except IsADirectoryError:
        raise InvalidTriplets(f"{file} is a folder, but a file of answers is needed.") from None
    except PermissionError:
        raise InvalidTriplets(f"{file} may not be read by this user.") from None


def _read_csv(file: Path) -> Table:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            text = stream.read()
    except UnicodeDecodeError as error:
        raise InvalidTriplets(
            f"{file.name} is not text in UTF-8: byte {error.start} is "
            f"{error.object[error.start]:#04x}."
        ) from None
    # As a stream: only line ends that CSV knows end a line, others are part of a label.
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append([unsafe(cell.strip()) for cell in row])
                lines.append(reader.line_num)
    except csv.Error as error:
        raise InvalidTriplets(f"Line {reader.line_num} of {file.name}: {error}.") from None
    if not rows:
        raise InvalidTriplets(f"{file.name} is empty: it holds no answers.")
    names = [cell.lower() for cell in rows[0]]
    if set(SHOWN) <= set(names):
        return _shown_columns(file.name, names, rows[1:], lines[1:])
    for header in HEADERS:
        if set(header) <= set(names):
            return _named_columns(file.name, names, header, rows[1:], lines[1:])
    if len(rows[0]) != 3 or set(names) & {name for header in HEADERS for name in header}:
        known = " or ".join(",".join(header) for header in HEADERS)
        raise InvalidTriplets(
            f"Line {lines[0]} of {file.name} is {','.join(rows[0])!r:.80}: expected the header "
            f"{known}, or three columns without a header."
        )
    return Table(file.name, rows, lines)


def _named_columns(
    name: str, names: list[str], header: Sequence[str], rows: list[list[str]], lines: list[int]
) -> Table:
    kept, places = _judgements(name, names, rows, lines)
    weights = None
    if WEIGHT in names:
        at = names.index(WEIGHT)
        weights = [_weight(row[at], line, name) for row, line in zip(kept, places, strict=True)]
    named = _columns(names, NAMES, kept) if set(NAMES) <= set(names) else None
    aside = len(rows) - len(kept)
    return Table(name, _columns(names, header, kept), places, weights, None, named, aside)


def _shown_columns(name: str, names: list[str], rows: list[list[str]], lines: list[int]) -> Table:
    """From the options as shown and the one chosen; without a choice there is no answer."""
    kept, places = _judgements(name, names, rows, lines)
    cells, where = [], []
    for (anchor, left, right, chosen), line in zip(
        _columns(names, SHOWN, kept), places, strict=True
    ):
        if not chosen:
            continue
        if chosen not in (left, right):
            raise InvalidTriplets(
                f"Line {line} of {name}: {chosen!r} was chosen, but {left!r} and {right!r} shown."
            )
        cells.append([anchor, chosen, right if chosen == left else left])
        where.append(line)
    return Table(name, cells, where, set_aside=len(rows) - len(cells))


def _judgements(
    name: str, names: list[str], rows: list[list[str]], lines: list[int]
) -> tuple[list[list[str]], list[int]]:
    """The rows that are to be fitted, and their lines."""
    aside = [(names.index(column), cells) for column, cells in SET_ASIDE.items() if column in names]
    kept, places = [], []
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            raise InvalidTriplets(
                f"Ragged answers: line {line} of {name} has {len(row)} values, but the header "
                f"has {len(names)}."
            )
        if not any(row[at].lower() in cells for at, cells in aside):
            kept.append(row)
            places.append(line)
    return kept, places


def _columns(names: list[str], wanted: Sequence[str], rows: list[list[str]]) -> list[list[str]]:
    at = [names.index(column) for column in wanted]
    return [[row[k] for k in at] for row in rows]


def _weight(cell: str, line: int, name: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise InvalidTriplets(f"Line {line} of {name}: weight {cell!r} is not a number.") from None


def _read_numpy(file: Path) -> Table:
    try:
        with file.open("rb") as stream:
            _refuse_bomb(stream, file.name)
            content = np.load(stream, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return Table(file.name, content)
            with content:
                arrays = {key: content[key] for key in content.files}
    except (ValueError, EOFError, BadZipFile, MemoryError, zlib.error) as error:
        raise InvalidTriplets(f"{file.name} is not a readable NumPy file: {error}") from None
    weights = arrays.get("weights")
    labels = arrays.get("labels", arrays.get("items"))
    known = None
    if labels is not None and labels.ndim == 1:
        known = tuple(str(label) for label in labels)
    for header in HEADERS:
        if set(header) <= set(arrays):
            return Table(file.name, _stacked(arrays, header), None, weights, known)
    if "triplets" in arrays:
        return Table(file.name, arrays["triplets"], None, weights, known)
    if len(arrays) == 1:
        return Table(file.name, next(iter(arrays.values())))
    raise InvalidTriplets(
        f"{file.name} holds the arrays {', '.join(sorted(arrays))}: expected 'triplets', or "
        "'anchor', 'nearer' and 'farther'."
    )


def _refuse_bomb(stream: BinaryIO, name: str) -> None:
    """A small archive can unpack to more than any machine has; here only its list is read."""
    if not is_zipfile(stream):
        stream.seek(0)
        return
    with ZipFile(stream) as archive:
        size = sum(member.file_size for member in archive.infolist())
    stream.seek(0)
    if size > MOST_UNPACKED_BYTES:
        raise InvalidTriplets(
            f"{name} would unpack to {size / 1e9:.1f} GB, but at most "
            f"{MOST_UNPACKED_BYTES / 1e9:g} GB are taken."
        )


def _stacked(arrays: dict[str, NDArray[Any]], header: Sequence[str]) -> NDArray[Any]:
    sizes = {column: arrays[column].shape for column in header}
    if len(set(sizes.values())) > 1:
        raise InvalidTriplets(f"The arrays differ in size: {sizes}.")
    return np.column_stack([arrays[column] for column in header])


def write_embedding(
    path: str | os.PathLike[str], embedding: Floats, labels: Sequence[str] | None = None
) -> None:
    """Write an embedding as CSV: `item,dim_0,dim_1,…`, numbers in full precision."""
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\r\n")
        writer.writerow(["item", *(f"dim_{k}" for k in range(embedding.shape[1]))])
        for item, row in enumerate(embedding):
            name = item if labels is None else safe(labels[item])
            writer.writerow([name, *(repr(float(value)) for value in row)])


# What makes a spreadsheet take a text for a formula, in Asian scripts also at full width; at the
# beginning of a cell, or of what spreadsheets of other countries take for one.
_RISKY = "=+\\-@\t\r＝＋－＠"
_STARTS = r"(?:^|(?<=[;\t\r\n]))"
_DANGEROUS = re.compile(rf"{_STARTS}(?='*[{_RISKY}])")
_DEFUSED = re.compile(rf"{_STARTS}'(?='*[{_RISKY}])")


def safe(text: str) -> str:
    """A text cell that no spreadsheet will run as a formula; `unsafe` gives the text back."""
    return _DANGEROUS.sub("'", text)


def unsafe(cell: str) -> str:
    """The text that `safe` made this cell of."""
    return _DEFUSED.sub("", cell)
