"""What kind of question each place of a participant's session holds, and which side is which."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

Kind = Literal["model", "random", "catch", "repeat"]

# An own question comes again only after this many others.
REPEAT_LAG = 5


@dataclass(frozen=True)
class Schedule:
    """One participant's session: the kind of each place, and whether its sides are swapped."""

    kinds: tuple[Kind, ...]
    swapped: tuple[bool, ...]


@lru_cache(maxsize=4096)
def schedule(
    seed: int, number: int, trials: int, random: float, catch: float, repeat: float
) -> Schedule:
    """The session of participant `number`; the same for the same arguments.

    Each kind has its share of the places to within one, spread evenly with a little jitter, so
    that nobody meets all catch questions at the end. Sides are swapped in half of the places.
    """
    rng = np.random.default_rng([seed, number, 0])
    kinds: list[Kind] = ["model"] * trials
    shares: tuple[tuple[Kind, float], ...] = (
        ("catch", catch),
        ("repeat", repeat),
        ("random", random),
    )
    for kind, share in shares:
        # What is left after rounding falls to some participants and not to others.
        wanted = share * trials
        count = int(wanted) + int(rng.random() < wanted - int(wanted))
        first = REPEAT_LAG + 1 if kind == "repeat" else 1
        free = [place for place in range(first, trials) if kinds[place] == "model"]
        for block in np.array_split(np.array(free, dtype=np.int64), max(count, 1))[:count]:
            if len(block):
                kinds[int(rng.choice(block))] = kind
    swapped = np.arange(trials) % 2 == rng.integers(2)
    # Shuffled in short blocks: balanced at every time, predictable at none.
    for start in range(0, trials, 8):
        rng.shuffle(swapped[start : start + 8])
    return Schedule(tuple(kinds), tuple(bool(one) for one in swapped))
