"""A served study's files: locked, verified, watched, and rescued if they are lost."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from lore_active.errors import LoreError
from lore_active.wording import many
from server.store import heartbeat
from server.store.recovery import rescue
from server.store.sqlite.errors import (
    Busy,
    Damaged,
    FileReplaced,
    StoreError,
    WriterFailed,
    WrongFiles,
)
from server.store.sqlite.files import FileIds, OpenFiles
from server.store.sqlite.writer import newest_answer
from server.study.lock import ProcessLock
from server.study.workspace import DATABASE, load_study, open_database

CHECK_SECONDS = 0.5
RETRY_SECONDS = 10.0
PATIENCE_SECONDS = 10.0


class FilesLost(LoreError):
    """The study's files were deleted or replaced while it was being served."""


class FileGuard:
    """Keeps the database open, and watches its files, for as long as the study is served.

    This way its write-ahead log stays the same file whichever processes come and go, and the data
    can be copied even if the file is deleted. `error` is what is wrong with the files, if anything.
    """

    def __init__(self, folder: Path, clock: Callable[[], int], say: Callable[[str], None]) -> None:
        self.study = load_study(folder)
        self.clock, self.say = clock, say
        self.error: WrongFiles | Damaged | None = None
        # What could be saved, as a message.
        self._saved = ""
        self._newest = 0
        self._check_at = 0.0
        self._rescue_at = 0.0
        with contextlib.ExitStack() as stack:
            self._lock = ProcessLock(self.study.folder)
            stack.callback(self._lock.release)
            _refuse_damaged(self.study.folder / DATABASE)
            self.database = open_database(self.study, clock)
            stack.callback(self.database.close)
            rescue.refuse_ahead(self.database)
            stack.pop_all()
        self.database.writer.patience = PATIENCE_SECONDS

    @property
    def files(self) -> FileIds:
        """Ids of the files that every process of this study must use."""
        return self.database.files.ids

    def poll(self) -> None:
        """Check the files at regular intervals; called often."""
        if time.monotonic() >= self._check_at:
            self._check_at = time.monotonic() + CHECK_SECONDS
            self._check()

    def _check(self) -> None:
        try:
            self.database.files.check_all()
            newest = self.database.read(newest_answer)
            if newest < self._newest:
                path = self.database.path
                raise FileReplaced.because(path, "answers that had been stored are missing")
            self._newest = newest
        except (WrongFiles, Damaged) as error:
            if self.error is None:
                self._report(error)
            self.error = error
            if time.monotonic() >= self._rescue_at:
                self._rescue_at = time.monotonic() + RETRY_SECONDS
                self._rescue(error)
        except StoreError:
            # Busy, or a temporary read error: a rescue copy would not help.
            pass
        else:
            if self.error is not None:
                self.say(f"{self.study.name}: {DATABASE} is available again; answers are stored.")
            self.error, self._rescue_at, self._saved = None, 0.0, ""

    def _report(self, error: StoreError) -> None:
        self.say(f"{self.study.name}: {error}")
        self.say(
            f"{self.study.name}: No more answers are accepted; participants see that there is "
            "a technical problem."
        )

    def _rescue(self, error: StoreError) -> None:
        before = self._saved
        try:
            if isinstance(error, FileReplaced):
                with contextlib.suppress(OSError):
                    rescue.put_aside(self.database, self.clock())
            rescued = rescue.save(self.database, self.clock())
        except rescue.CannotRescue as failed:
            if failed.readable:
                self._saved = (
                    f"The data stored until then could not be copied ({failed}). They are lost "
                    "when the server stops."
                )
            else:
                self._rescue_at = float("inf")
                self._saved = (
                    f"The data stored until then can no longer be read ({failed}); only the newest "
                    "backup remains."
                )
        else:
            self._rescue_at = float("inf")
            damaged = f", partly damaged ({rescued.damage})" if rescued.damage else ""
            self._saved = (
                f"The data stored until then, {many(rescued.answers, 'answer')}, are in "
                f"{rescued.path}{damaged}."
            )
        if self._saved != before:
            self.say(f"{self.study.name}: {self._saved}")

    def heard(self) -> tuple[int, int] | None:
        """Return (time, process) of the worker's last heartbeat."""
        return self.database.read(heartbeat.heard)

    def takes_writes(self) -> bool:
        """Return whether the database can be written, or could if it were not locked."""
        try:
            self.database.writer.probe()
        except (Busy, WriterFailed):
            return True
        except StoreError:
            return False
        return True

    def note_restart(self, error: str | None) -> None:
        """Record a restart for the monitor, unless the database cannot be written now."""
        with contextlib.suppress(LoreError):
            self.database.write(lambda c: heartbeat.note_restart(c, self.clock(), error))

    def end(self) -> str:
        """Check once more and release the study; return a message if files were lost."""
        if self._rescue_at != float("inf"):
            self._rescue_at = 0.0
        self._check()
        if self.error is None:
            self.database.close()
        else:
            self.database.abandon()
        self._lock.release()
        return "" if self.error is None else f"{self.error} {self._saved}"


def _refuse_damaged(path: Path) -> None:
    """Refuse to serve a damaged file, which would only be damaged further."""
    if path.exists() and path.stat().st_size and (wrong := OpenFiles(path).damage()):
        raise Damaged.because(path, wrong)
