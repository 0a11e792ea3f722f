"""One study under the supervisor: held, examined, its files watched, rescued if they are lost."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from lore_active.errors import LoreError
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
TRY_AGAIN_SECONDS = 10.0
PATIENCE_SECONDS = 10.0


class FilesLost(LoreError):
    """The study's files were deleted or replaced while it was being served."""


class FileGuard:
    """Keeps the database open for as long as the study is served.

    So its log stays the same file, whatever processes come and go, and what it holds can be copied
    even when its name is gone. `error` says what happened to the files, None if nothing did.
    """

    def __init__(self, folder: Path, clock: Callable[[], int], say: Callable[[str], None]) -> None:
        self.study = load_study(folder)
        self.clock, self.say = clock, say
        self.error: WrongFiles | Damaged | None = None
        # What became of what was stored, as a sentence.
        self._saved = ""
        self._newest = 0
        self._check_at = 0.0
        self._rescue_at = 0.0
        with contextlib.ExitStack() as stack:
            self._hold = ProcessLock(self.study.folder)
            stack.callback(self._hold.release)
            _examine(self.study.folder / DATABASE)
            self.database = open_database(self.study, clock)
            stack.callback(self.database.close)
            rescue.refuse_ahead(self.database)
            stack.pop_all()
        self.database.writer.patience = PATIENCE_SECONDS

    @property
    def files(self) -> FileIds:
        """The files that every process of this study has to use."""
        return self.database.files.ids

    def poll(self) -> None:
        """Look at the files every now and then; called often."""
        if time.monotonic() >= self._check_at:
            self._check_at = time.monotonic() + CHECK_SECONDS
            self._check()

    def _check(self) -> None:
        try:
            self.database.files.check_all()
            newest = self.database.read(newest_answer)
            if newest < self._newest:
                path = self.database.path
                raise FileReplaced.because(path, "answers are missing that were stored")
            self._newest = newest
        except (WrongFiles, Damaged) as error:
            if self.error is None:
                self._tell(error)
            self.error = error
            if time.monotonic() >= self._rescue_at:
                self._rescue_at = time.monotonic() + TRY_AGAIN_SECONDS
                self._rescue(error)
        except StoreError:
            # Busy, or a disk that cannot be read now: nothing that a copy could help with.
            pass
        else:
            if self.error is not None:
                self.say(f"{self.study.name}: {DATABASE} is back; answers are stored again.")
            self.error, self._rescue_at, self._saved = None, 0.0, ""

    def _tell(self, error: StoreError) -> None:
        self.say(f"{self.study.name}: {error}")
        self.say(
            f"{self.study.name}: No answer is acknowledged from now on; participants are told that "
            "there is a technical problem."
        )

    def _rescue(self, error: StoreError) -> None:
        before = self._saved
        try:
            if isinstance(error, FileReplaced):
                with contextlib.suppress(OSError):
                    rescue.put_aside(self.database, self.clock())
            found = rescue.save(self.database, self.clock())
        except rescue.CannotRescue as failed:
            if failed.readable:
                self._saved = (
                    f"What had been stored until then could not be copied ({failed}). It is lost "
                    "when the server stops."
                )
            else:
                self._rescue_at = float("inf")
                self._saved = (
                    f"What had been stored until then cannot be read any more ({failed}); the "
                    "newest backup is what is left."
                )
        else:
            self._rescue_at = float("inf")
            wrong = f", damaged in part ({found.damage})" if found.damage else ""
            self._saved = (
                f"What had been stored until then, {found.answers} answers, is in "
                f"{found.path}{wrong}."
            )
        if self._saved != before:
            self.say(f"{self.study.name}: {self._saved}")

    def heard(self) -> tuple[int, int] | None:
        """(time, process) of the worker's last sign of life."""
        return self.database.read(heartbeat.heard)

    def takes_writes(self) -> bool:
        """Whether something can be stored, or could if nobody held the lock."""
        try:
            self.database.writer.probe()
        except (Busy, WriterFailed):
            return True
        except StoreError:
            return False
        return True

    def note_restart(self, trouble: str | None) -> None:
        """Leave a note for the monitor; a database that cannot be written now must not stop us."""
        with contextlib.suppress(LoreError):
            self.database.write(lambda c: heartbeat.note_restart(c, self.clock(), trouble))

    def end(self) -> str:
        """Look once more and let go of the study; what is to be said if files were lost."""
        if self._rescue_at != float("inf"):
            self._rescue_at = 0.0
        self._check()
        if self.error is None:
            self.database.close()
        else:
            self.database.abandon()
        self._hold.release()
        return "" if self.error is None else f"{self.error} {self._saved}"


def _examine(path: Path) -> None:
    """A damaged file is not served: it would only be damaged further."""
    if path.exists() and path.stat().st_size and (wrong := OpenFiles(path).damage()):
        raise Damaged.because(path, wrong)
