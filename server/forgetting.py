"""The command `forget`: erase one participant's personal data from a study."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from lore_active.errors import InvalidParameter
from server import erasing
from server.clock import now
from server.erasing import Erased
from server.holding import Hold
from server.opening import DATABASE, open_study


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("participant")
@click.option("--answers", is_flag=True, help="Erase what they answered, too.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def forget(folder: Path, participant: str, answers: bool, yes: bool, as_json: bool) -> None:
    """Erase who a participant of the study in DIR is.

    PARTICIPANT is their number in the monitor, or what the recruiting service calls them. Gone are
    their names, link parameters, browser, comment, timings, reasons given about them, and the time
    of day of all they did. Their answers stay, without a name, unless --answers erases them. There
    is no way back. Stop the server first.
    """
    if not (folder / DATABASE).is_file():
        raise InvalidParameter(f"{folder} holds no {DATABASE}, so there is nobody to erase.")
    study, database = open_study(folder, now)
    try:
        hold = Hold(study.folder)
        try:
            who = erasing.find(database, participant)
            if not yes:
                _ask(who.id, who.external, answers, study.name)
            done = erasing.forget(database, study, who, answers, now, _progress)
        finally:
            hold.release()
    finally:
        database.close()
    if as_json:
        click.echo(json.dumps(asdict(done)))
    else:
        _print(done, folder)


def _ask(number: int, external: str | None, answers: bool, study: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidParameter("There is nobody to ask: add --yes to erase without a question.")
    called = f" ({external})" if external else ""
    what = "and everything they answered " if answers else ""
    click.confirm(
        f"Erase participant {number}{called} {what}from {study}? There is no way back.",
        abort=True,
        err=True,
    )


def _progress(words: str) -> None:
    if sys.stderr.isatty():
        print(words, file=sys.stderr, flush=True)


def _print(done: Erased, folder: Path) -> None:
    fate = "are erased, too" if done.answers_erased else "stay, without a name"
    click.echo(f"Participant {done.participant} is erased. Their {done.answers} answers {fate}.")
    if done.backups_removed:
        count = len(done.backups_removed)
        copies = "1 file" if count == 1 else f"{count} files"
        then = f"; the new backup is {done.new_backup}" if done.new_backup else ""
        click.echo(f"Removed {copies} in backups/ that still held them{then}.")
    if done.still_in:
        click.echo("\nFiles made earlier still hold them. Delete these, or make them again:")
    for name in done.still_in:
        click.echo(f"  {folder / name}")
    if done.unsearched:
        click.echo("\nArchives that were not looked into:")
    for name in done.unsearched:
        click.echo(f"  {folder / name}")
    click.echo(
        "\nCopies elsewhere are yours to erase: backups and exports that you moved or sent, and "
        "what the recruiting service keeps."
    )
