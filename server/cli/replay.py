"""The command `replay`: verify a study from its journal, or replay it under other settings."""

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
from lore_active.wording import many
from server.cli.maintenance import named
from server.cli.terminal import bar
from server.clock import now
from server.exports import log
from server.exports.log import Lines, opened
from server.exports.tables import utc
from server.learning import trajectories
from server.learning import what_if as settings_of
from server.learning.trajectories import Trajectory, TrajectoryPoint, WhatIf
from server.learning.verification import Mismatch, Replayed
from server.learning.verification import verify as verified
from server.learning.what_if import WhatIfChange
from server.store import summaries
from server.store.database import Database
from server.store.hash_chain import records as chain
from server.store.hash_chain import verification as chain_verification
from server.study.config import LoadedStudy

# Why a log contains no hash chain.
WITHOUT_CHAIN = {
    chain.PSEUDONYMS: "a pseudonymised log omits columns that the hash chain covers",
    chain.LOG: "this log was written before the hash chain was introduced",
}


def _cores() -> int:
    return os.cpu_count() or 1


@click.command(name="replay")
@click.argument("path", metavar="DIR|LOG", type=click.Path(path_type=Path, exists=True))
@click.argument("more", metavar="", nargs=-1)
@click.option("--verify", is_flag=True, help="Exit with code 1 if anything differs.")
@click.option(
    "--what-if",
    "what_if",
    metavar="KEY=VALUE ...",
    multiple=True,
    help="Replay under other settings, given by their keys in study.toml: stopping.confidence=0.95 "
    "stopping.audits=3 stopping.min_answers=200 learning.selector=uncertainty; or lam=0.02 "
    "exclude=P7,P9 restore=P3. Several can be given.",
)
@click.option(
    "--continues",
    metavar="LOG|HASH",
    help="Also verify that the hash chain continues an earlier log, or its last hash.",
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
    """Recompute a study from its journal and compare every row, model, question and decision.

    With --what-if, replay it under other settings and compare the course with the original.
    """
    if more and not what_if:
        raise InvalidParameter(f"Unexpected argument {more[0]!r}; give settings after --what-if.")
    if what_if and verify:
        raise InvalidParameter("--verify and --what-if cannot be used together.")
    if what_if and continues:
        raise InvalidParameter("--continues and --what-if cannot be used together.")
    earlier = None if continues is None else _hash_of(continues)
    with opened(path, now, incomplete=not what_if) as (study, database, lines):
        if what_if:
            _replay_what_if(database, study, (*what_if, *more), as_json)
        else:
            _compare(database, study, lines, earlier, verify, as_json)


def _hash_of(text: str) -> bytes:
    """Return the given hash, or the last hash of the given log."""
    path = Path(text)
    if path.is_file():
        with path.open("rb") as stream:
            heads = [row for _, kind, row in log.read(stream) if kind == "chain_head"]
        try:
            return log.blob(heads[0]["hash"])
        except (IndexError, KeyError, TypeError, ValueError):
            raise InvalidParameter(f"{path} is a log without a hash chain to continue.") from None
    try:
        hashed = bytes.fromhex(text)
    except ValueError:
        hashed = b""
    if len(hashed) != chain.HASH_BYTES:
        raise InvalidParameter(
            f"--continues is {text!r}, but must be a log, or the last hash of a chain: "
            f"{2 * chain.HASH_BYTES} characters from 0 to 9 and a to f."
        )
    return hashed


def _replay_what_if(
    database: Database, study: LoadedStudy, terms: Sequence[str], as_json: bool
) -> None:
    change = settings_of.read(terms, study.settings, database.read(summaries.participants))
    with ThreadPoolExecutor(_cores()) as pool:
        comparison = trajectories.what_if(
            database,
            study,
            change,
            time.perf_counter,
            lambda done, of: bar("step", done, of),
            pool.map,
        )
    if as_json:
        click.echo(json.dumps({"changes": list(terms), **asdict(comparison)}))
        return
    for line in what_if_table(comparison, change, study):
        click.echo(line)


def _compare(
    database: Database,
    study: LoadedStudy,
    lines: Lines,
    earlier: bytes | None,
    verify: bool,
    as_json: bool,
) -> None:
    outcome = verified(
        database,
        study,
        time.perf_counter,
        lines,
        lambda done, of: bar("step", done, of),
        _cores(),
    )
    if earlier and not database.read(lambda c: chain_verification.continues(c, earlier)):
        message = (
            f"the hash chain does not contain {earlier.hex()}: it was rewritten, or belongs to "
            "another study."
        )
        outcome.mismatches.insert(0, Mismatch(None, None, "chain", None, message))
    if as_json:
        click.echo(json.dumps(asdict(outcome)))
    else:
        _print(outcome)
    if verify and outcome.mismatches:
        sys.exit(1)


def _coverage(outcome: Replayed) -> str:
    """Describe which stored rows the hash chain covers."""
    why = outcome.periods[0] if outcome.periods else ""
    if outcome.covered_from is None:
        return f"Stored rows were not verified: {WITHOUT_CHAIN.get(why, 'there is no hash chain')}."
    since = "the start of the study"
    if why != chain.NEW:
        earlier = many(outcome.rows_before, "row was", "rows were")
        since = f"{utc(outcome.covered_from)}, when {earlier} already there"
    return (
        f"{many(outcome.rows_checked, 'stored row matches', 'stored rows match')} the hash chain, "
        f"which covers everything since {since}. Last hash: {outcome.last_hash} "
        f"(records: {outcome.records_checked:,})."
    )


def _print(outcome: Replayed) -> None:
    click.echo(_coverage(outcome))
    how = "bit for bit" if outcome.fingerprint_match else "within tolerance (another machine)"
    click.echo(
        f"{many(outcome.models_checked, 'model')}, {many(outcome.questions_checked, 'question')} "
        f"and {many(outcome.decisions_checked, 'decision')} compared {how} in "
        f"{outcome.seconds:.1f} s."
    )
    if outcome.counts:
        click.echo(
            f"Answers: {outcome.counts['answers']:,} collected, "
            f"{outcome.counts['fitted']:,} in the last model."
        )
    if outcome.verdict:
        click.echo(f"{outcome.verdict['headline']} {outcome.verdict['explanation']}")
    if outcome.original_seconds:
        click.echo(
            f"The worker spent {outcome.original_seconds:.1f} s on the same fits, audits and "
            "selections. A replay repeats all of them, each model starting from the one before, so "
            f"it takes at least about that time divided by the number of cores ({outcome.cores} "
            "here)."
        )
    if outcome.erased:
        numbers = ", ".join(map(str, outcome.erased))
        click.echo(f"Participants erased since then: {numbers}.")
    if outcome.steps_erased:
        click.echo(
            f"{many(outcome.steps_erased, 'step')} used answers that have been erased and cannot "
            "be compared."
        )
    for recovery in outcome.recovered:
        lost = ", ".join(named(table, rows) for table, rows in recovery["missing"].items())
        click.echo(f"Recovered on {utc(recovery['at'])}; lost: {lost or 'nothing'}.")
    if not outcome.mismatches:
        click.echo("Replay matches the original exactly.")
    for mismatch in outcome.mismatches[:20]:
        click.echo(f"DIFFERS {mismatch}")
    if len(outcome.mismatches) > 20:
        click.echo(f"… and {len(outcome.mismatches) - 20} more.")


MAX_ROWS = 16
_CELL = 37


def what_if_table(comparison: WhatIf, change: WhatIfChange, study: LoadedStudy) -> Iterator[str]:
    """Format the original and the what-if replay side by side, line by line."""
    columns = {"original": comparison.original}
    if comparison.same_pool is not None:
        columns[f"same pool, {study.settings.learning.selector}"] = comparison.same_pool
    columns["what if"] = comparison.what_if
    yield "         " + "".join(f"  {name:<{_CELL}}" for name in columns).rstrip()
    heads = f"  {'rank':>4} {'held out':>9} {'prequential':>16}"
    yield " answers " + "".join(f"{heads:<{_CELL + 2}}" for _ in columns).rstrip()
    for answers in _rows(list(columns.values())):
        cells = "".join(f"  {_cell(course, answers):<{_CELL}}" for course in columns.values())
        yield f"{answers:8d} {cells}".rstrip()
    yield ""
    for name, course in columns.items():
        yield f"{name}: {_stop(course)}"
    yield _difference(comparison)
    if change.selector is not None:
        yield (
            "Another selector can choose only from the questions that were answered, each once; "
            "most of them were chosen by the study's own selector."
        )


def _rows(courses: list[Trajectory]) -> list[int]:
    """Choose the rows of the table: evenly spaced audits, every stop, and the end."""
    audits = sorted({point.answers for course in courses for point in course.points})
    every = -(-len(audits) // MAX_ROWS)
    stops = {course.stopped_at for course in courses if course.stopped_at is not None}
    return sorted({*audits[::-every], *stops})


def _cell(course: Trajectory, answers: int) -> str:
    point = course.at(answers)
    if point is None or answers > course.answers:
        return f"{'–':>4}"
    mark = "  stop" if answers == course.stopped_at else ""
    return f"{point.rank:4d} {_percent(point.held_out):>9} {_random(point):>16}{mark}"


def _random(point: TrajectoryPoint) -> str:
    if point.prequential is None or point.low is None or point.high is None:
        return "–"
    return f"{_percent(point.prequential)} ({100 * point.low:.0f}–{100 * point.high:.0f})"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _stop(course: Trajectory) -> str:
    if course.stopped_at is None:
        return f"not settled by {many(course.answers, 'answer')}. {course.headline}"
    rank = many(course.stopped_rank or 0, "dimension")
    return f"settled at {rank} after {course.stopped_at} of {many(course.answers, 'answer')}."


def _difference(comparison: WhatIf) -> str:
    if comparison.answers_saved is not None:
        return f"Answers saved: {comparison.answers_saved}."
    if comparison.answers_missing is not None:
        return f"Further answers needed after the original stop: {comparison.answers_missing}."
    return "Further answers needed: unknown; the collected answers would not have been enough."
