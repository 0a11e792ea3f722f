"""The command `lore-active simulate`: studies with simulated participants or logged answers."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from lore_active.acquisition.registry import SELECTORS
from lore_active.data.columns import simulated_note
from lore_active.data.formats import read_table
from lore_active.errors import InvalidParameter
from lore_active.simulation.observers import (
    DISTRIBUTIONS,
)
from lore_active.simulation.parallel import running, sweep
from lore_active.stopping.criteria import percent
from lore_active.stopping.registry import DEFAULT_RULE, STOPPING_RULES
from lore_active.warmup import warm
from lore_active.wording import many
from server.cli import options
from server.cli.terminal import bar, say
from server.simulation.simulated_study import SimulatedStudy, summary_of
from server.study.items.positions import read_space

QUANTILES = (0.1, 0.5, 0.9)


@click.command(name="simulate")
@click.option("--items", type=int, help="Number of items; 50, or those of --space, by default.")
@click.option("--rank", type=int, default=3, show_default=True, help="True number of dimensions.")
@options.world
@click.option("--noise", type=float, default=0.1, show_default=True, help="Noise variance.")
@click.option(
    "--answers", type=int, default=2000, show_default=True, help="Maximum number of answers."
)
@click.option(
    "--selector",
    type=click.Choice(sorted(SELECTORS)),
    default="fisher",
    show_default=True,
    help="How questions are chosen.",
)
@click.option(
    "--rule",
    type=click.Choice(sorted(STOPPING_RULES)),
    default=DEFAULT_RULE,
    show_default=True,
    help="The stopping rule.",
)
@click.option(
    "--smallest-dimension",
    type=float,
    help="Smallest share of the differences that a dimension of interest carries.  [default: 0.1]",
)
@click.option(
    "--evidence",
    type=float,
    default=20.0,
    show_default=True,
    help="Bayes factor required to rule out a further dimension.",
)
@click.option(
    "--kind", default="triplet", show_default=True, help="Kind of question, such as rank-2-of-8."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option(
    "--observers", type=int, default=1, show_default=True, help="Number of simulated participants."
)
@click.option(
    "--distribution",
    type=click.Choice(DISTRIBUTIONS),
    default="gaussian",
    show_default=True,
    help="Distribution of the response noise.",
)
@click.option("--lapse", type=float, default=0.0, help="Lapse rate (share of random answers).")
@click.option("--side-bias", type=float, default=0.0, help="Bias towards the left option.")
@click.option(
    "--noise-spread", type=float, default=0.0, help="Variation of noise between participants."
)
@click.option(
    "--drift", type=float, default=0.0, help="Drift of the participants' space over time."
)
@click.option(
    "--no-stop",
    is_flag=True,
    help="Continue up to --answers even after the stopping criteria are met.",
)
@click.option(
    "--pool",
    type=click.Path(path_type=Path),
    help="Ask only the questions in this file, and take the answers from it.",
)
@click.option(
    "--simulated",
    is_flag=True,
    help="Include answers of simulated participants (bots) in --pool, which are left out "
    "otherwise.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    help="Simulate this many studies in parallel, with consecutive seeds from --seed on; print "
    "only how each ended.",
)
@options.sweep
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(
    seeds: int | None,
    jobs: int | None,
    scheduler: str | None,
    no_stop: bool,
    as_json: bool,
    space: Path | None,
    items: int | None,
    **chosen: Any,
) -> None:
    """Run studies with simulated participants, or on logged answers."""
    given = None if space is None else read_space(space)
    if given is not None and items not in (None, len(given)):
        raise InvalidParameter(f"--items is {items}, but {space} has {len(given)} items.")
    count = (len(given) if given is not None else 50) if items is None else items
    setting = SimulatedStudy(stop=not no_stop, items=count, given=given, **chosen)
    if seeds is None and (jobs or scheduler):
        raise InvalidParameter("--jobs and --scheduler require --seeds.")
    if setting.pool is not None:
        left_out = read_table(setting.pool, setting.simulated).simulated_left_out
        if note := simulated_note(left_out):
            click.echo(f"{note}.", err=True)
    elif setting.simulated:
        raise InvalidParameter("--simulated requires --pool.")
    say("Compiling or loading kernels …")
    warm()
    if seeds is None:
        for record in setting.records():
            click.echo(json.dumps(record) if as_json else _describe(record))
        return
    settings = [(replace(setting, seed=setting.seed + k),) for k in range(seeds)]
    ends = []
    with running(jobs, scheduler):
        for end in sweep(summary_of, settings, lambda done, of: bar("study", done, of)):
            ends.append(end)
            click.echo(json.dumps(end) if as_json else _end_line(end))
    total = _total(setting, ends)
    click.echo(json.dumps(total) if as_json else _describe_total(total))


def _describe(record: dict[str, Any]) -> str:
    share = record["accuracy"]
    accuracy = "" if share is None else f"accuracy {100 * share:5.1f} %  "
    if not record.get("summary"):
        return (
            f"{record['answers']:6d} answers  rank {record['rank']}  {accuracy}"
            f"prequential {_share(record['prequential_accuracy'])}  {record['headline']}"
            f"{_ruled_out(record)}"
        )
    truth = (
        ""
        if record["true_rank"] is None
        else f"True number of dimensions: {record['true_rank']}.\n"
    )
    return (
        f"{record['headline']} {record['explanation']}\n{truth}"
        f"selecting {record['select_seconds']:.1f} s, refits {record['refit_seconds']:.1f} s, "
        f"audits {record['audit_seconds']:.1f} s"
    )


def _ruled_out(record: dict[str, Any]) -> str:
    """What is known about a further dimension; empty under rules that do not test for one."""
    if record["found_share"] is not None:
        return f" A further one of about {percent(record['found_share'])} is found."
    if record["ruled_out_share"] is not None:
        return f" A further one of {percent(record['ruled_out_share'])} or more is ruled out."
    return ""


def _share(value: float | None) -> str:
    return "    –  " if value is None else f"{100 * value:5.1f} %"


def _end_line(end: dict[str, Any]) -> str:
    share = end["accuracy"]
    accuracy = "" if share is None else f"  accuracy {100 * share:5.1f} %"
    if end["stopped_at"] is None:
        return f"seed {end['seed']}: not settled by {many(end['answers'], 'answer')}{accuracy}"
    return (
        f"seed {end['seed']}: settled at {many(end['stopped_rank'], 'dimension')} after "
        f"{end['stopped_at']} answers{accuracy}"
    )


def _right(end: dict[str, Any]) -> bool:
    if end["correct_ranks"] is None:
        return False
    low, high = end["correct_ranks"]
    return bool(low <= end["stopped_rank"] <= high)


def _total(setting: SimulatedStudy, ends: list[dict[str, Any]]) -> dict[str, Any]:
    stops = [end for end in ends if end["stopped_at"] is not None]
    counts = [end["stopped_at"] for end in stops]
    settings = asdict(replace(setting, given=None))
    del settings["given"]
    settings["pool"] = None if setting.pool is None else str(setting.pool)
    return {
        "sweep": True,
        "studies": len(ends),
        "stopped": len(stops),
        "right": sum(_right(end) for end in stops),
        "stopped_at": [float(count) for count in np.quantile(counts, QUANTILES)]
        if counts
        else None,
        "settings": settings,
    }


def _describe_total(total: dict[str, Any]) -> str:
    if not total["stopped"]:
        return f"None of {many(total['studies'], 'study', 'studies')} settled."
    low, middle, high = total["stopped_at"]
    right = "" if total["settings"]["pool"] else f", {total['right']} at the true rank"
    return (
        f"{total['stopped']} of {many(total['studies'], 'study', 'studies')} settled{right}, after "
        f"{middle:.0f} answers (10 to 90 %: {low:.0f} to {high:.0f})."
    )
