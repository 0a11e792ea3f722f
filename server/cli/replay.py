"""The command `replay`: verify a study from its journal, or ask what other settings had changed."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import click

from lore_active.errors import InvalidParameter
from server.cli.maintenance import named
from server.cli.options import Lines, opened
from server.cli.terminal import bar
from server.exports import log
from server.exports.tables import utc
from server.learning import trajectories
from server.learning import what_if as settings_of
from server.learning.trajectories import Trajectory, TrajectoryPoint, WhatIf
from server.learning.verification import Mismatch, Replayed
from server.learning.verification import verify as verified
from server.learning.what_if import Supposition
from server.store import summaries
from server.store.database import Database
from server.store.hash_chain import records as chain
from server.store.hash_chain import verification as chain_verification
from server.study.config import LoadedStudy

# Why a log tells nothing of what was recorded.
WITHOUT_CHAIN = {
    chain.PSEUDONYMS: "a pseudonymised log leaves out what the hash chain covers",
    chain.LOG: "this log is from a version before the hash chain",
}


def _cores() -> int:
    return os.cpu_count() or 1


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
def replay(
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
    change = settings_of.read(words, study.settings, database.read(summaries.people))
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
    for line in what_if_table(found, change, study):
        click.echo(line)


def _compare(
    database: Database,
    study: LoadedStudy,
    lines: Lines,
    earlier: bytes | None,
    verify: bool,
    as_json: bool,
) -> None:
    found = verified(
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


MAX_ROWS = 16
_CELL = 37


def what_if_table(found: WhatIf, change: Supposition, study: LoadedStudy) -> Iterator[str]:
    """The original and the supposed study side by side, line by line."""
    columns = {"original": found.original}
    if found.same_pool is not None:
        columns[f"same pool, {study.settings.learning.selector}"] = found.same_pool
    columns["what if"] = found.what_if
    yield "         " + "".join(f"  {name:<{_CELL}}" for name in columns).rstrip()
    heads = f"  {'rank':>4} {'held out':>9} {'random questions':>16}"
    yield " answers " + "".join(f"{heads:<{_CELL + 2}}" for _ in columns).rstrip()
    for answers in _rows(list(columns.values())):
        cells = "".join(f"  {_cell(one, answers):<{_CELL}}" for one in columns.values())
        yield f"{answers:8d} {cells}".rstrip()
    yield ""
    for name, one in columns.items():
        yield f"{name}: {_stop(one)}"
    yield _difference(found)
    if change.selector is not None:
        yield (
            "Another selector can choose only among the questions that were answered, each once; "
            "most of them were chosen by the study's own selector."
        )


def _rows(ways: list[Trajectory]) -> list[int]:
    """Where to look: at audits, evenly, at every stop, and at the end."""
    audits = sorted({point.answers for one in ways for point in one.points})
    every = -(-len(audits) // MAX_ROWS)
    stops = {one.stopped_at for one in ways if one.stopped_at is not None}
    return sorted({*audits[::-every], *stops})


def _cell(one: Trajectory, answers: int) -> str:
    point = one.at(answers)
    if point is None or answers > one.answers:
        return f"{'–':>4}"
    mark = "  stop" if answers == one.stopped_at else ""
    return f"{point.rank:4d} {_percent(point.held_out):>9} {_random(point):>16}{mark}"


def _random(point: TrajectoryPoint) -> str:
    if point.progressive is None or point.low is None or point.high is None:
        return "–"
    return f"{_percent(point.progressive)} ({100 * point.low:.0f}–{100 * point.high:.0f})"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _stop(one: Trajectory) -> str:
    if one.stopped_at is None:
        return f"not settled by {one.answers} answers. {one.headline}"
    rank = f"{one.stopped_rank} dimension{'s' * (one.stopped_rank != 1)}"
    return f"settled at {rank} after {one.stopped_at} of {one.answers} answers."


def _difference(found: WhatIf) -> str:
    if found.answers_saved is not None:
        return f"Answers saved: {found.answers_saved}."
    if found.answers_missing is not None:
        return f"Answers missing at the original's stop: {found.answers_missing}."
    return "Answers missing: unknown; all that were collected would not have been enough."
