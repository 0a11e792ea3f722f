"""Sample-size planning: how many answers a study needs, by simulation with the real learner."""

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
# Adaptive questions, and random ones for comparison.
COMPARED = ("fisher", "random")


@dataclass(frozen=True)
class PlanConfig:
    """Configuration of a planned study.

    Parameters
    ----------
    items : int
        Number of items, at least 4.
    noise, lapse : float
        Response noise of the simulated observers; see `ObserverNoise`.
    trials : int, default 80
        Trials per participant.
    seconds_per_trial : float, default 4.0
        Mean duration of a trial.
    pay : Pay
        Payment of participants, for the cost.
    overhead : float, default 0.10
        Share of trials that are catch or repeat trials.
    max_answers : int, default 0
        Answers after which a simulated study is abandoned; 0 for 60 per item.
    confidence, audits, min_answers
        Parameters of the stopping rule; 0 minimum answers for four per item.

    Raises
    ------
    InvalidParameter
        If a value is outside its allowed range.

    Examples
    --------
    >>> from lore_active.simulation.planning import PlanConfig
    >>> PlanConfig(items=20).limit
    1200
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
        """Answers after which a simulated study is abandoned."""
        return self.max_answers or 60 * self.items


@dataclass(frozen=True)
class Run:
    """One simulated study: when it stopped (None: not within the limit) and at which rank."""

    rank: int
    selector: str
    stopped_at: int | None
    stopped_rank: int | None


@dataclass(frozen=True)
class PlanRow:
    """What studies of one true rank need, as 10 %, 50 % and 90 % quantiles.

    A study that did not stop counts as the limit. `stopped` is the number of studies that stopped,
    `right` the number that stopped at the true rank. `cost` is in the currency of the pay, and
    None if no pay is set.
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
    """Simulate one study until it stops."""
    space = gaussian_space(config.items, rank, seed)
    observer_noise = ObserverNoise(noise=config.noise, lapse=config.lapse)
    people = SimulatedPeople(crowd(space, PARTICIPANTS, observer_noise, seed + 1))
    rule = RankSettled(
        config.confidence, config.audits, config.min_answers or None, max_answers=config.limit
    )
    learner = Learner(config.items, seed, SELECTORS.make(selector), rule)
    # The clock only measures computing time, which is not used here.
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
    """Estimate the sample size of a study by simulation.

    Parameters
    ----------
    config : PlanConfig
        The study.
    ranks : iterable of int
        True numbers of dimensions to simulate.
    runs : int
        Simulated studies for each rank and selector.
    seed : int
        Seed of the simulated spaces, observers and learners.
    progress : callable, optional
        Called with the number of finished studies, and of all studies.

    Yields
    ------
    PlanRow
        One row for each rank, as soon as its studies have finished: first with adaptive, then
        with random questions.

    Raises
    ------
    InvalidParameter
        If a rank is not possible, or the response noise is invalid.

    Examples
    --------
    >>> from joblib import parallel_config
    >>> from lore_active.simulation.planning import PlanConfig, plan
    >>> with parallel_config(backend="sequential"):
    ...     rows = list(plan(PlanConfig(items=6, max_answers=20), [1], runs=1, seed=1))
    >>> [(row.rank, row.selector, row.answers[1]) for row in rows]
    [(1, 'fisher', 20.0), (1, 'random', 20.0)]
    """
    ranks = list(ranks)
    for rank in ranks:
        if not 1 <= rank < config.items:
            raise InvalidParameter(
                f"rank {rank} is not possible for {config.items} items; it must be from 1 to "
                f"{config.items - 1}."
            )
    # Validates the response noise before anything is simulated.
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
    for run in sweep(simulated_study, jobs, progress):
        done.append(run)
        if len(done) == runs:
            yield plan_row(config, done)
            done = []


def plan_row(config: PlanConfig, runs: list[Run]) -> PlanRow:
    """Summarise the studies of one rank and selector."""
    counts = [config.limit if run.stopped_at is None else run.stopped_at for run in runs]
    answers = tuple(float(quantile) for quantile in np.quantile(counts, QUANTILES))
    # Catch and repeat trials cost time and money as well.
    trials = [count / (1.0 - config.overhead) for count in answers]
    participants = tuple(ceil(count / config.trials) for count in trials)
    hours = tuple(count * config.seconds_per_trial / 3600 for count in trials)
    return PlanRow(
        rank=runs[0].rank,
        selector=runs[0].selector,
        runs=len(runs),
        stopped=sum(run.stopped_at is not None for run in runs),
        right=sum(run.stopped_rank == run.rank for run in runs),
        answers=answers,
        participants=participants,
        hours=hours,
        cost=tuple(cost(config.pay, *both) for both in zip(participants, hours, strict=True))
        if config.pay.is_set
        else None,
    )
