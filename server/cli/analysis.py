"""The commands `fit` and `compare`: embed answers, and compare LORE with other methods."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lore_active.data.columns import simulated_note
from lore_active.data.comparisons import Triplets, as_triplets
from lore_active.data.formats import read_table, write_embedding
from lore_active.embedding.lore import LORE, unseen_items
from lore_active.errors import InvalidParameter
from lore_active.simulation.baselines import METHODS
from lore_active.simulation.parallel import running
from lore_active.warmup import warm
from server.cli import options
from server.cli.options import opened
from server.cli.terminal import say
from server.comparison import drawing
from server.comparison.run import Result, chosen, verdict
from server.comparison.run import compare as compared
from server.exports.log import is_log
from server.store import imports, journal


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--items",
    type=int,
    help="Number of items; inferred from the answers by default.",
)
@click.option(
    "--lam", type=float, default=0.01, show_default=True, help="Weight of the rank penalty (λ)."
)
@click.option(
    "--components", type=int, default=15, show_default=True, help="Maximum number of dimensions."
)
@click.option(
    "--seed",
    type=int,
    help="Seed of a random initialisation; spectral initialisation by default.",
)
@click.option(
    "--simulated",
    is_flag=True,
    help="Include answers of simulated participants (bots), which are left out otherwise.",
)
@click.option(
    "--trim", is_flag=True, help="Also test whether the weakest dimension can be dropped."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for embedding.csv and fit.json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def fit(
    file: Path,
    items: int | None,
    lam: float,
    components: int,
    seed: int | None,
    simulated: bool,
    trim: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Fit the answers in FILE (CSV, .npy or .npz; rows anchor, nearer, farther)."""
    table = read_table(file, simulated)
    triplets = as_triplets(table, items)
    say("Compiling or loading kernels …")
    warm()
    say(f"Fitting {len(triplets)} answers about {triplets.n_objects} items …")
    begun = time.perf_counter()
    model = LORE(n_components=components, lam=lam, random_state=seed, trim=trim).fit(triplets)
    seconds = time.perf_counter() - begun
    result = {
        "n_objects": triplets.n_objects,
        "n_triplets": len(triplets),
        "rank": model.rank_,
        "lambda": lam,
        "objective": model.objective_,
        "iterations": model.n_iter_,
        "converged": model.converged_,
        "train_accuracy": model.score(triplets),
        "seconds": seconds,
        "set_aside": table.set_aside,
        "simulated_left_out": table.simulated_left_out,
        "unseen": triplets.unseen.tolist(),
        "singular_values": model.singular_values_[: model.rank_].tolist(),
    }
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_embedding(out / "embedding.csv", model.embedding_[:, : model.rank_], triplets.labels)
        (out / "fit.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if as_json:
        click.echo(json.dumps(result))
        return
    _print_fit(result, unseen_items(triplets), out, click.echo)


def _print_fit(
    result: dict[str, Any], note: str, out: Path | None, echo: Callable[[str], None]
) -> None:
    if result["rank"] == 0:
        echo(
            f"Rank 0: at lambda {result['lambda']:g}, no dimension outweighs its penalty. "
            "Try a smaller --lam."
        )
    else:
        noun = "dimension" if result["rank"] == 1 else "dimensions"
        values = ", ".join(f"{value:.3g}" for value in result["singular_values"])
        echo(f"{result['rank']} {noun} (singular values {values})")
    echo(
        f"{result['n_triplets']} answers about {result['n_objects']} items; the embedding fits "
        f"{100 * result['train_accuracy']:.1f} % of them"
    )
    if result["set_aside"]:
        rows = "row was" if result["set_aside"] == 1 else "rows were"
        echo(f"{result['set_aside']} {rows} left out (practice, catch trials, skipped, excluded)")
    if left_out := simulated_note(result["simulated_left_out"]):
        echo(left_out)
    state = "converged" if result["converged"] else "NOT converged"
    echo(
        f"objective {result['objective']:.6f}, {state} after {result['iterations']} iterations, "
        f"{result['seconds']:.3f} s"
    )
    if note:
        echo(note)
    if out is not None:
        echo(f"Wrote {out / 'embedding.csv'} and {out / 'fit.json'}")


def _answers(path: Path, simulated: bool) -> tuple[Triplets, str]:
    """Read the answers of a file or those a study's model uses; also say what a file left out."""
    if not path.is_dir() and not is_log(path):
        table = read_table(path, simulated)
        return as_triplets(table), simulated_note(table.simulated_left_out)
    if simulated:
        raise InvalidParameter(
            "--simulated applies to files only; from a study, the answers that its model "
            "uses are read."
        )
    with opened(path) as (study, database, _):
        answers = database.read(journal.counted)
        rows = [
            *database.read(imports.counted),
            *(
                (answer.anchor, answer.nearer, answer.farther)
                for answer in answers
                if not answer.excluded
            ),
        ]
        labels = [item.key for item in study.items]
        return as_triplets(rows, len(study.items), labels=labels), ""


@click.command(name="compare")
@click.argument("path", metavar="FILE|DIR", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--folds", type=int, default=5, show_default=True, help="Number of cross-validation folds."
)
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
    help="Number of dimensions of methods with a fixed number, and LORE's maximum.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed of folds and fits."
)
@click.option(
    "--simulated",
    is_flag=True,
    help="Include answers of simulated participants (bots) in FILE, which are left out otherwise.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a figure, as .svg or .html.",
)
@options.sweep
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(
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
    """Compare LORE with other methods: held-out accuracy, rank and run time.

    Methods run one after another unless --jobs or --scheduler is given; run times of methods that
    ran in parallel are less comparable.
    """
    if out is not None and out.suffix.lower() not in (".svg", ".html"):
        raise InvalidParameter(f"-o is {out}, but the figure's name must end in .svg or .html.")
    wanted = chosen([name.strip() for name in methods.split(",") if name.strip()])
    answers, left_out = _answers(path, simulated)
    with running(jobs, scheduler):
        spread = jobs is not None or scheduler is not None
        results = compared(answers, wanted, folds, seconds, components, seed, _progress, spread)
    _done()
    summary = verdict(results)
    notes = _notes(answers, results, summary, folds)
    if left_out:
        notes.append(f"{left_out}.")
    if out is not None:
        title = f"Methods compared on {path.name}"
        figure = (
            drawing.svg(results, folds, title)
            if out.suffix.lower() == ".svg"
            else drawing.html(results, folds, title, notes)
        )
        out.write_text(figure, encoding="utf-8")
    if as_json:
        report = {
            "n_objects": answers.n_objects,
            "n_triplets": len(answers),
            "folds": folds,
            "components": components,
            "seed": seed,
            "limit_seconds": seconds,
            **summary,
            "methods": [result.figures() for result in results],
        }
        click.echo(json.dumps(report))
        return
    for line in [*_table(results, folds), "", *notes]:
        click.echo(line)
    if out is not None:
        click.echo(f"Wrote {out}")


def _progress(name: str, done: int, of: int) -> None:
    if sys.stderr.isatty():
        bar = "█" * done + "·" * (of - done)
        end = "\n" if done == of else ""
        print(f"\r\033[K{name:24s} {bar} {done} of {of} ", end=end, file=sys.stderr, flush=True)


def _done() -> None:
    """Clear the progress line of a method that ended early."""
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _table(results: list[Result], folds: int) -> list[str]:
    lines = [f"{'method':24s} {'accuracy, %':>14s} {'rank':>5s} {'seconds':>8s}"]
    for result in drawing.ordered(results):
        cells = drawing
        lines.append(
            f"{result.name:24s} {cells.percent(result):>14s} {cells.rank(result):>5s} "
            f"{cells.seconds(result):>8s}  {cells.note(result, folds)}".rstrip()
        )
    return lines


def _notes(
    answers: Triplets, results: list[Result], summary: dict[str, str | None], folds: int
) -> list[str]:
    lines = [
        f"{len(answers):,} answers about {answers.n_objects} items, {folds} folds; answers to the "
        "same question are always in the same fold. Accuracy: held-out answers, ± standard error "
        "over folds. Seconds: one fit on one core."
    ]
    names = {result.method: result for result in results}
    if summary["best"] is not None and summary["simplest"] is not None:
        best, simplest = names[summary["best"]], names[summary["simplest"]]
        lines.append(
            f"Most accurate: {best.name}. Lowest rank within one point of it: {simplest.name} "
            f"({drawing.rank(simplest)})."
        )
    return lines
