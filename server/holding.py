"""One server per study: a lock that the system lets go of when its holder is gone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from lore_active.errors import LoreError
from server.store.database import create_private


class StudyHeld(LoreError):
    """Another server has this study open."""


class Hold:
    """Holds a study's folder. SQLite's own file locks work on every system that it runs on."""

    def __init__(self, folder: Path) -> None:
        path = folder / "study.lock"
        create_private(path)
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise StudyHeld(
                f"{folder}: another lore-active server holds this study. Stop that one first."
            ) from error

    def release(self) -> None:
        """Let others have it."""
        self._connection.close()
