"""The `lore-active` command: arguments in, one clear answer or one clear sentence out."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from threadpoolctl import threadpool_limits

from lore_active import __version__
from lore_active.errors import InvalidParameter, LoreError
from lore_active.estimator import LORE
from lore_active.formats import write_embedding
from lore_active.learner import Learner
from lore_active.observers import Habits, crowd, gaussian_space, simulated_answers
from lore_active.questions import PooledQuestions
from lore_active.selection import SELECTORS, selector_named
from lore_active.simulation import LoggedPeople, People, SimulatedPeople
from lore_active.simulation import simulate as run_study
from lore_active.stopping import RankSettled
from lore_active.triplets import as_triplets
from lore_active.warming import warm


class OneSentence(click.Group):
    """Turns the library's own errors into one sentence on standard error and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with threadpool_limits(1):
                return super().invoke(ctx)
        except LoreError as error:
            click.echo(f"lore-active: {error}", err=True)
            ctx.exit(2)
        except OSError as error:
            click.echo(f"lore-active: {error.filename or ''}: {error.strerror}", err=True)
            ctx.exit(2)


@click.group(cls=OneSentence, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lore-active")
def main() -> None:
    """Adaptive similarity experiments that find out how many dimensions a percept has."""


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--items", type=int, help="Number of items; the highest number that occurs if not given."
)
@click.option(
    "--lam", type=float, default=0.01, show_default=True, help="Weight of the rank penalty."
)
@click.option(
    "--components", type=int, default=15, show_default=True, help="Most dimensions considered."
)
@click.option(
    "--seed",
    type=int,
    help="Start from random coordinates of this seed; spectral start if not given.",
)
@click.option("--trim", is_flag=True, help="Also try to do without the weakest dimension.")
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
    trim: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Fit the answers in FILE (CSV, .npy or .npz; rows anchor, nearer, farther)."""
    triplets = as_triplets(file, items)
    _say("Compiling or loading kernels …")
    warm()
    _say(f"Fitting {len(triplets)} answers about {triplets.n_objects} items …")
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
        "singular_values": model.singular_values_[: model.rank_].tolist(),
    }
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_embedding(out / "embedding.csv", model.embedding_[:, : model.rank_], triplets.labels)
        (out / "fit.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if as_json:
        click.echo(json.dumps(result))
        return
    _print_fit(result, out, click.echo)


def _print_fit(result: dict[str, Any], out: Path | None, echo: Callable[[str], None]) -> None:
    if result["rank"] == 0:
        echo(f"No dimension pays at lambda {result['lambda']:g}: rank 0. Try a smaller --lam.")
    else:
        many = "dimension" if result["rank"] == 1 else "dimensions"
        values = ", ".join(f"{value:.3g}" for value in result["singular_values"])
        echo(f"{result['rank']} {many} (singular values {values})")
    echo(
        f"{result['n_triplets']} answers about {result['n_objects']} items; the embedding agrees "
        f"with {100 * result['train_accuracy']:.1f} % of them"
    )
    state = "converged" if result["converged"] else "NOT converged"
    echo(
        f"objective {result['objective']:.6f}, {state} after {result['iterations']} iterations, "
        f"{result['seconds']:.3f} s"
    )
    if out is not None:
        echo(f"written: {out / 'embedding.csv'}, {out / 'fit.json'}")


@main.command()
@click.option("--items", type=int, default=50, show_default=True, help="Number of items.")
@click.option("--rank", type=int, default=3, show_default=True, help="True number of dimensions.")
@click.option("--noise", type=float, default=0.1, show_default=True, help="Noise variance.")
@click.option("--answers", type=int, default=2000, show_default=True, help="Most answers.")
@click.option("--selector", type=click.Choice(sorted(SELECTORS)), default="fisher")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--observers", type=int, default=1, show_default=True, help="Number of people.")
@click.option("--lapse", type=float, default=0.0, help="Share of answers without looking.")
@click.option("--side-bias", type=float, default=0.0, help="How much nearer left seems.")
@click.option("--noise-spread", type=float, default=0.0, help="How much people differ in noise.")
@click.option("--drift", type=float, default=0.0, help="How far people's space wanders.")
@click.option("--no-stop", is_flag=True, help="Go on to --answers whatever the rule says.")
@click.option(
    "--pool",
    type=click.Path(path_type=Path),
    help="Answers come from this file, and only its questions are asked.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def simulate(
    items: int,
    rank: int,
    noise: float,
    answers: int,
    selector: str,
    seed: int,
    observers: int,
    lapse: float,
    side_bias: float,
    noise_spread: float,
    drift: float,
    no_stop: bool,
    pool: Path | None,
    as_json: bool,
) -> None:
    """Run a study with simulated people, or with logged answers in their place."""
    for name, value, least in (("items", items, 4), ("rank", rank, 1), ("observers", observers, 1)):
        if value < least:
            raise InvalidParameter(f"{name} is {value}, but must be {least} or more.")
    rule = RankSettled(max_answers=answers)
    chosen = selector_named(selector)
    people: People
    test: Any = None
    if pool is None:
        habits = Habits(noise, noise_spread, lapse, side_bias, drift)
        space = gaussian_space(items, rank, seed)
        people = SimulatedPeople(crowd(space, observers, habits, seed + 1))
        test = simulated_answers(space, 3000, seed + 2, Habits(noise=0.0))
        learner = Learner(items, seed, chosen, rule)
    else:
        logged = as_triplets(pool)
        people = LoggedPeople(logged, seed + 1)
        source = PooledQuestions(people.questions, logged.n_objects)
        learner = Learner(logged.n_objects, seed, chosen, rule, source=source)
    _say("Compiling or loading kernels …")
    warm()
    for record in run_study(learner, people, answers, test, time.perf_counter, not no_stop):
        if record.get("summary"):
            record["true_rank"] = rank if pool is None else None
        if as_json:
            click.echo(json.dumps(record))
        else:
            _print_study(record)


def _print_study(record: dict[str, Any]) -> None:
    share = record["accuracy"]
    accuracy = "" if share is None else f"accuracy {100 * share:5.1f} %  "
    if not record.get("summary"):
        click.echo(
            f"{record['answers']:6d} answers  rank {record['rank']}  {accuracy}"
            f"progressive {100 * record['progressive_accuracy']:5.1f} %  {record['decision']}"
        )
        return
    click.echo(record["words"])
    if record["true_rank"] is not None:
        click.echo(f"The people used {record['true_rank']}.")
    click.echo(
        f"selecting {record['select_seconds']:.1f} s, refits {record['refit_seconds']:.1f} s, "
        f"audits {record['audit_seconds']:.1f} s"
    )


def _say(message: str) -> None:
    """Progress, for a person who watches; never on standard output."""
    if sys.stderr.isatty():
        click.echo(message, err=True)
