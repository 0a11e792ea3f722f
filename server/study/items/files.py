"""Files of a study: found inside its folder or not at all, and read as text with a limit."""

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
    """One line of a table: its number in the file and its cells by column."""

    number: int
    cells: dict[str, str]


def find(folder: Path, path: str, file: str, key: str, kind: str = "file") -> Path | Problem:
    """The file or folder `path` of a study, resolved; a problem of `key` in `file` otherwise.

    Paths are relative to the study's folder and never leave it, not even through links: a study
    is copied and served as one folder.
    """
    rule = f"must name a {kind} inside the study's folder"
    if not path.strip() or "\0" in path:
        return Problem(file, key, shown(path), rule)
    for flavour in (PurePosixPath(path), PureWindowsPath(path)):
        if flavour.is_absolute() or flavour.drive or flavour.root or ".." in flavour.parts:
            rule = "must be a path inside the study's folder, without '..' and not absolute"
            return Problem(file, key, shown(path), rule)
    try:
        found = (folder / path).resolve(strict=True)
        mode = found.stat().st_mode
    except FileNotFoundError:
        return Problem(file, key, shown(path), f"{rule}, and there is none of that name")
    except PermissionError:
        return Problem(file, key, shown(path), f"{rule} that this user may read")
    except (OSError, RuntimeError, ValueError):  # loops of links, names too long or undecodable
        return Problem(file, key, shown(path), f"{rule}, and this one cannot be reached")
    if not found.is_relative_to(folder):
        rule = "must not be a link that leaves the study's folder"
        return Problem(file, key, shown(path), rule)
    if not (stat.S_ISDIR(mode) if kind == "folder" else stat.S_ISREG(mode)):
        return Problem(file, key, shown(path), f"{rule}, and this is something else")
    return found


def read_text(path: Path, file: str, most: int = MAX_TEXT_BYTES) -> str | Problem:
    """The text of a file in UTF-8, with or without a byte order mark."""
    try:
        with path.open("rb") as stream:
            content = stream.read(most + 1)
    except OSError as error:
        return Problem(file, "", "unreadable", f"must be readable ({error.strerror})")
    if len(content) > most:
        return Problem(file, "", "too large", f"must be at most {most / 1e6:g} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte {error.start}"
        found = f"{error.object[error.start]:#04x}"
        return Problem(file, where, found, "must be part of text in UTF-8")


def read_table(text: str, file: str, problems: list[Problem]) -> tuple[list[str], list[Line]]:
    """The columns and lines of a CSV text with a header; what is wrong goes to `problems`.

    A header with semicolons and no comma is taken as the CSV of a spreadsheet in a language that
    writes decimals with commas.
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
            found = f"{len(row)} value{'s' * (len(row) != 1)} long"
            rule = f"must have {len(header)}, one for each column of the header"
            problems.append(Problem(file, f"line {number}", found, rule))
        else:
            lines.append(Line(number, dict(zip(header, row, strict=True))))
    return header, lines


def _rows(text: str, file: str, problems: list[Problem]) -> Iterator[tuple[int, list[str]]]:
    # As a stream: only line ends that CSV knows end a line, others are part of a cell.
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
