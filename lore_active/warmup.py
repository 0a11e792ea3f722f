"""Compilation of every kernel in advance, so that no request waits for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lore_active.acquisition.block_candidates import BlockCandidates
from lore_active.acquisition.candidates import Candidates, Gradients
from lore_active.acquisition.local import LocalSelector
from lore_active.acquisition.selectors import FisherSelector
from lore_active.acquisition.state import SelectorState
from lore_active.data.comparisons import as_triplets
from lore_active.embedding import descent, information, kernels
from lore_active.embedding.covariance import block_variances, item_blocks
from lore_active.embedding.map import NO_STARTS
from lore_active.embedding.quasi_newton import minimise
from lore_active.questions.kinds import kind
from lore_active.questions.pool_of_kinds import AllGrids
from lore_active.rank.further_dimension import further_dimensions
from lore_active.rank.sampling.bridge import BLOCKS
from lore_active.rank.sampling.settings import SamplingSettings
from lore_active.rank.temperature import best_temperature, log_losses
from lore_active.row_table import NOTHING


def warm() -> None:
    """Compile the kernels that a learner uses, or load them from the cache."""
    _warm_fits()
    _warm_selection()
    _warm_trials()
    _warm_tests()


def _warm_fits() -> None:
    first = np.array([0, 0, 1], dtype=np.int32)
    second = np.array([1, 2, 2], dtype=np.int32)
    near = np.array([0, 1, 0], dtype=np.int32)
    far = np.array([1, 2, 2], dtype=np.int32)
    weight = np.full(3, 1.0 / 3.0)
    z = np.array([[0.0, 0.0], [1.0, 0.5], [0.0, 2.0]])
    distance = np.empty(3)
    pair_gradient = np.empty(3)
    kernels.distances(z, first, second, distance)
    kernels.answers(distance, near, far, weight, 1.0, pair_gradient)
    kernels.laplacian_times(z, first, second, distance, pair_gradient, np.empty_like(z))
    kernels.lowest(first, second, distance, pair_gradient, 3, 1)
    descent.descend(z, first, second, near, far, weight, 1.0, 0.01, 0.5, 1e-3, 2, 0.1, np.inf)
    minimise(z, first, second, near, far, weight, NO_STARTS, 0.1, 1e-3, 2)
    margins = np.array([1.0, -1.0, 2.0])
    log_losses(margins, best_temperature(margins))


def _warm_selection() -> None:
    z = np.array([[0.0], [1.0], [3.0]])
    asked = np.array([[0, 1, 2]])
    matrix = np.eye(3)
    information.add_information(z, asked, 1.0, matrix)
    information.mirror(matrix)
    candidates = Candidates(z, matrix, np.ones((3, 1)), asked, 1.0)
    candidates.narrow(np.array([0]), learn=1)
    candidates.learn(0)
    blocks = item_blocks(z, (asked,), 1.0, np.ones(1))
    block_variances(Gradients(z, asked).slopes, asked, blocks, np.empty(1))
    few = BlockCandidates(z, blocks, asked, np.ones(1), asked, 1.0)
    few.scores()
    few.narrow(np.array([0]), learn=1)
    few.learn(0)


def _warm_trials() -> None:
    """Selection and information of trials that carry several comparisons."""
    z = np.random.default_rng(0).normal(size=(6, 1))
    rows = np.array([[0, 1, 2], [0, 1, 3], [2, 3, 4]])
    rng = np.random.default_rng(0)
    for label in ("rank-2-of-3", "choose-2-of-3", "odd-one-out"):
        asked = kind(label)
        source, trials = AllGrids(6, asked), np.array([0, 0, 1])
        pending = np.array([[0, 1, 2, 3] if asked.has_anchor else [NOTHING, 1, 2, 3]])
        known = SelectorState(z, 1.0, rows, pending, set(), source, asked, trials)
        for selector in (FisherSelector(), LocalSelector()):
            selector.pick(known, 1, rng)


def _warm_tests() -> None:
    """The test for a further dimension, for triplets and for trials of several comparisons."""
    z = np.random.default_rng(0).normal(size=(6, 2))
    few = SamplingSettings(draws=2 * BLOCKS, warmup=1, leapfrogs=1, slope_deviation=1.0)
    single = [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]
    several = as_triplets([[0, 1, 2], [0, 1, 3], [2, 3, 4], [2, 3, 5]], n_objects=6)
    several = replace(several, trial=np.array([0, 0, 1, 1]))
    for answers in (as_triplets(single, n_objects=6), several):
        further_dimensions(answers, z[:, :1], (0.1,), wider=z, settings=few)
