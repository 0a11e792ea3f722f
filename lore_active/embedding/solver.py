"""Accelerated proximal iterations: from a start to a stationary point of the LORE objective."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lore_active.embedding.descent import descend
from lore_active.embedding.pairs import Pairs
from lore_active.errors import InvalidParameter
from lore_active.types import Floats

# Coordinates beyond this would overflow when squared and summed.
WIDEST_START = 1e100


# Columns that nothing could fill, and that would fill the memory.
MAX_COMPONENTS = 10_000


@dataclass(frozen=True)
class SolverSettings:
    """What is minimised, and how exactly.

    lam: weight of the rank penalty. power: its exponent p in (0, 1]. margin: by how much the
    farther item should be farther. tolerance: relative imbalance of the two gradients at which a
    point counts as stationary. max_iter: iterations that one solve may take. n_components: the
    most dimensions considered. trim: whether a fit also tries to do without its weakest
    dimension, which finds lower objectives and lower ranks.
    """

    lam: float = 0.01
    power: float = 0.5
    margin: float = 1.0
    tolerance: float = 1e-4
    max_iter: int = 5000
    n_components: int = 15
    trim: bool = False

    def __post_init__(self) -> None:
        _require("lam", self.lam, 0.0 < self.lam < math.inf, "a positive number")
        _require("p", self.power, 0.0 < self.power <= 1.0, "in (0, 1]")
        _require("margin", self.margin, 0.0 <= self.margin < math.inf, "a number of 0 or more")
        _require("tol", self.tolerance, 0.0 < self.tolerance < 1.0, "between 0 and 1")
        _require("max_iter", self.max_iter, _whole(self.max_iter), "a whole number of 1 or more")
        _require(
            "n_components",
            self.n_components,
            _whole(self.n_components) and self.n_components <= MAX_COMPONENTS,
            f"a whole number from 1 to {MAX_COMPONENTS}",
        )


def _whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 1


def _require(name: str, value: object, holds: bool, rule: str) -> None:
    if not holds:
        raise InvalidParameter(f"{name} is {value!r}, but must be {rule}.")


@dataclass(frozen=True, eq=False)
class Solution:
    """A point on its principal axes (one column per dimension), and how it was reached.

    `curvature` is the step size's inverse at the end: a good first guess for a solve nearby.
    """

    embedding: Floats
    singular_values: Floats
    objective: float
    stationarity: float
    iterations: int
    converged: bool
    curvature: float

    @property
    def rank(self) -> int:
        """Number of dimensions: singular values that are not exactly zero."""
        return len(self.singular_values)


def solve(
    pairs: Pairs,
    start: Floats,
    settings: SolverSettings,
    curvature: float | None = None,
    goal: float = math.inf,
) -> Solution:
    """Minimise from `start`. With a `goal`, give up early when it is out of reach."""
    if start.ndim != 2 or start.shape[0] != pairs.n_objects:
        raise InvalidParameter(
            f"The start has shape {start.shape}, but must have {pairs.n_objects} rows, one for "
            "each item."
        )
    if not np.all(np.abs(start) <= WIDEST_START):
        raise InvalidParameter(
            f"The start holds values that are not finite or beyond {WIDEST_START:g}."
        )
    embedding, scale, objective, off, iterations, curvature = descend(
        np.array(start, dtype=np.float64, order="C"),
        pairs.first,
        pairs.second,
        pairs.near,
        pairs.far,
        pairs.weight,
        float(settings.margin),
        float(settings.lam),
        float(settings.power),
        float(settings.tolerance),
        int(settings.max_iter),
        # The mean loss bends about as much as one item's share of the answers.
        float(curvature if curvature is not None else 0.5 / pairs.n_objects),
        float(goal),
    )
    return Solution(
        embedding=embedding,
        singular_values=scale,
        objective=objective,
        stationarity=off,
        iterations=iterations,
        converged=off <= settings.tolerance,
        curvature=curvature,
    )
