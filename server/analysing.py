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
from server.columns import simulated_note
from server.counting import answer_counts
from server.exports import Choice, utc
from server.opening import DATABASE, reading
from server.recovering import named
from server.replaying import Mismatch, Replayed, replay
from server.store import chain, chain_verification, monitoring
from server.store.database import Database

Lines = dict[tuple[str, int], int]
# Why a log tells nothing of what was recorded.
WITHOUT_CHAIN = {
    chain.PSEUDONYMS: "a pseudonymised log leaves out what the hash chain covers",
    chain.LOG: "this log is from a version before the hash chain",
}


@contextmanager
def opened(path: Path, incomplete: bool = False) -> Iterator[tuple[LoadedStudy, Database, Lines]]:
    """The study in a folder, or the one that a log tells of (then with its lines)."""
    if path.is_dir():
        with reading(path, now, incomplete) as (study, database):
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
    """Write a study's data: csv, triplettools, salmon, cblearn, psych-ds, log, or all of them."""
    names = list(exporting.WRITERS) if formats == "all" else [formats]
    for option, given in (("--identified", identified), ("--comments", comments)):
        if given and "psych-ds" not in names:
            raise InvalidParameter(
                f"{option} is for --format psych-ds; {formats} has who participants are, unless "
                "--pseudonyms is given."
            )
    if identified and pseudonyms:
        raise InvalidParameter("--identified and --pseudonyms exclude each other: give one.")
    choice = Choice(without_excluded, pseudonyms, simulated, identified, comments)
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
        if note := simulated_note(counts):
            click.echo(note)


@click.command(name="replay")
@click.argument("path", metavar="DIR|LOG", type=click.Path(path_type=Path, exists=True))
@click.argument("more", metavar="", nargs=-1)
@click.option("--verify", is_flag=True, help="Exit with 1 if anything comes out differently.")
@click.option(
    "--what-if",
    "what_if",
    metavar="KEY=VALUE ...",
    multiple=True,
    help="Suppose other settings instead, by their keys in study.toml: stopping.confidence=0.95 "
    "stopping.audits=3 stopping.min_answers=200 learning.selector=uncertainty; or lam=0.02 "
    "exclude=P7,P9 restore=P3. Any number of them.",
)
@click.option(
    "--continues",
    metavar="LOG|HASH",
    help="Check, too, that the hash chain goes on from an earlier log, or from its last hash.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def again(
    path: Path,
    more: tuple[str, ...],
    verify: bool,
    what_if: tuple[str, ...],
    continues: str | None,
    as_json: bool,
) -> None:
    """Go through a study again and compare every stored row, model, question and decision.

    With --what-if, go through it under other settings and put that beside the original.
    """
    if more and not what_if:
        raise InvalidParameter(f"{more[0]!r} stands alone; settings to suppose follow --what-if.")
    if what_if and verify:
        raise InvalidParameter("--verify and --what-if exclude each other: give one of them.")
    if what_if and continues:
        raise InvalidParameter("--continues and --what-if exclude each other: give one of them.")
    earlier = None if continues is None else _hash_of(continues)
    with opened(path, incomplete=not what_if) as (study, database, lines):
        if what_if:
            _suppose(database, study, (*what_if, *more), as_json)
        else:
            _compare(database, study, lines, earlier, verify, as_json)


def _hash_of(said: str) -> bytes:
    """The hash itself, or the last one of a log."""
    path = Path(said)
    if path.is_file():
        with path.open("rb") as stream:
            heads = [row for _, kind, row in log.read(stream) if kind == "chain_head"]
        try:
            return log.blob(heads[0]["hash"])
        except (IndexError, KeyError, TypeError, ValueError):
            raise InvalidParameter(f"{path} is a log without a hash chain to go on from.") from None
    try:
        hashed = bytes.fromhex(said)
    except ValueError:
        hashed = b""
    if len(hashed) != chain.HASH_BYTES:
        raise InvalidParameter(
            f"--continues is {said!r}, but must be a log, or the last hash of a chain: "
            f"{2 * chain.HASH_BYTES} characters from 0 to 9 and a to f."
        )
    return hashed


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
    database: Database,
    study: LoadedStudy,
    lines: Lines,
    earlier: bytes | None,
    verify: bool,
    as_json: bool,
) -> None:
    found = replay(
        database,
        study,
        time.perf_counter,
        lines,
        lambda done, of: bar("step", done, of),
        _cores(),
    )
    if earlier and not database.read(lambda c: chain_verification.continues(c, earlier)):
        what = f"the hash chain never ended with {earlier.hex()}: it was rewritten, or is another."
        found.mismatches.insert(0, Mismatch(None, None, "chain", None, what))
    if as_json:
        click.echo(json.dumps(asdict(found)))
    else:
        _print(found)
    if verify and found.mismatches:
        sys.exit(1)


def _coverage(found: Replayed) -> str:
    """What the hash chain tells of the stored rows."""
    why = found.periods[0] if found.periods else ""
    if found.covered_from is None:
        return f"Stored rows were not compared: {WITHOUT_CHAIN.get(why, 'there is no hash chain')}."
    since = "the study's beginning"
    if why != chain.NEW:
        since = f"{utc(found.covered_from)}, when {found.rows_before:,} rows were already there"
    return (
        f"{found.rows_checked:,} stored rows are as recorded in the hash chain, which covers "
        f"everything from {since}. Last hash: {found.last_hash} (records: "
        f"{found.records_checked:,})."
    )


def _print(found: Replayed) -> None:
    click.echo(_coverage(found))
    how = "bit for bit" if found.fingerprint_match else "within tolerance (another machine)"
    click.echo(
        f"{found.models_checked} models, {found.queries_checked} questions and "
        f"{found.decisions_checked} decisions compared {how} in {found.seconds:.1f} s."
    )
    if found.counts:
        click.echo(
            f"Answers: {found.counts['answers']:,} collected, {found.counts['fitted']:,} in the "
            "last model that came out."
        )
    if found.verdict:
        click.echo(f"{found.verdict['headline']} {found.verdict['explanation']}")
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
    for recovery in found.recovered:
        lost = ", ".join(named(table, rows) for table, rows in recovery["missing"].items())
        click.echo(f"Recovered on {utc(recovery['at'])}; lost then: {lost or 'nothing'}.")
    if not found.mismatches:
        click.echo("Everything came out as it was published.")
    for one in found.mismatches[:20]:
        click.echo(f"DIFFERS {one}")
    if len(found.mismatches) > 20:
        click.echo(f"… and {len(found.mismatches) - 20} more.")
