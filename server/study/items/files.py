"""Files of a study: located only inside its folder, and read as text with a size limit."""

from __future__ import annotations

import csv
import io
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from msgspec import Struct

from lore_active.data.formats import delimiter_of
from server.study.problems import Problem, printable, shown

MAX_TEXT_BYTES = 10_000_000


class Line(Struct, frozen=True):
    """A line of a table: its number in the file and its cells by column."""

    number: int
    cells: dict[str, str]


def find(folder: Path, path: str, file: str, key: str, kind: str = "file") -> Path | Problem:
    """Resolve the file or folder `path` of a study, or return a problem of `key` in `file`.

    Paths are relative to the study's folder and must not leave it, not even by links: a study is
    copied and served as one folder.
    """
    rule = f"must name a {kind} inside the study's folder"
    if not path.strip() or "\0" in path:
        return Problem(file, key, shown(path), rule)
    for flavour in (PurePosixPath(path), PureWindowsPath(path)):
        if flavour.is_absolute() or flavour.drive or flavour.root or ".." in flavour.parts:
            rule = "must be a path inside the study's folder, without '..' and not absolute"
            return Problem(file, key, shown(path), rule)
    try:
        resolved = (folder / path).resolve(strict=True)
        mode = resolved.stat().st_mode
    except FileNotFoundError:
        return Problem(file, key, shown(path), f"{rule}, and there is none with that name")
    except PermissionError:
        return Problem(file, key, shown(path), f"{rule} that this user may read")
    except (OSError, RuntimeError, ValueError):  # link loops, names too long or undecodable
        return Problem(file, key, shown(path), f"{rule}, and this one is not accessible")
    if not resolved.is_relative_to(folder):
        rule = "must not be a link that leaves the study's folder"
        return Problem(file, key, shown(path), rule)
    if not (stat.S_ISDIR(mode) if kind == "folder" else stat.S_ISREG(mode)):
        return Problem(file, key, shown(path), f"{rule}, and this one is not")
    return resolved


def read_text(path: Path, file: str, max_bytes: int = MAX_TEXT_BYTES) -> str | Problem:
    """Read a file in UTF-8, with or without a byte order mark."""
    try:
        with path.open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except OSError as error:
        return Problem(file, "", "unreadable", f"must be readable ({error.strerror})")
    if len(content) > max_bytes:
        return Problem(file, "", "too large", f"must be at most {max_bytes / 1e6:g} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte {error.start}"
        byte = f"{error.object[error.start]:#04x}"
        return Problem(file, where, byte, "must be part of text in UTF-8")


def read_table(text: str, file: str, problems: list[Problem]) -> tuple[list[str], list[Line]]:
    """Parse CSV text with a header into columns and lines; add problems to `problems`.

    A header with semicolons and no comma is taken for the CSV of a spreadsheet in a locale with
    decimal commas.
    """
    header: list[str] = []
    lines: list[Line] = []
    for number, row in _rows(text, file, problems):
        if not header:
            header = [cell.lower() for cell in row]
            if len(set(header)) < len(header):
                rule = "must name each column once"
                problems.append(Problem(file, f"line {number}", shown(",".join(row)), rule))
                return [], []
        elif len(row) != len(header):
            length = f"{len(row)} value{'s' * (len(row) != 1)} long"
            rule = f"must have {len(header)}, one for each column of the header"
            problems.append(Problem(file, f"line {number}", length, rule))
        else:
            lines.append(Line(number, dict(zip(header, row, strict=True))))
    return header, lines


def _rows(text: str, file: str, problems: list[Problem]) -> Iterator[tuple[int, list[str]]]:
    # As a stream: only line ends of CSV end a line, others are part of a cell.
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter_of(text),
        skipinitialspace=True,
        strict=True,
    )
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        rule = f"must be CSV ({printable(str(error))})"
        problems.append(Problem(file, f"line {reader.line_num}", "unreadable", rule))
