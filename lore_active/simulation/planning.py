"""What a study will take before it is run: simulated studies with the real learner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from lore_active.acquisition.registry import SELECTORS
from lore_active.data.comparisons import MAX_ITEMS
from lore_active.errors import InvalidParameter
from lore_active.learner.learner import Learner
from lore_active.simulation.cost import SECONDS_PER_TRIAL, Pay, cost
from lore_active.simulation.observers import ObserverNoise, crowd, gaussian_space
from lore_active.simulation.parallel import Progress, sweep
from lore_active.simulation.run import SimulatedPeople, simulate
from lore_active.stopping.rules import RankSettled

QUANTILES = (0.1, 0.5, 0.9)
PARTICIPANTS = 10
# Questions that the learner chooses, and random ones to compare with.
COMPARED = ("fisher", "random")


@dataclass(frozen=True)
class PlanConfig:
    """The study to be planned.

    overhead: share of trials that are catches or repeats. max_answers: where a simulated study is
    given up (0: after 60 answers for each item). confidence, audits, min_answers: of the stopping
    rule (0 least answers: four for each item).
    """

    items: int
    noise: float = 0.1
    lapse: float = 0.0
    trials: int = 80
    seconds_per_trial: float = SECONDS_PER_TRIAL
    pay: Pay = field(default_factory=Pay)
    overhead: float = 0.10
    max_answers: int = 0
    confidence: float = 0.975
    audits: int = 5
    min_answers: int = 0

    def __post_init__(self) -> None:
        if not 4 <= self.items <= MAX_ITEMS:
            raise InvalidParameter(f"items is {self.items}, but must be from 4 to {MAX_ITEMS}.")
        if self.trials < 1:
            raise InvalidParameter(f"trials is {self.trials}, but must be 1 or more.")
        if not self.seconds_per_trial > 0:
            raise InvalidParameter(
                f"seconds_per_trial is {self.seconds_per_trial}, but must be more than 0."
            )
        if not 0.0 <= self.overhead < 1.0:
            raise InvalidParameter(f"overhead is {self.overhead}, but must be from 0 to below 1.")

    @property
    def limit(self) -> int:
        """Answers at which a simulated study is given up."""
        return self.max_answers or 60 * self.items


@dataclass(frozen=True)
class Run:
    """One simulated study: when it stopped (None: not before the limit) and at which rank."""

    rank: int
    selector: str
    stopped_at: int | None
    stopped_rank: int | None


@dataclass(frozen=True)
class PlanRow:
    """What studies of one true rank take, as 10 %, 50 % and 90 % quantiles.

    A study that did not stop counts as the limit. stopped: how many did; right: how many at the
    true rank. cost is in the currency of the pay, and None where no pay is set.
    """

    rank: int
    selector: str
    runs: int
    stopped: int
    right: int
    answers: tuple[float, ...]
    participants: tuple[int, ...]
    hours: tuple[float, ...]
    cost: tuple[float, ...] | None


def simulated_study(config: PlanConfig, rank: int, selector: str, seed: int) -> Run:
    """Simulate one study to its stop."""
    space = gaussian_space(config.items, rank, seed)
    habits = ObserverNoise(noise=config.noise, lapse=config.lapse)
    people = SimulatedPeople(crowd(space, PARTICIPANTS, habits, seed + 1))
    rule = RankSettled(
        config.confidence, config.audits, config.min_answers or None, max_answers=config.limit
    )
    learner = Learner(config.items, seed, SELECTORS.make(selector), rule)
    # The clock only fills in seconds that nobody reads here.
    for record in simulate(learner, people, config.limit, None, lambda: 0.0):
        if record.get("summary"):
            return Run(rank, selector, record["stopped_at"], record["stopped_rank"])
    raise AssertionError("a simulation ends with a summary")


def plan(
    config: PlanConfig,
    ranks: Iterable[int],
    runs: int,
    seed: int,
    progress: Progress = lambda done, of: None,
) -> Iterator[PlanRow]:
    """Simulate `runs` studies for each rank; a row is yielded as soon as its studies are done.

    First the rows of questions that the learner chooses, then those of random questions.
    """
    ranks = list(ranks)
    for rank in ranks:
        if not 1 <= rank < config.items:
            raise InvalidParameter(
                f"rank {rank} is not possible for {config.items} items; it must be from 1 to "
                f"{config.items - 1}."
            )
    # Raises what is wrong with them before anything is simulated.
    ObserverNoise(noise=config.noise, lapse=config.lapse)
    jobs = [
        (config, rank, selector, seed + 1000 * number)
        for selector in COMPARED
        for rank in ranks
        for number in range(runs)
    ]
    return _rows(config, jobs, runs, progress)


def _rows(
    config: PlanConfig,
    jobs: list[tuple[PlanConfig, int, str, int]],
    runs: int,
    progress: Progress,
) -> Iterator[PlanRow]:
    done: list[Run] = []
    for one in sweep(simulated_study, jobs, progress):
        done.append(one)
        if len(done) == runs:
            yield plan_row(config, done)
            done = []


def plan_row(config: PlanConfig, runs: list[Run]) -> PlanRow:
    """One row from the studies of one rank and selector."""
    counts = [config.limit if one.stopped_at is None else one.stopped_at for one in runs]
    answers = tuple(float(one) for one in np.quantile(counts, QUANTILES))
    # Catches and repeats cost time and money as well.
    trials = [count / (1.0 - config.overhead) for count in answers]
    participants = tuple(ceil(count / config.trials) for count in trials)
    hours = tuple(count * config.seconds_per_trial / 3600 for count in trials)
    return PlanRow(
        rank=runs[0].rank,
        selector=runs[0].selector,
        runs=len(runs),
        stopped=sum(one.stopped_at is not None for one in runs),
        right=sum(one.stopped_rank == one.rank for one in runs),
        answers=answers,
        participants=participants,
        hours=hours,
        cost=tuple(cost(config.pay, *both) for both in zip(participants, hours, strict=True))
        if config.pay.is_set
        else None,
    )
