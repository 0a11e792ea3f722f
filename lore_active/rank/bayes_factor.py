"""Bayes factors of a further dimension, by its share: what they rule out, and what they find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from lore_active.rank.significance import MAX_FOUND

# Bayes factor from which a share counts as ruled out.
BAYES_FACTOR = 20.0
# Log Bayes factor for a further dimension of the items that a found one needs beside its own.
REALISED = log(3.0)


@dataclass(frozen=True)
class FurtherDimension:
    """Log Bayes factor of a further dimension that carries `share` of the variance.

    Attributes
    ----------
    share : float
        Share δ of the variance.
    log_bayes_factor : float
        Natural logarithm; positive for a further dimension, negative against it.
    standard_error : float
        Monte Carlo error; at least half of the difference between the two directions.
    chains : tuple of float
        The estimate of each chain: those that follow the path upwards, then the others.
    agree : bool
        Whether the two directions agree within their errors; also where one of them alone showed
        that nothing is decided, so that the other was not computed.
    integral : float
        The same by thermodynamic integration, to verify the path; it has quadrature error.
    against : tuple of float
        Log Bayes factor against a further dimension that carries this share or more, by each chain;
        see `lore_active.rank.sampling.realised`. Empty in tests of earlier versions.
    there : tuple of float
        Log Bayes factor for a further dimension that carries a quarter of this share or more, by
        each chain. Empty in tests of earlier versions.
    """

    share: float
    log_bayes_factor: float
    standard_error: float
    chains: tuple[float, ...]
    agree: bool
    integral: float
    against: tuple[float, ...] = ()
    there: tuple[float, ...] = ()

    def ruled_out(self, bayes_factor: float = BAYES_FACTOR) -> bool:
        """Whether this share or more is ruled out by this Bayes factor, in each chain."""
        return min(self.against, default=0.0) >= log(bayes_factor)

    def found(self, bayes_factor: float = BAYES_FACTOR) -> bool:
        """Whether a further dimension is found: by this Bayes factor, one standard error included.

        That is half of the difference between the directions at least, so that each finds it, also
        where they disagree about how clearly. The items must also have such a dimension: its prior
        may be better than that of the map although it only takes the place of an axis.
        """
        there = min(self.there, default=REALISED) >= REALISED
        return there and self.log_bayes_factor - self.standard_error >= log(bayes_factor)


@dataclass(frozen=True)
class Decisive:
    """Which results a decision needs, so that nothing else is computed.

    Parameters
    ----------
    share : float
        Share of interest, which is always tested.
    bayes_factor : float
        Required Bayes factor.
    """

    share: float
    bayes_factor: float = BAYES_FACTOR

    def known(self, tests: Sequence[FurtherDimension]) -> bool:
        """Whether larger shares than those tested would add nothing."""
        if tests[-1].share < self.share:
            return False
        # Whatever is larger is ruled out with it.
        of_interest = next(test for test in tests if test.share >= self.share)
        return of_interest.ruled_out(self.bayes_factor) or (
            tests[-1].share >= MAX_FOUND and any(test.found(self.bayes_factor) for test in tests)
        )

    def of_interest(self, test: FurtherDimension) -> bool:
        """Whether a test can find a dimension of interest."""
        return self.share <= test.share <= max(self.share, MAX_FOUND)

    def found(self, test: FurtherDimension) -> bool:
        """Whether a test found a dimension of interest."""
        return self.of_interest(test) and test.found(self.bayes_factor)

    def may_conclude(self, tests: Sequence[FurtherDimension]) -> bool:
        """Whether tests may rule a share out, or find a dimension."""
        return any(
            test.ruled_out(self.bayes_factor)
            or test.log_bayes_factor + test.standard_error >= log(self.bayes_factor)
            for test in tests
        )
