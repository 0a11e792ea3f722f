"""Rehearsals: bots take part in a copy of a study, which is deleted afterwards unless kept."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lore_active.errors import InvalidParameter
from server.store import collection, summaries
from server.store.database import Connection
from server.store.recovery import backups, copies
from server.study.workspace import DATABASE, load_study, open_study

# What a study folder contains besides the study itself.
DATA = ("study.db*", "study.lock*", "export", "report.html", backups.FOLDER, ".*")


@dataclass(frozen=True)
class Copy:
    """A study to be rehearsed, and its copy."""

    study: Path
    copy: Path


def copied(folder: Path, to: Path, *but: str) -> Path:
    """Copy the study without its data, and without files that match `but`."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns(*DATA, *but))
    return to


@contextlib.contextmanager
def rehearsal(
    folders: list[Path], keep: Path | None, clock: Callable[[], int], say: Callable[[str], None]
) -> Iterator[list[Path]]:
    """Provide copies of these studies to serve; answers of real participants are always kept."""
    # Loaded before it is copied, so that errors name the study's own folder.
    names = [load_study(folder).folder.name for folder in folders]
    with contextlib.ExitStack() as stack:
        if keep is None:
            made = tempfile.TemporaryDirectory(prefix="lore-active-", ignore_cleanup_errors=True)
            home = Path(stack.enter_context(made))
        else:
            home = keep
        pairs = []
        for folder, name in zip(folders, names, strict=True):
            if (home / name).exists():
                raise InvalidParameter(f"{home / name} already exists; --keep needs a new folder.")
            pairs.append(Copy(folder.absolute(), copied(folder, home / name)))
        listed = ", ".join(names)
        fate = f"kept in {home}" if keep else "deleted afterwards"
        say(f"Rehearsal: the bots take part in a copy of {listed}, which is {fate}.")
        if keep is None:
            say(
                "  --keep DIR keeps the copy; --in-study lets the bots take part in the study "
                "itself."
            )
        yield [pair.copy for pair in pairs]
        for pair in pairs if keep is None else ():
            _end(pair, clock, say)


def _end(pair: Copy, clock: Callable[[], int], say: Callable[[str], None]) -> None:
    """Report that the copy is deleted, but keep its data if real participants have answered."""
    if not (pair.copy / DATABASE).exists():
        return
    study, database = open_study(pair.copy, clock)
    try:
        participants = [
            participant
            for participant in database.read(summaries.participants)
            if not participant.simulated and participant.done
        ]
    finally:
        database.close()
    if not participants:
        say(f"The copy of {study.name} was deleted; the study itself is unchanged.")
        return
    home = pair.study / backups.FOLDER
    home.mkdir(mode=0o700, exist_ok=True)
    at = datetime.fromtimestamp(clock() / 1000, UTC).strftime(backups.TIME)
    kept = home / f"rehearsal-{at}.db"
    copies.online(pair.copy / DATABASE, kept)
    answers = sum(participant.done for participant in participants)
    say(
        f"Real participants answered in the rehearsal of {study.name}: "
        f"{len(participants):,} participant{'s' * (len(participants) != 1)}, {answers:,} "
        f"answer{'s' * (answers != 1)}. The copy's data are kept in {kept}."
    )


@dataclass(frozen=True)
class Purpose:
    """Whether a copy is a demo or a rehearsal; `kept`: the folder that keeps it, if any."""

    kept: str = ""
    demo: bool = False

    def note(self, c: Connection, now: int) -> None:
        """Record it in the copy once, for monitor and report."""
        if collection.last_event(c, collection.REHEARSAL) is None:
            kind = collection.REHEARSAL
            collection.add_event(c, kind, "lore-active", now, kept=self.kept, demo=self.demo)
