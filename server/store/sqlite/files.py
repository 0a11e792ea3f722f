"""Checks that the files SQLite has open are still those in the study folder.

A deleted file lives on for processes that have it open: commits would still succeed, into a file
that is lost when the last of them ends. SQLite does not check this, so every commit does.
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

# The database, its write-ahead log, and the shared index of that log.
SUFFIXES = ("", "-wal", "-shm")


@dataclass(frozen=True)
class FileId:
    """Identity of a file, whatever its name; `inode` is 0 if the system does not report it."""

    device: int
    inode: int


@dataclass(frozen=True)
class FileIds:
    """The three files of an open database; None for a missing one."""

    ids: tuple[FileId | None, ...]

    def __str__(self) -> str:
        return ",".join("-" if file is None else f"{file.device}:{file.inode}" for file in self.ids)

    @classmethod
    def parse(cls, text: str) -> FileIds:
        """Parse the result of `str`."""
        parts = [
            None if part == "-" else tuple(map(int, part.split(":"))) for part in text.split(",")
        ]
        return cls(tuple(None if part is None else FileId(*part) for part in parts))


class OpenFiles:
    """Remembers which files are open; `check` verifies that the folder still has them.

    It never opens them: closing one of them again would release SQLite's locks.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._paths = [path.with_name(path.name + suffix) for suffix in SUFFIXES]
        self.ids = FileIds((None, None, None))
        self._sizes = [0, 0]

    def remember(self) -> FileIds:
        """Remember the current files as the open ones; call it right after opening them."""
        statuses = [_status(path) for path in self._paths]
        self.ids = FileIds(tuple(None if status is None else _id(status) for status in statuses))
        self._sizes = self._lengths()
        return self.ids

    def check(self) -> list[int]:
        """Raise WrongFiles if a file is missing or replaced; return their lengths."""
        sizes = [0, 0, 0]
        for index, (path, known) in enumerate(zip(self._paths, self.ids.ids, strict=True)):
            status = _status(path)
            if status is not None:
                sizes[index] = status.st_size
            if known is None:
                continue
            if status is None:
                raise _gone(index, path)
            # Compared one by one: this runs twice with every commit.
            if known.inode and (status.st_ino != known.inode or status.st_dev != known.device):
                raise _replaced(index, path)
            if index == 0 and status.st_size == 0 < self._sizes[0]:
                # The next process to open it would take it for a new one and delete its log.
                raise FileReplaced.because(path, "it was emptied")
        return sizes[:2]

    def check_all(self) -> None:
        """Like `check`, and raise if a file was truncated, or overwritten by a shorter one.

        A checkpoint may also shorten a file, so its contents decide.
        """
        # First, since opening a replaced file would do harm.
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
                    self._paths[0 if shorter[0] else 1], f"it was truncated: {wrong}"
                )
        self._sizes = sizes

    def damage(self) -> str:
        """Return what SQLite's quick check of the database finds wrong; empty if nothing."""
        try:
            with contextlib.closing(read_only(self.path, self.check)) as connection:
                errors = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
        except UnicodeDecodeError as error:
            # SQLite quotes parts of a damaged schema, which need not be valid text.
            return str(error)
        except sqlite3.Error as error:
            named = classified(error, self.path)
            if not isinstance(named, Damaged):
                raise named from error
            return str(error)
        return "" if errors == ["ok"] else "; ".join(" ".join(errors).split("\n"))

    def _lengths(self) -> list[int]:
        return [0 if status is None else status.st_size for status in map(_status, self._paths[:2])]

    def left_behind(self) -> list[Path]:
        """List the log and the index if they are still there although the database is not."""
        pairs = zip(self._paths[1:], self.ids.ids[1:], strict=True)
        return [path for path, known in pairs if (status := _status(path)) and _id(status) == known]

    def expect(self, known: FileIds) -> None:
        """Raise WrongFiles unless these are the files open in another process of this server."""
        self.ids = known
        self.check()
        self._sizes = self._lengths()


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - half the time of Path.stat
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CannotOpen.because(path, error.strerror or str(error)) from error


def _id(status: os.stat_result) -> FileId:
    return FileId(status.st_dev, status.st_ino)


def _gone(index: int, path: Path) -> WrongFiles:
    kind = LogLost if index else FileGone
    return kind.because(path, "it no longer exists")


def _replaced(index: int, path: Path) -> WrongFiles:
    kind = LogLost if index else FileReplaced
    return kind.because(path, "it was replaced by another file")
