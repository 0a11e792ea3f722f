"""Rolling backups of a study's database: each complete and verified; only the newest are kept."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from lore_active.errors import LoreError
from lore_active.wording import many
from server.store.recovery import copies
from server.store.sqlite.connection import create_private, read_only

FOLDER = "backups"
KEPT = 3
NAME = re.compile(r"study-(\d{8}T\d{6}Z)\.db")
TIME = "%Y%m%dT%H%M%SZ"
PART = ".part"
# Copies of a file that was replaced while the server was running, files replaced by a recovery, and
# its working folder.
RESCUED = "rescued-*.db"
DAMAGED = "damaged-*"
WORKPLACE = ".recovering-"
# Free space to leave for data collection, besides the backup itself.
SPARE_BYTES = 64 * 2**20


class BackupFailed(LoreError):
    """No backup was made; the study and its earlier backups are unchanged."""


def every(folder: Path) -> list[Path]:
    """List the backups in a study folder, oldest first."""
    home = folder / FOLDER
    if not home.is_dir():
        return []
    return sorted(path for path in home.iterdir() if NAME.fullmatch(path.name))


def made_at(backup: Path) -> int:
    """Return when a backup was made, in milliseconds since 1970."""
    match = NAME.fullmatch(backup.name)
    assert match is not None
    return int(datetime.strptime(match[1], TIME).replace(tzinfo=UTC).timestamp() * 1000)


def take(
    database: Path,
    now: int,
    pace: Callable[[], None] = lambda: None,
    free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> Path | None:
    """Back up the database to `backups/` beside it; return None if nothing has changed.

    It may be written meanwhile, without waiting: the backup is a consistent snapshot. `pace` is
    called after each small part, and may wait, or abort by an exception.
    """
    home = database.parent / FOLDER
    before = every(database.parent)
    try:
        home.mkdir(mode=0o700, exist_ok=True)
        for leftover in home.glob(f".*{PART}*"):
            leftover.unlink()
        if before and not _is_newer(database, before[-1]):
            return None
        _make_room(home, database, before, free)
        # Names are in chronological order, even if the clock was set back.
        at = max(now, made_at(before[-1]) + 1000) if before else now
        name = f"study-{datetime.fromtimestamp(at / 1000, UTC).strftime(TIME)}.db"
        made = _written(database, home / f".{name}{PART}", home / name, pace)
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise BackupFailed(f"{home}: {why}.") from error
    for old in before[: max(0, len(before) + 1 - KEPT)]:
        old.unlink(missing_ok=True)
    return made


def _is_newer(database: Path, backup: Path) -> bool:
    held, kept = _stamp(database), _stamp(backup)
    if held is None or kept is None:
        return True
    if held[0] < kept[0]:
        # Answers are never deleted. Backing this up would eventually replace the good backups.
        raise BackupFailed(
            f"{database} contains {many(held[0], 'answer')}, but {backup} contains {kept[0]}: was "
            "it replaced by an older copy? The backups are unchanged. Stop the server and run "
            "`lore-active recover`, which combines both. To keep the older copy, move newer "
            "backups elsewhere."
        )
    return held != kept


def _make_room(home: Path, database: Path, before: list[Path], free: Callable[[Path], int]) -> None:
    """Delete older backups if the disk lacks space for a new one."""
    wal = database.with_name(f"{database.name}-wal")
    needed = SPARE_BYTES + database.stat().st_size + (wal.stat().st_size if wal.exists() else 0)
    while free(home) < needed:
        if len(before) < 2:
            raise BackupFailed(
                f"{home}: not enough space for a backup, which needs {needed / 1e6:.0f} MB."
            )
        before.pop(0).unlink(missing_ok=True)


def _written(database: Path, part: Path, to: Path, pace: Callable[[], None]) -> Path:
    create_private(part)
    try:
        copies.online(database, part, pace)
        if problem := damage_in(part):
            raise BackupFailed(f"{database} is damaged: {problem}. Its backups are unchanged.")
        pace()
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)
    sync(to.parent)
    return to


def sync(folder: Path) -> None:
    """Sync a folder, so that the names of its files are on disk."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def damage_in(path: Path) -> str:
    """Return what SQLite finds wrong with a database not in use; empty if it is valid."""
    try:
        with closing(read_only(path)) as connection:
            errors = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # SQLite quotes parts of the file, which need not be valid text.
        return str(error)
    return "" if errors == ["ok"] else str(errors[0] if errors else "quick_check returned nothing")


def _stamp(path: Path) -> tuple[int, tuple[object, ...]] | None:
    """Return (answers, further values that identify a state); None if not readable.

    The worker's heartbeat does not count as a change.
    """
    try:
        with closing(read_only(path)) as connection:
            answers, *heads = connection.execute(
                "SELECT (SELECT coalesce(max(seq), 0) FROM answers), (SELECT max(id) FROM events), "
                "(SELECT max(id) FROM queries), (SELECT max(id) FROM steps)"
            ).fetchone()
            participants = connection.execute(
                "SELECT count(*), max(seen_at), max(finished_at), sum(visit) FROM participants"
            ).fetchone()
            state = connection.execute("SELECT * FROM state").fetchone()
            return answers, (*heads, participants, state)
    except sqlite3.Error:
        return None


def erase(folder: Path, participant: int, answers: bool) -> list[str]:
    """Delete every copy in `backups/` that may still contain an erased participant.

    With `answers`, also copies with their answers. Files are overwritten first. Returns the paths
    of the deleted files, relative to the study folder.
    """
    home, removed = folder / FOLDER, []
    if not home.is_dir():
        return []
    kept = [*home.glob(RESCUED), *every(folder)]
    places = [*home.glob(DAMAGED), *home.glob(f"{WORKPLACE}*")]
    unusable = [*home.glob(f".*{PART}*"), *(path for place in places for path in place.iterdir())]
    for path in sorted(unusable + [path for path in kept if _holds(path, participant, answers)]):
        for end in ("", "-wal", "-shm"):
            if (file := path.with_name(path.name + end)).is_file():
                _overwrite(file)
                removed.append(file.relative_to(folder).as_posix())
    for place in places:
        place.rmdir()
    sync(home)
    return removed


def _holds(path: Path, participant: int, answers: bool) -> bool:
    """Return whether a copy may contain the participant: made before the erasure, or unreadable."""
    erased = "json_extract(detail, '$.answers') = 'erased'" if answers else "1"
    try:
        with closing(read_only(path)) as held:
            row = held.execute(
                "SELECT EXISTS (SELECT 1 FROM participants WHERE id = :id) AND NOT EXISTS "
                f"(SELECT 1 FROM events WHERE kind = 'forget' AND participant = :id AND {erased})",
                {"id": participant},
            ).fetchone()
            return bool(row[0])
    except sqlite3.Error:
        return True


def _overwrite(file: Path) -> None:
    with file.open("rb+") as stream:
        left = os.fstat(stream.fileno()).st_size
        while left > 0:
            left -= stream.write(bytes(min(left, 1 << 20)))
        stream.flush()
        os.fsync(stream.fileno())
    file.unlink()
