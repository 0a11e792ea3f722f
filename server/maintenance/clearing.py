"""Clearing a study's data, keeping a copy in its backups."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from server.clock import now
from server.store.recovery import backups, copies
from server.study.workspace import DATABASE

KEPT = "before-reset-"


def _copy(path: Path, to: Path) -> None:
    """Copy to a single valid file, synced to disk; if it is damaged, copy its files as they are."""
    try:
        copies.online(path, to)
    except sqlite3.Error:
        copies.copy(path, to)
        for file in to.parent.glob(f"{to.name}*"):
            with file.open("rb") as stream:
                os.fsync(stream.fileno())


def clear(folder: Path) -> Path:
    """Move all data of a study to a new folder in `backups/`; the study must not be open elsewhere.

    The copy is complete and synced before anything is deleted.
    """
    home = folder / backups.FOLDER
    at = now()
    home.mkdir(mode=0o700, exist_ok=True)
    while (kept := home / f"{KEPT}{_time(at)}").exists():
        at += 1000
    kept.mkdir(mode=0o700)
    _copy(folder / DATABASE, kept / DATABASE)
    # Otherwise the next server would conclude from the rolling backups that data were lost.
    for old in (*backups.every(folder), *sorted(home.glob(backups.RESCUED))):
        old.rename(kept / old.name)
    backups.sync(kept)
    # The write-ahead log first: an interrupted deletion must not look like a lost database.
    for end in ("-wal", "-shm", ""):
        (folder / f"{DATABASE}{end}").unlink(missing_ok=True)
    backups.sync(folder)
    return kept


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime(backups.TIME)
