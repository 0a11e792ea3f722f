"""The command `lore-active plan`: answers, people, hours and money before anybody is asked."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import click
import numpy as np

from lore_active.errors import InvalidParameter
from lore_active.planning import Forecast, Wish, plan
from lore_active.progress import bar
from lore_active.warming import warm
from server import clusters
from server.analysing import opened
from server.store import models

# A logistic curve with temperature 1 is about a Gaussian one with this standard deviation.
LOGISTIC_DEVIATION = 1.7


def _ranks(text: str) -> list[int]:
    try:
        first, _, last = text.partition("-")
        found = list(range(int(first), int(last or first) + 1))
    except ValueError:
        found = []
    if not found or found[0] < 1:
        raise InvalidParameter(f"--ranks is {text!r}, but must be like 3 or 1-5.")
    return found


def _from_pilot(path: Path, wish: Wish) -> Wish:
    """Noise, lapses and number of items as a pilot study shows them."""
    with opened(path) as (study, database, _):
        model = database.read(models.latest_model)
    if model is None or model.rank == 0:
        raise InvalidParameter(f"{path}: the pilot has no model yet, so nothing can be estimated.")
    count = len(study.items)
    z = np.frombuffer(model.embedding).reshape(count, model.rank)
    spread = float(np.sqrt(np.mean(np.var(z, axis=0))))
    noise = (LOGISTIC_DEVIATION * model.temperature / spread) ** 2
    ceiling = json.loads(model.summary)["ceiling"]
    # Somebody who lapses with share l agrees with a perfect model in 1 − l/2 of the cases at best.
    lapse = 0.0 if ceiling is None else float(np.clip(2 * (1 - ceiling), 0.0, 0.2))
    settings = study.settings.session
    return replace(
        wish,
        items=count,
        noise=float(np.clip(noise, 0.001, 10.0)),
        lapse=lapse,
        trials=settings.trials,
        overhead=settings.catch + settings.repeat,
    )


@click.command(name="plan")
@click.option("--items", type=int, help="Number of items.")
@click.option("--ranks", default="1-5", show_default=True, help="True ranks to suppose.")
@click.option("--noise", type=float, default=0.1, show_default=True, help="Noise variance.")
@click.option("--lapse", type=float, default=0.0, help="Share of answers without looking.")
@click.option("--trials", type=int, default=80, show_default=True, help="Per participant.")
@click.option(
    "--seconds-per-trial", type=float, default=4.0, show_default=True, help="A question takes."
)
@click.option("--pay", type=float, default=9.0, show_default=True, help="Per hour.")
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True, help="Per rank.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the simulations.")
@click.option(
    "--from",
    "pilot",
    type=click.Path(path_type=Path, exists=True),
    help="Take items, noise and lapses from this pilot study (folder or log).",
)
@clusters.options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    items: int | None,
    ranks: str,
    noise: float,
    lapse: float,
    trials: int,
    seconds_per_trial: float,
    pay: float,
    runs: int,
    seed: int,
    pilot: Path | None,
    jobs: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Simulate studies like yours and say what they cost."""
    if items is None and pilot is None:
        raise InvalidParameter("Give the number of items with --items, or a pilot with --from.")
    wish = Wish(items or 4, noise, lapse, trials, seconds_per_trial, pay)
    if pilot is not None:
        wish = _from_pilot(pilot, wish)
    # Compiled here once, so that the processes only load it.
    warm()
    with clusters.running(jobs, scheduler):
        found = plan(
            wish, _ranks(ranks), runs, seed, lambda done, of: bar("simulated study", done, of)
        )
    if as_json:
        click.echo(json.dumps({"wish": asdict(wish), "forecasts": [asdict(one) for one in found]}))
    else:
        _print(wish, found)


def _print(wish: Wish, found: list[Forecast]) -> None:
    click.echo(
        f"{wish.items} items, noise {wish.noise:.2g}, lapses {100 * wish.lapse:.0f} %, "
        f"{wish.trials} questions each, {wish.seconds_per_trial:g} s a question, "
        f"{wish.pay:g} an hour. Middle of the simulated studies, with the 10 % and 90 % quantiles."
    )
    click.echo("")
    click.echo(
        "rank  answers           people         hours            money            right stop"
    )
    for one in found:
        click.echo(
            f"{one.rank:4d}  {_span(one.answers, '.0f'):16s}  {_span(one.participants, 'd'):13s}  "
            f"{_span(one.hours, '.1f'):15s}  {_span(one.money, '.0f'):15s}  "
            f"{one.right} of {one.runs}"
        )
    click.echo("")
    for one in found:
        often = f" (not settled in {one.runs - one.random_stopped})" * (
            one.random_stopped < one.runs
        )
        click.echo(
            f"With random questions, rank {one.rank}: {_span(one.random_answers, '.0f')} answers"
            f"{often}"
        )
    if any(one.stopped < one.runs for one in found):
        click.echo(f"Studies that were not settled by {wish.limit} answers count as {wish.limit}.")


def _span(values: tuple[float, ...], form: str) -> str:
    low, middle, high = (format(value, form) for value in values)
    return f"{middle} ({low}–{high})"
