"""Erasing one participant for good: from the database's bytes, and where else they may still be."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lore_active.errors import InvalidParameter
from server.collection.controls import Control
from server.exports.registry import holds_answers
from server.store import collection, erasure
from server.store.collection import Participant
from server.store.database import Connection, Database
from server.store.recovery import backups
from server.study.config import LoadedStudy

WHO = "lore-active forget"
# Shorter values stand in many files by chance.
MIN_TRACE = 6
MIN_WORDS = 12
ARCHIVES = {".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".tar", ".rar"}
CHUNK = 1 << 20


@dataclass(frozen=True)
class Erased:
    """What was done, and what is left to do by hand."""

    participant: int
    answers: int
    answers_erased: bool
    backups_removed: list[str]
    new_backup: str | None
    still_in: list[str]
    unsearched: list[str]


def find(database: Database, called: str) -> Participant:
    """Who is meant: by number (`7` or `#7`), by `NAME=VALUE` of their link, or by the value alone.

    InvalidParameter if that is nobody, or more than one.
    """
    people = database.read(erasure.everybody)
    found = [one for one in people if called in _names(one)]
    if not found:
        raise InvalidParameter(
            f"There is no participant {called!r}: give their number in the monitor, or what the "
            "recruiting service calls them."
        )
    if len(found) > 1:
        ways = " or ".join(f"'{one.external or f'#{one.id}'}' (number {one.id})" for one in found)
        raise InvalidParameter(f"{called!r} is more than one participant: say {ways}.")
    return found[0]


def _names(who: Participant) -> set[str]:
    names = {str(who.id), f"#{who.id}"}
    if who.external is not None:
        names |= {who.external, who.external.partition("=")[2]}
    return names


def forget(
    database: Database,
    study: LoadedStudy,
    who: Participant,
    answers: bool,
    clock: Callable[[], int],
    say: Callable[[str], None] = lambda words: None,
) -> Erased:
    """Erase a participant; nobody else may have the study open.

    With `answers`, they are excluded first and the model is fitted without them; then what they
    answered goes as well.
    """
    traces = _traces(who, [one for one in database.read(erasure.everybody) if one.id != who.id])
    given = database.read(lambda c: erasure.given_by(c, who.id))
    if answers:
        say("fitting the model without their answers …")
        Control(database, clock).exclude(WHO, who.id, "")
        _learn(database, study, clock)

    def work(c: Connection) -> None:
        now = clock()
        erasure.erase_person(c, who.id, secrets.token_urlsafe(18), now)
        if answers:
            erasure.erase_answers(c, who.id)
            erasure.drop_snapshot(c)
        what = "erased" if answers else "kept"
        collection.add_event(c, "forget", WHO, now, who.id, answers=what)
        # Digests of what was erased can then no longer be compared with guesses.
        database.writer.recorder.erase_salt(who.id, now)

    database.write(work)
    removed = backups.erase(study.folder, who.id, answers)
    say("writing the database anew …")
    erasure.compact(database)
    fresh = None
    if removed:
        say("making a new backup …")
        # A disk without room for one is no reason to fail: everything asked for is done.
        with suppress(backups.BackupFailed):
            fresh = backups.take(database.path, clock())
    say("looking for what is left in other files …")
    still_in, unsearched = _search(study.folder, database.path, traces, answers)
    made = None if fresh is None else fresh.relative_to(study.folder).as_posix()
    return Erased(who.id, given, answers, removed, made, still_in, unsearched)


def _learn(database: Database, study: LoadedStudy, clock: Callable[[], int]) -> None:
    # Brings the compiler, which nobody else here needs.
    from server.learning.worker import Worker

    Worker(database, study, clock, time.perf_counter).turn()


def _traces(who: Participant, others: list[Participant]) -> list[bytes]:
    """Bytes by which this participant, and no other, would be found in a file."""
    known = {value for one in others for value in _values(one)}
    own = {who.token, *_values(who)} - known
    traces = {value for value in own if len(value) >= MIN_TRACE}
    # Exports quote and escape in ways of their own: a stretch of plain words is the same in all.
    traces |= {
        part.strip()
        for part in re.split(r"[\r\n\t\"'\\]", who.feedback)
        if len(part.strip()) >= MIN_WORDS
    }
    spelt = {one.encode() for one in traces} | {json.dumps(one)[1:-1].encode() for one in traces}
    return sorted(spelt)


def _values(who: Participant) -> set[str]:
    named = {who.external.partition("=")[2]} if who.external else set()
    return named | {str(value) for value in json.loads(who.entry).values()}


def _search(
    folder: Path, database: Path, traces: list[bytes], answers: bool
) -> tuple[list[str], list[str]]:
    """(files of the study's folder that still hold a trace, archives nobody looked into)."""
    still_in, unsearched = [], []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        if path.suffix.lower() in ARCHIVES:
            unsearched.append(name)
        elif (answers and holds_answers(path.name)) or _holds(path, traces):
            still_in.append(name)
    return still_in, unsearched


def _holds(path: Path, traces: list[bytes]) -> bool:
    return bool(traces) and any(
        trace in part for part in _overlapping(path, max(map(len, traces))) for trace in traces
    )


def _overlapping(path: Path, overlap: int) -> Iterator[bytes]:
    """A file in parts; each begins with the end of the one before."""
    before = b""
    with path.open("rb") as stream:
        while part := stream.read(CHUNK):
            yield before + part
            before = part[-overlap:]
