"""Settings of the sampling along a path of posteriors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite

from lore_active.errors import InvalidParameter
from lore_active.rank.sampling.bridge import BLOCKS

# Factors by which a second attempt is finer.
MORE_DRAWS, LONGER_WARMUP = 4, 3


@dataclass(frozen=True)
class SamplingSettings:
    """How the posteriors along the path are sampled, and which response function is assumed.

    Parameters
    ----------
    draws, warmup : int
        Draws and warm-up iterations at each point of the path; the first has thrice the warm-up.
    leapfrogs : int
        Steps of each trajectory.
    spacing : float
        Largest distance between two points of the path, in standard deviations of the further
        dimension relative to that of the map.
    chains : int
        Chains in each direction.
    lapse : float
        Share of answers that are assumed to be guesses.
    slope_deviation : float
        Prior standard deviation of the log slope of the response function, which is the common
        scale of the map and the further dimension; 0 fixes the scale to that of the embedding.
    tail : float
        Degrees of freedom (above 2) of a Student prior on the further coordinates; 0: Gaussian.
    """

    draws: int = 120
    warmup: int = 30
    leapfrogs: int = 6
    spacing: float = 0.085
    chains: int = 1
    lapse: float = 0.0
    slope_deviation: float = 1.0
    tail: float = 0.0

    def __post_init__(self) -> None:
        rules = {"draws": 2 * BLOCKS, "warmup": 1, "leapfrogs": 1, "chains": 1}
        for name, minimum in rules.items():
            if getattr(self, name) < minimum:
                raise InvalidParameter(
                    f"{name} is {getattr(self, name)!r}, but must be at least {minimum}."
                )
        if not 0.0 < self.spacing < inf:
            raise InvalidParameter(f"spacing is {self.spacing!r}, but must be a positive number.")
        if not 0.0 <= self.lapse < 1.0:
            raise InvalidParameter(f"lapse is {self.lapse!r}, but must be from 0 to below 1.")
        if not (isfinite(self.slope_deviation) and self.slope_deviation >= 0.0):
            raise InvalidParameter(
                f"slope_deviation is {self.slope_deviation!r}, but must be a number of 0 or more."
            )
        if self.tail != 0.0 and not (isfinite(self.tail) and self.tail > 2.0):
            raise InvalidParameter(f"tail is {self.tail!r}, but must be 0 or greater than 2.")

    def finer(self) -> SamplingSettings:
        """Settings for a second attempt where the first leaves a verdict open."""
        return replace(self, draws=MORE_DRAWS * self.draws, warmup=LONGER_WARMUP * self.warmup)


DEFAULT = SamplingSettings()
