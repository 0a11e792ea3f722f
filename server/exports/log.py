"""The log: a whole study as JSON Lines, each line chained to the previous one by a hash."""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import Any, BinaryIO

import msgspec

from lore_active import __version__
from lore_active.errors import LoreError
from lore_active.reproducibility import fingerprint
from server.store import archive
from server.store.database import Connection, Database
from server.store.hash_chain import records as chain
from server.store.sqlite.former_names import current_column, current_table
from server.store.sqlite.tables import TABLES, key_of
from server.study.config import Catch, Item, LoadedStudy, Study
from server.study.loading import NAME
from server.study.workspace import DATABASE, as_begun, reading

# Since format 2 a log ends with the hash chain of the stored rows. Up to that format, some tables
# and columns had other names; up to format 3, the learner numbered questions itself; up to format
# 4, all questions were triplets.
FORMAT = 5
READABLE = (1, 2, 3, 4, 5)
# Each line ends with its hash; up to format 2, under the second name.
_KEYS = (b',"hash":"', b',"seal":"')
_HASH_LENGTH = 32
_BEGIN = b'{"line":1,"kind":"study",'
# Larger than any model: a file without line ends must not fill the memory.
MAX_LINE_BYTES = 256 * 2**20
# Line of each row of a log, by table and row number.
Lines = dict[tuple[str, int], int]


class BadLog(LoreError):
    """A log that was changed or damaged; names the line."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"Line {line} of the log: {what}")
        self.line = line


class LogHeader(msgspec.Struct, frozen=True):
    """The first line, which describes the study."""

    format: int
    program: str
    fingerprint: str
    name: str
    settings: Study
    items: list[dict[str, str]]
    catches: list[Catch]
    pseudonyms: bool = False


class _Event(msgspec.Struct):
    line: int
    kind: str
    row: dict[str, Any]


def _hashed(body: bytes, before: str, key: bytes = _KEYS[0]) -> tuple[bytes, str]:
    """Return the line with its hash, which follows the line with the hash `before`."""
    own = hashlib.sha256(before.encode() + body).hexdigest()[:_HASH_LENGTH]
    return body[:-1] + key + own.encode() + b'"}\n', own


def lines(database: Database, study: LoadedStudy, pseudonyms: bool = False) -> Iterator[bytes]:
    """Yield the log's lines, a consistent snapshot even while the study is running."""
    number, before = 0, ""
    connection = database.reader()
    try:
        connection.execute("BEGIN")
        for kind, row in _events(connection, study, pseudonyms):
            number += 1
            body = msgspec.json.encode({"line": number, "kind": kind, "row": row})
            line, before = _hashed(body, before)
            yield line
        body = msgspec.json.encode({"line": number + 1, "kind": "end", "row": {}})
        yield _hashed(body, before)[0]
    finally:
        connection.close()


def _events(
    c: Connection, study: LoadedStudy, pseudonyms: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    head = LogHeader(
        FORMAT,
        f"lore-active {__version__}",
        fingerprint(),
        study.name,
        study.settings,
        [
            {
                "key": item.key,
                "kind": item.kind,
                "label": item.label,
                "alt": item.alt,
                "text": item.text,
                "file": "" if item.file is None else item.file.name,
            }
            for item in study.items
        ],
        list(study.catches),
        pseudonyms,
    )
    yield "study", msgspec.to_builtins(head)
    # With the chain's salts, digests of the omitted columns could be compared with guesses.
    for table in TABLES if pseudonyms else archive.LOGGED:
        blobs = [name for name, kind in archive.columns(c, table).items() if kind == "BLOB"]
        for row in archive.rows(c, table):
            if pseudonyms:
                row = archive.pseudonymised(table, row)
            for name in blobs:
                row[name] = {"base64": base64.b64encode(row[name]).decode()}
            yield table, row


def blob(value: dict[str, str]) -> bytes:
    """Decode bytes in a log."""
    return base64.b64decode(value["base64"])


def is_log(path: Path) -> bool:
    """Return whether a file starts like a log."""
    with path.open("rb") as file:
        return file.read(len(_BEGIN)) == _BEGIN


def read(file: BinaryIO) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield (line, kind, row); raise BadLog at the first line changed, moved or lost."""
    before, expected, ended, end = "", 0, False, b"\n"
    while raw := file.readline(MAX_LINE_BYTES):
        expected += 1
        if ended:
            raise BadLog(expected, "there are lines after the end of the log.")
        # Some programs convert line ends; if all are converted, it is still the same log.
        if expected == 1 and raw.endswith(b"\r\n"):
            end = b"\r\n"
        if raw.endswith(b"\n") and raw.endswith(b"\r\n") != (end == b"\r\n"):
            raise BadLog(expected, "its line end differs from that of the first line.")
        if raw.endswith(end):
            raw = raw.removesuffix(end) + b"\n"
        if not raw.endswith(b"\n"):
            raise BadLog(expected, "the line is truncated.")
        start = raw[: -_HASH_LENGTH - 3]
        key = next((key for key in _KEYS if start.endswith(key)), None)
        if key is None or not raw.endswith(b'"}\n'):
            raise BadLog(expected, "the line has no hash; it was changed or truncated.")
        body = start.removesuffix(key) + b"}"
        recomputed, now = _hashed(body, before, key)
        if recomputed != raw:
            try:
                line_number = msgspec.json.decode(body).get("line")
            except (msgspec.DecodeError, AttributeError, RecursionError):
                line_number = None
            if isinstance(line_number, int) and line_number != expected:
                raise BadLog(
                    expected,
                    f"this is line {line_number} of the original; lines are missing, "
                    "duplicated or swapped.",
                )
            raise BadLog(expected, "this line, or the one before it, was changed or moved.")
        before = now
        try:
            event = msgspec.json.decode(body, type=_Event)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadLog(expected, f"its hash is valid, but it is not an event: {error}.") from None
        ended = event.kind == "end"
        yield expected, event.kind, event.row
    if not ended:
        raise BadLog(expected + 1, "the log ends here, but its last line is missing.")


def load(path: Path, into: Path, clock: Callable[[], int]) -> tuple[LoadedStudy, Database, Lines]:
    """Load a log; return the study, its database, and each row's line by table and rowid."""
    where: Lines = {}
    database = Database(into, clock)
    try:
        with path.open("rb") as file:
            events = read(file)
            line, kind, row = next(events, (1, "", {}))
            if kind != "study" or row.get("format") not in READABLE:
                raise BadLog(line, f"this is not a log of format {READABLE[0]} to {FORMAT}.")
            try:
                head = msgspec.convert(row, LogHeader)
                # Files are named after the study, so its name must not lead out of their folder.
                if not NAME.fullmatch(head.name):
                    raise BadLog(line, f"{head.name!r:.80} is not a valid name of a study.")
                study = _study(head, into.parent)
            except (msgspec.ValidationError, KeyError) as error:
                raise BadLog(line, f"it does not describe a study: {error}.") from None
            recorder = database.writer.recorder
            database.write(recorder.pause)
            _put_all(database, events, where)
            without = chain.PSEUDONYMS if head.pseudonyms else chain.LOG
            database.write(lambda c: recorder.resume(clock(), without))
    except BaseException:
        database.close()
        raise
    return study, database, where


@contextmanager
def opened(
    path: Path, clock: Callable[[], int], incomplete: bool = False
) -> Iterator[tuple[LoadedStudy, Database, Lines]]:
    """Open the study in a folder, or the one recorded in a log (then with its line numbers)."""
    if path.is_dir():
        with reading(path, clock, incomplete) as (study, database):
            yield study, database, {}
        return
    with tempfile.TemporaryDirectory(prefix="lore-active-") as home:
        study, database, where = load(path, Path(home) / DATABASE, clock)
        try:
            yield as_begun(study, database), database, where
        finally:
            database.close()


def _put_all(
    database: Database,
    events: Iterator[tuple[int, str, dict[str, Any]]],
    where: Lines,
) -> None:
    known = database.read(lambda c: {table: archive.columns(c, table) for table in archive.LOGGED})

    def chunk() -> list[tuple[int, str, dict[str, Any]]]:
        rows = []
        for line, kind, row in events:
            if kind == "end":
                break
            kind = current_table(kind)
            row = {current_column(kind, name): value for name, value in row.items()}
            if kind not in known or not row.keys() <= known[kind].keys():
                raise BadLog(line, f"a row of {kind!r} that this version does not support.")
            try:
                where[kind, row[key_of(kind)]] = line
                for name, value in row.items():
                    if isinstance(value, dict):
                        row[name] = blob(value)
            except (KeyError, TypeError, ValueError) as error:
                raise BadLog(line, f"an incomplete row of {kind!r}: {error!r}.") from None
            rows.append((line, kind, row))
            if len(rows) == 5000:
                break
        return rows

    while part := chunk():

        def work(c: Connection, part: list[tuple[int, str, dict[str, Any]]] = part) -> None:
            for line, kind, row in part:
                try:
                    archive.put(c, kind, row)
                except archive.CannotPut as error:
                    raise BadLog(line, f"an invalid row of {kind!r}: {error}") from None

        database.write(work)


def _plain_name(file: str) -> str:
    """Return only the name: an untrusted log must not point out of its folder."""
    name = PureWindowsPath(file).name  # accepts both kinds of slashes
    return "" if name == ".." or "\0" in name else name


def _study(head: LogHeader, folder: Path) -> LoadedStudy:
    items = tuple(
        Item(
            item["key"],
            item["kind"],  # type: ignore[arg-type]
            item["label"],
            item["alt"],
            item["text"],
            folder / _plain_name(item["file"]) if item["file"] else None,
        )
        for item in head.items
    )
    return LoadedStudy(folder, head.name, head.settings, items, tuple(head.catches))
