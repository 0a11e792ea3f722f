"""Files in, files out: tables of answers, embeddings. Content is checked elsewhere."""

from __future__ import annotations

import csv
import io
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from lore_active.data.columns import (
    AnswerTable,
    Sheet,
    answers_in,
    by_people,
    is_header,
    named_or_three,
    names_a_column,
    refuse_only_simulated,
)
from lore_active.data.frames import sheet_of
from lore_active.data.headers import SIMULATED, WEIGHT, known_headers
from lore_active.data.values import is_number
from lore_active.errors import InvalidTriplets
from lore_active.types import Floats

# A hundred million answers with weights.
MAX_UNPACKED_BYTES = 4_000_000_000
# What arrays are called that say whether the first option is nearer.
RESPONSES = ("responses", "response", "y")
LABELS = ("labels", "items")


def read_table(path: str | os.PathLike[str], simulated: bool = False) -> AnswerTable:
    """Read a CSV, `.npy` or `.npz` file of answers.

    Rows of simulated participants, by the column `simulated`, are left out unless `simulated`.
    """
    file = Path(path)
    try:
        if file.suffix.lower() in (".npy", ".npz"):
            return _read_numpy(file, simulated)
        return _read_csv(file, simulated)
    except FileNotFoundError:
        raise InvalidTriplets(f"There is no file {file}.") from None
    except IsADirectoryError:
        raise InvalidTriplets(f"{file} is a folder, but a file of answers is needed.") from None
    except PermissionError:
        raise InvalidTriplets(f"{file} may not be read by this user.") from None


def _read_csv(file: Path, simulated: bool) -> AnswerTable:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            text = stream.read()
    except UnicodeDecodeError as error:
        raise InvalidTriplets(
            f"{file.name} is not text in UTF-8: byte {error.start} is "
            f"{error.object[error.start]:#04x}."
        ) from None
    # As a stream: only line ends that CSV knows end a line, others are part of a label.
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter_of(text),
        skipinitialspace=True,
        strict=True,
    )
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
    strange = _strange(rows)
    table = None
    # Three labels may look like a question; they are a header if they are nothing else.
    if len(rows[0]) != 3 or is_header(rows[0]) or all(strange):
        table = answers_in(_sheet(file.name, rows, lines), simulated)
    if table is not None:
        return table
    names = any(new and names_a_column(cell) for new, cell in zip(strange, rows[0], strict=True))
    if len(rows[0]) != 3 or names or (all(strange) and len(rows) > 1):
        raise InvalidTriplets(
            f"Line {lines[0]} of {file.name} is {','.join(rows[0])!r:.80}, which is not a header "
            f"that is understood. {known_headers()}. Three columns without a header are taken "
            "too, if their first row names items that occur again."
        )
    return AnswerTable(file.name, rows, lines)


def _strange(rows: list[list[str]]) -> list[bool]:
    """Which labels of the first row occur nowhere else: a header's do not."""
    others = {cell for row in rows[1:] for cell in row}
    return [cell not in others and not is_number(cell) for cell in rows[0]]


def _sheet(name: str, rows: list[list[str]], lines: list[int]) -> Sheet:
    header, *body = rows
    for row, line in zip(body, lines[1:], strict=True):
        if len(row) != len(header):
            raise InvalidTriplets(
                f"Ragged answers: line {line} of {name} has {len(row)} values, but the header "
                f"has {len(header)}."
            )

    def column(k: int) -> NDArray[Any]:
        return np.array([row[k] for row in body], dtype=object)

    return Sheet(name, header, column, lines[1:])


def _read_numpy(file: Path, simulated: bool) -> AnswerTable:
    try:
        with file.open("rb") as stream:
            _refuse_bomb(stream, file.name)
            content = np.load(stream, allow_pickle=False)
            if isinstance(content, np.ndarray):
                sheet = sheet_of(content)
                return (
                    AnswerTable(file.name, content)
                    if sheet is None
                    else named_or_three(replace(sheet, name=file.name), simulated)
                )
            with content:
                arrays = {key: content[key] for key in content.files}
    except (ValueError, EOFError, BadZipFile, MemoryError, zlib.error) as error:
        raise InvalidTriplets(f"{file.name} is not a readable NumPy file: {error}") from None
    return _of_arrays(file.name, arrays, simulated)


def _of_arrays(name: str, arrays: dict[str, NDArray[Any]], simulated: bool) -> AnswerTable:
    labels = _one_of(name, arrays, LABELS)
    known = None
    if labels is not None and labels.ndim == 1:
        known = tuple(str(label) for label in labels)
    columns = {key: array for key, array in arrays.items() if key not in LABELS}
    if "triplets" in columns:
        responses = _one_of(name, columns, RESPONSES)
        weights = _one_of(name, columns, WEIGHT)
        rows = AnswerTable(name, columns["triplets"], None, weights, known, responses=responses)
        marks = None if simulated else columns.get(SIMULATED)
        return rows if marks is None else _without_simulated(rows, marks)
    header = list(columns)
    table = answers_in(Sheet(name, header, lambda k: columns[header[k]]), simulated)
    if table is not None:
        return replace(table, labels=known)
    if len(arrays) == 1:
        return AnswerTable(name, next(iter(arrays.values())))
    raise InvalidTriplets(
        f"{name} holds the arrays {', '.join(sorted(arrays))}: expected 'triplets', or "
        "'anchor', 'nearer' and 'farther'."
    )


def _without_simulated(table: AnswerTable, marks: NDArray[Any]) -> AnswerTable:
    """The table without the rows that are marked; responses are for all rows, as a caller's are."""
    if marks.shape != table.rows.shape[:1]:
        raise InvalidTriplets(
            f"The array {SIMULATED!r} of {table.name} has shape {marks.shape}, but 'triplets' has "
            f"{table.rows.shape}."
        )
    real = by_people(marks)
    kept = np.flatnonzero(real)
    left_out = len(real) - len(kept)
    if left_out and not len(kept):
        refuse_only_simulated(table.name, left_out)
    weights = table.weights
    if weights is not None and weights.shape == real.shape:
        weights = weights[kept]
    return replace(
        table,
        rows=table.rows[kept],
        weights=weights,
        simulated_left_out=left_out,
        kept=kept if left_out else None,
    )


def _one_of(
    name: str, arrays: dict[str, NDArray[Any]], wanted: Sequence[str]
) -> NDArray[Any] | None:
    found = [key for key in wanted if key in arrays]
    if len(found) > 1:
        raise InvalidTriplets(f"{name} holds {' and '.join(found)}: leave out all but one.")
    return arrays[found[0]] if found else None


def _refuse_bomb(stream: BinaryIO, name: str) -> None:
    """A small archive can unpack to more than any machine has; here only its list is read."""
    if not is_zipfile(stream):
        stream.seek(0)
        return
    with ZipFile(stream) as archive:
        size = sum(member.file_size for member in archive.infolist())
    stream.seek(0)
    if size > MAX_UNPACKED_BYTES:
        raise InvalidTriplets(
            f"{name} would unpack to {size / 1e9:.1f} GB, but at most "
            f"{MAX_UNPACKED_BYTES / 1e9:g} GB are taken."
        )


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


def delimiter_of(text: str) -> str:
    """What separates the cells of a CSV: a comma, or where its first line has none, ; or a tab."""
    first = text.lstrip("\r\n").partition("\n")[0]
    if "," in first:
        return ","
    return next((sign for sign in ";\t" if sign in first), ",")
