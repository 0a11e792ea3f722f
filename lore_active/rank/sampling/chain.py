"""Chains of draws along a path of posteriors, from no further dimension to a strong one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import ceil

import numpy as np

from lore_active.rank.sampling.bridge import BLOCKS, log_ratios
from lore_active.rank.sampling.hamiltonian import sample
from lore_active.rank.sampling.likelihood import Likelihood, workspace
from lore_active.rank.sampling.settings import SamplingSettings
from lore_active.types import Floats

# What is known of a draw (see `sample`), and which of it are the log slope and the weakest share.
COLUMNS, SLOPE, WEAKEST = 7, 5, 6
# First step size, relative to the standard deviations that the mass matrix assumes.
FIRST_STEP = 0.3


def path_points(ratios: Floats, spacing: float) -> Floats:
    """Points of the path: 0 and the ratios asked for, subdivided evenly in standard deviations."""
    corners = np.sqrt(np.concatenate([[0.0], ratios]))
    points = [0.0]
    for low, high in pairwise(corners):
        parts = ceil((high - low) / spacing)
        points.extend(low + (high - low) * np.arange(1, parts) / parts)
        points.append(high)
    path = np.array(points) ** 2
    path[np.searchsorted(path, ratios * (1.0 - 1e-9))] = ratios
    return path


def mean_log_slope(
    model: Likelihood, z: Floats, settings: SamplingSettings, rng: np.random.Generator
) -> float:
    """Posterior mean of the log slope in the model without a further dimension.

    All models of the path get this slope. Where it is drawn along the path, it mixes slowly with
    the scale of the coordinates, and chains disagree.
    """
    if not settings.slope_deviation:
        return 0.0
    state = np.zeros((z.shape[1] + 1, len(z)))
    state[:-1] = model.mixing.inverse(z).T
    warmup = 3 * settings.warmup
    size, out = warmup + settings.draws, np.empty((settings.draws, COLUMNS))
    sample(
        model,
        workspace(model),
        state,
        0.0,
        np.zeros(3),
        rng.normal(size=(size, state.size + 1)),
        rng.random((size, 2)),
        warmup,
        settings.leapfrogs,
        FIRST_STEP,
        out,
    )
    return float(out[:, SLOPE].mean())


class Chain:
    """A chain along the path; `draws` has the shape (n_points, n_draws, 7), see `sample`."""

    def __init__(
        self,
        model: Likelihood,
        start: Floats,
        log_slope: float,
        scales: Floats,
        downward: bool,
        rng: np.random.Generator,
        settings: SamplingSettings,
        tick: Callable[[], None],
    ) -> None:
        self.draws = np.empty((len(scales), settings.draws, COLUMNS))
        self._model, self._work = model, workspace(model)
        self._state = np.ascontiguousarray(model.mixing.inverse(start).T)
        # The model of the last point has no neighbour above, that of the first none below.
        self._scales = np.concatenate([scales[:1], scales, scales[-1:]])
        self._order = list(range(len(scales)))[:: -1 if downward else 1]
        self._rng, self._settings, self._tick = rng, settings, tick
        self._log_slope, self._step = log_slope, FIRST_STEP
        self._done = 0
        self._ratios = np.empty((0, 1 + BLOCKS))

    def follow(self, end: int) -> None:
        """Sample at the points of the path up to the one with this index, if not yet done."""
        settings = self._settings
        while self._done <= min(end, len(self._order) - 1):
            k = self._order[self._done]
            # The first point is far from the posterior.
            warmup = settings.warmup * (1 if self._done else 3)
            size = warmup + settings.draws
            normals = self._rng.normal(size=(size, self._state.size + 1))
            self._log_slope, self._step, _ = sample(
                self._model,
                self._work,
                self._state,
                self._log_slope,
                self._scales[k : k + 3],
                normals,
                self._rng.random((size, 2)),
                warmup,
                settings.leapfrogs,
                self._step,
                self.draws[k],
            )
            self._done += 1
            self._tick()

    def ratios(self, end: int) -> Floats:
        """Log ratios between the points of the path up to this one; see `log_ratios`."""
        known = len(self._ratios)
        if known < end:
            more = log_ratios(self.draws[known : end + 1])
            self._ratios = np.concatenate([self._ratios, more])
        return self._ratios[:end]

    def integral(self, end: int) -> float:
        """Log ratio up to a point by thermodynamic integration over the log likelihood."""
        draws = self.draws[: end + 1]
        steps = (draws[:-1, :, 2] - draws[:-1, :, 1]).mean(axis=1)
        steps += (draws[1:, :, 1] - draws[1:, :, 0]).mean(axis=1)
        return float(0.5 * steps.sum())

    def weakest(self, end: int) -> Floats:
        """Share of the weakest axis in each draw, by point of the path."""
        return self.draws[: end + 1, :, WEAKEST]

    @property
    def effective(self) -> float:
        """Number of independent coordinates on an axis, by the prior."""
        return float(self._model.mixing.effective)
