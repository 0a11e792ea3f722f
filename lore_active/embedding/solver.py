"""Solver of the LORE objective: from a start to a stationary point, with its settings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lore_active.embedding.descent import descend
from lore_active.embedding.pairs import Pairs
from lore_active.errors import InvalidParameter
from lore_active.types import Floats

# Coordinates beyond this would overflow when squared and summed.
MAX_COORDINATE = 1e100
# More columns could not be supported by answers, and would exhaust memory.
MAX_COMPONENTS = 10_000


@dataclass(frozen=True)
class SolverSettings:
    """Objective and accuracy of a fit.

    lam: weight λ of the rank penalty. power: its exponent p in (0, 1]. margin: margin of the
    logistic loss, in units of distance. tolerance: relative stationarity residual at which a
    solve has converged. max_iter: maximum number of iterations of one solve. n_components: maximum
    number of dimensions. trim: whether a fit also tests removing its weakest dimension, which
    finds lower objectives and lower ranks.
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
    """An embedding on its principal axes (one column per dimension), with solver diagnostics.

    `curvature` is the final inverse step size: a good first value for a similar solve.
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
        """Number of dimensions: nonzero singular values."""
        return len(self.singular_values)


def solve(
    pairs: Pairs,
    start: Floats,
    settings: SolverSettings,
    curvature: float | None = None,
    goal: float = math.inf,
) -> Solution:
    """Minimise the objective from `start`; stop early if `goal` is out of reach."""
    if start.ndim != 2 or start.shape[0] != pairs.n_objects:
        raise InvalidParameter(
            f"The start has shape {start.shape}, but must have {pairs.n_objects} rows, one per "
            "item."
        )
    if not np.all(np.abs(start) <= MAX_COORDINATE):
        raise InvalidParameter(
            f"The start has values that are not finite or larger than {MAX_COORDINATE:g}."
        )
    embedding, scale, objective, residual, iterations, curvature = descend(
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
        # The curvature of the mean loss is about one item's share of the answers.
        float(curvature if curvature is not None else 0.5 / pairs.n_objects),
        float(goal),
    )
    return Solution(
        embedding=embedding,
        singular_values=scale,
        objective=objective,
        stationarity=residual,
        iterations=iterations,
        converged=residual <= settings.tolerance,
        curvature=curvature,
    )
