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
downwards from a fit in r + 1 dimensions. Where they disagree, or their error leaves a verdict
open, they are sampled again with more draws; where they still disagree, nothing is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from lore_active.data.triplets import Triplets
from lore_active.embedding import map as map_embedding
from lore_active.errors import InvalidParameter
from lore_active.rank.bayes_factor import BAYES_FACTOR, Decisive, FurtherDimension
from lore_active.rank.clusters import clusters, mixing
from lore_active.rank.sampling.bridge import total
from lore_active.rank.sampling.chain import Chain, mean_log_slope, path_points
from lore_active.rank.sampling.likelihood import Likelihood, likelihood
from lore_active.rank.sampling.realised import log_bayes_factor_against
from lore_active.rank.sampling.settings import DEFAULT, SamplingSettings
from lore_active.rank.significance import GUARD
from lore_active.trials.stages import as_trials
from lore_active.types import Floats

# Shares whose log Bayes factors a sensitivity is read from.
SHARES = (0.02, 0.035, 0.05, 0.07, 0.10, 0.14, 0.20, 0.28, 0.38, 0.50)
MIN_SHARE, MAX_SHARE = 0.005, 0.9
# Chains disagree if they differ by more than this many joint standard errors, and by this much.
MAX_DEVIATIONS, MIN_DISAGREEMENT = 3.0, 1.0
# Standard deviation of the further coordinates at the start of the upward chain, relative to their
# prior.
FIRST_DEVIATION = 0.1
# An estimate with an error above the first, and within so many errors of what is needed for a
# verdict, is computed again, finer, with random numbers of this stream.
SMALL_ERROR, MAX_ERRORS, FINER = 0.5, 2.0, 1
# A dimension of some share is found if the items have one of this part of it.
PART = 0.25
# Minimum variance of an axis in its prior, relative to the strongest.
MIN_AXIS = 0.001


def further_dimension(
    triplets: Triplets,
    embedding: Floats,
    share: float = 0.10,
    seed: int = 0,
    *,
    precision: float | Floats | None = None,
    wider: Floats | None = None,
    settings: SamplingSettings = DEFAULT,
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
    settings: SamplingSettings = DEFAULT,
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
            answers,
            max(round(count), 1),
            float(prior.min()),
            rank + 1,
            final=True,
            min_rank=rank + 1,
        )
        wider = fits[rank + 1][0]
    if wider.shape != (len(z), rank + 1):
        raise InvalidParameter(
            f"wider has shape {wider.shape}, but must have {(len(z), rank + 1)}: one dimension "
            "more than the embedding."
        )
    model = likelihood(
        *(answers, count, prior, settings.lapse, settings.slope_deviation, settings.tail),
        mixing(clusters(wider), len(z), rank),
    )
    squares = path_points(ratios, settings.spacing)
    ends = np.searchsorted(squares, ratios).tolist()
    scales = np.sqrt(squares * float((z**2).sum(axis=1).mean()))
    # Two directions, and both perhaps twice.
    done, points = 0, 4 * settings.chains * len(squares)

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, points)

    path = _Path(model, z, wider, scales, shares, ends, tick)
    tests = _along(path, settings, decisive, (seed,))
    if _uncertain(tests, decisive):
        path = path._replace(shares=shares[: len(tests)], ends=ends[: len(tests)])
        tests = _along(path, settings.finer(), decisive, (seed, FINER))
    if progress is not None and done < points:
        # Nothing is left to do: what does not matter for the decision is not computed.
        progress(points, points)
    return tests


def _uncertain(tests: Sequence[FurtherDimension], decisive: Decisive | None) -> bool:
    """Whether the sampling error leaves open if a share is found, or ruled out.

    With `decisive`, only the share of interest has to be ruled out, and only dimensions of interest
    found: smaller and larger shares tell the sensitivity, which the error does not turn.
    """
    needed = log(BAYES_FACTOR if decisive is None else decisive.bayes_factor)

    def undecided(test: FurtherDimension) -> bool:
        return min(test.against) < needed <= max(test.against)

    def hardly_found(test: FurtherDimension) -> bool:
        error = test.standard_error
        return error > SMALL_ERROR and abs(test.log_bayes_factor - needed) < MAX_ERRORS * error

    return any(
        (undecided(test) and (decisive is None or test.share == decisive.share))
        or (hardly_found(test) and (decisive is None or decisive.of_interest(test)))
        for test in tests
    )


class _Path(NamedTuple):
    """Where chains start, the points that they follow, and which of them are those of shares."""

    model: Likelihood
    upper: Floats
    lower: Floats
    scales: Floats
    shares: Sequence[float]
    ends: Sequence[int]
    tick: Callable[[], None]


def _along(
    path: _Path, settings: SamplingSettings, decisive: Decisive | None, stream: tuple[int, ...]
) -> tuple[FurtherDimension, ...]:
    """Sample along the path, upwards and, where that may decide something, downwards."""
    (first, *rest), scales = stream, path.scales

    def random(*part: int) -> np.random.Generator:
        return np.random.default_rng([first, *part, *rest])

    log_slope = mean_log_slope(path.model, path.upper, settings, random(2))
    model = path.model._replace(slope_deviation=0.0)

    def chain(downward: bool, number: int) -> Chain:
        rng = random(int(downward), number)
        if downward:
            start = np.column_stack([path.lower[:, :-1], path.lower[:, -1] / scales[-1]])
        else:
            further = FIRST_DEVIATION * rng.normal(size=len(path.upper))
            start = np.column_stack([path.upper, further])
        return Chain(model, start, log_slope, scales, downward, rng, settings, path.tick)

    numbers = range(settings.chains)
    upward = [chain(False, number) for number in numbers]
    tests: list[FurtherDimension] = []
    ratios = path.scales[1:] ** 2 / float((path.upper**2).sum(axis=1).mean())
    points = np.concatenate([[0.0], ratios / (1.0 + ratios)])

    def summaries(chains: Sequence[Chain], count: int, directions: int) -> list[FurtherDimension]:
        """What is known where the chains have followed the path to the share of this number."""
        known = list(zip(path.shares, path.ends, strict=True))[:count]
        reached = points[: known[-1][1] + 1]
        return [_summary(share, chains, end, directions, reached) for share, end in known]

    for number, end in enumerate(path.ends, 1):
        for upward_chain in upward:
            upward_chain.follow(end)
        tests = summaries(upward, number, 1)
        if decisive is not None and decisive.known(tests):
            break
    if decisive is None or decisive.may_conclude(tests):
        scales = scales[: path.ends[len(tests) - 1] + 1]
        both = [*upward, *(chain(True, number) for number in numbers)]
        for each_chain in both:
            each_chain.follow(len(scales) - 1)
        tests = summaries(both, len(tests), 2)
    return tuple(tests)


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


def _summary(
    share: float, chains: Sequence[Chain], end: int, directions: int, reached: Floats
) -> FurtherDimension:
    """Combine the chains: those of the first half went upwards, the others, if any, downwards.

    `reached` are the shares at the points of the path that all chains have followed.
    """
    values, errors = zip(*(total(chain.ratios(end)) for chain in chains), strict=True)
    half = len(chains) // directions
    joint, difference = sqrt(sum(error**2 for error in errors)) / half, 0.0
    if directions == 2:
        difference = abs(float(np.mean(values[:half]) - np.mean(values[half:])))
    return FurtherDimension(
        share=float(share),
        log_bayes_factor=float(np.mean(values)),
        standard_error=max(joint / directions, 0.5 * difference),
        chains=tuple(values),
        agree=difference <= max(MAX_DEVIATIONS * joint, MIN_DISAGREEMENT),
        integral=float(np.mean([chain.integral(end) for chain in chains])),
        against=tuple(_against(GUARD * share, chain, reached) for chain in chains),
        there=tuple(-_against(PART * share, chain, reached) for chain in chains),
    )


def _against(share: float, chain: Chain, reached: Floats) -> float:
    last = len(reached) - 1
    steps = np.cumsum(chain.ratios(last)[:, 0])
    return log_bayes_factor_against(
        *(share, reached, np.concatenate([[0.0], steps]), chain.weakest(last), chain.effective)
    )
