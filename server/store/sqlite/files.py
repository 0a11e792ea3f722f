"""Whether the files that SQLite has open are still those in the study's folder.

A deleted file lives on for those who have it open: commits would go on succeeding, into a file that
is lost when the last of them ends. SQLite does not look; so every commit does.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from server.store.sqlite.connection import read_only
from server.store.sqlite.errors import (
    CannotOpen,
    Damaged,
    FileGone,
    FileReplaced,
    LogLost,
    StoreError,
    WrongFiles,
    classified,
)

# The database, its write-ahead log, and the index of that log that processes share.
SUFFIXES = ("", "-wal", "-shm")


@dataclass(frozen=True)
class FileId:
    """Which file it is, whatever its name; `inode` is 0 where the system does not tell."""

    device: int
    inode: int


@dataclass(frozen=True)
class FileIds:
    """The three files of an open database; None for one that was not there."""

    ids: tuple[FileId | None, ...]

    def __str__(self) -> str:
        return ",".join("-" if one is None else f"{one.device}:{one.inode}" for one in self.ids)

    @classmethod
    def parse(cls, text: str) -> FileIds:
        """What `str` wrote."""
        parts = [None if one == "-" else tuple(map(int, one.split(":"))) for one in text.split(",")]
        return cls(tuple(None if one is None else FileId(*one) for one in parts))


class OpenFiles:
    """Remembers which files are open; `check` says whether the folder still has them.

    Only by asking for their names: opening and closing one of them would let go of SQLite's locks.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._paths = [path.with_name(path.name + suffix) for suffix in SUFFIXES]
        self.ids = FileIds((None, None, None))
        self._sizes = [0, 0]

    def remember(self) -> FileIds:
        """Take those that are there now for the open ones; right after they were opened."""
        found = [_status(path) for path in self._paths]
        self.ids = FileIds(tuple(None if one is None else _id(one) for one in found))
        self._sizes = self._lengths()
        return self.ids

    def check(self) -> list[int]:
        """Raise WrongFiles if a name leads nowhere or to another file; gives their lengths."""
        sizes = [0, 0, 0]
        for place, (path, known) in enumerate(zip(self._paths, self.ids.ids, strict=True)):
            status = _status(path)
            sizes[place] = 0 if status is None else status.st_size
            if known is None:
                continue
            if status is None:
                raise _gone(place, path)
            if known.inode and _id(status) != known:
                raise _replaced(place, path)
            if place == 0 and status.st_size == 0 < self._sizes[0]:
                # Whoever opened it now would take it for a new one and delete its log.
                raise FileReplaced.because(path, "it was emptied")
        return sizes[:2]

    def check_all(self) -> None:
        """The same if a file was cut short, or overwritten by a shorter one.

        A checkpoint may make a file shorter, and a sync tool as well: the contents tell.
        """
        # What has no right to its name is not asked how long it is: looking into it does harm.
        sizes = self.check()
        shorter = [now < then for now, then in zip(sizes, self._sizes, strict=True)]
        if any(shorter):
            try:
                wrong = self.damage()
            except WrongFiles:
                raise
            except StoreError as error:
                wrong = str(error.__cause__ or error)
            if wrong:
                kind = FileReplaced if shorter[0] else LogLost
                raise kind.because(
                    self._paths[0 if shorter[0] else 1], f"it was cut short: {wrong}"
                )
        self._sizes = sizes

    def damage(self) -> str:
        """What SQLite's quick check of the whole database finds wrong; empty if nothing."""
        try:
            with contextlib.closing(read_only(self.path, self.check)) as connection:
                found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
        except UnicodeDecodeError as error:
            # SQLite quotes what it found in a damaged schema, and that need not be text.
            return str(error)
        except sqlite3.Error as error:
            named = classified(error, self.path)
            if not isinstance(named, Damaged):
                raise named from error
            return str(error)
        return "" if found == ["ok"] else "; ".join(" ".join(found).split("\n"))

    def _lengths(self) -> list[int]:
        return [0 if one is None else one.st_size for one in map(_status, self._paths[:2])]

    def left_behind(self) -> list[Path]:
        """The log and the index, if they still have their names though the database has not."""
        pairs = zip(self._paths[1:], self.ids.ids[1:], strict=True)
        return [path for path, known in pairs if (status := _status(path)) and _id(status) == known]

    def expect(self, known: FileIds) -> None:
        """Raise WrongFiles unless these are the files that another process of ours has open."""
        self.ids = known
        self.check()
        self._sizes = self._lengths()


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CannotOpen.because(path, error.strerror or str(error)) from error


def _id(status: os.stat_result) -> FileId:
    return FileId(status.st_dev, status.st_ino)


def _gone(place: int, path: Path) -> WrongFiles:
    kind = LogLost if place else FileGone
    return kind.because(path, "it is not there any more")


def _replaced(place: int, path: Path) -> WrongFiles:
    kind = LogLost if place else FileReplaced
    return kind.because(path, "it is another file now")
