"""Significance thresholds for reporting a rank, and binomial confidence intervals.

Free of compiled code, since web pages use it as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

# Standard errors by which the best rank must be better than guessing for a rank to be reported:
# the best of many ranks and λ exceeds the chance level by selection alone.
MIN_STANDARD_ERRORS = 3.0
# Standard errors under guessing by which the acquisition model's held-out accuracy on
# model-independent questions must exceed chance to support one dimension: the first for a new
# dimension, the second for keeping one. With noisy answers it detects a dimension much earlier than
# the published fits. The answers are not independent, and simulated guessing reached 4.6.
SUPPORTED_FROM, SUPPORTED_STILL = 5.0, 2.5
# A dimension that was found is taken in, though poorly placed, unless it makes predictions worse by
# this many standard errors.
CLEARLY_WORSE = 1.96
# Held-out answers alone refute one dimension fewer at this many standard errors, without a Bayes
# factor: those of different folds share most of their training answers, so that 2.5 can be chance.
REFUTED = 6.0
# Largest share at which a further dimension can be found: a test for a larger one can also be
# positive because it takes the place of a strong dimension of the map.
MAX_FOUND = 0.2

# Prior of the share of a further dimension: there is none with this probability, otherwise the
# share is log-uniform in this range.
NONE, LEAST, MOST = 0.5, 0.02, 0.5
# A share is ruled out if the items have no dimension of this part of it: while a dimension is
# poorly identified, what is known of its share is too small rather than too large.
GUARD = 0.9


@dataclass(frozen=True)
class Proportion:
    """A proportion with its 95 % Wilson score interval."""

    count: int
    value: float
    low: float
    high: float


def wilson(successes: float, count: int) -> Proportion:
    """Proportion of successes with its 95 % Wilson score interval (Wilson, 1927)."""
    if count == 0:
        return Proportion(0, 0.5, 0.0, 1.0)
    z = NormalDist().inv_cdf(0.975)
    share = successes / count
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return Proportion(count, share, max(0.0, centre - half), min(1.0, centre + half))
