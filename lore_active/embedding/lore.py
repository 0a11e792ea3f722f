"""`LORE`: the fit as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lore_active.data.comparisons import Triplets, as_triplets
from lore_active.embedding.fit import fit, random_start
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import SolverSettings
from lore_active.errors import InvalidParameter, NotFitted
from lore_active.types import Floats


class LORE:
    """Low-rank ordinal embedding: coordinates of the items, and their number of dimensions.

    Minimises the mean logistic loss of the answers plus a Schatten-p penalty on the embedding,
    which sets unsupported dimensions exactly to zero (Anand et al., ICLR 2026).

    Parameters
    ----------
    n_components : int, default 15
        Maximum number of dimensions; the estimated rank is usually far lower.
    lam : float, default 0.01
        Weight λ of the rank penalty, relative to the mean loss of an answer.
    p : float, default 0.5
        Exponent of the penalty, in (0, 1]; 1 is the nuclear norm.
    margin : float, default 1.0
        Margin of the logistic loss, in units of distance.
    max_iter : int, default 5000
        Maximum number of iterations of one solve.
    tol : float, default 1e-4
        Relative stationarity residual at which a solve has converged.
    random_state : int, optional
        None starts deterministically from a spectral embedding of the answers. A whole number is
        the seed of Gaussian starting coordinates, as in the LORE paper.
    trim : bool, default False
        Whether to test removing the weakest dimension as well. This finds lower objectives and,
        with few answers, better ranks; with many dimensions it removes too many at the default
        `lam`.

    Attributes
    ----------
    embedding_ : array of shape (n_objects, n_components)
        Coordinates on the principal axes, strongest axis first, the largest coordinate of each
        axis positive. Columns from `rank_` on are exactly zero.
    rank_ : int
        Number of dimensions: nonzero singular values.
    singular_values_ : array of shape (n_components,)
        Singular values of the embedding, in descending order.
    labels_ : tuple of str or None
        Labels of the items in the order of the rows; None if items are known by number.
    n_objects_ : int
        Number of items.
    objective_ : float
        The minimum that was reached.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the solver reached `tol` within `max_iter` iterations.

    Examples
    --------
    >>> from lore_active import LORE
    >>> answers = [["pear", "apple", "fig"], ["fig", "pear", "apple"], ["apple", "pear", "fig"]]
    >>> model = LORE(n_components=2).fit(answers)
    >>> model.labels_
    ('apple', 'fig', 'pear')
    >>> model.embedding_.shape
    (3, 2)
    >>> model.score([["pear", "apple", "fig"]])
    1.0
    """

    def __init__(
        self,
        n_components: int = 15,
        lam: float = 0.01,
        p: float = 0.5,
        margin: float = 1.0,
        max_iter: int = 5000,
        tol: float = 1e-4,
        random_state: int | None = None,
        trim: bool = False,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.p = p
        self.margin = margin
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.trim = trim

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
        names = LORE.__init__.__code__.co_varnames[1 : LORE.__init__.__code__.co_argcount]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> LORE:
        """Set parameters by name.

        Parameters
        ----------
        **params
            New values by name of the parameter.

        Returns
        -------
        LORE
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
                    f"{name!r} is not a parameter of LORE; the parameters are {sorted(known)}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"LORE({inside})"

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        n_objects: int | None = None,
        init: ArrayLike | None = None,
    ) -> LORE:
        """Fit the embedding to answers.

        Parameters
        ----------
        X : array-like, data frame, file path or Triplets
            Rows (anchor, nearer, farther). Named columns are read by name; see `as_triplets`.
        y : array-like of bool or int, optional
            Only if the rows are questions (anchor, first option, second option): True or 1 where
            the first option is nearer, False, 0 or -1 where the second is.
        sample_weight : array-like of float, optional
            Weight of each answer.
        n_objects : int, optional
            Number of items, if not all of them occur in the answers.
        init : array-like of shape (n_objects, n_columns), optional
            Starting coordinates, with at most `n_components` columns.

        Returns
        -------
        LORE
            The fitted estimator.

        Raises
        ------
        InvalidTriplets
            If the answers cannot be read as triplets.
        InvalidParameter
            If a parameter is outside its allowed range.
        """
        settings = SolverSettings(
            lam=self.lam,
            power=self.p,
            margin=self.margin,
            tolerance=self.tol,
            max_iter=self.max_iter,
            n_components=self.n_components,
            trim=self.trim,
        )
        triplets = as_triplets(X, n_objects, sample_weight, y=y)
        if n_objects is None and triplets.labels is None and not isinstance(X, Triplets):
            _warn_of_gaps(triplets)
        solution = fit(as_pairs(triplets), settings, self._start(init, triplets.n_objects))
        self.n_objects_ = triplets.n_objects
        self.labels_ = triplets.labels
        self.rank_ = solution.rank
        self.embedding_ = np.zeros((triplets.n_objects, self.n_components))
        self.embedding_[:, : self.rank_] = sign_fixed(solution.embedding)
        self.singular_values_ = np.zeros(self.n_components)
        self.singular_values_[: self.rank_] = solution.singular_values
        self.objective_ = solution.objective
        self.n_iter_ = solution.iterations
        self.converged_ = solution.converged
        return self

    def fit_transform(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        n_objects: int | None = None,
        init: ArrayLike | None = None,
    ) -> Floats:
        """Fit the embedding to answers and return it.

        Parameters
        ----------
        X, y, sample_weight, n_objects, init
            As in `fit`.

        Returns
        -------
        array of shape (n_objects, n_components)
        """
        return self.fit(X, y, sample_weight, n_objects=n_objects, init=init).embedding_

    def transform(self, X: Any = None) -> Floats:
        """Return the embedding of the items.

        Parameters
        ----------
        X : array-like, data frame, file path or Triplets, optional
            Answers about the fitted items. They are validated, but do not change the embedding.

        Returns
        -------
        array of shape (n_objects, n_components)

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
            raise NotFitted("This LORE has not been fitted yet: call fit first.")

    def _start(self, init: ArrayLike | None, n_objects: int) -> Floats | None:
        if init is None:
            if self.random_state is None:
                return None
            seed = self.random_state
            if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
                raise InvalidParameter(
                    f"random_state is {seed!r}, but must be None or a whole number of 0 or more."
                )
            return random_start(n_objects, self.n_components, int(seed))
        start = np.asarray(init, dtype=np.float64)
        if start.ndim != 2 or start.shape[0] != n_objects or start.shape[1] > self.n_components:
            raise InvalidParameter(
                f"init has shape {start.shape}, but must have {n_objects} rows and at most "
                f"{self.n_components} columns."
            )
        return start


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
            stacklevel=3,
        )
