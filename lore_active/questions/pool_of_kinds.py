"""Questions of kinds other than triplets as rows (anchor, options …), and the source of new ones.

The rows of odd-one-out questions, which have no anchor, begin with −1.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from lore_active.questions.kinds import Kind
from lore_active.questions.pool import ASK_AGAIN_FROM, AskedSet, Questions
from lore_active.questions.splitmix import hashed
from lore_active.row_table import NOTHING

# With at most this many possible questions, all of them are listed to find those that remain.
MAX_LISTED = 200_000


def grid_keys(questions: Questions) -> NDArray[np.int64]:
    """Key of each question, the same whatever the order of its options.

    A hash of 63 bits: two of a million questions share a key with a probability of 10⁻⁷, and then
    one of them is not asked.
    """
    rows = np.column_stack([questions[:, 0], np.sort(questions[:, 1:], axis=1)])
    key = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        key = hashed(key + column.astype(np.uint64), 0)
    return np.asarray((key >> np.uint64(1)).astype(np.int64))


def count_possible(n_objects: int, kind: Kind) -> int:
    """Number of different questions of a kind."""
    if not kind.has_anchor:
        return comb(n_objects, kind.options)
    return n_objects * comb(n_objects - 1, kind.options)


def draw_grids(n_objects: int, kind: Kind, count: int, rng: np.random.Generator) -> Questions:
    """Draw uniformly random questions, with replacement."""
    # Few of many items: drawn one after another, each among those that are left.
    rows = np.empty((count, kind.items), dtype=np.int64)
    for place in range(kind.items):
        item = rng.integers(0, n_objects - place, count)
        for earlier in np.sort(rows[:, :place], axis=1).T:
            item += item >= earlier
        rows[:, place] = item
    return _with_anchor_column(rows, kind)


def _with_anchor_column(rows: Questions, kind: Kind) -> Questions:
    if kind.has_anchor:
        return rows
    return np.column_stack([np.full(len(rows), NOTHING, dtype=np.int64), rows])


class AllGrids:
    """All possible questions of a kind about the items."""

    def __init__(self, n_objects: int, kind: Kind) -> None:
        self.kind = kind
        self._items = n_objects
        self._possible = count_possible(n_objects, kind)

    def asks_again(self, answered: int) -> bool:
        """Whether half of all questions have been answered, so that few new ones are left."""
        return answered >= ASK_AGAIN_FROM * self._possible

    def new(self, count: int, taken: Set[int], rng: np.random.Generator) -> Questions:
        """Up to `count` different random questions whose keys are not taken."""
        held = taken if isinstance(taken, AskedSet) else AskedSet(taken)
        if self._possible <= MAX_LISTED and 4 * (len(held) + count) > self._possible:
            rows = self._every()
            rows = rows[~held.among(grid_keys(rows))]
            return np.asarray(rows[rng.permutation(len(rows))[:count]])
        rows = np.empty((0, 1 + self.kind.options), dtype=np.int64)
        while len(rows) < count:
            more = draw_grids(self._items, self.kind, 2 * (count - len(rows)) + 4, rng)
            rows = np.concatenate([rows, more])
            number = grid_keys(rows)
            _, first = np.unique(number, return_index=True)
            rows = rows[np.sort(first[~held.among(number[first])])]
        return rows[:count]

    def coverage(
        self,
        as_anchor: NDArray[np.int64],
        as_option: NDArray[np.int64],
        taken: Set[int],
        rng: np.random.Generator,
    ) -> Questions:
        """One question about the items that were asked about least; none if all are taken."""
        for row in self._rarest(as_anchor, as_option, rng):
            if int(grid_keys(row)[0]) not in taken:
                break
        else:
            row = self.new(1, taken, rng)
        for items in row:
            if self.kind.has_anchor:
                as_anchor[items[0]] += 1
            as_option[items[1:]] += 1
        return row

    def _rarest(
        self,
        as_anchor: NDArray[np.int64],
        as_option: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> Iterator[Questions]:
        """One question for each anchor, each about the rarest options."""
        rare = np.lexsort((rng.random(self._items), as_option))
        if not self.kind.has_anchor:
            yield np.array([[NOTHING, *rare[: self.kind.options]]], dtype=np.int64)
            return
        for anchor in np.lexsort((rng.random(self._items), as_anchor)):
            options = rare[rare != anchor][: self.kind.options]
            yield np.array([[anchor, *options]], dtype=np.int64)

    def _every(self) -> Questions:
        chosen = np.array(list(combinations(range(self._items), self.kind.options)), dtype=np.int64)
        if not self.kind.has_anchor:
            return _with_anchor_column(chosen, self.kind)
        anchor = np.repeat(np.arange(self._items), len(chosen))
        rows = np.column_stack([anchor, np.tile(chosen, (self._items, 1))])
        return np.asarray(rows[(rows[:, 1:] != rows[:, :1]).all(axis=1)])
