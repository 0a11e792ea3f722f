"""Checks of the study folder: settings, password, permissions and backups."""

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
    """Check everything that can be checked without serving the study."""
    yield from _study(folder)
    yield _password(folder)
    yield _readers(folder)
    yield from _backups(folder)


def _study(folder: Path) -> Iterator[Finding]:
    try:
        study = load(folder)
    except InvalidStudy as error:
        for issue in error.problems[:SHOWN]:
            yield problem("study", str(issue), "Correct it; `lore-active check` reports the same.")
        hidden = len(error.problems) - SHOWN
        if hidden > 0:
            yield problem("study", f"and {hidden} more", f"See `lore-active check {folder}`.")
        return
    yield ok("study", f"{study.name} is valid: {len(study.items)} items")


def _password(folder: Path) -> Finding:
    """Apply the rule that the server itself applies when it starts."""
    try:
        passwords.prepare(folder, None)
    except passwords.UnsafePassword as error:
        return problem("password", str(error), "The server does not start until this is fixed.")
    except OSError as error:
        return problem(
            "password", f"{folder}: {error.strerror}", "Give this user access to the folder."
        )
    if passwords.VARIABLE in os.environ:
        return ok("password", f"set by {passwords.VARIABLE}")
    if not (folder / passwords.FILE).exists():
        return warning(
            "password",
            "not set, so the monitor cannot be opened",
            f"Set one with `lore-active password {folder}`.",
        )
    return ok("password", "set; only the owner can read its hash")


def _readers(folder: Path) -> Finding:
    """Check that other users of this machine cannot read the participants' data."""
    file = folder / DATABASE
    if os.name != "posix" or not file.exists():
        return ok("permissions", f"no {DATABASE} to check")
    open_file, open_folder = file.stat().st_mode & 0o044, folder.stat().st_mode & 0o011
    if open_file and open_folder:
        return warning(
            "permissions",
            f"other users of this machine can read {file}, which identifies participants",
            f"Run chmod 700 {folder}.",
        )
    return ok("permissions", f"only the owner can read {DATABASE}")


def _backups(folder: Path) -> Iterator[Finding]:
    """Check that there are backups, that the newest is valid, and that no recovery is pending."""
    rescued = sorted((folder / backups.FOLDER).glob(backups.RESCUED))
    if rescued:
        yield warning(
            "backups",
            f"{DATABASE} was replaced while the server was running; its data are in "
            f"{rescued[-1].relative_to(folder)}",
            f"Combine both with `lore-active recover {folder}`.",
        )
    copies = backups.every(folder)
    if not copies:
        held = (folder / DATABASE).exists()
        yield ok("backups", "none yet; `serve` makes them" if held else "no data to back up yet")
        return
    made = datetime.fromtimestamp(backups.made_at(copies[-1]) / 1000, UTC)
    newest = f"{len(copies)} in {backups.FOLDER}/, the newest of {made:%Y-%m-%d %H:%M} UTC"
    if damage := backups.damage_in(copies[-1]):
        advice = "Delete it and check the disk: files on it are being corrupted."
        yield problem("backups", f"{copies[-1].name} is damaged: {damage}", advice)
    else:
        yield ok("backups", newest)
