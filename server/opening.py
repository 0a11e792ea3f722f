"""Opening a study's folder: it must check, and its items must be those the database knows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from lore_active.errors import LoreError
from lore_active.folder import load
from lore_active.study import Item, LoadedStudy
from server.store import collection as store
from server.store.database import Connection, Database

DATABASE = "study.db"


class ItemsChanged(LoreError):
    """The folder's items are not those that the answers are about."""


def open_study(folder: Path, clock: Callable[[], int]) -> tuple[LoadedStudy, Database]:
    """The study and its database, begun if it is new."""
    study = load(folder)
    database = Database(study.folder / DATABASE, clock)
    try:
        database.write(lambda c: _begin_or_compare(c, study))
    except BaseException:
        database.close()
        raise
    return study, database


def _begin_or_compare(c: Connection, study: LoadedStudy) -> None:
    wanted = [
        (number, item.key, item.kind, _content(item)) for number, item in enumerate(study.items)
    ]
    if store.state(c) is None:
        settings = study.settings
        store.begin_study(
            c,
            wanted,
            {
                "answers": settings.budget.answers,
                "participants": settings.budget.participants,
                "trials": settings.session.trials,
                "seed": settings.seed,
            },
        )
        return
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
    for before, now in zip(known, wanted, strict=True):
        if before[3] != now[3]:
            # A better picture of the same thing is the experimenter's business; it is only noted.
            store.set_content(c, now[0], now[3])


def _content(item: Item) -> str:
    if item.file is None:
        return item.text
    return hashlib.sha256(item.file.read_bytes()).hexdigest()
