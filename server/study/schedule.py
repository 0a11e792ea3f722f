"""The schedule of a session: the kind of each trial, and sides for the questions it makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

Kind = Literal["model", "random", "catch", "repeat"]

# A question is repeated only after this many others.
REPEAT_LAG = 5


@dataclass(frozen=True)
class Schedule:
    """Session of one participant: the kind of each trial, and whether its sides are swapped.

    Questions from the queue are displayed as the learner drew them.
    """

    kinds: tuple[Kind, ...]
    swapped: tuple[bool, ...]


@lru_cache(maxsize=4096)
def schedule(
    seed: int, number: int, trials: int, random: float, catch: float, repeat: float
) -> Schedule:
    """Draw the session of participant `number`; deterministic in its arguments.

    Each kind has its share of the trials to within one, spread evenly with some jitter, so that
    catch trials do not cluster. Sides are swapped in half of the trials.
    """
    rng = np.random.default_rng([seed, number, 0])
    kinds: list[Kind] = ["model"] * trials
    shares: tuple[tuple[Kind, float], ...] = (
        ("catch", catch),
        ("repeat", repeat),
        ("random", random),
    )
    for kind, share in shares:
        # The fraction left by rounding is randomised over participants.
        wanted = share * trials
        count = int(wanted) + int(rng.random() < wanted - int(wanted))
        first = REPEAT_LAG + 1 if kind == "repeat" else 1
        free = [place for place in range(first, trials) if kinds[place] == "model"]
        for block in _parts(free, count):
            if block:
                kinds[block[int(rng.integers(len(block)))]] = kind
    swapped = np.arange(trials) % 2 == rng.integers(2)
    # Shuffled in short blocks: always balanced, never predictable.
    for start in range(0, trials, 8):
        rng.shuffle(swapped[start : start + 8])
    return Schedule(tuple(kinds), tuple(bool(swap) for swap in swapped))


def _parts(places: list[int], count: int) -> Iterator[list[int]]:
    """Split a list into parts of nearly equal length; the first ones are longer by one."""
    size, longer = divmod(len(places), max(count, 1))
    start = 0
    for part in range(count):
        end = start + size + int(part < longer)
        yield places[start:end]
        start = end
