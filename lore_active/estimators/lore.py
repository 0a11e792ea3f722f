"""`LORE`: the fit at a fixed λ, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lore_active.data.triplets import Triplets
from lore_active.embedding.fit import fit, random_start
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import SolverSettings
from lore_active.errors import FewAnswersWarning, InvalidParameter
from lore_active.estimators.base import Estimator, answers_of, seed_of, sign_fixed
from lore_active.types import Floats

# Answers per item times λ below which a fixed λ finds more dimensions than there are. Measured on
# random questions about 20 to 100 items of 1 to 5 dimensions, with λ from 0.005 to 0.04: at 0.8 the
# rank was too high in 20 % of the fits, at 1.2 in 1 %, and at 0.4 or less in most
# (table in docs/design-log.md).
MIN_ANSWERS_TIMES_LAMBDA = 1.0


class LORE(Estimator):
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
        triplets = answers_of(X, y, sample_weight, n_objects)
        _warn_of_few_answers(triplets, settings)
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

    def _start(self, init: ArrayLike | None, n_objects: int) -> Floats | None:
        if init is None:
            if self.random_state is None:
                return None
            seed = seed_of(self.random_state, "None or a whole number of 0 or more")
            return random_start(n_objects, self.n_components, seed)
        start = np.asarray(init, dtype=np.float64)
        if start.ndim != 2 or start.shape[0] != n_objects or start.shape[1] > self.n_components:
            raise InvalidParameter(
                f"init has shape {start.shape}, but must have {n_objects} rows and at most "
                f"{self.n_components} columns."
            )
        return start


def _warn_of_few_answers(triplets: Triplets, settings: SolverSettings) -> None:
    """Warn where a fixed λ is known to find too many dimensions."""
    weight = triplets.weight
    # Whole weights are numbers of answers; others make answers unequal, so that fewer count.
    whole = bool((weight == np.floor(weight)).all())
    count = weight.sum() if whole else weight.sum() ** 2 / (weight**2).sum()
    enough = MIN_ANSWERS_TIMES_LAMBDA / settings.lam
    if settings.power == 0.5 and settings.margin == 1.0 and count < enough * triplets.n_objects:
        warnings.warn(
            f"There are {count / triplets.n_objects:.3g} answers per item; with fewer than "
            f"{enough:.3g}, lam={settings.lam:g} tends to find more dimensions than there are. "
            "LORECV chooses lam and the rank by cross-validation.",
            FewAnswersWarning,
            stacklevel=3,
        )
