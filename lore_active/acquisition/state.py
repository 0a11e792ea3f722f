"""What selectors get and return, and how uncertain the coordinates are that they work with."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from lore_active.data.comparisons import as_triplets
from lore_active.data.triplets import Triplets
from lore_active.embedding import information
from lore_active.embedding.covariance import factored, item_blocks
from lore_active.errors import InvalidParameter
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.questions.pool import Questions, QuestionSource
from lore_active.reproducibility import one_thread
from lore_active.trials.information import Unanswered
from lore_active.trials.stages import Stages, as_stages
from lore_active.types import Floats

# With more coordinates than this, inverting their information takes too long, and 200 targets are
# too few for so many items: one covariance for each item is used instead, with many targets.
MAX_EXACT = 1000
# Random questions whose margins' variance is to be reduced.
TARGETS = 200


@dataclass(frozen=True, eq=False)
class SelectorState:
    """Input of a selector: the acquisition model, and which questions are answered or pending.

    Attributes
    ----------
    embedding : array of shape (n_objects, n_dimensions)
        Coordinates of the items in the acquisition model.
    temperature : float
        Scale of the margins in the logistic likelihood.
    answered : array of shape (n_answers, 3)
        Comparisons (anchor, nearer, farther).
    pending : array of shape (n_pending, 3)
        Rows (anchor, left, right) that participants are working on; of other kinds than triplets,
        (anchor, options …), with −1 for no anchor.
    taken : set of int
        Keys of the questions that must not be selected.
    source : QuestionSource
        Where new questions come from.
    kind : Kind
        What is asked.
    trials : array of shape (n_answers,)
        The trial of each comparison.
    """

    embedding: Floats
    temperature: float
    answered: Questions
    pending: Questions
    taken: Set[int]
    source: QuestionSource
    kind: Kind = TRIPLET
    trials: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def n_objects(self) -> int:
        """Number of items."""
        return len(self.embedding)

    @property
    def triplets(self) -> Triplets:
        """The answers with their trials."""
        rows = as_triplets(self.answered, n_objects=self.n_objects)
        return replace(rows, trial=self.trials)


@dataclass(frozen=True, eq=False)
class Selection:
    """Output of a selector: rows (anchor, option, option) in order, and their scores."""

    questions: Questions
    scores: Floats


class Selector(Protocol):
    """Protocol of an acquisition function over questions.

    Implementations pick questions for a model of at least one dimension, and draw all randomness
    from the generator that is passed in.
    """

    @property
    def name(self) -> str:
        """Name in configuration files."""
        ...

    def pick(self, state: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions.

        Parameters
        ----------
        known : SelectorState
            The acquisition model, and the questions that are answered, pending or taken.
        count : int
            How many questions to select.
        rng : numpy.random.Generator
            Source of all randomness.

        Returns
        -------
        Selection
            Up to `count` different questions, none of them taken.
        """
        ...


def target_weights(margins: Floats, variances: Floats) -> Floats:
    """Weights of target questions: φ(margin / deviation) / deviation.

    Proportional to the rate at which the expected size of an error in the margin's sign decreases
    with its variance.
    """
    variances = np.maximum(variances, 1e-12)
    return np.asarray(np.exp(-0.5 * margins**2 / variances) / np.sqrt(variances))


def _prior(z: Floats) -> Floats:
    """Prior precision of each axis: its inverse mean square.

    Without a prior, the variance of translations and rotations, which no answer can identify,
    would be infinite.
    """
    return np.asarray(1.0 / np.maximum((z**2).mean(axis=0), 1e-12))


def covariance_blocks(state: SelectorState) -> Floats:
    """Covariance of each item's coordinates, where that of all coordinates is too large.

    Comparisons count as triplets, even if several are of one trial.
    """
    z = np.ascontiguousarray(state.embedding)
    pending = state.pending if state.kind == TRIPLET else state.answered[:0]
    return item_blocks(z, (state.answered, pending), state.temperature, _prior(z))


def _asked(state: SelectorState) -> list[Questions | Stages | Unanswered]:
    """What has been answered or is pending, of which the information is known or expected."""
    answered: Questions | Stages = state.answered
    if len(np.unique(state.trials)) < len(state.trials) and (answers := state.triplets).compound:
        answered = as_stages(answers)
    if state.kind == TRIPLET:
        return [answered, state.pending]
    return [answered, Unanswered(state.kind, state.pending)]


def coordinate_covariance(state: SelectorState) -> Floats:
    """Covariance of all coordinates: inverse of the expected information plus a weak prior."""
    z = np.ascontiguousarray(state.embedding)
    matrix = factored(z, _asked(state), state.temperature, _prior(z))
    with one_thread():
        _, failed = lapack.dpotri(matrix.T, lower=0, overwrite_c=1)
    if failed:
        raise InvalidParameter(
            "The information matrix of the embedding is singular: its covariance is undefined."
        )
    information.mirror(matrix)
    return matrix
