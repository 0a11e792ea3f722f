"""Questions as rows (anchor, option, option): their keys, and the sources of new ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Questions = NDArray[np.int64]
# Share of all questions that must have been answered before any is asked of further participants:
# the information about a question is that of a model, and new questions correct it.
ASK_AGAIN_FROM = 0.5


def keys(questions: Questions, n_objects: int) -> NDArray[np.int64]:
    """Key of each question, the same whichever option is on the left."""
    low = np.minimum(questions[:, 1], questions[:, 2])
    high = np.maximum(questions[:, 1], questions[:, 2])
    return np.asarray((questions[:, 0] * n_objects + low) * n_objects + high, dtype=np.int64)


class AskedSet(Set[int]):
    """Keys of questions that must not be asked again: a set that needs eight bytes per key."""

    def __init__(self, keys: Iterable[int] = ()) -> None:
        self.sorted = np.unique(_as_array(keys))

    def __len__(self) -> int:
        return len(self.sorted)

    def __iter__(self) -> Iterator[int]:
        return iter(self.sorted.tolist())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int | np.integer) and bool(self.among(np.array([key]))[0])

    def __or__(self, keys: Iterable[int]) -> AskedSet:  # type: ignore[override]
        """Union with other keys; fast if there are few of them."""
        more = np.unique(_as_array(keys))
        more = more[~self.among(more)]
        both = AskedSet()
        both.sorted = np.insert(self.sorted, np.searchsorted(self.sorted, more), more)
        return both

    def among(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these keys are in the set."""
        if not len(self.sorted):
            return np.zeros(len(keys), dtype=bool)
        indices = np.searchsorted(self.sorted, keys)
        indices[indices == len(self.sorted)] = 0
        return np.asarray(self.sorted[indices] == keys)


def _as_array(keys: Iterable[int]) -> NDArray[np.int64]:
    if isinstance(keys, np.ndarray):
        return keys
    return np.fromiter(keys, np.int64)


def count_possible(n_objects: int) -> int:
    """Number of different questions."""
    return n_objects * (n_objects - 1) * (n_objects - 2) // 2


def draw(n_objects: int, count: int, rng: np.random.Generator) -> Questions:
    """Draw uniformly random questions, with replacement."""
    anchor = rng.integers(0, n_objects, count)
    left = (anchor + rng.integers(1, n_objects, count)) % n_objects
    # Draw among the remaining items, then skip the two that are used.
    right = rng.integers(0, n_objects - 2, count)
    right += right >= np.minimum(anchor, left)
    right += right >= np.maximum(anchor, left)
    return np.column_stack([anchor, left, right]).astype(np.int64)


class QuestionSource(Protocol):
    """Protocol of a source of new questions."""

    def asks_again(self, answered: int) -> bool:
        """Whether questions that were answered may be asked of other participants.

        `answered` is the number of different questions that have been answered.
        """
        ...

    def new(self, count: int, taken: Set[int], rng: np.random.Generator) -> Questions:
        """Up to `count` different random questions whose keys are not taken."""
        ...

    def coverage(
        self,
        as_anchor: NDArray[np.int64],
        as_option: NDArray[np.int64],
        taken: Set[int],
        rng: np.random.Generator,
    ) -> Questions:
        """One question about the items that were asked about least; none if all are taken.

        The counts are updated with the returned question.
        """
        ...


class AllQuestions:
    """All possible questions about the items."""

    def __init__(self, n_objects: int) -> None:
        self._items = n_objects

    def asks_again(self, answered: int) -> bool:
        """Whether half of all questions have been answered, so that few new ones are left."""
        return answered >= ASK_AGAIN_FROM * count_possible(self._items)

    def new(self, count: int, taken: Set[int], rng: np.random.Generator) -> Questions:
        """Up to `count` different random questions whose keys are not taken."""
        want = min(count, count_possible(self._items) - len(taken))
        held = taken if isinstance(taken, AskedSet) else AskedSet(taken)
        if 4 * (len(taken) + count) > count_possible(self._items):
            # Few remain: list them all and draw among them.
            remaining = _every(self._items)
            remaining = remaining[~held.among(keys(remaining, self._items))]
            return np.asarray(remaining[rng.permutation(len(remaining))[:want]])
        rows = np.empty((0, 3), dtype=np.int64)
        while len(rows) < want:
            rows = np.concatenate([rows, draw(self._items, 2 * (want - len(rows)) + 4, rng)])
            number = keys(rows, self._items)
            _, first = np.unique(number, return_index=True)
            rows = rows[np.sort(first[~held.among(number[first])])]
        return rows[:want]

    def coverage(
        self,
        as_anchor: NDArray[np.int64],
        as_option: NDArray[np.int64],
        taken: Set[int],
        rng: np.random.Generator,
    ) -> Questions:
        """One question about the items that were asked about least; none if all are taken."""
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
    """The questions of a pool: those for which recorded answers exist."""

    def __init__(self, rows: Questions, n_objects: int) -> None:
        number, first = np.unique(keys(rows, n_objects), return_index=True)
        self._rows = np.asarray(rows[first], dtype=np.int64)
        self._keys = number

    def asks_again(self, answered: int) -> bool:
        """Never: recorded answers that were used up would count twice."""
        return False

    def new(self, count: int, taken: Set[int], rng: np.random.Generator) -> Questions:
        """Up to `count` different random questions whose keys are not taken."""
        held = taken if isinstance(taken, AskedSet) else AskedSet(taken)
        free = np.flatnonzero(~held.among(self._keys))
        return np.asarray(self._rows[rng.permutation(free)[:count]])

    def coverage(
        self,
        as_anchor: NDArray[np.int64],
        as_option: NDArray[np.int64],
        taken: Set[int],
        rng: np.random.Generator,
    ) -> Questions:
        """One question about the items that were asked about least; none if all are taken."""
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
