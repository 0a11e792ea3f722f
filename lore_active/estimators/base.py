"""What the estimators share: scikit-learn's protocol, without requiring scikit-learn."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lore_active.data.comparisons import as_triplets
from lore_active.data.triplets import Triplets
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.errors import InvalidParameter, NotFitted
from lore_active.types import Floats


class Estimator:
    """Parameters by name, and the methods of a fitted embedding.

    Subclasses set `embedding_`, `labels_` and `n_objects_` in `fit`.
    """

    embedding_: Floats
    labels_: tuple[str, ...] | None
    n_objects_: int

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn expects it.

        Parameters
        ----------
        deep : bool, default True
            Has no effect: no parameter is an estimator.

        Returns
        -------
        dict
        """
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **params
            New values by name of the parameter.

        Returns
        -------
        estimator
            The estimator itself.

        Raises
        ------
        InvalidParameter
            If there is no parameter of that name.
        """
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise InvalidParameter(
                    f"{name!r} is not a parameter of {type(self).__name__}; the parameters are "
                    f"{sorted(known)}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({inside})"

    def transform(self, X: Any = None) -> Floats:
        """Return the embedding of the items.

        Parameters
        ----------
        X : array-like, data frame, file path or Triplets, optional
            Answers about the fitted items. They are validated, but do not change the embedding.

        Returns
        -------
        array
            `embedding_`.

        Raises
        ------
        NotFitted
            If `fit` has not been called.
        """
        self._need_fit()
        if X is not None:
            as_triplets(X, self.n_objects_, labels=self.labels_ or ())
        return self.embedding_

    def score(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the weighted share of answers that the embedding predicts correctly.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        float
            Between 0 and 1; a tie counts one half.

        Raises
        ------
        NotFitted
            If `fit` has not been called.
        """
        self._need_fit()
        triplets = as_triplets(X, self.n_objects_, sample_weight, self.labels_ or (), y)
        return triplet_accuracy(self.embedding_, triplets)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called; part of scikit-learn's protocol."""
        return hasattr(self, "embedding_")

    def __sklearn_tags__(self) -> Any:
        """Tags of the estimator; only called by scikit-learn."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(categorical=True, string=True),
        )

    def _need_fit(self) -> None:
        if not hasattr(self, "embedding_"):
            raise NotFitted(f"This {type(self).__name__} has not been fitted yet: call fit first.")


def answers_of(
    X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None, n_objects: int | None
) -> Triplets:
    """Validate the answers of `fit`, and warn of numbers of items that do not occur."""
    triplets = as_triplets(X, n_objects, sample_weight, y=y)
    if n_objects is None and triplets.labels is None and not isinstance(X, Triplets):
        _warn_of_gaps(triplets)
    return triplets


def seed_of(random_state: Any, rule: str) -> int:
    """Validate a seed."""
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if not whole or random_state < 0:
        raise InvalidParameter(f"random_state is {random_state!r}, but must be {rule}.")
    return int(random_state)


def sign_fixed(embedding: Floats) -> Floats:
    """Flip axes so that the largest coordinate of each is positive."""
    if embedding.size == 0:
        return embedding
    largest = np.abs(embedding).argmax(axis=0)
    return np.asarray(embedding * np.sign(embedding[largest, np.arange(embedding.shape[1])]))


def unseen_items(triplets: Triplets) -> str:
    """Name the items that occur in no answer, in a sentence; empty if there are none."""
    unseen = triplets.unseen
    if not len(unseen):
        return ""
    names = [str(item) if triplets.labels is None else triplets.labels[item] for item in unseen]
    which = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    many = "Items occur" if len(names) > 1 else "An item occurs"
    them = "their coordinates are" if len(names) > 1 else "its coordinates are"
    return f"{many} in no answer, so {them} meaningless: {which}."


def _warn_of_gaps(triplets: Triplets) -> None:
    """Warn of numbers that do not occur: counting items from 1 creates an unused item 0."""
    if len(triplets.unseen):
        warnings.warn(
            f"{unseen_items(triplets)} Items are numbered from 0; pass n_objects if this is "
            "intended.",
            UserWarning,
            stacklevel=4,
        )
