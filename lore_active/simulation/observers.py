"""Simulated observers: they answer from a known space, with noise, lapses, bias and drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lore_active.errors import InvalidParameter
from lore_active.questions.kinds import Kind
from lore_active.questions.pool import Questions, draw
from lore_active.types import Flags, Floats

Side = Literal["left", "right"]
Distribution = Literal["gaussian", "logistic", "heavy"]
DISTRIBUTIONS: tuple[Distribution, ...] = get_args(Distribution)
# Degrees of freedom of heavy-tailed noise.
HEAVY = 3.0


@dataclass(frozen=True)
class ObserverNoise:
    """Response noise of simulated observers.

    Parameters
    ----------
    noise : float, default 0.1
        Variance of the noise on the difference of two distances. Where more than two are
        compared, each has independent noise of half that variance.
    noise_spread : float, default 0.0
        Standard deviation between observers of the logarithm of that variance.
    lapse : float, default 0.0
        Lapse rate: share of answers that are random.
    side_bias : float, default 0.0
        By how much nearer the left option, or the first one, appears than it is, in units of
        distance.
    drift : float, default 0.0
        Standard deviation of the random step that each coordinate takes after every answer.
    distribution : {"gaussian", "logistic", "heavy"}, default "gaussian"
        Distribution of the noise. Logistic noise, on differences, is that of the Plackett–Luce
        model; heavy-tailed noise is Student's t with three degrees of freedom.

    Raises
    ------
    InvalidParameter
        If a value is outside its allowed range.

    Examples
    --------
    >>> from lore_active.simulation.observers import Observer, ObserverNoise
    >>> careful = Observer([[0.0], [1.0], [3.0]], ObserverNoise(noise=0.0))
    >>> careful.answer(anchor=0, left=2, right=1)
    'right'
    >>> ObserverNoise(lapse=0.05).noise
    0.1
    """

    noise: float = 0.1
    noise_spread: float = 0.0
    lapse: float = 0.0
    side_bias: float = 0.0
    drift: float = 0.0
    distribution: Distribution = "gaussian"

    def __post_init__(self) -> None:
        for name in ("noise", "noise_spread", "drift"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InvalidParameter(f"{name} is {value!r}, but must be a number of 0 or more.")
        if not 0.0 <= self.lapse <= 1.0:
            raise InvalidParameter(f"lapse is {self.lapse!r}, but must be a share from 0 to 1.")
        if self.distribution not in DISTRIBUTIONS:
            raise InvalidParameter(
                f"distribution is {self.distribution!r}, but must be one of "
                f"{', '.join(DISTRIBUTIONS)}."
            )
        if not np.isfinite(self.side_bias):
            raise InvalidParameter(f"side_bias is {self.side_bias!r}, but must be a finite number.")


class Observer:
    """A simulated participant; the same seed and questions give the same answers.

    Parameters
    ----------
    space : array of shape (n_objects, n_dimensions)
        True coordinates of the items.
    habits : ObserverNoise
        Response noise.
    seed : int, default 0
        Seed of the noise.
    """

    def __init__(
        self, space: Floats, observer_noise: ObserverNoise = ObserverNoise(), seed: int = 0
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._space = np.array(space, dtype=np.float64)
        self._noise = observer_noise
        log_ratio = (
            self._rng.normal(0.0, observer_noise.noise_spread)
            if observer_noise.noise_spread
            else 0.0
        )
        self._deviation = float(np.sqrt(observer_noise.noise * np.exp(log_ratio)))

    def answer(self, anchor: int, left: int, right: int) -> Side:
        """Answer one question: the option that appears nearer to the anchor."""
        return "left" if self.answers(np.array([[anchor, left, right]]))[0] else "right"

    def answers(self, questions: NDArray[np.integer]) -> Flags:
        """Answer rows (anchor, left, right) in order: True where left is chosen as nearer."""
        count = len(questions)
        noise = self._noise_on_differences(count) * self._deviation
        lapsed = self._rng.random(count) < self._noise.lapse
        coin = self._rng.random(count) < 0.5
        seen = self._excess(np.asarray(questions)) - self._noise.side_bias + noise
        return np.where(lapsed, coin, seen < 0.0)

    def _noise_on_differences(self, count: int) -> Floats:
        """Noise of variance 1."""
        if self._noise.distribution == "logistic":
            return self._rng.logistic(0.0, np.sqrt(3.0) / np.pi, count)
        if self._noise.distribution == "heavy":
            return np.asarray(self._rng.standard_t(HEAVY, count) * np.sqrt(1.0 - 2.0 / HEAVY))
        return self._rng.normal(0.0, 1.0, count)

    def _noise_on_distances(self, count: int) -> Floats:
        """Noise of variance 1 whose differences are logistic where they should be."""
        if self._noise.distribution == "logistic":
            return -self._rng.gumbel(0.0, np.sqrt(6.0) / np.pi, count)
        return self._noise_on_differences(count)

    def choose(self, kind: Kind, anchor: int | None, options: Sequence[int]) -> tuple[int, ...]:
        """Answer one question of any kind: the chosen options, nearest first.

        The distances appear with independent noise. In an odd-one-out question these are the
        distances of its three pairs, and the odd one is not in the pair that appears nearest.

        Examples
        --------
        >>> from lore_active.questions.kinds import kind
        >>> from lore_active.simulation.observers import Observer, ObserverNoise
        >>> careful = Observer([[0.0], [1.0], [3.0], [4.0]], ObserverNoise(noise=0.0))
        >>> careful.choose(kind("rank-2-of-3"), 0, (3, 1, 2))
        (1, 2)
        >>> careful.choose(kind("odd-one-out"), None, (0, 2, 3))
        (0,)
        """
        if kind.name == "triplet":
            assert anchor is not None
            left, right = options
            return (left if self.answer(anchor, left, right) == "left" else right,)
        items = np.asarray(options)
        if self._rng.random() < self._noise.lapse:
            return tuple(self._rng.permutation(items)[: kind.pick].tolist())
        z = self._space
        if anchor is None:
            # The distance opposite each option: that of the pair without it.
            distance = np.linalg.norm(z[np.roll(items, -1)] - z[np.roll(items, 1)], axis=1)
        else:
            distance = np.linalg.norm(z[items] - z[anchor], axis=1)
        seen = distance + self._noise_on_distances(len(items)) * self._deviation / np.sqrt(2.0)
        seen[0] -= self._noise.side_bias
        if self._noise.drift:
            self._space += self._rng.normal(0.0, self._noise.drift, self._space.shape)
        return tuple(items[np.argsort(seen, kind="stable")[: kind.pick]].tolist())

    def _excess(self, questions: NDArray[np.integer]) -> Floats:
        """d(anchor, left) − d(anchor, right) in the observer's current, possibly drifted, space."""
        if not self._noise.drift:
            return left_excess(self._space, questions)
        out = np.empty(len(questions))
        for row in range(len(questions)):
            out[row] = left_excess(self._space, questions[row : row + 1])[0]
            self._space += self._rng.normal(0.0, self._noise.drift, self._space.shape)
        return out


def left_excess(space: Floats, questions: NDArray[np.integer]) -> Floats:
    """d(anchor, left) − d(anchor, right) for rows (anchor, left, right)."""
    anchor, left, right = (space[questions[:, k]] for k in range(3))
    near = np.linalg.norm(anchor - left, axis=1)
    return np.asarray(near - np.linalg.norm(anchor - right, axis=1))


def crowd(
    space: Floats, participants: int, observer_noise: ObserverNoise = ObserverNoise(), seed: int = 0
) -> list[Observer]:
    """Simulated participants who share a space and differ in their noise."""
    seeds = np.random.SeedSequence(seed).generate_state(participants, np.uint64)
    return [Observer(space, observer_noise, int(own_seed)) for own_seed in seeds]


def gaussian_space(n_objects: int, dimensions: int, seed: int) -> Floats:
    """Draw coordinates of items independently from N(0, 1)."""
    return np.random.default_rng(seed).normal(0.0, 1.0, (n_objects, dimensions))


def random_questions(n_objects: int, count: int, seed: int) -> Questions:
    """Draw rows (anchor, left, right) of three different items uniformly."""
    return draw(n_objects, count, np.random.default_rng(seed))


def as_answers(questions: NDArray[np.integer], left_nearer: Flags) -> NDArray[np.int64]:
    """Convert questions and their answers to rows (anchor, nearer, farther)."""
    anchor, left, right = questions.T
    return np.column_stack(
        [anchor, np.where(left_nearer, left, right), np.where(left_nearer, right, left)]
    ).astype(np.int64)


def simulated_answers(
    space: Floats,
    count: int,
    seed: int,
    observer_noise: ObserverNoise = ObserverNoise(),
) -> NDArray[np.int64]:
    """Random questions answered by one simulated participant: rows (anchor, nearer, farther)."""
    question_seed, observer_seed = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    questions = random_questions(len(space), count, int(question_seed))
    return as_answers(
        questions, Observer(space, observer_noise, int(observer_seed)).answers(questions)
    )
