"""How much better than guessing is more than luck: in standard errors, before anything is claimed.

Known without a compiler, since pages speak of it as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

# Fewer errors than this better than guessing, and there is nothing to be found: the best of many
# ranks and λ looks better than guessing by luck alone.
MIN_STANDARD_ERRORS = 3.0
# The model that asks vouches for a dimension when it is so many of a guesser's standard errors
# better than guessing, at questions that no model picked. While people are noisy it sees much
# earlier than the published fits that there is something. These answers are not independent, and
# guesses reach 4.6. What was found once is not lost again as easily.
SUPPORTED_FROM, SUPPORTED_STILL = 5.0, 2.5


@dataclass(frozen=True)
class Proportion:
    """A share of successes with its 95 % interval (Wilson)."""

    count: int
    value: float
    low: float
    high: float


def wilson(successes: float, count: int) -> Proportion:
    """The share of successes and where it may lie."""
    if count == 0:
        return Proportion(0, 0.5, 0.0, 1.0)
    z = NormalDist().inv_cdf(0.975)
    share = successes / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return Proportion(count, share, max(0.0, middle - half), min(1.0, middle + half))
