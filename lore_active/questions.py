"""Questions as rows (anchor, option, option): keys, random draws, even coverage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Questions = NDArray[np.int64]


def keys(questions: Questions, n_objects: int) -> NDArray[np.int64]:
    """A number for each question, the same whichever option stands left."""
    low = np.minimum(questions[:, 1], questions[:, 2])
    high = np.maximum(questions[:, 1], questions[:, 2])
    return np.asarray((questions[:, 0] * n_objects + low) * n_objects + high, dtype=np.int64)


def count_possible(n_objects: int) -> int:
    """How many different questions there are."""
    return n_objects * (n_objects - 1) * (n_objects - 2) // 2


def draw(n_objects: int, count: int, rng: np.random.Generator) -> Questions:
    """Uniformly random questions; the same one may come twice."""
    anchor = rng.integers(0, n_objects, count)
    left = (anchor + rng.integers(1, n_objects, count)) % n_objects
    # Draw among the items that are left over, then step past the two taken.
    right = rng.integers(0, n_objects - 2, count)
    right += right >= np.minimum(anchor, left)
    right += right >= np.maximum(anchor, left)
    return np.column_stack([anchor, left, right]).astype(np.int64)


def draw_new(n_objects: int, count: int, taken: set[int], rng: np.random.Generator) -> Questions:
    """Up to `count` different random questions whose keys are not taken."""
    want = min(count, count_possible(n_objects) - len(taken))
    if 4 * (len(taken) + count) > count_possible(n_objects):
        return _draw_from_rest(n_objects, want, taken, rng)
    held = np.fromiter(taken, np.int64, len(taken))
    rows = np.empty((0, 3), dtype=np.int64)
    while len(rows) < want:
        rows = np.concatenate([rows, draw(n_objects, 2 * (want - len(rows)) + 4, rng)])
        number = keys(rows, n_objects)
        _, first = np.unique(number, return_index=True)
        fresh = np.sort(first[~np.isin(number[first], held)])
        rows = rows[fresh]
    return rows[:want]


def _draw_from_rest(
    n_objects: int, count: int, taken: set[int], rng: np.random.Generator
) -> Questions:
    """When few questions are left, list them all and draw among those."""
    low, high = np.triu_indices(n_objects, 1)
    anchor = np.repeat(np.arange(n_objects), len(low))
    every = np.column_stack([anchor, np.tile(low, n_objects), np.tile(high, n_objects)])
    every = every[(every[:, 0] != every[:, 1]) & (every[:, 0] != every[:, 2])]
    free = every[~np.isin(keys(every, n_objects), np.fromiter(taken, np.int64, len(taken)))]
    return np.asarray(free[rng.permutation(len(free))[:count]], dtype=np.int64)


def covering(
    n_objects: int,
    as_anchor: NDArray[np.int64],
    as_option: NDArray[np.int64],
    taken: set[int],
    rng: np.random.Generator,
) -> Questions | None:
    """The question about the items asked least so far, ties broken at random; None if all are out.

    The counts are brought up to date with the question returned.
    """
    for anchor in _rarest_first(as_anchor, rng):
        options = [item for item in _rarest_first(as_option, rng) if item != anchor]
        for second in range(1, min(len(options), 8)):
            for first in range(second):
                row = np.array([[anchor, options[first], options[second]]])
                if int(keys(row, n_objects)[0]) not in taken:
                    as_anchor[anchor] += 1
                    as_option[row[0, 1:]] += 1
                    return row
    return None


def _rarest_first(counts: NDArray[np.int64], rng: np.random.Generator) -> list[int]:
    return [int(item) for item in np.lexsort((rng.random(len(counts)), counts))]
