"""What a study will cost before it is run: simulated studies with the real learner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

import numpy as np

from lore_active.errors import InvalidParameter
from lore_active.learner import Learner
from lore_active.observers import Habits, crowd, gaussian_space
from lore_active.selection import selector_named
from lore_active.simulation import SimulatedPeople, simulate
from lore_active.stopping import RankSettled
from lore_active.sweeps import Progress, sweep
from lore_active.triplets import MAX_ITEMS

QUANTILES = (0.1, 0.5, 0.9)
PEOPLE = 10


@dataclass(frozen=True)
class Wish:
    """The study to be planned. `overhead` is the share of trials that are catches or repeats."""

    items: int
    noise: float = 0.1
    lapse: float = 0.0
    trials: int = 80
    seconds_per_trial: float = 4.0
    pay: float = 9.0
    overhead: float = 0.10
    most: int = 0

    def __post_init__(self) -> None:
        if not 4 <= self.items <= MAX_ITEMS:
            raise InvalidParameter(f"items is {self.items}, but must be from 4 to {MAX_ITEMS}.")
        if self.trials < 1:
            raise InvalidParameter(f"trials is {self.trials}, but must be 1 or more.")
        if not self.seconds_per_trial > 0:
            raise InvalidParameter(
                f"seconds_per_trial is {self.seconds_per_trial}, but must be more than 0."
            )
        if self.pay < 0:
            raise InvalidParameter(f"pay is {self.pay}, but must be 0 or more (per hour).")
        if not 0.0 <= self.overhead < 1.0:
            raise InvalidParameter(f"overhead is {self.overhead}, but must be from 0 to below 1.")

    @property
    def limit(self) -> int:
        """Answers at which a simulated study is given up."""
        return self.most or 60 * self.items


@dataclass(frozen=True)
class Run:
    """One simulated study: when it stopped (None: not before the limit) and at which rank."""

    rank: int
    selector: str
    stopped_at: int | None
    stopped_rank: int | None


@dataclass(frozen=True)
class Forecast:
    """What studies of one true rank cost, as quantiles; the last is the limit where not stopped."""

    rank: int
    runs: int
    stopped: int
    right: int
    answers: tuple[float, ...]
    participants: tuple[int, ...]
    hours: tuple[float, ...]
    money: tuple[float, ...]
    random_answers: tuple[float, ...]
    random_stopped: int


def one_study(wish: Wish, rank: int, selector: str, seed: int) -> Run:
    """Simulate one study to its stop."""
    space = gaussian_space(wish.items, rank, seed)
    habits = Habits(noise=wish.noise, lapse=wish.lapse)
    people = SimulatedPeople(crowd(space, PEOPLE, habits, seed + 1))
    rule = RankSettled(max_answers=wish.limit)
    learner = Learner(wish.items, seed, selector_named(selector), rule)
    # The clock only fills in seconds that nobody reads here.
    for record in simulate(learner, people, wish.limit, None, lambda: 0.0):
        if record.get("summary"):
            return Run(rank, selector, record["stopped_at"], record["stopped_rank"])
    raise AssertionError("a simulation ends with a summary")


def plan(
    wish: Wish,
    ranks: Iterable[int],
    runs: int,
    seed: int,
    progress: Progress = lambda done, of: None,
) -> list[Forecast]:
    """Simulate `runs` studies for each rank, with chosen and with random questions."""
    ranks = list(ranks)
    for rank in ranks:
        if not 1 <= rank < wish.items:
            raise InvalidParameter(
                f"rank {rank} is not possible for {wish.items} items; it must be from 1 to "
                f"{wish.items - 1}."
            )
    jobs = [
        (rank, selector, seed + 1000 * number)
        for number in range(runs)
        for rank in ranks
        for selector in ("fisher", "random")
    ]
    done = list(sweep(one_study, [(wish, *job) for job in jobs], progress))
    return [_forecast(wish, rank, [one for one in done if one.rank == rank]) for rank in ranks]


def _forecast(wish: Wish, rank: int, runs: list[Run]) -> Forecast:
    chosen = [one for one in runs if one.selector == "fisher"]
    random = [one for one in runs if one.selector == "random"]
    answers = _quantiles(wish, chosen)
    # Catches and repeats cost time and money as well.
    trials = [count / (1.0 - wish.overhead) for count in answers]
    hours = tuple(count * wish.seconds_per_trial / 3600 for count in trials)
    return Forecast(
        rank=rank,
        runs=len(chosen),
        stopped=sum(one.stopped_at is not None for one in chosen),
        right=sum(one.stopped_rank == rank for one in chosen),
        answers=answers,
        participants=tuple(ceil(count / wish.trials) for count in trials),
        hours=hours,
        money=tuple(wish.pay * one for one in hours),
        random_answers=_quantiles(wish, random),
        random_stopped=sum(one.stopped_at is not None for one in random),
    )


def _quantiles(wish: Wish, runs: list[Run]) -> tuple[float, ...]:
    counts = [wish.limit if one.stopped_at is None else one.stopped_at for one in runs]
    return tuple(float(one) for one in np.quantile(counts, QUANTILES))
