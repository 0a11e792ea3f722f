"""The commands `export` and `import`: a study's data out, answers and logs from elsewhere in."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from lore_active.data.columns import simulated_note as rows_left_out
from lore_active.data.formats import read_table
from lore_active.errors import InvalidParameter, InvalidTriplets
from server.cli.options import opened, place_beside
from server.cli.terminal import bar
from server.clock import now
from server.exports import folder as export_folder
from server.exports import log
from server.exports.dictionary import simulated_note
from server.exports.registry import FORMATS
from server.exports.tables import ExportOptions
from server.status.counting import answer_counts
from server.store import imports
from server.store.database import Connection, Result
from server.store.hash_chain import records as chain
from server.store.hash_chain import verification as chain_verification
from server.store.imports import Prior
from server.study.items.matching import By, matched
from server.study.workspace import DATABASE, load_study, open_study, reading

MIN_HASH = 6


@click.command()
@click.argument("folder", metavar="DIR|LOG", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--format",
    "formats",
    type=click.Choice([*FORMATS, "all"]),
    default="csv",
    show_default=True,
    help="What to write.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to; DIR/export/FORMAT if not given.",
)
@click.option("--without-excluded", is_flag=True, help="Leave excluded participants out.")
@click.option("--pseudonyms", is_flag=True, help="Leave out who participants are.")
@click.option(
    "--simulated",
    is_flag=True,
    help="Include simulated participants (bots) although people have answered; always marked.",
)
@click.option(
    "--identified",
    is_flag=True,
    help="Psych-DS: keep recruiters' ids, links, browsers, comments and exact times, which it is "
    "without otherwise.",
)
@click.option(
    "--comments", is_flag=True, help="Psych-DS: keep participants' comments; read them before."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export(
    folder: Path,
    formats: str,
    out: Path | None,
    without_excluded: bool,
    pseudonyms: bool,
    simulated: bool,
    identified: bool,
    comments: bool,
    as_json: bool,
) -> None:
    """Write a study's data as files, in one format or in all of them."""
    names = list(FORMATS) if formats == "all" else [formats]
    for option, given in (("--identified", identified), ("--comments", comments)):
        if given and "psych-ds" not in names:
            raise InvalidParameter(
                f"{option} is for --format psych-ds; {formats} has who participants are, unless "
                "--pseudonyms is given."
            )
    if identified and pseudonyms:
        raise InvalidParameter("--identified and --pseudonyms exclude each other: give one.")
    choice = ExportOptions(without_excluded, pseudonyms, simulated, identified, comments)
    with opened(folder) as (study, database, _):
        if out is None:
            out = place_beside(folder, study.name, "export") / formats
        files = export_folder.write(
            database, study, out, names, choice, lambda done: bar("rows", done)
        )
        counts = database.read(answer_counts)
    if sys.stderr.isatty():
        click.echo(err=True)
    if as_json:
        told = {"files": [str(file) for file in files], "counts": counts.plain()}
        click.echo(json.dumps(told))
    else:
        for file in files:
            click.echo(f"written: {file}")
        if note := simulated_note(counts):
            click.echo(note)


@click.command(name="import")
@click.argument("file", metavar="FILE")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option("--force", is_flag=True, help="Bring a file in although it is in already.")
@click.option("--undo", is_flag=True, help="Take the answers of FILE (or of its hash) out again.")
@click.option(
    "--by",
    type=click.Choice(["auto", "name", "number"]),
    default="auto",
    show_default=True,
    help="How FILE tells items: by name, or by number from 0.",
)
@click.option(
    "--simulated",
    is_flag=True,
    help="Include answers of simulated participants (bots), which are left out otherwise.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def import_(
    file: str,
    folder: Path,
    dry_run: bool,
    force: bool,
    undo: bool,
    by: By,
    simulated: bool,
    as_json: bool,
) -> None:
    """Bring answers from elsewhere into the study in DIR, or a study's log into a new folder.

    FILE is a log of this program, or answers: CSV (Salmon, tripletTools, this program's
    answers.csv, or three columns), .npz or .npy. Prior answers count for the model, not for the
    budget.
    """
    path = Path(file)
    if undo:
        told = _undo(file, folder, dry_run)
    elif not path.is_file():
        raise InvalidParameter(f"There is no file {path}.")
    elif log.is_log(path):
        told = _study_again(path, folder, dry_run)
    else:
        told = _bring_in(path, folder, by, force, dry_run, simulated)
    words = told.pop("words")
    if as_json:
        click.echo(json.dumps({**told, "dry_run": dry_run}))
    else:
        for line in words:
            click.echo(line)


def _study_again(path: Path, folder: Path, dry_run: bool) -> dict[str, Any]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidParameter(f"{folder} is not empty; a log is brought into a new folder.")
    if dry_run:
        with path.open("rb") as stream:
            lines = sum(1 for _ in log.read(stream))
        words = [f"The log is whole: {lines} lines. Nothing was written."]
        return {"kind": "log", "rows": lines - 2, "words": words}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        study, database, where = log.load(path, folder / DATABASE, now)
    except BaseException:
        for left in folder.glob(f"{DATABASE}*"):
            left.unlink()
        raise
    # What an older version recorded does not cover columns that were added since.
    database.write(lambda c: chain_verification.keep_covered(c, now(), chain.SCHEMA))
    database.close()
    words = [
        f"{study.name}: {len(where)} rows are in {folder / DATABASE}.",
        "To serve it, put study.toml and the stimuli beside it.",
    ]
    return {"kind": "log", "rows": len(where), "words": words}


def _bring_in(
    path: Path, folder: Path, by: By, force: bool, dry_run: bool, simulated: bool
) -> dict[str, Any]:
    study = load_study(folder)
    table = read_table(path, simulated)
    try:
        found = matched(table, study.items, by)
    except InvalidTriplets as error:
        raise InvalidTriplets(f"{error} Nothing was brought in.") from None
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    number = None

    def twin(one: Prior) -> bool:
        return one.hash == digest and not one.taken_out

    def work(c: Connection) -> int | None:
        if not force and any(twin(one) for one in imports.every(c)):
            raise InvalidParameter(
                f"{path.name} is in this study already (content {digest[:12]}). Take it out with "
                "--undo first, or bring it in twice with --force."
            )
        return None if dry_run else imports.add(c, digest, path.name, found.rows, now())

    # A dry run leaves no database behind where there was none.
    if not dry_run or (folder / DATABASE).exists():
        number = _run(folder, work, dry_run)
    count = len(found.rows)
    first = study.items[found.rows[0][0]].key
    words = [
        f"{path.name}: {count:,} answers, items matched by {found.by} (the first anchor is "
        f"{first!r})."
        + (
            f" {table.set_aside:,} rows were set aside (practice, checks, skipped, excluded)."
            if table.set_aside
            else ""
        ),
        *([f"{left_out}."] if (left_out := rows_left_out(table.simulated_left_out)) else []),
        "Nothing was written."
        if dry_run
        else f"They count for the model from the worker's next turn on. To take them out again: "
        f"lore-active import --undo {digest[:12]} {folder}",
    ]
    return {
        "kind": "answers",
        "prior": number,
        "answers": count,
        "set_aside": table.set_aside,
        "simulated_left_out": table.simulated_left_out,
        "by": found.by,
        "sha256": digest,
        "words": words,
    }


def _run(folder: Path, work: Callable[[Connection], Result], dry_run: bool) -> Result:
    if dry_run:
        with reading(folder, now) as (_, database):
            return database.read(work)
    _, database = open_study(folder, now)
    try:
        return database.write(work)
    finally:
        database.close()


def _undo(file: str, folder: Path, dry_run: bool) -> dict[str, Any]:
    path = Path(file)
    wanted = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else file.lower()
    load_study(folder)
    if not (folder / DATABASE).exists():
        raise InvalidParameter(f"{folder}: there is no {DATABASE} yet, so nothing was brought in.")

    def work(c: Connection) -> list[Prior]:
        inside = [one for one in imports.every(c) if not one.taken_out]
        meant = [one for one in inside if one.hash.startswith(wanted)]
        if len(wanted) < MIN_HASH or len({one.hash for one in meant}) != 1:
            there = ", ".join(f"{one.hash[:12]} ({one.name}, {one.answers:,})" for one in inside)
            raise InvalidParameter(
                f"{file} is no file or hash of prior answers in this study; there "
                + (f"are: {there}." if there else "are none.")
            )
        if not dry_run:
            for one in meant:
                imports.take_out(c, one, now())
        return meant

    out = _run(folder, work, dry_run)
    would = "would be " if dry_run else ""
    words = [
        f"{one.name} ({one.hash[:12]}): {one.answers:,} answers {would}taken out." for one in out
    ]
    return {"kind": "undo", "taken_out": [asdict(one) for one in out], "words": words}
