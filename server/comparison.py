"""The command `lore-active compare`: LORE beside other methods, on answers they have not seen."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from lore_active.errors import InvalidParameter
from lore_active.formats import read_table
from lore_active.rivals import METHODS
from lore_active.tables import simulated_note
from lore_active.triplets import Triplets, as_triplets
from server import clusters, side_by_side
from server.analysing import opened
from server.comparing import Result, chosen, compare, verdict
from server.log import is_log
from server.store import learning, priors


def _answers(path: Path, simulated: bool) -> tuple[Triplets, str]:
    """The answers of a file, or those that count in a study; and what was left out of a file."""
    if not path.is_dir() and not is_log(path):
        table = read_table(path, simulated)
        return as_triplets(table), simulated_note(table.simulated_left_out)
    if simulated:
        raise InvalidParameter(
            "--simulated is for files: of a study, the answers that count for its model are taken."
        )
    with opened(path) as (study, database, _):
        given = database.read(learning.counted)
        rows = [
            *database.read(priors.counted),
            *((one.anchor, one.nearer, one.farther) for one in given if not one.excluded),
        ]
        labels = [item.key for item in study.items]
        return as_triplets(rows, len(study.items), labels=labels), ""


@click.command(name="compare")
@click.argument("path", metavar="FILE|DIR", type=click.Path(path_type=Path, exists=True))
@click.option("--folds", type=int, default=5, show_default=True, help="Parts held out in turn.")
@click.option(
    "--seconds", type=float, default=600.0, show_default=True, help="Time limit for each method."
)
@click.option(
    "--methods",
    metavar="NAME,…",
    default="",
    help=f"Only these: {', '.join(METHODS)}.  [default: all]",
)
@click.option(
    "--components",
    type=int,
    default=15,
    show_default=True,
    help="Dimensions of methods that do not choose them; the most that LORE considers.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of folds and fits.")
@click.option(
    "--simulated",
    is_flag=True,
    help="Include answers of simulated participants (bots) in FILE, which are left out otherwise.",
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="Picture: .svg or .html."
)
@clusters.options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    path: Path,
    folds: int,
    seconds: float,
    methods: str,
    components: int,
    seed: int,
    simulated: bool,
    out: Path | None,
    jobs: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Put LORE beside other methods: held-out accuracy, rank and seconds.

    Methods run one after another, unless --jobs or --scheduler spreads them; seconds of methods
    that ran side by side say less.
    """
    if out is not None and out.suffix.lower() not in (".svg", ".html"):
        raise InvalidParameter(f"-o is {out}, but the picture must end in .svg or .html.")
    wanted = chosen([name.strip() for name in methods.split(",") if name.strip()])
    answers, left_out = _answers(path, simulated)
    with clusters.running(jobs, scheduler):
        spread = jobs is not None or scheduler is not None
        results = compare(answers, wanted, folds, seconds, components, seed, _progress, spread)
    _done()
    told = verdict(results)
    notes = _notes(answers, results, told, folds)
    if left_out:
        notes.append(f"{left_out}.")
    if out is not None:
        title = f"Methods compared on {path.name}"
        picture = (
            side_by_side.svg(results, folds, title)
            if out.suffix.lower() == ".svg"
            else side_by_side.html(results, folds, title, notes)
        )
        out.write_text(picture, encoding="utf-8")
    if as_json:
        found = {
            "n_objects": answers.n_objects,
            "n_triplets": len(answers),
            "folds": folds,
            "components": components,
            "seed": seed,
            "limit_seconds": seconds,
            **told,
            "methods": [one.figures() for one in results],
        }
        click.echo(json.dumps(found))
        return
    for line in [*_table(results, folds), "", *notes]:
        click.echo(line)
    if out is not None:
        click.echo(f"written: {out}")


def _progress(name: str, done: int, of: int) -> None:
    if sys.stderr.isatty():
        bar = "█" * done + "·" * (of - done)
        end = "\n" if done == of else ""
        print(f"\r\033[K{name:24s} {bar} {done} of {of} ", end=end, file=sys.stderr, flush=True)


def _done() -> None:
    """Clear what an ended method left of its line."""
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _table(results: list[Result], folds: int) -> list[str]:
    lines = [f"{'method':24s} {'accuracy, %':>14s} {'rank':>5s} {'seconds':>8s}"]
    for one in side_by_side.ordered(results):
        cells = side_by_side
        lines.append(
            f"{one.name:24s} {cells.percent(one):>14s} {cells.rank(one):>5s} "
            f"{cells.seconds(one):>8s}  {cells.note(one, folds)}".rstrip()
        )
    return lines


def _notes(
    answers: Triplets, results: list[Result], told: dict[str, str | None], folds: int
) -> list[str]:
    lines = [
        f"{len(answers):,} answers about {answers.n_objects} items, {folds} folds; answers to one "
        "question are never in both parts. Accuracy is of held-out answers, ± its standard error "
        "over folds; seconds are of one fit on one core."
    ]
    names = {one.method: one for one in results}
    if told["best"] is not None and told["simplest"] is not None:
        best, simplest = names[told["best"]], names[told["simplest"]]
        lines.append(
            f"Most accurate: {best.name}. Lowest rank within one point of it: {simplest.name} "
            f"({side_by_side.rank(simplest)})."
        )
    return lines
