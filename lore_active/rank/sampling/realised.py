"""Posterior odds that a further dimension carries at least some share of the variance.

A Bayes factor for one variance of the further coordinates compares two priors: it can favour 10 %
over none where the answers show that 7 % is there. What matters is the share that the items of the
study have. Each draw of a chain has one; draws of all points of the path, weighted by the marginal
likelihoods of the points, are a sample of the posterior in which the share is unknown. Like every
Bayes factor, that of a smaller share over a larger one is the posterior odds divided by the prior
odds.

Prior: there is no further dimension, or one whose share is uniform on a logarithmic scale.
"""

from __future__ import annotations

from math import log

import numpy as np
from scipy.special import chdtrc, ndtr

from lore_active.rank.significance import LEAST, MOST, NONE
from lore_active.types import Floats

# Points of the range at which the prior is evaluated.
GRID = 200
# Standard deviation of the logarithm of the shares below which draws count as equal.
MIN_DEVIATION = 1e-6


def prior_weights(shares: Floats) -> tuple[Floats, float]:
    """Prior probability of each point of a path, and of shares beyond its last point.

    Parameters
    ----------
    shares : array
        Shares at the points, from 0 upwards.
    """
    logs = np.log(np.maximum(shares, 1e-12))
    middles = 0.5 * (logs[1:] + logs[:-1])
    edges = np.clip(np.concatenate([[-np.inf], middles, [logs[-1]]]), log(LEAST), log(MOST))
    weights = np.diff(edges)
    # What is below the first of these points counts there.
    weights[0] = 0.0
    scale = (1.0 - NONE) / (log(MOST) - log(LEAST))
    weights *= scale
    weights[0] = NONE
    return weights, max(scale * (log(MOST) - edges[-1]), 0.0)


def prior_probability(share: float, effective: float) -> float:
    """Prior probability that a further dimension carries at least a share."""
    logs = log(LEAST) + (np.arange(GRID) + 0.5) / GRID * (log(MOST) - log(LEAST))
    ratios = np.exp(logs) / (1.0 - np.exp(logs))
    beyond = chdtrc(max(effective - 1.0, 1.0), effective * share / (1.0 - share) / ratios)
    return float((1.0 - NONE) * beyond.mean())


def beyond(weakest: Floats, share: float) -> Floats:
    """Posterior probability, at each point, that the weakest axis carries at least a share.

    The share of such draws, or the tail of a normal distribution of their logarithms if that is
    more: a hundred draws cannot show that something has a probability of a thousandth.
    """
    logs = np.log(np.maximum(weakest, 1e-12))
    distance = (logs.mean(axis=1) - log(share)) / np.maximum(logs.std(axis=1), MIN_DEVIATION)
    return np.asarray(np.maximum((weakest >= share).mean(axis=1), ndtr(distance)))


def log_bayes_factor_against(
    share: float, shares: Floats, log_bayes_factors: Floats, weakest: Floats, effective: float
) -> float:
    """Log Bayes factor against a further dimension that carries at least a share.

    Parameters
    ----------
    share : float
        The share.
    shares, log_bayes_factors : array of shape (n_points,)
        Points of the path, from 0 upwards, and their log Bayes factors over the first.
    weakest : array of shape (n_points, n_draws)
        Share of the weakest axis in each draw.
    effective : float
        Number of independent coordinates on an axis, by the prior.

    Returns
    -------
    float
        Beyond the last point, the answers are taken to be as probable as at that point, and the
        further dimension to carry the share.
    """
    weights, tail = prior_weights(shares)
    likelihoods = np.exp(log_bayes_factors - log_bayes_factors.max())
    posterior, rest = weights * likelihoods, tail * likelihoods[-1]
    larger = beyond(weakest, share)
    # Without a further dimension there is none to carry anything.
    larger[0] = 0.0
    more = float(posterior @ larger) + rest
    less = float(posterior @ (1.0 - larger))
    prior = prior_probability(share, effective)
    return log(max(less, 1e-300)) - log(max(more, 1e-300)) + log(prior) - log(1.0 - prior)
