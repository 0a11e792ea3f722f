"""The command `lore-active import`: a log into a new folder, or prior answers into a study."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from lore_active.errors import InvalidParameter, InvalidTriplets
from lore_active.formats import read_table
from lore_active.matching import By, matched
from lore_active.tables import simulated_note
from server import log
from server.clock import now
from server.opening import DATABASE, load_study, open_study, reading
from server.store import chain, chain_verification, priors
from server.store.database import Connection, Result
from server.store.priors import Prior

SHORTEST_HASH = 6


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
def command(
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
        if not force and any(twin(one) for one in priors.every(c)):
            raise InvalidParameter(
                f"{path.name} is in this study already (content {digest[:12]}). Take it out with "
                "--undo first, or bring it in twice with --force."
            )
        return None if dry_run else priors.add(c, digest, path.name, found.rows, now())

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
        *([f"{left_out}."] if (left_out := simulated_note(table.simulated_left_out)) else []),
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
        inside = [one for one in priors.every(c) if not one.taken_out]
        meant = [one for one in inside if one.hash.startswith(wanted)]
        if len(wanted) < SHORTEST_HASH or len({one.hash for one in meant}) != 1:
            there = ", ".join(f"{one.hash[:12]} ({one.name}, {one.answers:,})" for one in inside)
            raise InvalidParameter(
                f"{file} is no file or hash of prior answers in this study; there "
                + (f"are: {there}." if there else "are none.")
            )
        if not dry_run:
            for one in meant:
                priors.take_out(c, one, now())
        return meant

    out = _run(folder, work, dry_run)
    would = "would be " if dry_run else ""
    words = [
        f"{one.name} ({one.hash[:12]}): {one.answers:,} answers {would}taken out." for one in out
    ]
    return {"kind": "undo", "taken_out": [asdict(one) for one in out], "words": words}
