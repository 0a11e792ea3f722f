"""Opening a study's folder, to run it or only to read it: its items must be those it began with."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lore_active.errors import InvalidParameter, LoreError
from server.store import collection as store
from server.store.database import Connection, Database
from server.store.recovery import backups, copies
from server.store.sqlite.errors import Damaged
from server.store.sqlite.files import FileIds
from server.study.config import Item, LoadedStudy
from server.study.loading import load

DATABASE = "study.db"
Contents = list[tuple[int, str, str, str]]


class DatabaseLost(LoreError):
    """There is no database, but what is left of one."""


class ItemsChanged(LoreError):
    """The folder's items are not those that the answers are about."""


def load_study(folder: Path, begun: bool = False) -> LoadedStudy:
    """The study in a folder, which may have begun; `begun` if that is known."""
    return load(folder, begun=begun or (folder / DATABASE).exists())


def open_study(
    folder: Path, clock: Callable[[], int], known: FileIds | None = None
) -> tuple[LoadedStudy, Database]:
    """The study and its database, begun if it is new.

    With `known`, the files that another process of ours has open, only those are opened.
    """
    study = load_study(folder, begun=known is not None)
    return study, open_database(study, clock, known)


def open_database(
    study: LoadedStudy, clock: Callable[[], int], known: FileIds | None = None
) -> Database:
    """The same for a study that is loaded already."""
    path = study.folder / DATABASE
    if known is None:
        _refuse_lost(path)
    database = Database(path, clock, known)
    try:
        database.write(lambda c: _begin_or_compare(c, study))
    except BaseException:
        database.close()
        raise
    return database


def _refuse_lost(path: Path) -> None:
    """A study is not begun again where there was one: that would hide that its data is lost."""
    if path.exists() and path.stat().st_size:
        return
    log, home = path.with_name(f"{path.name}-wal"), path.parent / backups.FOLDER
    left = [log] if log.exists() and log.stat().st_size else []
    left += [*backups.every(path.parent), *sorted(home.glob(backups.RESCUED))]
    if left:
        state = "empty" if path.exists() else "not there"
        raise DatabaseLost(
            f"{path} is {state}, but {left[-1]} is there: data may have been lost. "
            f"Run `lore-active recover {path.parent}` to get it back. To begin a new study here, "
            "move what is left of the old one elsewhere."
        )


@contextmanager
def reading(
    folder: Path, clock: Callable[[], int], incomplete: bool = False
) -> Iterator[tuple[LoadedStudy, Database]]:
    """The study and its data as they are now, for commands that only read.

    `incomplete` is for the one that says what is missing: the row of the study's state may be, too.

    The database is a copy in a temporary folder: whatever is done with it, such as bringing an
    older format up to date, the study's own files stay as they are, and need not be writable.
    """
    study = load_study(folder)
    path = study.folder / DATABASE
    if not path.exists():
        raise InvalidParameter(f"{folder}: there is no {DATABASE} yet, so there is no data.")
    with tempfile.TemporaryDirectory(prefix="lore-active-") as home:
        copied = Path(home) / DATABASE
        try:
            copies.copy(path, copied)
            database = Database(copied, clock)
        except LoreError as error:
            # Which file and folder are meant, not which copy of them.
            meant = str(error).replace(str(copied), str(path)).replace(home, str(study.folder))
            raise type(error)(meant) from error
        try:
            if not database.read(store.has_begun):
                raise InvalidParameter(f"{path} is empty, so there is no data.")
            if not incomplete:
                database.read(lambda c: _refuse_stateless(c, path))
            database.read(lambda c: _compare(c, study, contents(study)))
            yield study, database
        finally:
            database.close()


def _begin_or_compare(c: Connection, study: LoadedStudy) -> None:
    wanted = contents(study)
    if not store.has_begun(c):
        store.begin_study(c, wanted, first_state(study))
        return
    _refuse_stateless(c, study.folder / DATABASE)
    for number, content in _compare(c, study, wanted):
        # A better picture of the same thing is the experimenter's business; it is only noted.
        store.set_content(c, number, content)


def _refuse_stateless(c: Connection, path: Path) -> None:
    if store.state(c) is None:
        raise Damaged.because(path, "the row of the table `state` is missing")


def _compare(c: Connection, study: LoadedStudy, wanted: Contents) -> list[tuple[int, str]]:
    """(number, content) of items whose content has changed; ItemsChanged if they are others."""
    known = store.items(c)
    if [one[:3] for one in known] != [one[:3] for one in wanted]:
        have, need = {one[1] for one in wanted}, {one[1] for one in known}
        gone, new = sorted(need - have)[:5], sorted(have - need)[:5]
        what = ", ".join([f"missing: {one}" for one in gone] + [f"new: {one}" for one in new])
        raise ItemsChanged(
            f"{study.folder}: the items are not those that {DATABASE} was begun with "
            f"({what or 'their order or kind differs'}). Put them back, or start a new study in "
            "another folder."
        )
    pairs = zip(known, wanted, strict=True)
    return [(now[0], now[3]) for before, now in pairs if before[3] != now[3]]


def first_state(study: LoadedStudy) -> dict[str, int]:
    """What the experimenter can change later, as a study begins with it."""
    settings = study.settings
    return {
        "answers": settings.budget.answers,
        "participants": settings.budget.participants,
        "trials": settings.session.trials,
        "seed": settings.seed,
    }


def contents(study: LoadedStudy) -> Contents:
    """(number, key, kind, content) of every item, as the database holds them."""
    return [
        (number, item.key, item.kind, _content(item)) for number, item in enumerate(study.items)
    ]


def _content(item: Item) -> str:
    if item.file is None:
        return item.text
    return hashlib.sha256(item.file.read_bytes()).hexdigest()
