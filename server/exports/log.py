"""The log: a whole study as JSON Lines, each line sealed by the one before, and back again."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path, PureWindowsPath
from typing import Any, BinaryIO

import msgspec

from lore_active import __version__
from lore_active.errors import LoreError
from lore_active.reproducibility import fingerprint
from server.store import archive
from server.store.database import Connection, Database
from server.store.hash_chain import records as chain
from server.store.tables import TABLES, key_of
from server.study.config import Catch, Item, LoadedStudy, Study
from server.study.loading import NAME

# Format 2 has the hash chain of the stored rows at its end; without it, 1 is the same.
FORMAT = 2
READABLE = (1, 2)
_SEAL = b',"seal":"'
_SEAL_LENGTH = 32
_BEGIN = b'{"line":1,"kind":"study",'
# Beyond any model's size: a log without line ends must not fill the memory.
MAX_LINE_BYTES = 256 * 2**20


class BadLog(LoreError):
    """A log that is not as it was written; says in which line."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"Line {line} of the log: {what}")
        self.line = line


class LogHeader(msgspec.Struct, frozen=True):
    """The first line: what study this is."""

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


def _sealed(body: bytes, before: str) -> tuple[bytes, str]:
    seal = hashlib.sha256(before.encode() + body).hexdigest()[:_SEAL_LENGTH]
    return body[:-1] + _SEAL + seal.encode() + b'"}\n', seal


def lines(database: Database, study: LoadedStudy, pseudonyms: bool = False) -> Iterator[bytes]:
    """The log's lines; the study may go on meanwhile, the log is of one moment."""
    number, seal = 0, ""
    connection = database.reader()
    try:
        connection.execute("BEGIN")
        for kind, row in _events(connection, study, pseudonyms):
            number += 1
            body = msgspec.json.encode({"line": number, "kind": kind, "row": row})
            sealed, seal = _sealed(body, seal)
            yield sealed
        body = msgspec.json.encode({"line": number + 1, "kind": "end", "row": {}})
        yield _sealed(body, seal)[0]
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
    # With the chain's salt, digests of what is left out could be compared with guesses.
    for table in TABLES if pseudonyms else archive.LOGGED:
        blobs = [name for name, kind in archive.columns(c, table).items() if kind == "BLOB"]
        for row in archive.rows(c, table):
            if pseudonyms:
                row = archive.nameless(table, row)
            for name in blobs:
                row[name] = {"base64": base64.b64encode(row[name]).decode()}
            yield table, row


def blob(value: dict[str, str]) -> bytes:
    """Bytes as a log has them."""
    return base64.b64decode(value["base64"])


def is_log(path: Path) -> bool:
    """Whether a file begins as a log does."""
    with path.open("rb") as file:
        return file.read(len(_BEGIN)) == _BEGIN


def read(file: BinaryIO) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """(line, kind, row) of every line; BadLog at the first that was changed, moved or lost."""
    seal, expected, ended, end = "", 0, False, b"\n"
    while raw := file.readline(MAX_LINE_BYTES):
        expected += 1
        if ended:
            raise BadLog(expected, "the log goes on after its end.")
        # Some programs convert line ends: all of them converted, it is still the same log.
        if expected == 1 and raw.endswith(b"\r\n"):
            end = b"\r\n"
        if raw.endswith(b"\n") and raw.endswith(b"\r\n") != (end == b"\r\n"):
            raise BadLog(expected, "its line end is not that of the first line.")
        if raw.endswith(end):
            raw = raw.removesuffix(end) + b"\n"
        if not raw.endswith(b"\n"):
            raise BadLog(expected, "the line is cut off.")
        at = raw.rfind(_SEAL)
        given = raw[at + len(_SEAL) : -3]
        if at < 0 or len(given) != _SEAL_LENGTH or not raw.endswith(b'"}\n'):
            raise BadLog(expected, "the line has no seal; it was changed or is cut off.")
        body = raw[:at] + b"}"
        again, now = _sealed(body, seal)
        if again != raw:
            try:
                said = msgspec.json.decode(body).get("line")
            except (msgspec.DecodeError, AttributeError, RecursionError):
                said = None
            if isinstance(said, int) and said != expected:
                raise BadLog(
                    expected,
                    f"this is line {said} of the original; lines are missing, doubled or swapped.",
                )
            raise BadLog(expected, "this line, or the one before it, was changed or moved.")
        seal = now
        try:
            event = msgspec.json.decode(body, type=_Event)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadLog(expected, f"its seal is right, but it is no event: {error}.") from None
        ended = event.kind == "end"
        yield expected, event.kind, event.row
    if not ended:
        raise BadLog(expected + 1, "the log ends here, but its last line is missing.")


def load(
    path: Path, into: Path, clock: Callable[[], int]
) -> tuple[LoadedStudy, Database, dict[tuple[str, int], int]]:
    """A database from a log: the study, its database, and each row's line by table and rowid."""
    where: dict[tuple[str, int], int] = {}
    database = Database(into, clock)
    try:
        with path.open("rb") as file:
            events = read(file)
            line, kind, row = next(events, (1, "", {}))
            if kind != "study" or row.get("format") not in READABLE:
                raise BadLog(
                    line, f"this is not a log of format {' or '.join(map(str, READABLE))}."
                )
            try:
                head = msgspec.convert(row, LogHeader)
                # Files are named after the study: no other name may lead out of their folder.
                if not NAME.fullmatch(head.name):
                    raise BadLog(line, f"{head.name!r:.80} is not a name that a study can have.")
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


def _put_all(
    database: Database,
    events: Iterator[tuple[int, str, dict[str, Any]]],
    where: dict[tuple[str, int], int],
) -> None:
    known = database.read(lambda c: {table: archive.columns(c, table) for table in archive.LOGGED})

    def chunk() -> list[tuple[int, str, dict[str, Any]]]:
        found = []
        for line, kind, row in events:
            if kind == "end":
                break
            if kind not in known or not row.keys() <= known[kind].keys():
                raise BadLog(line, f"a row of {kind!r} that this version does not know.")
            try:
                where[kind, row[key_of(kind)]] = line
                for name, value in row.items():
                    if isinstance(value, dict):
                        row[name] = blob(value)
            except (KeyError, TypeError, ValueError) as error:
                raise BadLog(line, f"a row of {kind!r} that is not whole: {error!r}.") from None
            found.append((line, kind, row))
            if len(found) == 5000:
                break
        return found

    while part := chunk():

        def work(c: Connection, part: list[tuple[int, str, dict[str, Any]]] = part) -> None:
            for line, kind, row in part:
                try:
                    archive.put(c, kind, row)
                except archive.CannotPut as error:
                    raise BadLog(line, f"a row of {kind!r} that cannot be: {error}") from None

        database.write(work)


def _plain_name(file: str) -> str:
    """Only the name: a log from somebody else must not point out of its folder."""
    name = PureWindowsPath(file).name  # takes both kinds of slashes
    return "" if name == ".." or "\0" in name else name


def _study(head: LogHeader, folder: Path) -> LoadedStudy:
    items = tuple(
        Item(
            one["key"],
            one["kind"],  # type: ignore[arg-type]
            one["label"],
            one["alt"],
            one["text"],
            folder / _plain_name(one["file"]) if one["file"] else None,
        )
        for one in head.items
    )
    return LoadedStudy(folder, head.name, head.settings, items, tuple(head.catches))
