"""The commands `export` and `replay`: a study out, and gone through again."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from lore_active.errors import InvalidParameter
from lore_active.progress import bar
from lore_active.study import LoadedStudy
from server import exporting, log, supposing, telling, trajectories
from server.clock import now
from server.counting import answer_counts
from server.exports import Choice
from server.opening import DATABASE, reading
from server.replaying import Replayed, replay
from server.store import monitoring
from server.store.database import Database

Lines = dict[tuple[str, int], int]


@contextmanager
def opened(path: Path) -> Iterator[tuple[LoadedStudy, Database, Lines]]:
    """The study in a folder, or the one that a log tells of (then with its lines)."""
    if path.is_dir():
        with reading(path, now) as (study, database):
            yield study, database, {}
        return
    with tempfile.TemporaryDirectory(prefix="lore-active-") as home:
        study, database, lines = log.load(path, Path(home) / DATABASE, now)
        try:
            yield study, database, lines
        finally:
            database.close()


def place_beside(path: Path, study: str, name: str) -> Path:
    """Where a file or folder of results goes when nothing else was said.

    Into the study's folder, or beside its log; where that cannot be written (an archive, a disk
    that is read-only), into the current folder, under the study's name.
    """
    home = path if path.is_dir() else path.parent
    if os.access(home, os.W_OK):
        return home / name
    if os.access(Path.cwd(), os.W_OK):
        return Path(f"{study}-{name}")
    raise InvalidParameter(
        f"Neither {home} nor the current folder can be written: say where with --out."
    )


def _cores() -> int:
    return os.cpu_count() or 1


@click.command()
@click.argument("folder", metavar="DIR|LOG", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--format",
    "formats",
    type=click.Choice([*exporting.WRITERS, "all"]),
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export(
    folder: Path,
    formats: str,
    out: Path | None,
    without_excluded: bool,
    pseudonyms: bool,
    as_json: bool,
) -> None:
    """Write a study's data: csv, triplettools, salmon, cblearn, psych-ds, log, or all of them."""
    names = list(exporting.WRITERS) if formats == "all" else [formats]
    choice = Choice(without_excluded, pseudonyms)
    with opened(folder) as (study, database, _):
        if out is None:
            out = place_beside(folder, study.name, "export") / formats
        files = exporting.write(database, study, out, names, choice, lambda done: bar("rows", done))
        counts = database.read(answer_counts)
    if sys.stderr.isatty():
        click.echo(err=True)
    if as_json:
        told = {"files": [str(file) for file in files], "counts": counts.plain()}
        click.echo(json.dumps(told))
    else:
        for file in files:
            click.echo(f"written: {file}")


@click.command(name="replay")
@click.argument("path", metavar="DIR|LOG", type=click.Path(path_type=Path, exists=True))
@click.argument("more", metavar="", nargs=-1)
@click.option("--verify", is_flag=True, help="Exit with 1 if anything comes out differently.")
@click.option(
    "--what-if",
    "what_if",
    metavar="KEY=VALUE ...",
    multiple=True,
    help="Suppose other settings instead: lam=0.02 selector=uncertainty stop.confidence=0.95 "
    "stop.audits=3 stop.min_answers=200 exclude=P7,P9 restore=P3. Any number of them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def again(
    path: Path, more: tuple[str, ...], verify: bool, what_if: tuple[str, ...], as_json: bool
) -> None:
    """Go through a study again and compare every model, question and decision.

    With --what-if, go through it under other settings and put that beside the original.
    """
    if more and not what_if:
        raise InvalidParameter(f"{more[0]!r} stands alone; settings to suppose follow --what-if.")
    if what_if and verify:
        raise InvalidParameter("--verify and --what-if exclude each other: give one of them.")
    with opened(path) as (study, database, lines):
        if what_if:
            _suppose(database, study, (*what_if, *more), as_json)
        else:
            _compare(database, study, lines, verify, as_json)


def _suppose(database: Database, study: LoadedStudy, words: Sequence[str], as_json: bool) -> None:
    change = supposing.read(words, study.settings, database.read(monitoring.people))
    with ThreadPoolExecutor(_cores()) as pool:
        found = trajectories.what_if(
            database,
            study,
            change,
            time.perf_counter,
            lambda done, of: bar("supposing", done, of),
            pool.map,
        )
    if as_json:
        click.echo(json.dumps({"supposed": list(words), **asdict(found)}))
        return
    for line in telling.table(found, change, study):
        click.echo(line)


def _compare(
    database: Database, study: LoadedStudy, lines: Lines, verify: bool, as_json: bool
) -> None:
    found = replay(
        database,
        study,
        time.perf_counter,
        lines,
        lambda done, of: bar("step", done, of),
        _cores(),
    )
    if as_json:
        click.echo(json.dumps(asdict(found)))
    else:
        _print(found)
    if verify and found.mismatches:
        sys.exit(1)


def _print(found: Replayed) -> None:
    how = "bit for bit" if found.fingerprint_match else "within tolerance (another machine)"
    click.echo(
        f"{found.models_checked} models, {found.queries_checked} questions and "
        f"{found.decisions_checked} decisions compared {how} in {found.seconds:.1f} s."
    )
    click.echo(
        f"Answers: {found.counts['answers']:,} collected, {found.counts['fitted']:,} in the last "
        "model that came out."
    )
    if found.original_seconds:
        click.echo(
            f"The worker spent {found.original_seconds:.1f} s on the same fits, audits and "
            "choices. A replay cannot take much less than that divided by the number of cores "
            f"({found.cores} here): each of them is made again, and each model begins where the "
            "one before it ended."
        )
    if found.erased:
        numbers = ", ".join(map(str, found.erased))
        click.echo(f"Participants erased since: {numbers}.")
    if found.steps_erased:
        click.echo(
            f"{found.steps_erased} steps used answers that were erased, and cannot be compared."
        )
    if not found.mismatches:
        click.echo("Everything came out as it was published.")
    for one in found.mismatches[:20]:
        click.echo(f"DIFFERS {one}")
    if len(found.mismatches) > 20:
        click.echo(f"… and {len(found.mismatches) - 20} more.")
