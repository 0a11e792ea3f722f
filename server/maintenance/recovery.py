"""Recovering the newest state of a study from damaged files, backups and rescue copies."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lore_active.errors import InvalidParameter, LoreError
from server.store import collection
from server.store.database import Database
from server.store.hash_chain import verification as chain_verification
from server.store.recovery import backups, copies, repair, salvage
from server.store.recovery.repair import Mended, Missing
from server.store.recovery.salvage import Broken, Layout, Merged, Recorded, Source, Valid
from server.store.recovery.write_ahead import read_log
from server.store.sqlite.connection import Connection, connect, create_private
from server.store.sqlite.migration import NewerDatabase
from server.store.tables import CHAIN
from server.study.config import LoadedStudy
from server.study.workspace import DATABASE, contents, first_state

Say = Callable[[str], None]


class NotRecovered(LoreError):
    """The recovered database is not valid; nothing was changed."""


@dataclass(frozen=True)
class Apart:
    """A file with a different history: its answers from `first` on are not in the result."""

    name: str
    first: int
    answers: int


@dataclass(frozen=True)
class Used:
    """A file that contributed to the result."""

    name: str
    damage: str
    answers: int
    added: dict[str, int]


@dataclass(frozen=True)
class NotNeeded:
    """The database is valid, and no other file holds more.

    `not_as_recorded` rows differ from the hash chain, which SQLite cannot detect.
    """

    not_as_recorded: int


@dataclass(frozen=True)
class Recovered:
    """The recovered database, in a separate file, and a report about it."""

    path: Path
    answers: int
    participants: int
    newest_answer: int
    newest_at: int | None
    used: list[Used]
    apart: list[Apart]
    missing: Missing
    mended: Mended
    chain_continues: bool

    def report(self) -> dict[str, Any]:
        """Return the report as plain data."""
        report = {name: value for name, value in asdict(self).items() if name != "path"}
        report["complete"] = self.missing.nothing and not self.apart
        report["missing"] = {**report["missing"].pop("rows"), **report["missing"]}
        return report


@contextmanager
def recovered(
    study: LoadedStudy, clock: Callable[[], int], say: Say = lambda message: None
) -> Iterator[Recovered | NotNeeded]:
    """Recover what is possible of a study that is not open elsewhere.

    The result is deleted at the end unless `put_in_place` has moved it.
    """
    home = study.folder / backups.FOLDER
    home.mkdir(mode=0o700, exist_ok=True)
    for leftover in home.glob(f"{backups.WORKPLACE}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=backups.WORKPLACE, dir=home) as place:
        say("Examining the files …")
        sources = _sources(study.folder, Path(place), clock)
        if not sources:
            raise InvalidParameter(
                f"{study.folder} contains neither {DATABASE} nor backups: nothing can be recovered."
            )
        if _is_complete(sources):
            with closing(connect(Path(place) / "current.db")) as connection:
                differing = chain_verification.differing(connection)
            yield NotNeeded(len(differing.changed | differing.added))
        else:
            say("Combining rows …")
            yield _combine(study, sources, Path(place) / "result.db", clock)


def put_in_place(folder: Path, result: Recovered, now: int) -> Path:
    """Make the result the study's database; return the folder that keeps the replaced files."""
    moment = datetime.fromtimestamp(now / 1000, UTC).strftime(backups.TIME)
    kept = folder / backups.FOLDER / f"damaged-{moment}"
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    old = [folder / f"{DATABASE}{end}" for end in ("-wal", "-shm", "")]
    for path in [*old, *(folder / backups.FOLDER).glob(f"{backups.RESCUED}*")]:
        if path.exists():
            path.replace(kept / path.name)
    result.path.replace(folder / DATABASE)
    for home in (kept, folder / backups.FOLDER, folder):
        backups.sync(home)
    return kept


# ---- sources ------------------------------------------------------------------------------------


def _sources(folder: Path, place: Path, clock: Callable[[], int]) -> list[Source]:
    """List every file that may hold data, the study's own first."""
    with closing(_fresh(place / "empty.db", clock)) as connection:
        layout = Layout.of(connection)
    files: list[Source] = []
    current = folder / DATABASE
    log = current.with_name(f"{DATABASE}-wal")
    if current.exists() or log.exists():
        lost = _log_lost(current)
        opened = _opened(current, place / "current.db", clock, DATABASE)
        files += [opened] if isinstance(opened, Valid) else []
        if lost or isinstance(opened, str):
            damage = opened if isinstance(opened, str) else lost
            files.append(Broken(DATABASE, current, damage, layout))
    for number, path in enumerate(sorted((folder / backups.FOLDER).glob(backups.RESCUED))):
        name = path.relative_to(folder).as_posix()
        opened = _opened(path, place / f"rescued{number}.db", clock, name)
        files.append(opened if isinstance(opened, Valid) else Broken(name, path, opened, layout))
    damaged_backups = []
    for path in reversed(backups.every(folder)):
        name = path.relative_to(folder).as_posix()
        opened = _opened(path, place / "backup.db", clock, name)
        if isinstance(opened, Valid):
            if files and isinstance(files[0], Valid) and (why := _restorable(files[0], opened)):
                files[0] = Broken(DATABASE, current, why, layout)
            return [*files, opened]
        damaged_backups.append(Broken(name, path, opened, layout))
    return [*files, *damaged_backups[:1]]


def _restorable(current: Valid, backup: Valid) -> str:
    """Describe changed rows that the backup still has as recorded in the hash chain.

    Empty if there are none, or if not all can be restored: then the database stays as it is.
    """
    with closing(connect(current.path)) as connection:
        recorded = Recorded(connection)
        changed = chain_verification.differing(connection).changed
    if not recorded.whole or not changed:
        return ""
    tables = {table for table, _ in changed}
    kept = {(table, row): values for table in tables for row, values in backup.rows(table)}
    if not all(key in kept and recorded.agrees(*key, kept[key]) for key in changed):
        return ""
    count = len(changed)
    return (
        "1 of its rows differs from the hash chain"
        if count == 1
        else f"{count} of its rows differ from the hash chain"
    )


def _fresh(path: Path, clock: Callable[[], int]) -> Connection:
    Database(path, clock).close()
    return connect(path)


def _log_lost(path: Path) -> str:
    log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    return read_log(*(file.read_bytes() if file.is_file() else b"" for file in (log, index))).lost


def _opened(path: Path, to: Path, clock: Callable[[], int], name: str) -> Valid | str:
    """Make a valid copy in the current format, or say what is wrong with the file."""
    for end in ("", "-wal", "-shm"):
        to.with_name(to.name + end).unlink(missing_ok=True)
    if not path.exists():
        return "it is missing"
    try:
        copies.copy(path, to)
        with closing(connect(to)) as connection:
            if wrong := _damage(connection):
                return wrong
        Database(to, clock).close()
        with closing(connect(to)) as connection:
            if not collection.has_begun(connection):
                return "it is empty"
            if collection.state(connection) is None:
                return "the row of its table `state` is missing"
    except NewerDatabase:
        raise
    except UnicodeDecodeError:
        # SQLite quotes bytes that Python cannot decode.
        return "malformed database schema"
    except (sqlite3.Error, LoreError) as error:
        cause = error.__cause__
        return str(cause if isinstance(cause, sqlite3.Error) else error)
    return Valid(name, to)


def _damage(c: Connection) -> str:
    errors = [str(row[0]) for row in c.execute("PRAGMA integrity_check(1)")]
    if errors != ["ok"]:
        # The first line only names the database of the connection.
        return errors[0].splitlines()[-1] if errors else "its integrity cannot be checked"
    row = c.execute("PRAGMA foreign_key_check").fetchone()
    return "" if row is None else f"a row of {row[0]} refers to a missing row of {row[2]}"


def _is_complete(sources: list[Source]) -> bool:
    """Return whether the database is valid and no other file holds more."""
    current, *others = sources
    if not isinstance(current, Valid) or current.name != DATABASE:
        return False
    if any(other.name == DATABASE or other.heads() > current.heads() for other in others):
        return False
    with closing(connect(current.path)) as connection:
        return all(salvage.parted_at(connection, other) is None for other in others)


# ---- combining ----------------------------------------------------------------------------------


def _combine(
    study: LoadedStudy, sources: list[Source], to: Path, clock: Callable[[], int]
) -> Recovered:
    valid = [source for source in sources if isinstance(source, Valid)]
    base = max(valid, key=lambda source: source.heads(), default=None)
    apart: list[Apart] = []
    used: list[Used] = []
    merged: list[Merged] = []
    with closing(_begun(study, to, base, clock)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        if base is not None:
            used.append(Used(base.name, "", base.heads()[0], {}))
        for source in sorted(sources, key=lambda source: source.heads()):
            if source is base:
                continue
            first = salvage.parted_at(connection, source)
            if first is not None:
                others = source.heads()[0] - first + 1
                apart.append(Apart(source.name, first, others))
                continue
            merge = salvage.merge(connection, source)
            if source.damage:
                merged.append(merge)
            if merge.added or merge.changed or source.damage:
                taken = dict(merge.added)
                used.append(Used(source.name, source.damage, source.heads()[0], taken))
        missing = repair.missing(connection, merged, _unknown(connection, sources))
        continues = repair.continue_chain(connection, clock())
        connection.execute("COMMIT")
    mended = _mended(study, to, clock, missing, used)
    with closing(connect(to)) as connection:
        if wrong := _damage(connection):
            raise NotRecovered(f"The recovery is not valid: {wrong}. Nothing was changed.")
        answers, newest, at, people = connection.execute(
            "SELECT (SELECT count(*) FROM answers), (SELECT coalesce(max(seq), 0) FROM answers), "
            "(SELECT received_at FROM answers ORDER BY seq DESC LIMIT 1), "
            "(SELECT count(*) FROM participants)"
        ).fetchone()
    return Recovered(to, answers, people, newest, at, used, apart, missing, mended, continues)


def _unknown(c: Connection, sources: list[Source]) -> list[str]:
    """Explain why there may have been more data than in any of the files."""
    reasons = [source.lost for source in sources if source.lost]
    end = _chain_ends(c.execute("SELECT last FROM chain_head").fetchall())
    newest = [source for source in sources if not backups.NAME.fullmatch(Path(source.name).name)]
    ends = [_chain_ends([(row["last"],) for _, row in file.rows("chain_head")]) for file in newest]
    if end not in ends:
        kept = [source.name for source in sources if source not in newest]
        after = f"since {kept[0]} was made" if kept else "last"
        reasons.append(f"no file records what was stored {after}")
    return reasons


def _chain_ends(rows: list[Any]) -> int:
    return int(rows[0][0]) if rows else 0


def _begun(
    study: LoadedStudy, to: Path, base: Valid | None, clock: Callable[[], int]
) -> Connection:
    """Open the database to combine everything in: the newest valid copy, or an empty one."""
    if base is not None:
        create_private(to)
        shutil.copyfile(base.path, to)
        return connect(to)
    connection = _fresh(to, clock)
    # The rows come with their own hash chain.
    for table in CHAIN:
        connection.execute(f"DELETE FROM {table}")
    # Questions refer to the items.
    collection.add_items(connection, contents(study))
    return connection


def _mended(
    study: LoadedStudy, path: Path, clock: Callable[[], int], missing: Missing, used: list[Used]
) -> Mended:
    session = study.settings.session

    def work(c: Connection) -> Mended:
        now = clock()
        mended = repair.mend(
            c,
            now,
            contents(study),
            first_state(study),
            session.practice,
            session.feedback,
            missing,
        )
        collection.add_event(
            c,
            repair.EVENT,
            repair.WHO,
            now,
            missing=missing.rows,
            files=[source.name for source in used],
            steps_dropped=mended.steps_dropped,
        )
        return mended

    with closing(Database(path, clock)) as database:
        return database.write(work)
