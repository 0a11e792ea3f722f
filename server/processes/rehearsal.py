"""Rehearsals: bots in a copy of a study, which is thrown away at the end unless it is kept."""

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

# What a study's folder holds beside the study itself.
DATA = ("study.db*", "study.lock*", "export", "report.html", backups.FOLDER, ".*")


@dataclass(frozen=True)
class Copy:
    """A study to be rehearsed, and where its copy is."""

    study: Path
    copy: Path


def copied(folder: Path, to: Path, *but: str) -> Path:
    """The study without its data, as it is before anybody came; `but` names what else is not."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns(*DATA, *but))
    return to


@contextlib.contextmanager
def rehearsal(
    folders: list[Path], keep: Path | None, clock: Callable[[], int], say: Callable[[str], None]
) -> Iterator[list[Path]]:
    """Copies of these studies to be served instead; what people answered in them is never lost."""
    # What is wrong with a study is said of its own folder.
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
                raise InvalidParameter(
                    f"{home / name} exists, but a rehearsal that is kept needs a new folder."
                )
            pairs.append(Copy(folder.absolute(), copied(folder, home / name)))
        listed = ", ".join(names)
        fate = f"kept in {home}" if keep else "thrown away at the end"
        say(f"Rehearsal: the bots take part in a copy of {listed}, which is {fate}.")
        if keep is None:
            say("  --keep DIR keeps the copy; --in-study lets the bots into the study itself.")
        yield [one.copy for one in pairs]
        for one in pairs if keep is None else ():
            _end(one, clock, say)


def _end(one: Copy, clock: Callable[[], int], say: Callable[[str], None]) -> None:
    """Say what is thrown away, and keep what people have answered."""
    if not (one.copy / DATABASE).exists():
        return
    study, database = open_study(one.copy, clock)
    try:
        people = [who for who in database.read(summaries.people) if not who.simulated and who.done]
    finally:
        database.close()
    if not people:
        say(f"The copy of {study.name} is thrown away; the study itself is as it was.")
        return
    home = one.study / backups.FOLDER
    home.mkdir(mode=0o700, exist_ok=True)
    at = datetime.fromtimestamp(clock() / 1000, UTC).strftime(backups.TIME)
    kept = home / f"rehearsal-{at}.db"
    copies.online(one.copy / DATABASE, kept)
    answers = sum(who.done for who in people)
    say(
        f"People answered in the rehearsal of {study.name} as well: {len(people):,} "
        f"participant{'s' * (len(people) != 1)}, {answers:,} answer{'s' * (answers != 1)}. The "
        f"copy's data are kept in {kept}."
    )


@dataclass(frozen=True)
class Purpose:
    """What a study is served for, if not for its data: `kept` names where it stays, if it does."""

    kept: str = ""
    demo: bool = False

    def note(self, c: Connection, now: int) -> None:
        """Write it down in the copy, for monitor and report; once."""
        if collection.last_event(c, collection.REHEARSAL) is None:
            kind = collection.REHEARSAL
            collection.add_event(c, kind, "lore-active", now, kept=self.kept, demo=self.demo)
