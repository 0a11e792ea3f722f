"""File formats: readers of answers, and the writer of embeddings. Cells are validated elsewhere."""

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
    is_header,
    names_a_column,
    not_simulated,
    refuse_only_simulated,
)
from lore_active.data.frames import sheet_of
from lore_active.data.headers import PARTICIPANT, SIMULATED, TRIAL, WEIGHT, known_headers
from lore_active.data.trial_columns import recognised
from lore_active.data.trial_tables import (
    named_or_in_order,
    refuse_comparisons,
    trials_in,
    trials_of_rows,
)
from lore_active.data.values import is_number
from lore_active.errors import InvalidTriplets
from lore_active.questions.kinds import TRIPLET, Kind, kind
from lore_active.types import Floats

# Enough for a hundred million answers with weights.
MAX_UNPACKED_BYTES = 4_000_000_000
# Names of arrays that say whether the first option is nearer.
RESPONSES = ("responses", "response", "y")
LABELS = ("labels", "items")


def read_table(
    path: str | os.PathLike[str], simulated: bool = False, label: str | None = None
) -> AnswerTable:
    """Read a CSV, `.npy` or `.npz` file of answers.

    Rows that a column `simulated` marks are omitted unless `simulated`. label: the kind of
    question that each row is a trial of, if the file does not say so.
    """
    file, stated = Path(path), None if label is None else kind(label)
    try:
        if file.suffix.lower() in (".npy", ".npz"):
            return _read_numpy(file, simulated, stated)
        return _read_csv(file, simulated, stated)
    except FileNotFoundError:
        raise InvalidTriplets(f"There is no file {file}.") from None
    except IsADirectoryError:
        raise InvalidTriplets(f"{file} is a folder, but a file of answers is needed.") from None
    except PermissionError:
        raise InvalidTriplets(f"{file} may not be read by this user.") from None


def _read_csv(file: Path, simulated: bool, stated: Kind | None) -> AnswerTable:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            text = stream.read()
    except UnicodeDecodeError as error:
        raise InvalidTriplets(
            f"{file.name} is not text in UTF-8: byte {error.start} is "
            f"{error.object[error.start]:#04x}."
        ) from None
    rows, lines = _spaced(text) or _separated(file, text)
    if not rows:
        raise InvalidTriplets(f"{file.name} is empty: it holds no answers.")
    if stated is None and _spaced(text) is not None:
        raise InvalidTriplets(
            f"Line {lines[0]} of {file.name} is {' '.join(rows[0])!r:.60}: numbers with "
            "spaces between them and no header. Say what they are: --format odd-one-out (the last "
            "is the odd one), --format triplet (anchor, nearer, farther), or another kind; in "
            "Python, kind=…"
        )
    strange = _strange(rows)
    grids = stated not in (None, TRIPLET)
    # Three labels may be an answer; they are a header only if none of them occurs again.
    if len(rows[0]) != 3 or is_header(rows[0]) or all(strange):
        table = None
        if recognised(rows[0], stated) is not None:
            table = trials_in(_sheet(file.name, rows, lines), simulated, stated)
        elif is_header(rows[0]) or not grids:
            table = answers_in(_sheet(file.name, rows, lines), simulated)
            refuse_comparisons(table, stated)
        if table is not None:
            return table
    if stated is not None and grids and not (all(strange) and len(rows) > 1):
        return trials_of_rows(file.name, rows, stated, lines)
    names = any(new and names_a_column(cell) for new, cell in zip(strange, rows[0], strict=True))
    if len(rows[0]) != 3 or names or (all(strange) and len(rows) > 1):
        raise InvalidTriplets(
            f"Line {lines[0]} of {file.name} is {','.join(rows[0])!r:.80}, which is not a known "
            f"header. {known_headers()}. Three columns without a header are accepted if the first "
            "row has an item that occurs again."
        )
    return AnswerTable(file.name, rows, lines)


def _spaced(text: str) -> tuple[list[list[str]], list[int]] | None:
    """Rows of numbers that are separated by spaces, and their lines; None in other files."""
    first = next((line for line in text.splitlines() if line.strip()), "").split()
    if len(first) < 3 or not all(map(is_number, first)):
        return None
    lines = [(k, line.split()) for k, line in enumerate(text.splitlines(), 1) if line.strip()]
    return [cells for _, cells in lines], [k for k, _ in lines]


def _separated(file: Path, text: str) -> tuple[list[list[str]], list[int]]:
    """Rows of a CSV, and their lines."""
    # As a stream, so that only the line ends of CSV end a line; others are part of a label.
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
    return rows, lines


def _strange(rows: list[list[str]]) -> list[bool]:
    """Which labels of the first row occur nowhere else, as those of a header do."""
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


def _read_numpy(file: Path, simulated: bool, stated: Kind | None) -> AnswerTable:
    try:
        with file.open("rb") as stream:
            _refuse_bomb(stream, file.name)
            content = np.load(stream, allow_pickle=False)
            if isinstance(content, np.ndarray):
                sheet = sheet_of(content)
                if sheet is not None:
                    return named_or_in_order(replace(sheet, name=file.name), simulated, stated)
                return _in_order(file.name, content, stated)
            with content:
                arrays = {key: content[key] for key in content.files}
    except (ValueError, EOFError, BadZipFile, MemoryError, zlib.error) as error:
        raise InvalidTriplets(f"{file.name} is not a readable NumPy file: {error}") from None
    return _of_arrays(file.name, arrays, simulated, stated)


def _in_order(name: str, rows: NDArray[Any], stated: Kind | None) -> AnswerTable:
    if stated is None or stated == TRIPLET:
        return AnswerTable(name, rows)
    return trials_of_rows(name, rows, stated)


def _of_arrays(
    name: str, arrays: dict[str, NDArray[Any]], simulated: bool, stated: Kind | None
) -> AnswerTable:
    labels = _one_of(name, arrays, LABELS)
    known = None
    if labels is not None and labels.ndim == 1:
        known = tuple(str(label) for label in labels)
    columns = {key: array for key, array in arrays.items() if key not in LABELS}
    if "triplets" in columns:
        responses = _one_of(name, columns, RESPONSES)
        weights = _one_of(name, columns, WEIGHT)
        rows = AnswerTable(
            *(name, columns["triplets"], None, weights, known),
            responses=responses,
            trials=_of_rows(name, columns, TRIAL),
            participants=_of_rows(name, columns, PARTICIPANT),
        )
        refuse_comparisons(rows, stated)
        marks = None if simulated else columns.get(SIMULATED)
        return rows if marks is None else _without_simulated(rows, marks)
    header = list(columns)
    sheet = Sheet(name, header, lambda k: columns[header[k]])
    table = trials_in(sheet, simulated, stated)
    if table is None:
        table = answers_in(sheet, simulated)
        refuse_comparisons(table, stated)
    if table is not None:
        return replace(table, labels=known)
    if len(arrays) == 1:
        return _in_order(name, next(iter(arrays.values())), stated)
    raise InvalidTriplets(
        f"{name} holds the arrays {', '.join(sorted(arrays))}: expected 'triplets', or "
        "'anchor', 'nearer' and 'farther'."
    )


def _of_rows(
    name: str, columns: dict[str, NDArray[Any]], wanted: Sequence[str]
) -> NDArray[Any] | None:
    """The array with one of these names, which must have a value for each row of `triplets`."""
    values = _one_of(name, columns, wanted)
    if values is not None and values.shape != columns["triplets"].shape[:1]:
        raise InvalidTriplets(
            f"The array {next(key for key in wanted if key in columns)!r} of {name} has shape "
            f"{values.shape}, but 'triplets' has {columns['triplets'].shape}."
        )
    return values


def _without_simulated(table: AnswerTable, marks: NDArray[Any]) -> AnswerTable:
    """Omit marked rows; responses remain one per row of the source, like a caller's."""
    if marks.shape != table.rows.shape[:1]:
        raise InvalidTriplets(
            f"The array {SIMULATED!r} of {table.name} has shape {marks.shape}, but 'triplets' has "
            f"{table.rows.shape}."
        )
    real = not_simulated(marks)
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
        trials=None if table.trials is None else table.trials[kept],
        participants=None if table.participants is None else table.participants[kept],
        simulated_left_out=left_out,
        kept=kept if left_out else None,
    )


def _one_of(
    name: str, arrays: dict[str, NDArray[Any]], wanted: Sequence[str]
) -> NDArray[Any] | None:
    present = [key for key in wanted if key in arrays]
    if len(present) > 1:
        raise InvalidTriplets(f"{name} holds {' and '.join(present)}: remove all but one.")
    return arrays[present[0]] if present else None


def _refuse_bomb(stream: BinaryIO, name: str) -> None:
    """Reject archives that would unpack to too many bytes, from their directory alone."""
    if not is_zipfile(stream):
        stream.seek(0)
        return
    with ZipFile(stream) as archive:
        size = sum(member.file_size for member in archive.infolist())
    stream.seek(0)
    if size > MAX_UNPACKED_BYTES:
        raise InvalidTriplets(
            f"{name} would unpack to {size / 1e9:.1f} GB, but at most "
            f"{MAX_UNPACKED_BYTES / 1e9:g} GB are allowed."
        )


def dimension_names(count: int) -> list[str]:
    """Names of the columns of an embedding in files: `dim_1`, `dim_2`, …, strongest first."""
    return [f"dim_{number}" for number in range(1, count + 1)]


def write_embedding(
    path: str | os.PathLike[str], embedding: Floats, labels: Sequence[str] | None = None
) -> None:
    """Write an embedding as CSV: `item,dim_1,dim_2,…`, numbers in full precision."""
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\r\n")
        writer.writerow(["item", *dimension_names(embedding.shape[1])])
        for item, row in enumerate(embedding):
            name = item if labels is None else safe(labels[item])
            writer.writerow([name, *(repr(float(value)) for value in row)])


# Characters that make a spreadsheet interpret text as a formula, including full-width forms; at the
# start of a cell, or after a character that separates cells in other locales.
_RISKY = "=+\\-@\t\r＝＋－＠"
_STARTS = r"(?:^|(?<=[;\t\r\n]))"
_DANGEROUS = re.compile(rf"{_STARTS}(?='*[{_RISKY}])")
_DEFUSED = re.compile(rf"{_STARTS}'(?='*[{_RISKY}])")


def safe(text: str) -> str:
    """Escape a text cell so that no spreadsheet runs it as a formula; `unsafe` reverses it."""
    return _DANGEROUS.sub("'", text)


def unsafe(cell: str) -> str:
    """Reverse `safe`."""
    return _DEFUSED.sub("", cell)


def delimiter_of(text: str) -> str:
    """Delimiter of a CSV: a comma, or if its first line has none, a semicolon or tab."""
    first = text.lstrip("\r\n").partition("\n")[0]
    if "," in first:
        return ","
    return next((character for character in ";\t" if character in first), ",")
