"""The command `reset`: a study without its data again; what it held is kept beside it."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from lore_active.errors import InvalidParameter, LoreError
from server.clock import now
from server.holding import Hold
from server.holdings import Holdings, of_folder
from server.opening import DATABASE
from server.store import backups, copies

KEPT = "before-reset-"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reset(folder: Path, yes: bool, as_json: bool) -> None:
    """Clear the data of the study in DIR, so that it begins again; settings and stimuli stay.

    Participants, answers, models, the log and view-only links go; the password stays. All of it is
    first moved to DIR/backups, and the command says where. Stop the server first.
    """
    if not (folder / "study.toml").is_file():
        raise InvalidParameter(f"{folder} holds no study.toml, so it is not the folder of a study.")
    if not (folder / DATABASE).exists():
        raise InvalidParameter(f"{folder} holds no {DATABASE}, so there is nothing to reset.")
    hold = Hold(folder)
    try:
        held = _held(folder)
        if not yes:
            _ask(folder, held)
        kept = clear(folder)
    finally:
        hold.release()
    if as_json:
        told = {"kept": str(kept), "held": None if held is None else held.plain()}
        click.echo(json.dumps(told))
        return
    click.echo(f"{folder} is empty again. What it held is in {kept}.")
    click.echo(f"To bring it back, put {kept / DATABASE} in the place of {folder / DATABASE}.")


def _held(folder: Path) -> Holdings | None:
    """What there is to lose, as far as it can be read."""
    try:
        return of_folder(folder, now)
    except LoreError:
        return None


def _ask(folder: Path, held: Holdings | None) -> None:
    if not _interactive():
        raise InvalidParameter("Not an interactive terminal: add --yes to confirm.")
    what = "data that cannot be read" if held is None else str(held)
    click.confirm(f"{folder} holds: {what}. Clear it (a backup is kept)?", abort=True, err=True)


def _copy(path: Path, to: Path) -> None:
    """A single sound file on disk; of a damaged one, its files as they are."""
    try:
        copies.online(path, to)
    except sqlite3.Error:
        copies.copy(path, to)
        for file in to.parent.glob(f"{to.name}*"):
            with file.open("rb") as stream:
                os.fsync(stream.fileno())


def clear(folder: Path) -> Path:
    """Move all data of a study to a folder of its own below `backups/`; nobody may have it open.

    The copy is complete and on disk before anything is taken away.
    """
    home = folder / backups.FOLDER
    at = now()
    home.mkdir(mode=0o700, exist_ok=True)
    while (kept := home / f"{KEPT}{_time(at)}").exists():
        at += 1000
    kept.mkdir(mode=0o700)
    _copy(folder / DATABASE, kept / DATABASE)
    # Rolling backups would otherwise tell the next server that data were lost.
    for old in (*backups.every(folder), *sorted(home.glob(backups.RESCUED))):
        old.rename(kept / old.name)
    backups.sync(kept)
    # The log first: what is left of a database without its own would look like one that was lost.
    for end in ("-wal", "-shm", ""):
        (folder / f"{DATABASE}{end}").unlink(missing_ok=True)
    backups.sync(folder)
    return kept


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime(backups.TIME)


def _interactive() -> bool:
    return sys.stdin.isatty()
