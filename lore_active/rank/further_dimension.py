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
from math import isfinite, log, sqrt

import numpy as np

from lore_active.data.comparisons import Triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.pairs import as_pairs
from lore_active.errors import InvalidParameter
from lore_active.rank.bridge import BLOCKS, acceptance_ratio, jackknife_error
from lore_active.rank.sampling import Likelihood, likelihood, sample
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
    temperatures : int
        Minimum number of points of the path, besides the shares asked for.
    chains : int
        Chains in each direction.
    lapse : float
        Share of answers that are assumed to be guesses.
    slope_deviation : float
        Prior standard deviation of the log slope of the response function; 0 fixes the slope.
    tail : float
        Degrees of freedom (above 2) of a Student prior on the further coordinates; 0: Gaussian.
    """

    draws: int = 120
    warmup: int = 30
    leapfrogs: int = 12
    temperatures: int = 8
    chains: int = 1
    lapse: float = 0.0
    slope_deviation: float = 0.0
    tail: float = 0.0

    def __post_init__(self) -> None:
        rules = {"draws": 2 * BLOCKS, "warmup": 1, "leapfrogs": 1, "temperatures": 1, "chains": 1}
        for name, least in rules.items():
            if getattr(self, name) < least:
                raise InvalidParameter(
                    f"{name} is {getattr(self, name)!r}, but must be at least {least}."
                )
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
        Whether the two directions agree within their errors.
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
        """Whether a further dimension is found: by `odds`, one standard error included."""
        return self.agree and self.log_bayes_factor - self.standard_error >= log(odds)


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
    progress : callable, optional
        Called with the points that are done and their total, between points of the path; an
        exception that it raises ends the computation.

    Returns
    -------
    tuple of FurtherDimension

    Raises
    ------
    InvalidParameter
        If the embedding or a share is not possible.
    """
    z = _centred(triplets, embedding)
    ratios = _ratios(shares)
    pairs, count = as_pairs(triplets), float(triplets.weight.sum())
    rank = z.shape[1]
    prior = _precision(z, precision)
    if wider is None:
        fits = map_embedding.fits_by_rank(
            pairs, max(round(count), 1), float(prior.min()), rank + 1, fine=True, least=rank + 1
        )
        wider = fits[rank + 1][0]
    if wider.shape != (len(z), rank + 1):
        raise InvalidParameter(
            f"wider has shape {wider.shape}, but must have {(len(z), rank + 1)}: one dimension "
            "more than the embedding."
        )
    model = likelihood(
        *(pairs, count, prior, settings.lapse, settings.slope_deviation, settings.tail)
    )
    path = _path(ratios, settings.temperatures)
    scales = np.sqrt(path * float((z**2).sum(axis=1).mean()))
    total, done = 2 * settings.chains * len(path), 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    chains = []
    for downward in (False, True):
        for number in range(settings.chains):
            rng = np.random.default_rng([seed, int(downward), number])
            if downward:
                start = np.column_stack([wider[:, :rank], wider[:, rank] / scales[-1]])
            else:
                start = np.column_stack([z, FIRST_SPREAD * rng.normal(size=len(z))])
            chains.append(_followed(model, start, scales, downward, rng, settings, tick))
    return tuple(
        _summary(share, chains, path, int(np.searchsorted(path, ratio)), scales)
        for share, ratio in zip(shares, ratios, strict=True)
    )


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
    return np.ascontiguousarray(np.broadcast_to(values, (rank,)))


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


def _path(ratios: Floats, temperatures: int) -> Floats:
    """Points of the path: the ratios asked for and 0, subdivided where they are far apart."""
    regular = ratios[-1] * (np.arange(temperatures + 1) / temperatures) ** 2
    known = np.concatenate([[0.0], ratios])
    # Points that almost coincide with a ratio would cost time and add nothing.
    gaps = np.abs(np.sqrt(regular)[:, None] - np.sqrt(known)[None, :]).min(axis=1)
    kept = regular[gaps > 0.3 * sqrt(ratios[-1]) / temperatures]
    return np.unique(np.concatenate([known, kept]))


def _followed(
    model: Likelihood,
    state: Floats,
    scales: Floats,
    downward: bool,
    rng: np.random.Generator,
    settings: SamplingSettings,
    tick: Callable[[], None],
) -> Floats:
    """Draws of one chain, of shape (n_points, n_draws, 4); see `sampling.sample`."""
    order = range(len(scales))
    out = np.empty((len(scales), settings.draws, 4))
    state, log_slope, step = np.ascontiguousarray(state), 0.0, FIRST_STEP
    padded = np.concatenate([scales[:1], scales, scales[-1:]])
    for position, k in enumerate(reversed(order) if downward else order):
        warmup = settings.warmup * (1 if position else 3)
        size = warmup + settings.draws
        normals = rng.normal(size=(size, state.size + 1))
        log_slope, step, _ = sample(
            *(model, state, log_slope, padded[k : k + 3], normals, rng.random((size, 2))),
            *(warmup, settings.leapfrogs, step, out[k]),
        )
        tick()
    return out


def _summary(
    share: float, chains: list[Floats], path: Floats, end: int, scales: Floats
) -> FurtherDimension:
    """Combine the chains: those of the first half went upwards, the others downwards."""
    values = [acceptance_ratio(chain[: end + 1]) for chain in chains]
    errors = [jackknife_error(chain[: end + 1]) for chain in chains]
    half = len(chains) // 2
    difference = abs(float(np.mean(values[:half]) - np.mean(values[half:])))
    joint = sqrt(sum(error**2 for error in errors)) / half
    variances = scales[: end + 1] ** 2
    integral = np.mean([np.trapezoid(c[: end + 1, :, 3].mean(axis=1), variances) for c in chains])
    return FurtherDimension(
        share=float(share),
        log_bayes_factor=float(np.mean(values)),
        standard_error=max(0.5 * joint, 0.5 * difference),
        chains=tuple(values),
        agree=difference <= max(MAX_DEVIATIONS * joint, MIN_DISAGREEMENT),
        integral=float(integral),
    )
