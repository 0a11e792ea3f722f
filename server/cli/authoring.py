"""The commands `new`, `check`, `password` and `reset`: creating, checking and clearing a study."""

from __future__ import annotations

import json
import secrets
import sys
from collections import Counter
from pathlib import Path
from shlex import quote
from typing import Any

import click

from lore_active.errors import InvalidParameter, LoreError
from lore_active.wording import many
from server.auth.passwords import generate, set_password
from server.cli.terminal import confirm
from server.clock import now
from server.maintenance.clearing import clear
from server.status.contents import StudyContents, of_folder
from server.study.config import LoadedStudy
from server.study.loading import InvalidStudy, load
from server.study.lock import ProcessLock
from server.study.problems import Problem, printable
from server.study.samples.template import write_study
from server.study.validation import cautions
from server.study.workspace import DATABASE

FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--demo", type=click.Choice(["colours"]), help="Start from this demo study.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**53 - 1),
    help="Random seed of the study; drawn at random and stored in study.toml by default.",
)
def new(folder: Path, demo: str | None, seed: int | None) -> None:
    """Create a study in DIR, with commented settings and sample stimuli, ready to run."""
    chosen = secrets.randbelow(2**31) if seed is None else seed
    write_study(folder, "colours" if demo == "colours" else "foods", chosen)
    password = generate()
    set_password(folder, password)
    place = quote(str(folder))
    click.echo(f"Created a study in {printable(str(folder))}. Its settings are in study.toml.")
    click.echo(f"\nThe experimenter's password (shown only once):  {password}\n")
    click.echo("Next:")
    click.echo(f"  lore-active check {place}    after every change")
    click.echo(f"  lore-active serve {place}    to run it")


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--stdin", is_flag=True, help="Read the password from standard input (first line).")
def password(folder: Path, stdin: bool) -> None:
    """Set a new experimenter password for the study in DIR and show it once."""
    if not (folder / "study.toml").is_file():
        raise InvalidParameter(f"{folder} contains no study.toml, so it is not a study folder.")
    if stdin:
        line = sys.stdin.buffer.readline()
        set_password(folder, line.decode(errors="surrogateescape").rstrip("\r\n"))
        click.echo("The new password is set.")
        return
    fresh = generate()
    set_password(folder, fresh)
    click.echo(f"The new experimenter's password (shown only once):  {fresh}")


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def check(ctx: click.Context, folders: tuple[Path, ...], as_json: bool) -> None:
    """Validate the studies in DIR...: report every problem; exit with code 2 if there is any.

    Warnings point out valid settings that may be unintended; they do not change the exit code.
    """
    reports = []
    for folder in folders:
        problems: tuple[Problem, ...] = ()
        study = None
        try:
            study = load(folder)
        except InvalidStudy as error:
            problems = error.problems
        reports.append(_report(folder, study, problems))
        if not as_json:
            # With a single study it is clear whose file is meant.
            where = f"{printable(str(folder))}: " if len(folders) > 1 else ""
            for problem in problems:
                click.echo(f"{where}{problem}")
            if study is not None:
                click.echo(where + _summary_line(study))
                if held := reports[-1]["data"]:
                    click.echo(f"{where}Data: {held['text']}.")
                if unreadable := reports[-1]["data_problem"]:
                    click.echo(f"{where}Warning: its data cannot be read: {unreadable}")
                for caution in cautions(study.settings):
                    click.echo(f"{where}Warning: {caution}")
    ok = all(report["ok"] for report in reports)
    if as_json:
        click.echo(json.dumps({"ok": ok, "studies": reports}))
    ctx.exit(0 if ok else 2)


def _report(
    folder: Path, study: LoadedStudy | None, problems: tuple[Problem, ...]
) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "ok": study is not None,
        "problems": [
            {
                "file": problem.file,
                "key": problem.key,
                "value": problem.value,
                "rule": problem.rule,
                "message": str(problem),
            }
            for problem in problems
        ],
        "warnings": [] if study is None else list(cautions(study.settings)),
        "summary": None if study is None else summary(study),
        **_data(study),
    }


def _data(study: LoadedStudy | None) -> dict[str, Any]:
    """Summarise the data that the study already holds."""
    # Most studies are checked before they start; importing this would only slow that down.
    if study is None or not (study.folder / "study.db").exists():
        return {"data": None, "data_problem": ""}
    from server.clock import now
    from server.status.contents import of_folder

    try:
        held = of_folder(study.folder, now)
    except LoreError as error:
        return {"data": None, "data_problem": str(error)}
    return {
        "data": None if held is None else {**held.plain(), "text": str(held)},
        "data_problem": "",
    }


def summary(study: LoadedStudy) -> dict[str, Any]:
    """Summarise a study in a few numbers."""
    settings = study.settings
    return {
        "name": study.name,
        "title": settings.title,
        "items": len(study.items),
        "kinds": dict(Counter(item.kind for item in study.items)),
        "catches": len(study.catches),
        "trials": settings.session.trials,
        "budget": {
            "answers": settings.budget.answers,
            "participants": settings.budget.participants,
        },
    }


def _summary_line(study: LoadedStudy) -> str:
    counts = summary(study)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts["kinds"].items())
    participants = counts["budget"]["participants"]
    at_most = f" from at most {many(participants, 'participant')}" if participants else ""
    return (
        f"{study.name} is ready: {counts['items']} items ({kinds}), "
        f"{many(counts['catches'], 'catch question')}, {many(counts['trials'], 'trial')} per "
        f"participant, at most {many(counts['budget']['answers'], 'answer')}{at_most}."
    )


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reset(folder: Path, yes: bool, as_json: bool) -> None:
    """Clear the data of the study in DIR so that it can start over; settings and stimuli stay.

    Clears participants, answers, models, the log and view-only links; keeps the password.
    Everything is first moved to DIR/backups, and the command says where. Stop the server first.
    """
    if not (folder / "study.toml").is_file():
        raise InvalidParameter(f"{folder} contains no study.toml, so it is not a study folder.")
    if not (folder / DATABASE).exists():
        raise InvalidParameter(f"{folder} contains no {DATABASE}, so there is nothing to reset.")
    hold = ProcessLock(folder)
    try:
        held = _held(folder)
        if not yes:
            what = "data that cannot be read" if held is None else str(held)
            confirm(f"{folder} contains: {what}. Clear it (a backup is kept)?")
        kept = clear(folder)
    finally:
        hold.release()
    if as_json:
        result = {"kept": str(kept), "held": None if held is None else held.plain()}
        click.echo(json.dumps(result))
        return
    click.echo(f"Cleared {folder}. Its previous data are in {kept}.")
    click.echo(f"To restore them, copy {kept / DATABASE} to {folder / DATABASE}.")


def _held(folder: Path) -> StudyContents | None:
    """Summarise the data about to be cleared, if they can be read."""
    try:
        return of_folder(folder, now)
    except LoreError:
        return None
