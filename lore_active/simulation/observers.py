"""Simulated people: they answer from a space of their own, with the faults that people have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lore_active.errors import InvalidParameter
from lore_active.questions.pool import Questions, draw
from lore_active.types import Flags, Floats

Side = Literal["left", "right"]


@dataclass(frozen=True)
class ObserverNoise:
    """How people err.

    noise: variance of the Gaussian noise on the difference of two distances. noise_spread:
    standard deviation, over people, of the logarithm of that variance. lapse: share of answers
    given without looking. side_bias: how much nearer the left option seems than it is, in units
    of the space. drift: how far each person's image of an item wanders per answer, as the
    standard deviation of a step in each coordinate.
    """

    noise: float = 0.1
    noise_spread: float = 0.0
    lapse: float = 0.0
    side_bias: float = 0.0
    drift: float = 0.0

    def __post_init__(self) -> None:
        for name in ("noise", "noise_spread", "drift"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InvalidParameter(f"{name} is {value!r}, but must be a number of 0 or more.")
        if not 0.0 <= self.lapse <= 1.0:
            raise InvalidParameter(f"lapse is {self.lapse!r}, but must be a share from 0 to 1.")
        if not np.isfinite(self.side_bias):
            raise InvalidParameter(f"side_bias is {self.side_bias!r}, but must be a finite number.")


class Observer:
    """One simulated person. The same seed and the same questions give the same answers."""

    def __init__(
        self, space: Floats, habits: ObserverNoise = ObserverNoise(), seed: int = 0
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._space = np.array(space, dtype=np.float64)
        self._habits = habits
        spread = self._rng.normal(0.0, habits.noise_spread) if habits.noise_spread else 0.0
        self._deviation = float(np.sqrt(habits.noise * np.exp(spread)))

    def answer(self, anchor: int, left: int, right: int) -> Side:
        """Which of the two options is nearer to the anchor."""
        return "left" if self.answers(np.array([[anchor, left, right]]))[0] else "right"

    def answers(self, questions: NDArray[np.integer]) -> Flags:
        """Answers to rows (anchor, left, right), in order: whether left is called the nearer."""
        count = len(questions)
        noise = self._rng.normal(0.0, 1.0, count) * self._deviation
        lapsed = self._rng.random(count) < self._habits.lapse
        coin = self._rng.random(count) < 0.5
        seen = self._excess(np.asarray(questions)) - self._habits.side_bias + noise
        return np.where(lapsed, coin, seen < 0.0)

    def _excess(self, questions: NDArray[np.integer]) -> Floats:
        """How much farther left is than right, as this person's space stands at each answer."""
        if not self._habits.drift:
            return left_excess(self._space, questions)
        out = np.empty(len(questions))
        for row in range(len(questions)):
            out[row] = left_excess(self._space, questions[row : row + 1])[0]
            self._space += self._rng.normal(0.0, self._habits.drift, self._space.shape)
        return out


def left_excess(space: Floats, questions: NDArray[np.integer]) -> Floats:
    """d(anchor, left) − d(anchor, right) for rows (anchor, left, right)."""
    anchor, left, right = (space[questions[:, k]] for k in range(3))
    near = np.linalg.norm(anchor - left, axis=1)
    return np.asarray(near - np.linalg.norm(anchor - right, axis=1))


def crowd(
    space: Floats, people: int, habits: ObserverNoise = ObserverNoise(), seed: int = 0
) -> list[Observer]:
    """Several people who share a space and differ in their noise."""
    seeds = np.random.SeedSequence(seed).generate_state(people, np.uint64)
    return [Observer(space, habits, int(one)) for one in seeds]


def gaussian_space(n_objects: int, dimensions: int, seed: int) -> Floats:
    """Items scattered independently, N(0, 1) in each dimension."""
    return np.random.default_rng(seed).normal(0.0, 1.0, (n_objects, dimensions))


def random_questions(n_objects: int, count: int, seed: int) -> Questions:
    """Rows (anchor, left, right) of three different items, uniformly drawn."""
    return draw(n_objects, count, np.random.default_rng(seed))


def as_answers(questions: NDArray[np.integer], left_nearer: Flags) -> NDArray[np.int64]:
    """Rows (anchor, nearer, farther) from questions and their answers."""
    anchor, left, right = questions.T
    return np.column_stack(
        [anchor, np.where(left_nearer, left, right), np.where(left_nearer, right, left)]
    ).astype(np.int64)


def simulated_answers(
    space: Floats,
    count: int,
    seed: int,
    habits: ObserverNoise = ObserverNoise(),
) -> NDArray[np.int64]:
    """Random questions answered by one simulated person: rows (anchor, nearer, farther)."""
    asked, person = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    questions = random_questions(len(space), count, int(asked))
    return as_answers(questions, Observer(space, habits, int(person)).answers(questions))
