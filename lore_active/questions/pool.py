"""Questions as rows (anchor, option, option): their keys, and where new ones come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Questions = NDArray[np.int64]


def keys(questions: Questions, n_objects: int) -> NDArray[np.int64]:
    """A number for each question, the same whichever option stands left."""
    low = np.minimum(questions[:, 1], questions[:, 2])
    high = np.maximum(questions[:, 1], questions[:, 2])
    return np.asarray((questions[:, 0] * n_objects + low) * n_objects + high, dtype=np.int64)


class AskedSet(Set[int]):
    """Keys of questions that must not come again: a set that costs eight bytes a key."""

    def __init__(self, keys: Iterable[int] = ()) -> None:
        self.sorted = np.unique(_as_array(keys))

    def __len__(self) -> int:
        return len(self.sorted)

    def __iter__(self) -> Iterator[int]:
        return iter(self.sorted.tolist())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int | np.integer) and bool(self.among(np.array([key]))[0])

    def __or__(self, keys: Iterable[int]) -> AskedSet:  # type: ignore[override]
        """These and others; costs little where the others are few."""
        more = np.unique(_as_array(keys))
        more = more[~self.among(more)]
        both = AskedSet()
        both.sorted = np.insert(self.sorted, np.searchsorted(self.sorted, more), more)
        return both

    def among(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these keys are taken."""
        if not len(self.sorted):
            return np.zeros(len(keys), dtype=bool)
        places = np.searchsorted(self.sorted, keys)
        places[places == len(self.sorted)] = 0
        return np.asarray(self.sorted[places] == keys)


def _as_array(keys: Iterable[int]) -> NDArray[np.int64]:
    if isinstance(keys, np.ndarray):
        return keys
    return np.fromiter(keys, np.int64)


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


class QuestionSource(Protocol):
    """Where new questions come from."""

    def new(self, count: int, taken: Set[int], rng: np.random.Generator) -> Questions:
        """Up to `count` different random questions whose keys are not taken."""
        ...

    def covering(
        self,
        as_anchor: NDArray[np.int64],
        as_option: NDArray[np.int64],
        taken: Set[int],
        rng: np.random.Generator,
    ) -> Questions:
        """One question about the items asked least so far, or none when all are taken.

        The counts are brought up to date with the question returned.
        """
        ...


class AllQuestions:
    """Every question about the items."""

    def __init__(self, n_objects: int) -> None:
        self._items = n_objects

    def new(self, count: int, taken: Set[int], rng: np.random.Generator) -> Questions:
        """Up to `count` different random questions whose keys are not taken."""
        want = min(count, count_possible(self._items) - len(taken))
        held = taken if isinstance(taken, AskedSet) else AskedSet(taken)
        if 4 * (len(taken) + count) > count_possible(self._items):
            # Few are left: list them all and draw among those.
            rest = _every(self._items)
            rest = rest[~held.among(keys(rest, self._items))]
            return np.asarray(rest[rng.permutation(len(rest))[:want]])
        rows = np.empty((0, 3), dtype=np.int64)
        while len(rows) < want:
            rows = np.concatenate([rows, draw(self._items, 2 * (want - len(rows)) + 4, rng)])
            number = keys(rows, self._items)
            _, first = np.unique(number, return_index=True)
            rows = rows[np.sort(first[~held.among(number[first])])]
        return rows[:want]

    def covering(
        self,
        as_anchor: NDArray[np.int64],
        as_option: NDArray[np.int64],
        taken: Set[int],
        rng: np.random.Generator,
    ) -> Questions:
        """One question about the items asked least so far, or none when all are taken."""
        for anchor in _rarest_first(as_anchor, rng):
            options = [item for item in _rarest_first(as_option, rng) if item != anchor]
            for second in range(1, len(options)):
                for first in range(second):
                    row = np.array([[anchor, options[first], options[second]]])
                    if int(keys(row, self._items)[0]) not in taken:
                        _note(row, as_anchor, as_option)
                        return row
        return np.empty((0, 3), dtype=np.int64)


class PooledQuestions:
    """Only the questions of a pool: those for which logged answers exist."""

    def __init__(self, rows: Questions, n_objects: int) -> None:
        number, first = np.unique(keys(rows, n_objects), return_index=True)
        self._rows = np.asarray(rows[first], dtype=np.int64)
        self._keys = number

    def new(self, count: int, taken: Set[int], rng: np.random.Generator) -> Questions:
        """Up to `count` different random questions whose keys are not taken."""
        held = taken if isinstance(taken, AskedSet) else AskedSet(taken)
        free = np.flatnonzero(~held.among(self._keys))
        return np.asarray(self._rows[rng.permutation(free)[:count]])

    def covering(
        self,
        as_anchor: NDArray[np.int64],
        as_option: NDArray[np.int64],
        taken: Set[int],
        rng: np.random.Generator,
    ) -> Questions:
        """One question about the items asked least so far, or none when all are taken."""
        free = self.new(len(self._rows), taken, rng)
        if len(free) == 0:
            return free
        asked = 2 * as_anchor[free[:, 0]] + as_option[free[:, 1]] + as_option[free[:, 2]]
        row = free[[int(np.argmin(asked))]]
        _note(row, as_anchor, as_option)
        return row


def _every(n_objects: int) -> Questions:
    low, high = np.triu_indices(n_objects, 1)
    anchor = np.repeat(np.arange(n_objects), len(low))
    rows = np.column_stack([anchor, np.tile(low, n_objects), np.tile(high, n_objects)])
    return np.asarray(rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2])])


def _note(row: Questions, as_anchor: NDArray[np.int64], as_option: NDArray[np.int64]) -> None:
    as_anchor[row[0, 0]] += 1
    as_option[row[0, 1:]] += 1


def _rarest_first(counts: NDArray[np.int64], rng: np.random.Generator) -> list[int]:
    return [int(item) for item in np.lexsort((rng.random(len(counts)), counts))]
