"""A study with simulated participants or logged answers, as the options of `simulate` say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lore_active.acquisition.registry import SELECTORS
from lore_active.data.comparisons import MAX_ITEMS, as_triplets
from lore_active.errors import InvalidParameter
from lore_active.learner.learner import Learner
from lore_active.questions.kinds import TRIPLET, kind
from lore_active.questions.pool import PooledQuestions
from lore_active.simulation import worlds
from lore_active.simulation.observers import (
    Distribution,
    ObserverNoise,
    crowd,
    simulated_answers,
)
from lore_active.simulation.run import (
    LoggedParticipants,
    Participants,
    SimulatedParticipants,
    simulate,
)
from lore_active.stopping.registry import DEFAULT_RULE, stopping_rule
from lore_active.stopping.sensitivity import DEFAULT_SHARE
from lore_active.types import Floats

TEST_QUESTIONS = 3000
MAX_RANK = 1000
MAX_OBSERVERS = 1_000_000


@dataclass(frozen=True)
class SimulatedStudy:
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
        share = self.smallest_dimension or DEFAULT_SHARE
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


def summary_of(study: SimulatedStudy) -> dict[str, Any]:
    """Return the summary of a study, with its seed."""
    *_, last = study.records()
    return {"seed": study.seed, **last}
