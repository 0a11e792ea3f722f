"""`Triplets`: validated answers as index arrays, with weights, trials and participants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.errors import InvalidTriplets
from lore_active.types import Floats, Indices

# Whole weights are counts of answers; a larger total must mean something else.
MAX_REPEATED = 10_000_000


@dataclass(frozen=True, eq=False)
class Triplets:
    """Validated answers: row t says that `anchor[t]` is nearer to `nearer[t]` than to `farther[t]`.

    Made by `as_triplets`, which validates the values.

    Attributes
    ----------
    anchor, nearer, farther : array of int32, shape (n_answers,)
        Indices of the items.
    weight : array of float, shape (n_answers,)
        Weight of each answer; 1 by default.
    n_objects : int
        Number of items.
    labels : tuple of str or None
        Labels of the items by index; None if items are known by number only.
    trial : array of int64, shape (n_answers,)
        Number of the trial that each comparison belongs to; a trial may carry several, and they
        are never separated in cross-validation. By default each is a trial of its own.
    participant : array of int64, shape (n_answers,)
        Number of the participant who gave each answer; -1 where that is not known.

    Examples
    --------
    >>> from lore_active import as_triplets
    >>> triplets = as_triplets([["pear", "apple", "fig"], ["fig", "pear", "apple"]])
    >>> len(triplets), triplets.n_objects, triplets.labels
    (2, 3, ('apple', 'fig', 'pear'))
    >>> triplets.anchor.tolist()
    [2, 1]
    """

    anchor: Indices
    nearer: Indices
    farther: Indices
    weight: Floats
    n_objects: int
    labels: tuple[str, ...] | None
    trial: NDArray[np.int64]
    participant: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.anchor)

    def take(self, rows: NDArray[Any]) -> Triplets:
        """Select answers, keeping the items.

        Parameters
        ----------
        rows : array of int or bool
            Indices of the answers, or a mask.

        Returns
        -------
        Triplets
        """
        return Triplets(
            self.anchor[rows],
            self.nearer[rows],
            self.farther[rows],
            self.weight[rows],
            self.n_objects,
            self.labels,
            self.trial[rows],
            self.participant[rows],
        )

    @property
    def n_trials(self) -> int:
        """Number of trials: that of rows, unless some trials carry several comparisons."""
        return len(np.unique(self.trial)) if self.compound else len(self)

    @cached_property
    def compound(self) -> bool:
        """Whether some trials carry several different comparisons."""
        ordered = np.sort(self.trial)
        trials = 1 + int(np.count_nonzero(np.diff(ordered)))
        if trials >= len(self):
            return False
        # An answer that counts several times is repeated with its trial.
        columns = (self.trial, self.anchor, self.nearer, self.farther)
        return len(np.unique(np.column_stack(columns), axis=0)) > trials

    def trial_means(self, values: Floats) -> Floats:
        """Mean over the comparisons of each trial; the values if each is a trial of its own.

        Comparisons of one trial are not independent, so standard errors go by trial.
        """
        if not self.compound:
            return values
        trial = np.unique(self.trial, return_inverse=True)[1]
        return np.asarray(np.bincount(trial, weights=values) / np.bincount(trial))

    @property
    def weighted(self) -> bool:
        """Whether any answer has a weight other than 1."""
        return bool((self.weight != 1.0).any())

    @property
    def unseen(self) -> NDArray[np.int64]:
        """Indices of the items that occur in no answer."""
        seen = np.zeros(self.n_objects, dtype=bool)
        for column in (self.anchor, self.nearer, self.farther):
            seen[column] = True
        return np.flatnonzero(~seen)

    def occurring(self) -> Triplets:
        """Return the same answers with the items that occur renumbered, in the same order."""
        unseen = self.unseen
        if not len(unseen):
            return self
        kept = np.delete(np.arange(self.n_objects), unseen)
        number = np.full(self.n_objects, -1, dtype=np.int32)
        number[kept] = np.arange(len(kept))
        a, i, j = (number[column] for column in (self.anchor, self.nearer, self.farther))
        labels = None if self.labels is None else tuple(self.labels[item] for item in kept)
        return replace(self, anchor=a, nearer=i, farther=j, n_objects=len(kept), labels=labels)

    def refuse_weights(self, what: str) -> None:
        """Raise `InvalidTriplets` if answers have weights; `what` is the caller in the message."""
        if self.weighted:
            raise InvalidTriplets(f"The answers have weights, but {what} counts each answer once.")

    def repeated(self, what: str) -> Triplets:
        """Return unweighted answers: one of weight 3 three times, one of weight 0 not at all.

        Parameters
        ----------
        what : str
            The computation that needs unweighted answers, for the error message.

        Returns
        -------
        Triplets

        Raises
        ------
        InvalidTriplets
            If a weight is not a whole number, or their sum is too large.
        """
        if not self.weighted:
            return self
        times = np.floor(self.weight)
        if (times != self.weight).any():
            row = int(np.flatnonzero(times != self.weight)[0])
            raise InvalidTriplets(
                f"Weight {self.weight[row]:g} of row {row} (counted from 0) is not a whole number, "
                f"but {what} counts answers one by one. Use whole numbers, or omit the weights."
            )
        if times.sum() > MAX_REPEATED:
            raise InvalidTriplets(
                f"The weights add up to {times.sum():.0f} answers, but {what} takes at most "
                f"{MAX_REPEATED}."
            )
        rows = np.repeat(np.arange(len(self)), times.astype(np.int64))
        return replace(self.take(rows), weight=np.ones(len(rows)))
