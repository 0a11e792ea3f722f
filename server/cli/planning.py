"""The command `lore-active plan`: the answers, participants, hours and money a study needs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

import click
import msgspec

from lore_active.errors import InvalidParameter
from lore_active.questions.kinds import TRIPLET
from lore_active.simulation.cost import Pay, pay_in_words
from lore_active.simulation.parallel import running
from lore_active.simulation.planning import (
    COMPARED,
    PlanConfig,
    PlanRow,
    plan,
)
from lore_active.simulation.recommendation import Recommendation, recommended
from lore_active.stopping.registry import STOPPING_RULES
from lore_active.warmup import warm
from server.cli import options
from server.cli.terminal import bar, clear, say
from server.monitor.messages import duration
from server.simulation.plan_config import for_kinds, plan_config
from server.study.items.positions import read_space

# Characters of answers, participants, hours and cost, each with its range.
COLUMNS = (21, 14, 16, 24)


def _ranks(text: str) -> list[int]:
    try:
        first, _, last = text.partition("-")
        ranks = list(range(int(first), int(last or first) + 1))
    except ValueError:
        ranks = []
    if not ranks or ranks[0] < 1:
        raise InvalidParameter(f"--ranks is {text!r}, but must be like 3 or 1-5.")
    return ranks


@click.command(name="plan")
@click.argument(
    "study", metavar="[DIR]", required=False, type=click.Path(path_type=Path, exists=True)
)
@click.option("--items", type=int, help="Number of items.")
@click.option("--ranks", default="1-5", show_default=True, help="True ranks to simulate.")
@click.option("--noise", type=float, help="Noise variance; 0.1 by default.")
@click.option("--lapse", type=float, help="Lapse rate; 0 by default.")
@click.option(
    "--noise-spread", type=float, help="Variation of noise between participants; 0 by default."
)
@options.world
@click.option(
    "--rule",
    type=click.Choice(sorted(STOPPING_RULES)),
    help="The stopping rule; that of the study, or the default.",
)
@click.option(
    "--smallest-dimension",
    "shares",
    type=float,
    multiple=True,
    help="Smallest share of the differences that a dimension of interest carries; can be given "
    "several times. 0.05, 0.1 and 0.2 by default.",
)
@click.option("--trials", type=int, help="Trials per participant; 80 by default.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="Kind of question, such as rank-2-of-8; can be given several times to compare them, and "
    "'all' compares the usual ones. Triplets by default.",
)
@click.option(
    "--seconds-per-trial",
    type=float,
    help="Seconds per trial of the (first) kind; 4 by default for triplets. Those of other kinds "
    "follow from published ratios.",
)
@click.option("--pay-per-participant", type=float, help="Pay per participant.")
@click.option("--pay-per-hour", type=float, help="Pay per hour.")
@click.option("--pay-fee", type=float, help="Fee of the recruitment site, as a share of the pay.")
@click.option("--pay-currency", help="Currency of the pay, such as EUR.")
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Simulated studies per rank.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed of the simulations."
)
@click.option(
    "--from",
    "pilot",
    type=click.Path(path_type=Path, exists=True),
    help="Estimate noise, lapse rate and trial duration from this pilot study (folder or log).",
)
@options.sweep
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(
    study: Path | None,
    items: int | None,
    ranks: str,
    noise: float | None,
    lapse: float | None,
    noise_spread: float | None,
    world: str | None,
    space: Path | None,
    rule: str | None,
    shares: tuple[float, ...],
    trials: int | None,
    kinds: tuple[str, ...],
    seconds_per_trial: float | None,
    pay_per_participant: float | None,
    pay_per_hour: float | None,
    pay_fee: float | None,
    pay_currency: str | None,
    runs: int,
    seed: int,
    pilot: Path | None,
    jobs: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Estimate by simulation what a study needs: answers, participants, hours and money.

    DIR is the study to plan: its items, trials, pay and stopping rule are used, unless options
    override them. Each row is printed as soon as it is ready.
    """
    given = {
        "items": items,
        "noise_spread": noise_spread,
        "world": world,
        "space": None if space is None else read_space(space),
        "rule": rule,
        "shares": shares or None,
        "noise": noise,
        "lapse": lapse,
        "trials": trials,
        "seconds_per_trial": seconds_per_trial,
    }
    pay = {
        "per_participant": pay_per_participant,
        "per_hour": pay_per_hour,
        "fee": pay_fee,
        "currency": pay_currency,
    }
    config = plan_config(study, pilot, given, pay)
    configs = for_kinds(config, kinds)
    say("Compiling or loading kernels; the first time this takes about half a minute …")
    # Compiled once here, so that the parallel processes only load the result.
    warm()
    with running(jobs, scheduler):
        rows: list[PlanRow] = []
        for each in configs:
            done = plan(each, _ranks(ranks), runs, seed, _Progress())
            rows += _print_json(each, done) if as_json else _print(each, done)
    if len(configs) > 1:
        _print_recommendation(recommended(rows), as_json)


def _print_recommendation(found: Recommendation | None, as_json: bool) -> None:
    if found is None:
        return
    if as_json:
        click.echo(json.dumps({"recommended": found.kind, "hours": found.hours}))
        return
    others = ", ".join(
        f"{label} {hours:.1f} h"
        for label, hours in sorted(found.hours.items(), key=lambda entry: entry[1])
    )
    click.echo(
        f"\nRecommended: {found.kind}. Mean of the median hours: {others}. Larger grids\n"
        "tire participants and need large screens: measure both in a pilot (--from)."
    )


class _Progress:
    """Progress: studies done, and an estimate of the remaining time."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def __call__(self, done: int, of: int) -> None:
        if done == 0:
            self._begun = time.monotonic()
        if done == of:
            clear()
        else:
            left = (time.monotonic() - self._begun) / max(1, done) * (of - done)
            bar("simulated study", done, of, f"{duration(left / 60)} left" if done else "")


def _print_json(config: PlanConfig, rows: Iterable[PlanRow]) -> list[PlanRow]:
    pay = msgspec.to_builtins(config.pay)
    plain = asdict(replace(config, pay=Pay(), space=None, seconds_per_trial=config.seconds))
    plain["kind"] = config.kind.label
    given = None if config.space is None else list(config.space.shape)
    click.echo(json.dumps({"plan": {**plain, "pay": pay, "space": given}}))
    printed = []
    for row in rows:
        click.echo(json.dumps(asdict(row)))
        printed.append(row)
    return printed


def _print(config: PlanConfig, rows: Iterable[PlanRow]) -> list[PlanRow]:
    click.echo(
        f"{_kind_in_words(config)}{config.items} items{_world(config)}, "
        f"noise variance {config.noise:.2g}, lapse rate "
        f"{100 * config.lapse:.0f} %, {config.trials} trials per participant, "
        f"{config.seconds:.3g} s per trial{_pay_and_fee(config.pay)}.\nMedian over "
        "simulated studies (10th to 90th percentile)."
    )
    unsettled = False
    printed = []
    last = COMPARED[0]
    click.echo(_header(config, last))
    for row in rows:
        clear()
        if row.selector != last:
            click.echo(_header(config, row.selector))
            last = row.selector
        cells = [_span(row.answers, ",.0f"), _span(row.participants, ",d"), _span(row.hours, ".1f")]
        if row.cost is not None:
            cells.append(_span(row.cost, ",.0f" if max(row.cost) >= 100 else ".2f"))
        click.echo(f"{row.rank:4d}  {_share(row)}{_aligned(cells)}{row.right} of {row.runs}")
        unsettled |= row.stopped < row.runs
        printed.append(row)
    if None not in config.rules():
        click.echo(
            "\nSmallest: the share of the differences between items that a dimension of interest "
            "carries. A study\nstops once a further one of that size is ruled out "
            f"({config.evidence:g} : 1)."
        )
    if unsettled:
        click.echo(
            f"\nStudies that had not stopped by {config.limit:,} answers are counted with "
            "that number."
        )
    if not config.pay.is_set:
        click.echo(
            "\nTo estimate the cost, set [pay] in study.toml, or add --pay-per-participant or "
            "--pay-per-hour, and --pay-currency."
        )
    return printed


def _kind_in_words(config: PlanConfig) -> str:
    return "" if config.kind == TRIPLET else f"{config.kind.label}: "


def _header(config: PlanConfig, selector: str) -> str:
    titles = ["answers", "participants", "hours"]
    if config.pay.is_set:
        titles.append(f"cost ({config.pay.currency.strip()})")
    what = {COMPARED[0]: "Adaptive questions", COMPARED[1]: "Random questions"}
    smallest = "" if None in config.rules() else "smallest  "
    return f"\n{what[selector]}\nrank  {smallest}{_aligned(titles)}right rank"


def _share(row: PlanRow) -> str:
    share = row.smallest_dimension
    return "" if share is None else f"{f'{100 * share:.3g} %':>8s}  "


def _world(config: PlanConfig) -> str:
    if config.space is not None:
        return " of the given space"
    return "" if config.world == "equal" else f" (world: {config.world})"


def _aligned(cells: list[str]) -> str:
    return "".join(f"{cell:{width}s}" for cell, width in zip(cells, COLUMNS, strict=False))


def _pay_and_fee(pay: Pay) -> str:
    if not pay.is_set:
        return ""
    fee = f", a fee of {100 * pay.fee:g} %" if pay.fee else ""
    return f", {pay_in_words(pay)}{fee}"


def _span(values: tuple[float, ...], form: str) -> str:
    low, middle, high = (format(value, form) for value in values)
    return f"{middle} ({low}–{high})"
