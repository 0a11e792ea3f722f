"""The command `lore-active simulate`: studies with simulated participants or logged answers.

One module, though long: its many options, and what is printed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from lore_active.acquisition.registry import SELECTORS
from lore_active.data.columns import simulated_note
from lore_active.data.comparisons import MAX_ITEMS, as_triplets
from lore_active.data.formats import read_table
from lore_active.errors import InvalidParameter
from lore_active.learner.learner import Learner
from lore_active.questions.kinds import TRIPLET, kind
from lore_active.questions.pool import PooledQuestions
from lore_active.simulation import worlds
from lore_active.simulation.observers import (
    DISTRIBUTIONS,
    Distribution,
    ObserverNoise,
    crowd,
    simulated_answers,
)
from lore_active.simulation.parallel import running, sweep
from lore_active.simulation.run import (
    LoggedParticipants,
    Participants,
    SimulatedParticipants,
    simulate,
)
from lore_active.stopping.criteria import percent
from lore_active.stopping.registry import DEFAULT_RULE, STOPPING_RULES, stopping_rule
from lore_active.stopping.sensitivity import share_of_interest
from lore_active.types import Floats
from lore_active.warmup import warm
from server.cli import options
from server.cli.terminal import bar, say
from server.study.items.positions import read_space

TEST_QUESTIONS = 3000
QUANTILES = (0.1, 0.5, 0.9)
MAX_RANK = 1000
MAX_OBSERVERS = 1_000_000


@dataclass(frozen=True)
class Setting:
    """Settings of a simulated study; with a pool, logged answers replace the simulated ones.

    simulated: whether to include answers in the pool that were given by simulated participants.
    """

    items: int
    rank: int
    noise: float
    answers: int
    selector: str
    seed: int
    observers: int
    lapse: float
    side_bias: float
    noise_spread: float
    drift: float
    stop: bool
    pool: Path | None
    simulated: bool = False
    world: str | None = None
    given: Floats | None = field(default=None, compare=False)
    rule: str = DEFAULT_RULE
    smallest_dimension: float | None = None
    evidence: float = 20.0
    kind: str = "triplet"
    distribution: Distribution = "gaussian"

    def __post_init__(self) -> None:
        for name, low, high in (
            ("items", 4, MAX_ITEMS),
            ("rank", 1, MAX_RANK),
            ("observers", 1, MAX_OBSERVERS),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidParameter(f"{name} is {value}, but must be from {low} to {high}.")

    def records(self) -> Iterator[dict[str, Any]]:
        """Run the study; yield a record for each audit, then a summary."""
        learner, participants, test = self._participants()
        for record in simulate(
            learner, participants, self.answers, test, time.perf_counter, self.stop
        ):
            if record.get("summary"):
                record["true_rank"] = self.rank if self.pool is None else None
                record["correct_ranks"] = None if self.pool is not None else self.correct_ranks
            yield record

    @property
    def space(self) -> Floats:
        """Coordinates of the items in the world of the simulated participants."""
        if self.given is not None:
            return worlds.cut(self.given, self.rank)
        return worlds.space(self.world or "equal", self.items, self.rank, self.seed)

    @property
    def correct_ranks(self) -> list[int]:
        """The smallest and the largest number of dimensions that is correct.

        A rule about dimensions of a certain size need not find smaller ones.
        """
        if self.rule != "smallest_dimension":
            return [self.rank, self.rank]
        share = share_of_interest(self.smallest_dimension, self.items)
        return list(worlds.correct_ranks(self.space, share))

    def _participants(self) -> tuple[Learner, Participants, Any]:
        rule = stopping_rule(
            self.rule,
            max_answers=self.answers,
            smallest_dimension=self.smallest_dimension,
            evidence=self.evidence,
        )
        selector = SELECTORS.make(self.selector)
        if self.pool is not None:
            if kind(self.kind) != TRIPLET:
                raise InvalidParameter("--pool has answers to triplets: omit --kind.")
            # Items without answers could never be asked about, and the rank would never settle.
            logged = as_triplets(self.pool, simulated=self.simulated).occurring()
            pool = LoggedParticipants(logged, self.seed + 1)
            source = PooledQuestions(pool.questions, logged.n_objects)
            return Learner(logged.n_objects, self.seed, selector, rule, source=source), pool, None
        observer_noise = ObserverNoise(
            self.noise, self.noise_spread, self.lapse, self.side_bias, self.drift, self.distribution
        )
        space = self.space
        participants = SimulatedParticipants(
            crowd(space, self.observers, observer_noise, self.seed + 1)
        )
        test = simulated_answers(space, TEST_QUESTIONS, self.seed + 2, ObserverNoise(noise=0.0))
        learner = Learner(self.items, self.seed, selector, rule, kind=self.kind)
        return learner, participants, test


def summary_of(setting: Setting) -> dict[str, Any]:
    """Return the summary of a study, with its seed."""
    *_, last = setting.records()
    return {"seed": setting.seed, **last}


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
    help="Smallest share of the differences that a dimension of interest carries.  [default: 0.1, "
    "with fewer than 30 items more: 3 divided by their number]",
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
    setting = Setting(stop=not no_stop, items=count, given=given, **chosen)
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
        return f"seed {end['seed']}: not settled by {end['answers']} answers{accuracy}"
    return (
        f"seed {end['seed']}: settled at rank {end['stopped_rank']} after {end['stopped_at']} "
        f"answers{accuracy}"
    )


def _right(end: dict[str, Any]) -> bool:
    if end["correct_ranks"] is None:
        return False
    low, high = end["correct_ranks"]
    return bool(low <= end["stopped_rank"] <= high)


def _total(setting: Setting, ends: list[dict[str, Any]]) -> dict[str, Any]:
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
        return f"None of {total['studies']} studies settled."
    low, middle, high = total["stopped_at"]
    right = "" if total["settings"]["pool"] else f", {total['right']} at the true rank"
    return (
        f"{total['stopped']} of {total['studies']} studies settled{right}, after {middle:.0f} "
        f"answers (10 to 90 %: {low:.0f} to {high:.0f})."
    )
