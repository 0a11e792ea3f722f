"""Selection of trials that carry more than one comparison.

Trials are composed, not drawn: for each of the anchors that were used least, options are added one
after another, each time the one with which the trial is most informative; see `composition`. Of
these trials the best are selected one by one, each as if those before had been answered. The odd
one out, which has no anchor, is selected from a random pool.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition.candidates import Gradients
from lore_active.acquisition.state import (
    MAX_EXACT,
    TARGETS,
    Selection,
    SelectorState,
    coordinate_covariance,
    covariance_blocks,
    target_weights,
)
from lore_active.questions.pool import Questions, draw
from lore_active.questions.pool_of_kinds import grid_keys
from lore_active.reproducibility import one_thread
from lore_active.trials import composition
from lore_active.trials.information import pair_gradients, question_pairs, trial_information
from lore_active.types import Floats, Indices

# Trials that are composed for each one that is selected, and random items that may become options.
COMPOSED, CANDIDATES = 2, 24
# Anchors that are tried for each trial where the trials before it change nothing.
ANCHORS = 3
# Random odd-one-out questions, and how many of the best remain after the first pass.
POOL, SHORTLIST = 2000, 200
NO_TARGETS, NO_BLOCKS = np.empty((0, 0)), np.empty((0, 0, 0))


class Uncertainty:
    """Covariance of distances, and how answers reduce it and the variance of target margins.

    With more than 1,000 coordinates, the covariance consists of one block for each item and there
    are no targets: trials are then scored by their expected information.
    """

    def __init__(self, state: SelectorState, rng: np.random.Generator) -> None:
        self.z = np.ascontiguousarray(state.embedding)
        self.temperature = state.temperature
        self.images: Floats | None = None
        if self.z.size > MAX_EXACT:
            self.covariance = covariance_blocks(state)
            return
        self.covariance = coordinate_covariance(state)
        asked = Gradients(self.z, draw(len(self.z), TARGETS, rng))
        weights = target_weights(asked.margins, asked.variances(self.covariance))
        images = asked.through(self.covariance) * np.sqrt(weights / TARGETS)[:, np.newaxis]
        self.images = np.ascontiguousarray(images.T)

    def of(self, first: Indices, second: Indices) -> tuple[Floats, Floats, Floats, Floats]:
        """Distances in units of the temperature, unit vectors, V and C of some pairs."""
        distance, unit = np.empty(len(first)), np.empty((len(first), self.z.shape[1]))
        pair_gradients(self.z, first, second, distance, unit)
        covariance = np.empty((len(first), len(first)))
        if self.images is None:
            composition.pair_block_covariances(first, second, unit, self.covariance, covariance)
            return distance / self.temperature, unit, covariance, NO_TARGETS
        composition.pair_covariances(first, second, unit, self.covariance, covariance)
        images = np.empty((len(first), self.images.shape[1]))
        composition.pair_images(first, second, unit, self.images, images)
        return distance / self.temperature, unit, covariance, images @ images.T

    def learn(self, row: NDArray[np.int64], state: SelectorState) -> None:
        """Update the covariance as if a question had been answered; blocks remain as they are."""
        if self.images is None:
            return
        first, second = question_pairs(row, state.kind)
        distance, unit, covariance, targets = self.of(first, second)
        size = len(first)
        j, system, solved = (np.empty((size, size)) for _ in range(3))
        trial_information(distance, state.kind.pick, state.kind.ordered, j)
        scale = self.temperature**2
        composition.gain(j / scale, covariance, targets, system, solved)
        through, seen = np.empty((size, self.z.size)), np.empty((size, self.images.shape[1]))
        composition.pair_images(first, second, unit, self.covariance, through)
        composition.pair_images(first, second, unit, self.images, seen)
        factor = through.T @ solved
        self.images -= factor @ seen
        self.covariance -= factor @ through


def informative(state: SelectorState, count: int, rng: np.random.Generator) -> Selection:
    """The trials that most reduce the expected variance of random triplets' margins."""
    with one_thread():
        return _informative(state, count, rng)


def _informative(state: SelectorState, count: int, rng: np.random.Generator) -> Selection:
    uncertainty = Uncertainty(state, rng)
    if not state.kind.has_anchor:
        return _odd_ones(state, count, rng, uncertainty)
    kind, items = state.kind, np.arange(len(uncertainty.z))

    form = (kind.options, kind.pick, kind.ordered)

    def composed(anchor: int) -> tuple[Questions, float]:
        """Composed of random candidates, without exchanging any yet."""
        others = rng.permutation(items[items != anchor])[: max(CANDIDATES, kind.options)]
        options = np.empty(kind.options, dtype=np.int32)
        score = composition.compose(*form, *_beside(anchor, others, uncertainty), options)
        return np.array([[anchor, *others[options]]], dtype=np.int64), score

    def improved(row: NDArray[np.int64]) -> tuple[Questions, float]:
        """The best of a few, with options exchanged for other candidates."""
        fresh = rng.permutation(np.setdiff1d(items, row))[:CANDIDATES]
        others, options = np.append(row[1:], fresh), np.arange(kind.options, dtype=np.int32)
        score = composition.exchange(*form, *_beside(int(row[0]), others, uncertainty), options)
        return np.array([[row[0], *others[options]]], dtype=np.int64), score

    used = np.bincount(state.pending[:, 0], minlength=state.n_objects)
    anchors = np.resize(np.lexsort((rng.random(state.n_objects), used)), COMPOSED * count)
    pool = np.concatenate([composed(int(anchor))[0] for anchor in anchors])
    taken = set(state.taken)
    rows: list[NDArray[np.int64]] = []
    scores: list[float] = []
    while len(rows) < count:
        pool = pool[[int(key) not in taken for key in grid_keys(pool)]]
        if not len(pool):
            break
        gains = _gains(pool, state, uncertainty)
        best = int(np.argmax(gains))
        row, score = pool[best : best + 1], float(gains[best])
        better, value = improved(row[0])
        if int(grid_keys(better)[0]) not in taken and value > score:
            row, score = better, value
        pool = np.delete(pool, best, axis=0)
        taken.add(int(grid_keys(row)[0]))
        rows.append(row[0])
        scores.append(score)
        uncertainty.learn(row[0], state)
    return filled(state, count, rng, rows, scores)


def _beside(
    anchor: int, others: NDArray[np.int64], uncertainty: Uncertainty
) -> tuple[Floats, Floats, Floats]:
    """Distances of items from an anchor, V and C, in units of the temperature."""
    second = others.astype(np.int32)
    first = np.full(len(second), anchor, dtype=np.int32)
    distance, _, covariance, targets = uncertainty.of(first, second)
    scale = uncertainty.temperature**2
    return distance, covariance / scale, targets / scale


def turns(
    state: SelectorState,
    count: int,
    rng: np.random.Generator,
    composed: Callable[[int], tuple[Questions, float]],
) -> Selection:
    """The best trials of a few of the anchors that were used least, one after another.

    `composed` composes a trial for an anchor. Where every trial is taken already, random ones fill
    up.
    """
    pending = state.pending[:, 0] if state.kind.has_anchor else state.pending[:, 1:].ravel()
    used = np.bincount(pending, minlength=state.n_objects)
    taken = set(state.taken)
    rows: list[NDArray[np.int64]] = []
    scores: list[float] = []
    for _ in range(count):
        anchors = np.lexsort((rng.random(state.n_objects), used))[:ANCHORS]
        tried = [composed(int(anchor)) for anchor in anchors]
        free = [trial for trial in tried if int(grid_keys(trial[0])[0]) not in taken]
        if not free:
            used[anchors] += 1
            continue
        row, score = max(free, key=lambda scored: scored[1])
        used[row[0, 0] if state.kind.has_anchor else row[0, 1:]] += 1
        taken.add(int(grid_keys(row)[0]))
        rows.append(row[0])
        scores.append(float(score))
    return filled(state, count, rng, rows, scores)


def filled(
    state: SelectorState,
    count: int,
    rng: np.random.Generator,
    rows: list[NDArray[np.int64]],
    scores: list[float],
) -> Selection:
    """A selection, filled up with random questions."""
    questions = np.array(rows, dtype=np.int64).reshape(len(rows), 1 + state.kind.options)
    missing = count - len(rows)
    if missing:
        taken = state.taken | {int(key) for key in grid_keys(questions)}
        questions = np.concatenate([questions, state.source.new(missing, taken, rng)])
    more = np.zeros(len(questions) - len(scores))
    return Selection(questions, np.concatenate([scores, more]))


def _odd_ones(
    state: SelectorState, count: int, rng: np.random.Generator, uncertainty: Uncertainty
) -> Selection:
    rows = state.source.new(POOL, state.taken, rng)
    scores = _gains(rows, state, uncertainty)
    rows = rows[np.argsort(-scores, kind="stable")[: max(SHORTLIST, 2 * count)]]
    used = np.bincount(state.pending[:, 1:].ravel(), minlength=state.n_objects)
    picked: list[NDArray[np.int64]] = []
    values: list[float] = []
    free = np.ones(len(rows), dtype=bool)
    for _ in range(min(count, len(rows))):
        scores = _gains(rows, state, uncertainty)
        # Items are balanced as anchors are in other kinds.
        asked = used[rows[:, 1:]].max(axis=1)
        allowed = free & (asked <= asked[free].min() + 3 * count // state.n_objects)
        best = int(np.argmax(np.where(allowed, scores, -np.inf)))
        free[best] = False
        used[rows[best, 1:]] += 1
        picked.append(rows[best])
        values.append(float(scores[best]))
        uncertainty.learn(rows[best], state)
    return filled(state, len(picked), rng, picked, values)


def _gains(rows: Questions, state: SelectorState, uncertainty: Uncertainty) -> Floats:
    out, options = np.empty(len(rows)), rows[:, 1:].astype(np.int32)
    first, second = np.roll(options, -1, axis=1), np.roll(options, 1, axis=1)
    if state.kind.has_anchor:
        first, second = np.repeat(rows[:, :1], options.shape[1], axis=1).astype(np.int32), options
    blocked = uncertainty.images is None
    composition.pool_gains(
        *(uncertainty.z, np.ascontiguousarray(first), np.ascontiguousarray(second)),
        *(state.kind.pick, state.kind.ordered, uncertainty.temperature),
        NO_TARGETS if blocked else uncertainty.covariance,
        uncertainty.covariance if blocked else NO_BLOCKS,
        NO_TARGETS if uncertainty.images is None else uncertainty.images,
        out,
    )
    return out


def uncertain(state: SelectorState, count: int, rng: np.random.Generator) -> Selection:
    """Random trials whose first choice the model is least certain about: of the largest entropy."""
    rows = state.source.new(POOL, state.taken, rng)
    z, options = state.embedding, rows[:, 1:]
    other = rows[:, :1] if state.kind.has_anchor else np.roll(options, -1, axis=1)
    if not state.kind.has_anchor:
        options = np.roll(options, 1, axis=1)
    distance = np.linalg.norm(z[options] - z[other], axis=2) / state.temperature
    p = np.exp(distance.min(axis=1, keepdims=True) - distance)
    p /= p.sum(axis=1, keepdims=True)
    scores = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
    best = np.argsort(-scores, kind="stable")[:count]
    return Selection(rows[best], scores[best])
