"""What a model predicts about a trial: the option that is most probably picked, with its share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.types import Floats

# Steps of the bisection for the probability of being among several picks.
STEPS = 60


def most_probable(
    embedding: Floats, temperature: float, questions: NDArray[np.int64], kind: Kind
) -> tuple[NDArray[np.int64], Floats]:
    """Position of the option that is most probably picked in each question, and its probability.

    Parameters
    ----------
    embedding : array of shape (n_objects, n_dimensions)
        Coordinates of the items.
    temperature : float
        Scale of the distances in the likelihood.
    questions : array of shape (n_questions, 1 + options)
        Rows (anchor, options …); the anchor of the odd one out is not used.
    kind : Kind
        What is asked.

    Returns
    -------
    positions : array of int
        Position of the option, from 0.
    probabilities : array of float
        Probability that it is picked, alone or with others.
    """
    options = embedding[questions[:, 1:]]
    if kind == TRIPLET:
        gaps = np.linalg.norm(embedding[questions[:, :1]] - options, axis=2)
        share = 0.5 * np.tanh(0.5 * np.abs(gaps[:, 1] - gaps[:, 0]) / temperature)
        return (gaps[:, 1] <= gaps[:, 0]).astype(np.int64), 0.5 + share
    if kind.has_anchor:
        distances = np.linalg.norm(embedding[questions[:, :1]] - options, axis=2)
    else:
        # An item is the odd one if the other two are the nearest pair.
        distances = np.linalg.norm(options[:, [1, 2, 0]] - options[:, [2, 0, 1]], axis=2)
    weights = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / temperature)
    positions = weights.argmax(axis=1)
    return positions, _among_picks(weights, kind.pick)[np.arange(len(positions)), positions]


def _among_picks(weights: Floats, pick: int) -> Floats:
    """Probability of each option to be among the picks.

    Exact for one pick. Options are picked in the order of exponential waiting times whose rates are
    the weights; with more picks, all that wait less than the time t count as picked, where t makes
    their expected number that of the picks (Rosén, 1972).
    """
    if pick == 1:
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))
    low = np.full((len(weights), 1), -40.0)
    high = np.full((len(weights), 1), 40.0)
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        few = (1.0 - np.exp(-weights * np.exp(middle))).sum(axis=1, keepdims=True) < pick
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    return np.asarray(1.0 - np.exp(-weights * np.exp(0.5 * (low + high))))
