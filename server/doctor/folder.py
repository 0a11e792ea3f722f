"""The study's folder: does it check, is there a password, who else can read its secrets?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from server.auth import passwords
from server.doctor.finding import Finding, ok, problem, warning
from server.store.recovery import backups
from server.study.loading import InvalidStudy, load
from server.study.workspace import DATABASE

SHOWN = 5


def examine(folder: Path) -> Iterator[Finding]:
    """Everything about the study that can be known without serving it."""
    yield from _study(folder)
    yield _password(folder)
    yield _readers(folder)
    yield from _backups(folder)


def _study(folder: Path) -> Iterator[Finding]:
    try:
        study = load(folder)
    except InvalidStudy as error:
        for one in error.problems[:SHOWN]:
            yield problem("study", str(one), "Correct it; lore-active check shows the same.")
        more = len(error.problems) - SHOWN
        if more > 0:
            yield problem("study", f"and {more} more", f"See lore-active check {folder}.")
        return
    yield ok("study", f"{study.name} checks: {len(study.items)} items")


def _password(folder: Path) -> Finding:
    """By the rule that the server itself goes by when it starts."""
    try:
        passwords.prepare(folder, None)
    except passwords.UnsafePassword as error:
        return problem("password", str(error), "The server does not start before that.")
    except OSError as error:
        return problem("password", f"{folder}: {error.strerror}", "Let this user into the folder.")
    if passwords.VARIABLE in os.environ:
        return ok("password", f"is given by {passwords.VARIABLE}")
    if not (folder / passwords.FILE).exists():
        return warning(
            "password",
            "none is set, so nobody can open the monitor",
            f"Set one: lore-active password {folder}",
        )
    return ok("password", "is set; only its owner can read its hash")


def _readers(folder: Path) -> Finding:
    """Participants' names are in the database; who on this machine can get at it?"""
    file = folder / DATABASE
    if os.name != "posix" or not file.exists():
        return ok("permissions", f"no {DATABASE} to look at")
    open_file, open_folder = file.stat().st_mode & 0o044, folder.stat().st_mode & 0o011
    if open_file and open_folder:
        return warning(
            "permissions",
            f"other users of this machine can read {file}, which names participants",
            f"chmod 700 {folder}",
        )
    return ok("permissions", f"only its owner can read {DATABASE}")


def _backups(folder: Path) -> Iterator[Finding]:
    """Are there any, is the newest one valid, and is something there that asks for a recovery?"""
    rescued = sorted((folder / backups.FOLDER).glob(backups.RESCUED))
    if rescued:
        yield warning(
            "backups",
            f"{DATABASE} was replaced while it was being served; what it held then is in "
            f"{rescued[-1].relative_to(folder)}",
            f"Put both together: lore-active recover {folder}",
        )
    kept = backups.every(folder)
    if not kept:
        held = (folder / DATABASE).exists()
        yield ok("backups", "none yet; serve makes them" if held else "no data to back up yet")
        return
    made = datetime.fromtimestamp(backups.made_at(kept[-1]) / 1000, UTC)
    found = f"{len(kept)} in {backups.FOLDER}/, the newest of {made:%Y-%m-%d %H:%M} UTC"
    if damage := backups.unsound(kept[-1]):
        advice = "Delete it, and look at the disk: files on it change by themselves."
        yield problem("backups", f"{kept[-1].name} is damaged: {damage}", advice)
    else:
        yield ok("backups", found)
