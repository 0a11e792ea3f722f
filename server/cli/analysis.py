"""The commands `fit` and `compare`: embed answers, and compare LORE with other methods."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from lore_active.data.columns import simulated_note
from lore_active.data.comparisons import as_triplets
from lore_active.data.formats import read_table, write_embedding
from lore_active.data.triplets import Triplets
from lore_active.errors import FewAnswersWarning, InvalidParameter
from lore_active.estimators.base import unseen_items
from lore_active.estimators.lore import LORE
from lore_active.estimators.lore_cv import LORECV
from lore_active.simulation.baselines import METHODS
from lore_active.simulation.parallel import running
from lore_active.warmup import warm
from lore_active.wording import many
from server.cli import options
from server.cli.terminal import bar, say
from server.clock import now
from server.comparison import drawing, text
from server.comparison.run import chosen, verdict
from server.comparison.run import compare as compared
from server.exports.log import is_log, opened
from server.learning.comparisons import comparisons_of, trials_of
from server.store import imports, journal


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--items",
    type=int,
    help="Number of items; inferred from the answers by default.",
)
@click.option(
    "--lam",
    type=float,
    help="Fit at this weight of the rank penalty (λ), without cross-validation.",
)
@click.option(
    "--smallest-dimension",
    "share",
    type=float,
    help="Also test for a further dimension that carries this share of the variance, e.g. 0.1.",
)
@click.option(
    "--components", type=int, help="Maximum number of dimensions, with --lam.  [default: 15]"
)
@click.option(
    "--seed",
    type=int,
    help="Random seed of folds and sampling (0 by default); with --lam, of a random "
    "initialisation (spectral by default).",
)
@click.option(
    "--simulated",
    is_flag=True,
    help="Include answers of simulated participants (bots), which are left out otherwise.",
)
@options.answer_format
@click.option(
    "--trim",
    is_flag=True,
    help="Also test whether the weakest dimension can be dropped, with --lam.",
)
@click.option("--jobs", type=click.IntRange(1), help="Number of threads.  [default: all cores]")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for embedding.csv and fit.json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def fit(
    file: Path,
    items: int | None,
    lam: float | None,
    share: float | None,
    components: int | None,
    seed: int | None,
    simulated: bool,
    label: str | None,
    trim: bool,
    jobs: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Fit the answers in FILE (CSV, .npy or .npz; rows anchor, nearer, farther, or whole trials).

    The number of dimensions and the weight of the rank penalty are chosen by cross-validation.
    """
    for option, used in (("--components", components is not None), ("--trim", trim)):
        if used and lam is None:
            raise InvalidParameter(f"{option} is for a fixed λ: add --lam.")
    if share is not None and lam is not None:
        raise InvalidParameter("--smallest-dimension needs cross-validation: omit --lam.")
    table = read_table(file, simulated, label)
    triplets = as_triplets(table, items)
    say("Compiling or loading kernels …")
    warm()
    say(f"Fitting {many(len(triplets), 'answer')} about {triplets.n_objects} items …")
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", FewAnswersWarning)
        if lam is None:
            chosen = LORECV(smallest_dimension=share, random_state=seed or 0, n_jobs=jobs or -1)
            model: LORE | LORECV = chosen.fit(triplets, progress=bar)
        else:
            model = LORE(
                15 if components is None else components, lam, random_state=seed, trim=trim
            ).fit(triplets)
    result = {
        "n_objects": triplets.n_objects,
        "n_triplets": len(triplets),
        "n_trials": triplets.n_trials,
        "reading": table.reading,
        "rank": model.rank_,
        "lambda": model.lam_ if isinstance(model, LORECV) else lam,
        "objective": model.objective_,
        "iterations": model.n_iter_,
        "converged": model.converged_,
        "train_accuracy": model.score(triplets),
        "evidence": _evidence(model),
        "further": _further(model),
        "seconds": time.perf_counter() - begun,
        "left_out": table.left_out,
        "simulated_left_out": table.simulated_left_out,
        "unseen": triplets.unseen.tolist(),
        "singular_values": model.singular_values_[: model.rank_].tolist(),
        "warnings": [str(warning.message) for warning in noted],
    }
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_embedding(out / "embedding.csv", model.embedding_[:, : model.rank_], triplets.labels)
        (out / "fit.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if as_json:
        click.echo(json.dumps(result))
        return
    for line in _fit_lines(result, unseen_items(triplets)):
        click.echo(line)
    if out is not None:
        click.echo(f"Wrote {out / 'embedding.csv'} and {out / 'fit.json'}")


def _evidence(model: LORE | LORECV) -> list[dict[str, float]]:
    return [asdict(row) for row in model.rank_evidence_] if isinstance(model, LORECV) else []


def _further(model: LORE | LORECV) -> list[dict[str, Any]]:
    """The tests for a further dimension, with their verdicts."""
    if not isinstance(model, LORECV):
        return []
    return [
        {**asdict(test), "ruled_out": test.ruled_out(), "found": test.found()}
        for test in model.further_
    ]


def _fit_lines(result: dict[str, Any], unseen: str) -> Iterator[str]:
    rank, evidence = result["rank"], result["evidence"]
    if rank == 0 and evidence:
        yield "Rank 0: no embedding predicts held-out answers clearly better than guessing"
    elif rank == 0:
        yield (
            f"Rank 0: at lambda {result['lambda']:g}, no dimension outweighs its penalty. "
            "Try a smaller --lam."
        )
    else:
        values = ", ".join(f"{value:.3g}" for value in result["singular_values"])
        yield f"{many(rank, 'dimension')} (singular values {values}), λ = {result['lambda']:g}"
    noun = "comparison" if result["reading"] else "answer"
    yield (
        f"{many(result['n_triplets'], noun)} about {result['n_objects']} items; the embedding fits "
        f"{100 * result['train_accuracy']:.1f} % of them"
    )
    if result["reading"]:
        yield f"The file was {result['reading']}"
    if evidence:
        yield "dimensions  held-out log-loss  difference from the best ± SE  held-out accuracy"
    for row in evidence:
        yield (
            f"{row['rank']:10d}  {row['loss']:17.4f}  {row['difference']:20.4f} ± "
            f"{row['error']:.4f}{100 * row['accuracy']:18.1f} %"
        )
    yield from map(_further_line, result["further"])
    if rows := result["left_out"]:
        were = "row was" if rows == 1 else "rows were"
        yield f"{rows} {were} left out (practice, catch trials, skipped, excluded)"
    state = "converged" if result["converged"] else "NOT converged"
    yield (
        f"objective {result['objective']:.6f}, {state} after {result['iterations']} iterations, "
        f"{result['seconds']:.3f} s"
    )
    notes = (simulated_note(result["simulated_left_out"]), unseen, *result["warnings"])
    yield from [note for note in notes if note]


def _further_line(test: dict[str, Any]) -> str:
    about = f"A further dimension with {100 * test['share']:.3g} % of the variance"
    against = f"log Bayes factor against it {min(test['against']):+.1f}"
    if test["ruled_out"]:
        return f"{about} or more: ruled out ({against})"
    found = f"log Bayes factor {test['log_bayes_factor']:+.1f} ± {test['standard_error']:.1f}"
    if test["found"]:
        return f"{about}: found ({found})"
    return f"{about}: undecided ({found}; {against})"


def _answers(path: Path, simulated: bool, label: str | None) -> tuple[Triplets, list[str]]:
    """Read the answers of a file or those a study's model uses; also say how a file was read."""
    if not path.is_dir() and not is_log(path):
        table = read_table(path, simulated, label)
        notes = [table.reading and f"{path.name} was {table.reading}"]
        return as_triplets(table), [*notes, simulated_note(table.simulated_left_out)]
    if label is not None:
        raise InvalidParameter(f"--format is {label!r}, but applies to files only.")
    if simulated:
        raise InvalidParameter(
            "--simulated applies to files only; from a study, the answers that its model "
            "uses are read."
        )
    with opened(path, now) as (study, database, _):
        answers = database.read(journal.counted)
        trials = [
            *database.read(imports.counted),
            *trials_of(study.kind, (answer for answer in answers if not answer.excluded)),
        ]
        labels = [item.key for item in study.items]
        return comparisons_of(trials, len(study.items), labels), []


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
@options.answer_format
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
    label: str | None,
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
    answers, read = _answers(path, simulated, label)
    with running(jobs, scheduler):
        in_parallel = jobs is not None or scheduler is not None
        results = compared(
            answers, wanted, folds, seconds, components, seed, _progress, in_parallel
        )
    _done()
    summary = verdict(results)
    notes = text.notes(answers, results, summary, folds)
    notes += [f"{note}." for note in read if note]
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
    for line in [*text.table(results, folds), "", *notes]:
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
