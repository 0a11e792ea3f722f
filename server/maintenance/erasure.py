"""Erasing a participant from the database file, and finding other files that still hold them."""

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
# Shorter values occur in many files by chance.
MIN_TRACE = 6
MIN_WORDS = 12
ARCHIVES = {".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".tar", ".rar"}
CHUNK = 1 << 20


@dataclass(frozen=True)
class Erased:
    """What was erased, and what remains to be done by hand."""

    participant: int
    answers: int
    answers_erased: bool
    backups_removed: list[str]
    new_backup: str | None
    still_in: list[str]
    unsearched: list[str]


def find(database: Database, called: str) -> Participant:
    """Find a participant by number (`7` or `#7`), by `NAME=VALUE` of their link, or by the value.

    InvalidParameter if there is none, or more than one.
    """
    participants = database.read(erasure.everybody)
    matches = [match for match in participants if called in _names(match)]
    if not matches:
        raise InvalidParameter(
            f"There is no participant {called!r}: give their number in the monitor, or their "
            "id at the recruitment site."
        )
    if len(matches) > 1:
        choices = " or ".join(
            f"'{match.external or f'#{match.id}'}' (number {match.id})" for match in matches
        )
        raise InvalidParameter(f"{called!r} matches more than one participant: give {choices}.")
    return matches[0]


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
    say: Callable[[str], None] = lambda message: None,
) -> Erased:
    """Erase a participant; the study must not be open elsewhere.

    With `answers`, they are first excluded and the model is fitted without them; then their answers
    are erased as well.
    """
    traces = _traces(
        who,
        [
            participant
            for participant in database.read(erasure.everybody)
            if participant.id != who.id
        ],
    )
    answer_count = database.read(lambda c: erasure.given_by(c, who.id))
    if answers:
        say("Fitting the model without their answers …")
        Control(database, clock).exclude(WHO, who.id, "")
        _learn(database, study, clock)

    def work(c: Connection) -> None:
        now = clock()
        erasure.erase_participant(c, who.id, secrets.token_urlsafe(18), now)
        if answers:
            erasure.erase_answers(c, who.id)
            erasure.drop_snapshot(c)
        what = "erased" if answers else "kept"
        collection.add_event(c, "forget", WHO, now, who.id, answers=what)
        # Without the salt, digests of the erased data cannot be compared with guesses.
        database.writer.recorder.erase_salt(who.id, now)

    database.write(work)
    removed = backups.erase(study.folder, who.id, answers)
    say("Rewriting the database …")
    erasure.compact(database)
    fresh = None
    if removed:
        say("Making a new backup …")
        # A full disk is not a failure: the erasure itself is complete.
        with suppress(backups.BackupFailed):
            fresh = backups.take(database.path, clock())
    say("Searching other files …")
    still_in, unsearched = _search(study.folder, database.path, traces, answers)
    new_backup = None if fresh is None else fresh.relative_to(study.folder).as_posix()
    return Erased(who.id, answer_count, answers, removed, new_backup, still_in, unsearched)


def _learn(database: Database, study: LoadedStudy, clock: Callable[[], int]) -> None:
    # Imported here, since it loads the compiler.
    from server.learning.worker import Worker

    Worker(database, study, clock, time.perf_counter).turn()


def _traces(who: Participant, others: list[Participant]) -> list[bytes]:
    """Return byte strings that identify this participant, and no other, in a file."""
    known = {value for other in others for value in _values(other)}
    own = {who.token, *_values(who)} - known
    traces = {value for value in own if len(value) >= MIN_TRACE}
    # Exports differ in quoting and escaping; a stretch of plain text is the same in all.
    traces |= {
        part.strip()
        for part in re.split(r"[\r\n\t\"'\\]", who.feedback)
        if len(part.strip()) >= MIN_WORDS
    }
    encoded = {trace.encode() for trace in traces} | {
        json.dumps(trace)[1:-1].encode() for trace in traces
    }
    return sorted(encoded)


def _values(who: Participant) -> set[str]:
    named = {who.external.partition("=")[2]} if who.external else set()
    return named | {str(value) for value in json.loads(who.entry).values()}


def _search(
    folder: Path, database: Path, traces: list[bytes], answers: bool
) -> tuple[list[str], list[str]]:
    """Return files in the study folder that still hold a trace, and archives not searched."""
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
    """Read a file in parts; each starts with the end of the previous one."""
    before = b""
    with path.open("rb") as stream:
        while part := stream.read(CHUNK):
            yield before + part
            before = part[-overlap:]
