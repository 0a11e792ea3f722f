"""Recovering the newest state of a study from damaged files, backups and rescue copies."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lore_active.errors import InvalidParameter, LoreError
from server.maintenance.sources import damage_of, find_sources, new_database
from server.store import collection
from server.store.database import Database
from server.store.hash_chain import verification as chain_verification
from server.store.recovery import backups, repair, salvage
from server.store.recovery.repair import Mended, Missing
from server.store.recovery.salvage import Merged, Source, Valid
from server.store.sqlite.connection import Connection, connect, create_private
from server.store.sqlite.tables import CHAIN
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
        sources = find_sources(study.folder, Path(place), clock)
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
    stamp = datetime.fromtimestamp(now / 1000, UTC).strftime(backups.TIME)
    kept = folder / backups.FOLDER / f"damaged-{stamp}"
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    old = [folder / f"{DATABASE}{end}" for end in ("-wal", "-shm", "")]
    for path in [*old, *(folder / backups.FOLDER).glob(f"{backups.RESCUED}*")]:
        if path.exists():
            path.replace(kept / path.name)
    result.path.replace(folder / DATABASE)
    for home in (kept, folder / backups.FOLDER, folder):
        backups.sync(home)
    return kept


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
        if wrong := damage_of(connection):
            raise NotRecovered(
                f"The recovered database is not valid: {wrong}. Nothing was changed."
            )
        answers, newest, at, participants = connection.execute(
            "SELECT (SELECT count(*) FROM answers), (SELECT coalesce(max(seq), 0) FROM answers), "
            "(SELECT received_at FROM answers ORDER BY seq DESC LIMIT 1), "
            "(SELECT count(*) FROM participants)"
        ).fetchone()
    return Recovered(to, answers, participants, newest, at, used, apart, missing, mended, continues)


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
    connection = new_database(to, clock)
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
