"""Which question next: small selectors behind one protocol."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from lore_active.acquisition.candidates import Candidates, Gradients
from lore_active.embedding import information
from lore_active.embedding.covariance import MAX_COORDINATES, factored
from lore_active.errors import InvalidParameter
from lore_active.questions.pool import Questions, QuestionSource, draw
from lore_active.reproducibility import one_thread
from lore_active.types import Floats

# Candidates scored for each batch, and random questions whose margins should become certain.
POOL = 4000
TARGETS = 200
# Scores only fall while questions are picked: after the first pass the best few are enough.
SHORTLIST = 200
SHORTLIST_EACH = 6


@dataclass(frozen=True, eq=False)
class SelectorState:
    """What a selector may know: the model, what has been answered, and what is out.

    `answered` holds rows (anchor, nearer, farther), `pending` rows (anchor, left, right) still
    with participants, `taken` the keys of all questions that must not come again; new ones come
    from `source`.
    """

    embedding: Floats
    temperature: float
    answered: Questions
    pending: Questions
    taken: Set[int]
    source: QuestionSource

    @property
    def n_objects(self) -> int:
        """Number of items."""
        return len(self.embedding)


@dataclass(frozen=True, eq=False)
class Selection:
    """Questions in the order they should be asked, each with its score."""

    questions: Questions
    scores: Floats


class Selector(Protocol):
    """Picks new questions for a model of at least one dimension."""

    @property
    def name(self) -> str:
        """What it is called in settings."""
        ...

    def pick(self, known: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Up to `count` different questions, none of them taken."""
        ...


class RandomSelector:
    """Uniformly random questions."""

    name = "random"

    def pick(self, known: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Up to `count` different questions, none of them taken."""
        rows = known.source.new(count, known.taken, rng)
        return Selection(rows, np.zeros(len(rows)))


class UncertaintySelector:
    """Questions whose predicted margin is smallest, anchors in turn."""

    name = "uncertainty"

    def pick(self, known: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Up to `count` different questions, none of them taken."""
        rows = known.source.new(POOL, known.taken, rng)
        near, far = (
            np.linalg.norm(known.embedding[rows[:, 0]] - known.embedding[rows[:, k]], axis=1)
            for k in (1, 2)
        )
        scores = -np.abs(far - near)
        turn = AnchorBalance(known, count)
        picked = [turn.best(rows, scores) for _ in range(min(count, len(rows)))]
        return Selection(rows[picked], scores[picked])


class FisherSelector:
    """Questions whose answers make the answers to all other questions most certain.

    The embedding's uncertainty is its inverse Fisher information. A question is scored by how
    much its answer would reduce the variance of random questions' margins, each weighted by how
    easily it tips over. After each pick the uncertainty is reduced as if it had been answered, and
    questions still out count the same way, so that many people asked at once get different ones.
    """

    name = "fisher"

    def pick(self, known: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Up to `count` different questions, none of them taken."""
        if known.embedding.size > MAX_COORDINATES:
            return UncertaintySelector().pick(known, count, rng)
        z = np.ascontiguousarray(known.embedding)
        covariance = coordinate_covariance(known)
        rows = known.source.new(POOL, known.taken, rng)
        targets = self._targets(z, covariance, rng)
        candidates = Candidates(z, covariance, targets, rows, known.temperature)
        best_first = np.argsort(-candidates.scores(), kind="stable")
        candidates.narrow(best_first[: SHORTLIST + SHORTLIST_EACH * count], learn=count)
        rows = candidates.rows
        turn = AnchorBalance(known, count)
        picked, scores = [], []
        for _ in range(min(count, len(rows))):
            score = candidates.scores()
            best = turn.best(rows, score)
            picked.append(best)
            scores.append(score[best])
            candidates.learn(best)
        return Selection(rows[picked], np.array(scores))

    @staticmethod
    def _targets(z: Floats, covariance: Floats, rng: np.random.Generator) -> Floats:
        """Random questions' gradients through the covariance, weighted by how open they are.

        The chance that a margin's sign is wrong falls with its variance at the rate
        φ(margin / deviation) / deviation.
        """
        asked = Gradients(z, draw(len(z), TARGETS, rng))
        variances = np.maximum(asked.variances(covariance), 1e-12)
        weight = np.exp(-0.5 * asked.margins**2 / variances) / np.sqrt(variances)
        images = asked.through(covariance) * np.sqrt(weight / TARGETS)[:, np.newaxis]
        return np.ascontiguousarray(images.T)


def coordinate_covariance(known: SelectorState) -> Floats:
    """Covariance of all coordinates: inverse of the answers' information and a weak prior.

    The prior holds each coordinate to the spread of its axis; without it the space's position and
    turn, which no answer can tell, would have no bound.
    """
    z = np.ascontiguousarray(known.embedding)
    prior = 1.0 / np.maximum((z**2).mean(axis=0), 1e-12)
    matrix = factored(z, (known.answered, known.pending), known.temperature, prior)
    with one_thread():
        _, failed = lapack.dpotri(matrix.T, lower=0, overwrite_c=1)
    if failed:
        raise InvalidParameter("The embedding is too degenerate to tell what is uncertain in it.")
    information.mirror(matrix)
    return matrix


class AnchorBalance:
    """Lets anchors take turns, so that no item is asked about much more than the others."""

    def __init__(self, known: SelectorState, count: int) -> None:
        self._used = np.bincount(known.pending[:, 0], minlength=known.n_objects)
        self._slack = count // known.n_objects
        self._free: np.ndarray | None = None

    def best(self, rows: Questions, scores: Floats) -> int:
        """The best row whose anchor is not ahead of its turn; it is then taken."""
        if self._free is None:
            self._free = np.ones(len(rows), dtype=bool)
        used = self._used[rows[:, 0]]
        lowest = used[self._free].min()
        allowed = self._free & (used <= lowest + self._slack)
        best = int(np.argmax(np.where(allowed, scores, -np.inf)))
        self._free[best] = False
        self._used[rows[best, 0]] += 1
        return best
