"""Recovering a study: its newest state, from its damaged files, its backups and rescue copies."""

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
    """What was put together is not a valid database; nothing was changed."""


@dataclass(frozen=True)
class Apart:
    """A file that others have gone on with: its answers from `first` on are not in the result."""

    name: str
    first: int
    answers: int


@dataclass(frozen=True)
class Used:
    """A file that something was taken from."""

    name: str
    damage: str
    answers: int
    added: dict[str, int]


@dataclass(frozen=True)
class NotNeeded:
    """The database is valid, and nothing else holds more.

    `not_as_recorded` rows are not what the hash chain says, which SQLite cannot know.
    """

    not_as_recorded: int


@dataclass(frozen=True)
class Recovered:
    """The result, in a file of its own, and what is to be said about it."""

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
        """All of it as plain data."""
        told = {name: value for name, value in asdict(self).items() if name != "path"}
        told["complete"] = self.missing.nothing and not self.apart
        told["missing"] = {**told["missing"].pop("rows"), **told["missing"]}
        return told


@contextmanager
def recovered(
    study: LoadedStudy, clock: Callable[[], int], say: Say = lambda message: None
) -> Iterator[Recovered | NotNeeded]:
    """What can be recovered of a study that nobody holds.

    The result is gone at the end unless `put_in_place` has moved it.
    """
    home = study.folder / backups.FOLDER
    home.mkdir(mode=0o700, exist_ok=True)
    for left in home.glob(f"{backups.WORKPLACE}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=backups.WORKPLACE, dir=home) as place:
        say("examining the files …")
        sources = _sources(study.folder, Path(place), clock)
        if not sources:
            raise InvalidParameter(
                f"{study.folder} holds neither {DATABASE} nor backups: nothing can be recovered."
            )
        if _needs_nothing(sources):
            with closing(connect(Path(place) / "current.db")) as connection:
                unlike = chain_verification.differing(connection)
            yield NotNeeded(len(unlike.changed | unlike.added))
        else:
            say("putting rows together …")
            yield _put_together(study, sources, Path(place) / "result.db", clock)


def put_in_place(folder: Path, found: Recovered, now: int) -> Path:
    """Make the result the study's database; gives the folder where all that it replaces is kept."""
    moment = datetime.fromtimestamp(now / 1000, UTC).strftime(backups.TIME)
    kept = folder / backups.FOLDER / f"damaged-{moment}"
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    old = [folder / f"{DATABASE}{end}" for end in ("-wal", "-shm", "")]
    for path in [*old, *(folder / backups.FOLDER).glob(f"{backups.RESCUED}*")]:
        if path.exists():
            path.replace(kept / path.name)
    found.path.replace(folder / DATABASE)
    for home in (kept, folder / backups.FOLDER, folder):
        backups.sync(home)
    return kept


# ---- what there is ------------------------------------------------------------------------------


def _sources(folder: Path, place: Path, clock: Callable[[], int]) -> list[Source]:
    """Every file that may hold something, the study's own first."""
    with closing(_fresh(place / "empty.db", clock)) as connection:
        layout = Layout.of(connection)
    found: list[Source] = []
    current = folder / DATABASE
    log = current.with_name(f"{DATABASE}-wal")
    if current.exists() or log.exists():
        lost = _log_lost(current)
        opened = _opened(current, place / "current.db", clock, DATABASE)
        found += [opened] if isinstance(opened, Valid) else []
        if lost or isinstance(opened, str):
            damage = opened if isinstance(opened, str) else lost
            found.append(Broken(DATABASE, current, damage, layout))
    for number, path in enumerate(sorted((folder / backups.FOLDER).glob(backups.RESCUED))):
        name = path.relative_to(folder).as_posix()
        opened = _opened(path, place / f"rescued{number}.db", clock, name)
        found.append(opened if isinstance(opened, Valid) else Broken(name, path, opened, layout))
    spoilt = []
    for path in reversed(backups.every(folder)):
        name = path.relative_to(folder).as_posix()
        opened = _opened(path, place / "backup.db", clock, name)
        if isinstance(opened, Valid):
            if found and isinstance(found[0], Valid) and (why := _restorable(found[0], opened)):
                found[0] = Broken(DATABASE, current, why, layout)
            return [*found, opened]
        spoilt.append(Broken(name, path, opened, layout))
    return [*found, *spoilt[:1]]


def _restorable(current: Valid, backup: Valid) -> str:
    """What the backup still has as it was recorded, where the database no longer does.

    Empty if that is nothing, or not all: what cannot be restored is better kept as it is.
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
        "1 of its rows is not as the hash chain recorded it"
        if count == 1
        else f"{count} of its rows are not as the hash chain recorded them"
    )


def _fresh(path: Path, clock: Callable[[], int]) -> Connection:
    Database(path, clock).close()
    return connect(path)


def _log_lost(path: Path) -> str:
    log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    return read_log(*(one.read_bytes() if one.is_file() else b"" for one in (log, index))).lost


def _opened(path: Path, to: Path, clock: Callable[[], int], name: str) -> Valid | str:
    """A valid copy in this version's format, or what is wrong with the file."""
    for end in ("", "-wal", "-shm"):
        to.with_name(to.name + end).unlink(missing_ok=True)
    if not path.exists():
        return "it is gone"
    try:
        copies.copy(path, to)
        with closing(connect(to)) as connection:
            if wrong := _wrong(connection):
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
        # SQLite quotes what it found, and Python cannot read it.
        return "malformed database schema"
    except (sqlite3.Error, LoreError) as error:
        cause = error.__cause__
        return str(cause if isinstance(cause, sqlite3.Error) else error)
    return Valid(name, to)


def _wrong(c: Connection) -> str:
    found = [str(row[0]) for row in c.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        # Below a line that says which database of the connection it is about.
        return found[0].splitlines()[-1] if found else "it cannot be checked"
    row = c.execute("PRAGMA foreign_key_check").fetchone()
    return "" if row is None else f"a row of {row[0]} refers to one of {row[2]} that is not there"


def _needs_nothing(sources: list[Source]) -> bool:
    """Whether the database is valid and nothing else holds more."""
    current, *others = sources
    if not isinstance(current, Valid) or current.name != DATABASE:
        return False
    if any(one.name == DATABASE or one.heads() > current.heads() for one in others):
        return False
    with closing(connect(current.path)) as connection:
        return all(salvage.parted_at(connection, one) is None for one in others)


# ---- putting together ---------------------------------------------------------------------------


def _put_together(
    study: LoadedStudy, sources: list[Source], to: Path, clock: Callable[[], int]
) -> Recovered:
    valid = [one for one in sources if isinstance(one, Valid)]
    base = max(valid, key=lambda one: one.heads(), default=None)
    apart: list[Apart] = []
    used: list[Used] = []
    merged: list[Merged] = []
    with closing(_begun(study, to, base, clock)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        if base is not None:
            used.append(Used(base.name, "", base.heads()[0], {}))
        for source in sorted(sources, key=lambda one: one.heads()):
            if source is base:
                continue
            first = salvage.parted_at(connection, source)
            if first is not None:
                others = source.heads()[0] - first + 1
                apart.append(Apart(source.name, first, others))
                continue
            found = salvage.merge(connection, source)
            if source.damage:
                merged.append(found)
            if found.added or found.changed or source.damage:
                taken = dict(found.added)
                used.append(Used(source.name, source.damage, source.heads()[0], taken))
        missing = repair.missing(connection, merged, _unknown(connection, sources))
        continues = repair.continue_chain(connection, clock())
        connection.execute("COMMIT")
    mended = _mended(study, to, clock, missing, used)
    with closing(connect(to)) as connection:
        if wrong := _wrong(connection):
            raise NotRecovered(f"What was put together is not valid: {wrong}. Nothing was changed.")
        answers, newest, at, people = connection.execute(
            "SELECT (SELECT count(*) FROM answers), (SELECT coalesce(max(seq), 0) FROM answers), "
            "(SELECT received_at FROM answers ORDER BY seq DESC LIMIT 1), "
            "(SELECT count(*) FROM participants)"
        ).fetchone()
    return Recovered(to, answers, people, newest, at, used, apart, missing, mended, continues)


def _unknown(c: Connection, sources: list[Source]) -> list[str]:
    """Why there may have been more than any of the files tells of."""
    found = [one.lost for one in sources if one.lost]
    end = _chain_ends(c.execute("SELECT last FROM chain_head").fetchall())
    newest = [one for one in sources if not backups.NAME.fullmatch(Path(one.name).name)]
    ends = [_chain_ends([(row["last"],) for _, row in one.rows("chain_head")]) for one in newest]
    if end not in ends:
        kept = [one.name for one in sources if one not in newest]
        after = f"since {kept[0]} was made" if kept else "last"
        found.append(f"no file tells what was stored {after}")
    return found


def _chain_ends(rows: list[Any]) -> int:
    return int(rows[0][0]) if rows else 0


def _begun(
    study: LoadedStudy, to: Path, base: Valid | None, clock: Callable[[], int]
) -> Connection:
    """The database to put everything into: the newest valid copy, or an empty one."""
    if base is not None:
        create_private(to)
        shutil.copyfile(base.path, to)
        return connect(to)
    connection = _fresh(to, clock)
    # The rows come with the chain that recorded them.
    for table in CHAIN:
        connection.execute(f"DELETE FROM {table}")
    # Without the items, no question about them could be put.
    collection.add_items(connection, contents(study))
    return connection


def _mended(
    study: LoadedStudy, path: Path, clock: Callable[[], int], missing: Missing, used: list[Used]
) -> Mended:
    session = study.settings.session

    def work(c: Connection) -> Mended:
        now = clock()
        found = repair.mend(
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
            files=[one.name for one in used],
            steps_dropped=found.steps_dropped,
        )
        return found

    with closing(Database(path, clock)) as database:
        return database.write(work)
