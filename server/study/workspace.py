"""Opening a study's folder, to run or only to read it; its items must not have changed."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from lore_active.errors import InvalidParameter, LoreError
from lore_active.stopping.registry import rule_of
from server.store import collection as store
from server.store import models
from server.store.database import Connection, Database
from server.store.recovery import backups, copies
from server.store.sqlite.errors import Damaged
from server.store.sqlite.files import FileIds
from server.study.config import Item, LoadedStudy
from server.study.loading import load

DATABASE = "study.db"
Contents = list[tuple[int, str, str, str]]


class DatabaseLost(LoreError):
    """The database is missing, but there are traces of one."""


class ItemsChanged(LoreError):
    """The folder's items differ from those in the database."""


class KindChanged(LoreError):
    """The study's kind of questions is not that of its data."""


def load_study(folder: Path, begun: bool = False) -> LoadedStudy:
    """Load the study in a folder; `begun` if it is known to have data."""
    return load(folder, begun=begun or (folder / DATABASE).exists())


def open_study(
    folder: Path, clock: Callable[[], int], known: FileIds | None = None
) -> tuple[LoadedStudy, Database]:
    """Open a study and its database, which is created if it is new.

    With `known`, the files that another process of this server has open, only those are used.
    """
    study = load_study(folder, begun=known is not None)
    database = open_database(study, clock, known)
    return as_begun(study, database), database


def as_begun(study: LoadedStudy, database: Database) -> LoadedStudy:
    """A study with the stopping rule that its data were collected with, if study.toml has none.

    Defaults may change between versions; the rule of a study under way must not.
    """
    name, criteria = database.read(models.rule_in_use)
    name = name or rule_of(criterion["name"] for criterion in criteria)
    unchanged = (
        criterion["threshold"] for criterion in criteria if criterion["name"] == "audits_unchanged"
    )
    share = (criterion["share"] for criterion in criteria if "share" in criterion)
    kept = {
        "rule": name,
        "audits": next(map(int, unchanged), None),
        "smallest_dimension": next(share, None),
    }
    changed = {
        key: value
        for key, value in kept.items()
        if value is not None and f"stopping.{key}" not in study.given
    }
    stopping = structs.replace(study.settings.stopping, **changed)
    return structs.replace(study, settings=structs.replace(study.settings, stopping=stopping))


def open_database(
    study: LoadedStudy, clock: Callable[[], int], known: FileIds | None = None
) -> Database:
    """Open the database of a loaded study."""
    path = study.folder / DATABASE
    if known is None:
        _refuse_lost(path)
    database = Database(path, clock, known)
    try:
        database.write(lambda c: _start_or_compare(c, study))
    except BaseException:
        database.close()
        raise
    return database


def _refuse_lost(path: Path) -> None:
    """Refuse to start over where there was a study, which would hide that its data are lost."""
    if path.exists() and path.stat().st_size:
        return
    log, home = path.with_name(f"{path.name}-wal"), path.parent / backups.FOLDER
    traces = [log] if log.exists() and log.stat().st_size else []
    traces += [*backups.every(path.parent), *sorted(home.glob(backups.RESCUED))]
    if traces:
        state = "empty" if path.exists() else "missing"
        raise DatabaseLost(
            f"{path} is {state}, but {traces[-1]} exists: data may have been lost. "
            f"Run `lore-active recover {path.parent}` to recover them. To start a new study here, "
            "move the files of the old one elsewhere."
        )


@contextmanager
def reading(
    folder: Path, clock: Callable[[], int], incomplete: bool = False
) -> Iterator[tuple[LoadedStudy, Database]]:
    """Open a study and a copy of its current data, for commands that only read.

    `incomplete` is for the command that reports what is missing: the study's state may be, too.

    The database is a copy in a temporary folder: whatever is done with it, such as migrating an
    older format, the study's own files are not changed and need not be writable.
    """
    study = load_study(folder)
    path = study.folder / DATABASE
    if not path.exists():
        raise InvalidParameter(f"{folder}: there is no {DATABASE} yet, so there are no data.")
    with tempfile.TemporaryDirectory(prefix="lore-active-") as home:
        copied = Path(home) / DATABASE
        try:
            copies.copy(path, copied)
            database = Database(copied, clock)
        except LoreError as error:
            # Name the original file and folder, not the copy.
            message = str(error).replace(str(copied), str(path)).replace(home, str(study.folder))
            raise type(error)(message) from error
        try:
            if not database.read(store.has_begun):
                raise InvalidParameter(f"{path} is empty, so there are no data.")
            if not incomplete:
                database.read(lambda c: _refuse_stateless(c, path))
            database.read(lambda c: _compare_kind(c, study))
            database.read(lambda c: _compare(c, study, contents(study)))
            yield as_begun(study, database), database
        finally:
            database.close()


def _start_or_compare(c: Connection, study: LoadedStudy) -> None:
    wanted = contents(study)
    if not store.has_begun(c):
        store.begin_study(c, wanted, first_state(study))
        return
    _refuse_stateless(c, study.folder / DATABASE)
    _compare_kind(c, study)
    _keep_kind(c, study)
    for number, content in _compare(c, study, wanted):
        # Experimenters may replace a file by a better version; it is only recorded.
        store.set_content(c, number, content)


def _keep_kind(c: Connection, study: LoadedStudy) -> None:
    """Keep the kind of a study that was changed before its first question."""
    state = store.state(c)
    if state is not None and state.kind != study.kind.label:
        store.set_state(c, kind=study.kind.label)


def _refuse_stateless(c: Connection, path: Path) -> None:
    if store.state(c) is None:
        raise Damaged.because(path, "the row of the table `state` is missing")


def _compare_kind(c: Connection, study: LoadedStudy) -> None:
    """Raise KindChanged if questions of another kind were asked."""
    state = store.state(c)
    if state is None or state.kind == study.kind.label or not store.has_questions(c):
        return
    raise KindChanged(
        f"{study.folder}: study.toml asks questions of the kind {study.kind.label}, but those in "
        f"{DATABASE} are of the kind {state.kind}. Restore trial.kind, trial.options and "
        "trial.pick, or start a new study in another folder."
    )


def _compare(c: Connection, study: LoadedStudy, wanted: Contents) -> list[tuple[int, str]]:
    """Return (number, content) of changed items; raise ItemsChanged if the items differ."""
    stored = store.items(c)
    if [item[:3] for item in stored] != [item[:3] for item in wanted]:
        have, need = {item[1] for item in wanted}, {item[1] for item in stored}
        missing, new = sorted(need - have)[:5], sorted(have - need)[:5]
        what = ", ".join(
            [f"missing: {item}" for item in missing] + [f"new: {item}" for item in new]
        )
        raise ItemsChanged(
            f"{study.folder}: the items differ from those in {DATABASE} "
            f"({what or 'order or kind'}). Restore them, or start a new study in another folder."
        )
    pairs = zip(stored, wanted, strict=True)
    return [(now[0], now[3]) for before, now in pairs if before[3] != now[3]]


def first_state(study: LoadedStudy) -> dict[str, int | str]:
    """Return the initial values of settings that are kept with the data."""
    settings = study.settings
    return {
        "kind": study.kind.label,
        "answers": settings.budget.answers,
        "participants": settings.budget.participants,
        "trials": settings.session.trials,
        "seed": settings.seed,
    }


def contents(study: LoadedStudy) -> Contents:
    """Return (number, key, kind, content) of every item, as in the database."""
    return [
        (number, item.key, item.kind, _content(item)) for number, item in enumerate(study.items)
    ]


def _content(item: Item) -> str:
    if item.file is None:
        return item.text
    return hashlib.sha256(item.file.read_bytes()).hexdigest()
