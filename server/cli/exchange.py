"""The commands `export` and `import`: write a study's data, read answers and logs."""

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
from lore_active.wording import many
from server.cli.options import answer_format, place_beside
from server.cli.terminal import bar
from server.clock import now
from server.exports import folder as export_folder
from server.exports import log
from server.exports.dictionary import simulated_note
from server.exports.log import opened
from server.exports.registry import FORMATS
from server.exports.tables import ExportOptions
from server.status.counting import answer_counts
from server.store import imports
from server.store.database import Connection, Result
from server.store.hash_chain import records as chain
from server.store.hash_chain import verification as chain_verification
from server.store.imports import ImportedFile
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
    help="Format to write.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to; DIR/export/FORMAT by default.",
)
@click.option("--without-excluded", is_flag=True, help="Omit excluded participants.")
@click.option("--pseudonyms", is_flag=True, help="Omit everything that identifies participants.")
@click.option(
    "--simulated",
    is_flag=True,
    help="Include simulated participants (bots) even if real participants have answered; they are "
    "always marked.",
)
@click.option(
    "--identified",
    is_flag=True,
    help="Psych-DS: keep recruitment ids, links, browsers, comments and exact times, which are "
    "omitted by default.",
)
@click.option(
    "--comments", is_flag=True, help="Psych-DS: keep participants' comments; read them first."
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
    for option, is_set in (("--identified", identified), ("--comments", comments)):
        if is_set and "psych-ds" not in names:
            raise InvalidParameter(
                f"{option} is for --format psych-ds; {formats} identifies participants "
                "unless --pseudonyms is given."
            )
    if identified and pseudonyms:
        raise InvalidParameter("--identified and --pseudonyms cannot be used together.")
    choice = ExportOptions(without_excluded, pseudonyms, simulated, identified, comments)
    with opened(folder, now) as (study, database, _):
        if out is None:
            out = place_beside(folder, study.name, "export") / formats
        files = export_folder.write(
            database, study, out, names, choice, lambda done: bar("rows", done)
        )
        counts = database.read(answer_counts)
    if sys.stderr.isatty():
        click.echo(err=True)
    if as_json:
        result = {"files": [str(file) for file in files], "counts": counts.plain()}
        click.echo(json.dumps(result))
    else:
        for file in files:
            click.echo(f"Wrote {file}")
        if note := simulated_note(counts):
            click.echo(note)


@click.command(name="import")
@click.argument("file", metavar="FILE")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only show what would happen.")
@click.option("--force", is_flag=True, help="Import a file even if it was already imported.")
@click.option(
    "--undo",
    is_flag=True,
    help="Remove the imported answers of FILE (or of the file with this hash).",
)
@click.option(
    "--by",
    type=click.Choice(["auto", "name", "number"]),
    default="auto",
    show_default=True,
    help="How FILE identifies items: by name, or by index from 0.",
)
@click.option(
    "--simulated",
    is_flag=True,
    help="Include answers of simulated participants (bots), which are left out otherwise.",
)
@answer_format
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def import_(
    file: str,
    folder: Path,
    dry_run: bool,
    force: bool,
    undo: bool,
    by: By,
    simulated: bool,
    label: str | None,
    as_json: bool,
) -> None:
    """Import answers into the study in DIR, or a study's log into a new folder.

    FILE is a log written by `export`, or answers: CSV (Salmon, tripletTools, an exported
    answers.csv, or three columns), .npz or .npy; also trials of several comparisons. Imported
    answers count towards the model, not towards the budget.
    """
    path = Path(file)
    if undo:
        result = _undo(file, folder, dry_run)
    elif not path.is_file():
        raise InvalidParameter(f"File not found: {path}.")
    elif log.is_log(path):
        result = _import_log(path, folder, dry_run)
    else:
        result = _import_answers(path, folder, by, force, dry_run, simulated, label)
    lines = result.pop("messages")
    if as_json:
        click.echo(json.dumps({**result, "dry_run": dry_run}))
    else:
        for line in lines:
            click.echo(line)


def _import_log(path: Path, folder: Path, dry_run: bool) -> dict[str, Any]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidParameter(f"{folder} is not empty; import a log into a new folder.")
    if dry_run:
        with path.open("rb") as stream:
            line_count = sum(1 for _ in log.read(stream))
        messages = [f"The log is complete: {line_count} lines. Nothing was written."]
        return {"kind": "log", "rows": line_count - 2, "messages": messages}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        study, database, where = log.load(path, folder / DATABASE, now)
    except BaseException:
        for leftover in folder.glob(f"{DATABASE}*"):
            leftover.unlink()
        raise
    # The hash chain of an older version does not cover columns that were added later.
    database.write(lambda c: chain_verification.keep_covered(c, now(), chain.SCHEMA))
    database.close()
    messages = [
        f"{study.name}: imported {many(len(where), 'row')} into {folder / DATABASE}.",
        "To serve it, copy study.toml and the stimuli into the same folder.",
    ]
    return {"kind": "log", "rows": len(where), "messages": messages}


def _import_answers(
    path: Path,
    folder: Path,
    by: By,
    force: bool,
    dry_run: bool,
    simulated: bool,
    label: str | None,
) -> dict[str, Any]:
    study = load_study(folder)
    table = read_table(path, simulated, label)
    try:
        match = matched(table, study.items, by)
    except InvalidTriplets as error:
        raise InvalidTriplets(f"{error} Nothing was imported.") from None
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    import_number = None

    def duplicate(source: ImportedFile) -> bool:
        return source.hash == digest and not source.removed

    def work(c: Connection) -> int | None:
        if not force and any(duplicate(source) for source in imports.every(c)):
            raise InvalidParameter(
                f"{path.name} has already been imported (SHA-256 {digest[:12]}). Remove it with "
                "--undo first, or import it twice with --force."
            )
        if dry_run:
            return None
        return imports.add(c, digest, path.name, match.rows, now(), match.trials)

    # A dry run must not create a database.
    if not dry_run or (folder / DATABASE).exists():
        import_number = _run(folder, work, dry_run)
    count = match.answers
    first = study.items[match.rows[0][0]].key
    messages = [
        *([f"{path.name}: {table.reading}."] if table.reading else []),
        f"{path.name}: {many(count, 'answer')}, items matched by {match.by} (the first anchor is "
        f"{first!r})."
        + (
            f" {many(table.left_out, 'row was', 'rows were')} left out (practice, catch trials, "
            "skipped, excluded)."
            if table.left_out
            else ""
        ),
        *([f"{left_out}."] if (left_out := rows_left_out(table.simulated_left_out)) else []),
        "Nothing was written."
        if dry_run
        else "The model uses them from the worker's next step on. To remove them: "
        f"lore-active import --undo {digest[:12]} {folder}",
    ]
    return {
        "kind": "answers",
        "file_number": import_number,
        "answers": count,
        "reading": table.reading,
        "left_out": table.left_out,
        "simulated_left_out": table.simulated_left_out,
        "by": match.by,
        "sha256": digest,
        "messages": messages,
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
        raise InvalidParameter(f"{folder}: there is no {DATABASE} yet, so nothing was imported.")

    def work(c: Connection) -> list[ImportedFile]:
        present = [source for source in imports.every(c) if not source.removed]
        chosen = [source for source in present if source.hash.startswith(wanted)]
        if len(wanted) < MIN_HASH or len({source.hash for source in chosen}) != 1:
            there = ", ".join(
                f"{source.hash[:12]} ({source.name}, {source.answers:,})" for source in present
            )
            raise InvalidParameter(
                f"{file} is not the file or the hash of an import in this study. "
                + (f"Imports: {there}." if there else "There are none.")
            )
        if not dry_run:
            for source in chosen:
                imports.remove(c, source, now())
        return chosen

    removed = _run(folder, work, dry_run)
    would = "would be " if dry_run else ""
    messages = [
        f"{source.name} ({source.hash[:12]}): {many(source.answers, 'answer')} {would}removed."
        for source in removed
    ]
    return {"kind": "undo", "removed": [asdict(source) for source in removed], "messages": messages}
