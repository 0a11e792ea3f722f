"""Sample-size planning: how many answers a study needs, by simulation with the real learner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from lore_active.acquisition.registry import SELECTORS
from lore_active.data.comparisons import MAX_ITEMS
from lore_active.errors import InvalidParameter
from lore_active.learner.learner import Learner
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.simulation import worlds
from lore_active.simulation.cost import Pay, cost, seconds_per_trial
from lore_active.simulation.observers import ObserverNoise, crowd
from lore_active.simulation.parallel import Progress, sweep
from lore_active.simulation.run import SimulatedParticipants, simulate
from lore_active.stopping.registry import DEFAULT_RULE, stopping_rule
from lore_active.stopping.rules import StoppingRule
from lore_active.types import Floats

QUANTILES = (0.1, 0.5, 0.9)
PARTICIPANTS = 10
# Smallest dimensions of interest that are planned for.
SHARES = (0.05, 0.10, 0.20)
# Adaptive questions, and random ones for comparison.
COMPARED = ("fisher", "random")


@dataclass(frozen=True)
class PlanConfig:
    """Configuration of a planned study.

    Parameters
    ----------
    items : int
        Number of items, at least 4.
    noise, lapse, noise_spread : float
        Response noise of the simulated observers; see `ObserverNoise`.
    world : str, default "equal"
        Kind of space that they perceive; a key of `worlds.WORLDS`.
    space : array of shape (items, dimensions), optional
        Coordinates of the items instead of a world; cut to the rank that is simulated.
    trials : int, default 80
        Trials per participant.
    seconds_per_trial : float, optional
        Mean duration of a trial; by default 4 s for triplets, and as much more for other kinds as
        published durations say.
    pay : Pay
        Payment of participants, for the cost.
    overhead : float, default 0.10
        Share of trials that are catch or repeat trials.
    max_answers : int, default 0
        Answers after which a simulated study is abandoned; 0 for 60 per item, or fewer if answers
        carry more than triplets.
    rule : str
        Name of the stopping rule.
    confidence, audits, min_answers, evidence
        Parameters of the stopping rule; 0 audits for the rule's default, 0 minimum answers for
        four per item.
    shares : tuple of float
        Smallest dimensions of interest to plan for, under the rule `smallest_dimension`.
    kind : Kind
        What is asked.

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
    noise_spread: float = 0.0
    world: str = "equal"
    space: Floats | None = field(default=None, compare=False)
    trials: int = 80
    seconds_per_trial: float | None = None
    pay: Pay = field(default_factory=Pay)
    overhead: float = 0.10
    max_answers: int = 0
    rule: str = DEFAULT_RULE
    confidence: float = 0.975
    audits: int = 0
    min_answers: int = 0
    evidence: float = 20.0
    shares: tuple[float, ...] = SHARES
    kind: Kind = TRIPLET

    def __post_init__(self) -> None:
        if not 4 <= self.items <= MAX_ITEMS:
            raise InvalidParameter(f"items is {self.items}, but must be from 4 to {MAX_ITEMS}.")
        if self.trials < 1:
            raise InvalidParameter(f"trials is {self.trials}, but must be 1 or more.")
        if not self.seconds > 0:
            raise InvalidParameter(f"seconds_per_trial is {self.seconds}, but must be more than 0.")
        if self.items < self.kind.items:
            raise InvalidParameter(
                f"items is {self.items}, but a question of the kind {self.kind.label!r} shows "
                f"{self.kind.items}."
            )
        if not 0.0 <= self.overhead < 1.0:
            raise InvalidParameter(f"overhead is {self.overhead}, but must be from 0 to below 1.")
        if self.space is not None and len(self.space) != self.items:
            raise InvalidParameter(
                f"space has {len(self.space)} rows, but must have one for each of the "
                f"{self.items} items."
            )
        # Validates noise and rule before anything is simulated.
        self.observer_noise, self.rules()

    @property
    def limit(self) -> int:
        """Answers after which a simulated study is abandoned."""
        return self.max_answers or ceil(60 * self.items / self.kind.bits)

    @property
    def seconds(self) -> float:
        """Mean duration of a trial."""
        if self.seconds_per_trial is None:
            return seconds_per_trial(self.kind)
        return self.seconds_per_trial

    @property
    def observer_noise(self) -> ObserverNoise:
        """Response noise of the simulated observers."""
        return ObserverNoise(self.noise, self.noise_spread, self.lapse)

    def drawn(self, rank: int, seed: int) -> Floats:
        """Coordinates of the items, in `rank` dimensions."""
        if self.space is not None:
            return worlds.cut(self.space, rank)
        return worlds.space(self.world, self.items, rank, seed)

    def rules(self) -> dict[float | None, StoppingRule]:
        """The stopping rule by smallest dimension of interest; None for rules without one."""
        settings: dict[str, Any] = {
            "confidence": self.confidence,
            "min_answers": self.min_answers or None,
            "evidence": self.evidence,
            **({"audits": self.audits} if self.audits else {}),
        }
        rules: dict[float | None, StoppingRule] = {
            share: stopping_rule(self.rule, smallest_dimension=share, **settings)
            for share in sorted(self.shares)
        }
        if any(hasattr(rule, "smallest_dimension") for rule in rules.values()):
            return rules
        return {None: stopping_rule(self.rule, **settings)}


@dataclass(frozen=True)
class Run:
    """One simulated study: when it stopped (None: not within the limit) and at which rank.

    Dimensions of the map that are weaker than those of interest do not count.

    `smallest_dimension` is the size of interest of its rule, and `correct` the smallest and the
    largest rank that is correct for it; None: only the true rank is.
    """

    rank: int
    selector: str
    stopped_at: int | None
    stopped_rank: int | None
    smallest_dimension: float | None = None
    correct: tuple[int, int] | None = None

    @property
    def right(self) -> bool:
        """Whether it stopped at a correct rank."""
        low, high = self.correct or (self.rank, self.rank)
        return self.stopped_rank is not None and low <= self.stopped_rank <= high


@dataclass(frozen=True)
class PlanRow:
    """What studies of one true rank need, as 10 %, 50 % and 90 % quantiles.

    A study that did not stop counts as the limit. `stopped` is the number of studies that stopped,
    `right` the number that stopped at the true rank (or, under a rule about dimensions of a certain
    size, at the number of dimensions of that size). `cost` is in the currency of the pay, and
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
    smallest_dimension: float | None = None
    kind: str = TRIPLET.label


def simulated_study(config: PlanConfig, rank: int, selector: str, seed: int) -> list[Run]:
    """Simulate one study until it stops; one run for each size of interest.

    One course of answers serves all sizes: it is selected for the smallest of them, and continues
    until that one is settled.
    """
    space, rules = config.drawn(rank, seed), config.rules()
    participants = SimulatedParticipants(
        crowd(space, PARTICIPANTS, config.observer_noise, seed + 1)
    )
    learner = Learner(
        *(config.items, seed, SELECTORS.make(selector), next(iter(rules.values()))),
        kind=config.kind,
    )
    stops: dict[float | None, tuple[int, int]] = {}
    # The clock only measures computing time, which is not used here.
    for _ in simulate(learner, participants, config.limit, None, lambda: 0.0, stop=False):
        for share, rule in rules.items():
            decision = learner.decided_by(rule)
            if decision.settled and share not in stops:
                stops[share] = (learner.counted, decision.dimensions)
        if len(stops) == len(rules):
            break
    runs = []
    for share in rules:
        at, stopped_rank = stops.get(share, (None, None))
        correct = None if share is None else worlds.correct_ranks(space, share)
        runs.append(Run(rank, selector, at, stopped_rank, share, correct))
    return runs


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
        One row for each rank and smallest dimension of interest, as soon as its studies have
        finished: first with adaptive, then with random questions.

    Raises
    ------
    InvalidParameter
        If a rank is not possible, or the response noise is invalid.

    Examples
    --------
    >>> from joblib import parallel_config
    >>> from lore_active.simulation.planning import PlanConfig, plan
    >>> with parallel_config(backend="sequential"):
    ...     config = PlanConfig(items=6, max_answers=20, shares=(0.5,))
    ...     rows = list(plan(config, [1], runs=1, seed=1))
    >>> [(row.selector, row.smallest_dimension, row.answers[1]) for row in rows]
    [('fisher', 0.5, 20.0), ('random', 0.5, 20.0)]
    """
    ranks = list(ranks)
    for rank in ranks:
        if not 1 <= rank < config.items:
            raise InvalidParameter(
                f"rank {rank} is not possible for {config.items} items; it must be from 1 to "
                f"{config.items - 1}."
            )
    for rank in ranks:
        # Not every world can have every rank.
        config.drawn(rank, seed)
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
    done: list[list[Run]] = []
    for study in sweep(simulated_study, jobs, progress):
        done.append(study)
        if len(done) == runs:
            yield from (plan_row(config, list(same)) for same in zip(*done, strict=True))
            done = []


def plan_row(config: PlanConfig, runs: list[Run]) -> PlanRow:
    """Summarise the studies of one rank and selector."""
    counts = [config.limit if run.stopped_at is None else run.stopped_at for run in runs]
    answers = tuple(float(quantile) for quantile in np.quantile(counts, QUANTILES))
    # Catch and repeat trials cost time and money as well.
    trials = [count / (1.0 - config.overhead) for count in answers]
    participants = tuple(ceil(count / config.trials) for count in trials)
    hours = tuple(count * config.seconds / 3600 for count in trials)
    return PlanRow(
        rank=runs[0].rank,
        selector=runs[0].selector,
        runs=len(runs),
        stopped=sum(run.stopped_at is not None for run in runs),
        right=sum(run.right for run in runs),
        answers=answers,
        participants=participants,
        hours=hours,
        cost=tuple(cost(config.pay, *both) for both in zip(participants, hours, strict=True))
        if config.pay.is_set
        else None,
        smallest_dimension=runs[0].smallest_dimension,
        kind=config.kind.label,
    )
