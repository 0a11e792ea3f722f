"""Is there a further dimension that carries at least a given share of the variance?

The model of r dimensions is compared with the model in which every item has a further coordinate
u ~ N(0, s²), where s² = δ / (1 − δ) times the variance of the map, so that the further dimension
carries the share δ. Distances become √(d² + Δu²). A weak coordinate acts on distances in second
order, so Laplace's method fails at u = 0; the marginal likelihoods are compared by sampling.

With u = s v and v standardised, the models of all shares differ by the factor s only, and s = 0 is
the model of r dimensions. So one path of growing s gives the log Bayes factors of all shares on
it. Neighbouring points of the path are compared by Bennett's (1976) acceptance ratio, which is
free of quadrature error; thermodynamic integration (Gelman & Meng, 1998) over the same draws,
∫ E[∂ log L / ∂s²] ds², verifies it. One chain follows the path upwards from the map, another
downwards from a fit in r + 1 dimensions. Where they disagree, nothing is decided.

One module, though long: half of it documents the public functions and their settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, isfinite, log, sqrt

import numpy as np
from scipy.integrate import trapezoid

from lore_active.data.comparisons import Triplets
from lore_active.embedding import map as map_embedding
from lore_active.errors import InvalidParameter
from lore_active.rank.bridge import BLOCKS, log_ratios, total
from lore_active.rank.likelihood import Likelihood, likelihood, workspace
from lore_active.rank.sampling import sample
from lore_active.rank.significance import MAX_FOUND
from lore_active.trials.stages import as_trials
from lore_active.types import Floats

# Shares whose log Bayes factors a sensitivity is read from.
SHARES = (0.02, 0.035, 0.05, 0.07, 0.10, 0.14, 0.20, 0.28, 0.38, 0.50)
MIN_SHARE, MAX_SHARE = 0.005, 0.9
# Odds from which a share counts as ruled out.
ODDS = 20.0
# Chains disagree if they differ by more than this many joint standard errors, and by this much.
MAX_DEVIATIONS, MIN_DISAGREEMENT = 3.0, 1.0
# First step size, relative to the standard deviations that the mass matrix assumes.
FIRST_STEP = 0.3
# Spread of the further coordinates at the start of the upward chain, relative to their prior.
FIRST_SPREAD = 0.1
# Minimum variance of an axis in its prior, relative to the strongest.
MIN_AXIS = 0.001


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
        for name, least in rules.items():
            if getattr(self, name) < least:
                raise InvalidParameter(
                    f"{name} is {getattr(self, name)!r}, but must be at least {least}."
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
    """

    share: float
    log_bayes_factor: float
    standard_error: float
    chains: tuple[float, ...]
    agree: bool
    integral: float

    def ruled_out(self, odds: float = ODDS) -> bool:
        """Whether the share is ruled out: by `odds`, one standard error included."""
        return self.agree and self.log_bayes_factor + self.standard_error <= -log(odds)

    def found(self, odds: float = ODDS) -> bool:
        """Whether a further dimension is found: by `odds`, one standard error included.

        That is half of the difference between the directions at least, so that each finds it, also
        where they disagree about how clearly.
        """
        return self.log_bayes_factor - self.standard_error >= log(odds)


@dataclass(frozen=True)
class Decisive:
    """Which results a decision needs, so that nothing else is computed.

    Parameters
    ----------
    share : float
        Share of interest, which is always tested.
    odds : float
        Required Bayes factor.
    """

    share: float
    odds: float = ODDS

    def known(self, tests: Sequence[FurtherDimension]) -> bool:
        """Whether larger shares than those tested would add nothing."""
        last = tests[-1]
        if last.share < self.share:
            return False
        # Whatever is larger is ruled out with it.
        return _margin(tests) - last.standard_error >= log(self.odds) or (
            last.share >= MAX_FOUND and any(test.found(self.odds) for test in tests)
        )

    def found(self, test: FurtherDimension) -> bool:
        """Whether a test found a dimension of interest."""
        of_interest = self.share <= test.share <= max(self.share, MAX_FOUND)
        return of_interest and test.found(self.odds)

    def claims(self, tests: Sequence[FurtherDimension]) -> bool:
        """Whether tests may rule a share out, or find a dimension."""
        return any(
            max(test.log_bayes_factor, _margin(tests[: number + 1])) + test.standard_error
            >= log(self.odds)
            for number, test in enumerate(tests)
        )


def _margin(tests: Sequence[FurtherDimension]) -> float:
    """By how much the last share is less probable than the best smaller one, or none."""
    *smaller, last = (test.log_bayes_factor for test in tests)
    return max([0.0, *smaller]) - last


def further_dimension(
    triplets: Triplets,
    embedding: Floats,
    share: float = 0.10,
    seed: int = 0,
    *,
    precision: float | Floats | None = None,
    wider: Floats | None = None,
    settings: SamplingSettings = SamplingSettings(),
    progress: Callable[[int, int], None] | None = None,
) -> FurtherDimension:
    """Log Bayes factor of a further dimension of one share; see `further_dimensions`.

    Examples
    --------
    >>> from lore_active.data.comparisons import as_triplets
    >>> from lore_active.rank.further_dimension import further_dimension
    >>> from lore_active.simulation.observers import gaussian_space, simulated_answers
    >>> plane = gaussian_space(12, 2, seed=1)
    >>> answers = as_triplets(simulated_answers(plane, 400, seed=2), 12)
    >>> further_dimension(answers, plane[:, :1] * 4.0, share=0.5).found()
    True
    """
    return further_dimensions(
        *(triplets, embedding, (share,), seed),
        precision=precision,
        wider=wider,
        settings=settings,
        progress=progress,
    )[0]


def further_dimensions(
    triplets: Triplets,
    embedding: Floats,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
    *,
    precision: float | Floats | None = None,
    wider: Floats | None = None,
    settings: SamplingSettings = SamplingSettings(),
    decisive: Decisive | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[FurtherDimension, ...]:
    """Log Bayes factors of a further dimension of several shares, from the same draws.

    Parameters
    ----------
    triplets : Triplets
        Answers; weights count as numbers of equal answers.
    embedding : array of shape (n_objects, n_dimensions)
        MAP embedding, in units of the answers' temperature.
    shares : sequence of float
        Shares of the variance, increasing.
    seed : int
        Seed of all randomness.
    precision : float or array of shape (n_dimensions,), optional
        Prior precision of the coordinates; by default the inverse mean square of each axis.
    wider : array of shape (n_objects, n_dimensions + 1), optional
        Start of the downward chains, weakest axis last; by default a MAP embedding is fitted.
    settings : SamplingSettings
        Sampling and response function.
    decisive : Decisive, optional
        What matters for a decision: larger shares are left out once a share is ruled out, and the
        downward chains where the upward ones decide nothing. By default everything is computed.
    progress : callable, optional
        Called with the points that are done and the most that there can be, between points of the
        path; an exception that it raises ends the computation.

    Returns
    -------
    tuple of FurtherDimension
        By increasing share; with `decisive`, possibly without the largest shares.

    Raises
    ------
    InvalidParameter
        If the embedding or a share is not possible.
    """
    z = _centred(triplets, embedding)
    ratios = _ratios(shares)
    if triplets.compound:
        triplets = triplets.repeated("the Bayes factor of a further dimension")
    answers, count = as_trials(triplets), float(triplets.weight.sum())
    rank = z.shape[1]
    prior = _precision(z, precision)
    if wider is None:
        fits = map_embedding.fits_by_rank(
            answers, max(round(count), 1), float(prior.min()), rank + 1, fine=True, least=rank + 1
        )
        wider = fits[rank + 1][0]
    if wider.shape != (len(z), rank + 1):
        raise InvalidParameter(
            f"wider has shape {wider.shape}, but must have {(len(z), rank + 1)}: one dimension "
            "more than the embedding."
        )
    model = likelihood(
        *(answers, count, prior, settings.lapse, settings.slope_deviation, settings.tail)
    )
    path = _path(ratios, settings.spacing)
    ends = np.searchsorted(path, ratios).tolist()
    scales = np.sqrt(path * float((z**2).sum(axis=1).mean()))
    done, most = 0, 2 * settings.chains * len(path)

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, most)

    log_slope = _scale(model, z, settings, np.random.default_rng([seed, 2]))
    model = model._replace(slope_deviation=0.0)

    def chain(downward: bool, number: int) -> _Chain:
        rng = np.random.default_rng([seed, int(downward), number])
        if downward:
            start = np.column_stack([wider[:, :rank], wider[:, rank] / scales[-1]])
        else:
            start = np.column_stack([z, FIRST_SPREAD * rng.normal(size=len(z))])
        return _Chain(model, start, log_slope, scales, downward, rng, settings, tick)

    numbers = range(settings.chains)
    upward = [chain(False, number) for number in numbers]
    tests: list[FurtherDimension] = []
    for share, end in zip(shares, ends, strict=True):
        for one in upward:
            one.follow(end)
        tests.append(_summary(share, upward, end, scales, 1))
        if decisive is not None and decisive.known(tests):
            break
    if decisive is None or decisive.claims(tests):
        scales = scales[: ends[len(tests) - 1] + 1]
        both = [*upward, *(chain(True, number) for number in numbers)]
        for one in both:
            one.follow(len(scales) - 1)
        tests = [
            _summary(test.share, both, end, scales, 2)
            for test, end in zip(tests, ends, strict=False)
        ]
    if progress is not None and done < most:
        # Nothing is left to do: what does not matter for the decision is not computed.
        progress(most, most)
    return tuple(tests)


def smallest_share_ruled_out(
    profile: Sequence[FurtherDimension], odds: float = ODDS
) -> float | None:
    """Smallest share from which on every larger one of the profile is ruled out, or None.

    Parameters
    ----------
    profile : sequence of FurtherDimension
        By increasing share, as `further_dimensions` returns them.
    odds : float
        Odds from which a share counts as ruled out.
    """
    smallest = None
    for further in reversed(profile):
        if not further.ruled_out(odds):
            break
        smallest = further.share
    return smallest


def _centred(triplets: Triplets, embedding: Floats) -> Floats:
    z = np.asarray(embedding, dtype=np.float64)
    if z.ndim != 2 or z.shape[0] != triplets.n_objects or z.shape[1] < 1:
        raise InvalidParameter(
            f"embedding has shape {z.shape}, but must have one row for each of the "
            f"{triplets.n_objects} items and at least one column."
        )
    if not np.isfinite(z).all():
        raise InvalidParameter("embedding has coordinates that are not finite numbers.")
    z = z - z.mean(axis=0)
    if not (z**2).sum() > 0.0:
        raise InvalidParameter("embedding has no variance, so no share of it can be defined.")
    return np.ascontiguousarray(z)


def _precision(z: Floats, given: float | Floats | None) -> Floats:
    """Prior precision of each axis.

    By default it is taken from the map. With one precision for axes of unequal strength, a strong
    axis fits its prior badly, and a further dimension gains by taking its place.
    """
    rank = z.shape[1]
    if given is None:
        largest = float((z**2).mean(axis=0).max())
        return np.asarray(1.0 / np.maximum((z**2).mean(axis=0), MIN_AXIS * largest))
    values = np.asarray(given, dtype=np.float64)
    if values.shape not in ((), (rank,)) or not (np.isfinite(values) & (values > 0.0)).all():
        raise InvalidParameter(
            f"precision is {given!r}, but must be a positive number, or one for each of the "
            f"{rank} dimensions."
        )
    # A view would be read-only, and kernels would be compiled once more for that.
    return np.full(rank, values)


def _ratios(shares: Sequence[float]) -> Floats:
    """Variance of the further dimension relative to that of the map, for each share."""
    for share in shares:
        if not MIN_SHARE <= share <= MAX_SHARE:
            raise InvalidParameter(
                f"share is {share!r}, but must be from {MIN_SHARE} to {MAX_SHARE}."
            )
    if not len(shares) or list(shares) != sorted(set(shares)):
        raise InvalidParameter(f"shares are {tuple(shares)!r}, but must increase.")
    values = np.array(shares, dtype=np.float64)
    return values / (1.0 - values)


def _path(ratios: Floats, spacing: float) -> Floats:
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


def _scale(
    model: Likelihood, z: Floats, settings: SamplingSettings, rng: np.random.Generator
) -> float:
    """Posterior mean of the log slope in the model without a further dimension.

    All models of the path get this slope. Where it is drawn along the path, it mixes slowly with
    the scale of the coordinates, and chains disagree.
    """
    if not settings.slope_deviation:
        return 0.0
    state = np.zeros((z.shape[1] + 1, len(z)))
    state[:-1] = z.T
    warmup = 3 * settings.warmup
    size, out = warmup + settings.draws, np.empty((settings.draws, 5))
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
    return float(out[:, 4].mean())


class _Chain:
    """A chain along the path; `draws` has the shape (n_points, n_draws, 5), see `sample`."""

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
        self.draws = np.empty((len(scales), settings.draws, 5))
        self._model, self._work = model, workspace(model)
        self._state = np.ascontiguousarray(start.T)
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


def _summary(
    share: float, chains: Sequence[_Chain], end: int, scales: Floats, directions: int
) -> FurtherDimension:
    """Combine the chains: those of the first half went upwards, the others, if any, downwards."""
    values, errors = zip(*(total(chain.ratios(end)) for chain in chains), strict=True)
    half = len(chains) // directions
    joint, difference = sqrt(sum(error**2 for error in errors)) / half, 0.0
    if directions == 2:
        difference = abs(float(np.mean(values[:half]) - np.mean(values[half:])))
    variances = scales[: end + 1] ** 2
    slopes = [chain.draws[: end + 1, :, 3].mean(axis=1) for chain in chains]
    return FurtherDimension(
        share=float(share),
        log_bayes_factor=float(np.mean(values)),
        standard_error=max(joint / directions, 0.5 * difference),
        chains=tuple(values),
        agree=difference <= max(MAX_DEVIATIONS * joint, MIN_DISAGREEMENT),
        integral=float(np.mean([trapezoid(slope, variances) for slope in slopes])),
    )
