"""`LORECV`: the fit with cross-validated λ and rank, as a scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lore_active.embedding.solver import SolverSettings
from lore_active.errors import InvalidParameter
from lore_active.estimators.base import Estimator, answers_of, seed_of, sign_fixed
from lore_active.estimators.cross_validated import Progress, cross_validated_fit
from lore_active.rank.audit import LossDifference, RankEvidence
from lore_active.rank.bayes_factor import FurtherDimension
from lore_active.rank.further_dimension import MAX_SHARE, MIN_SHARE
from lore_active.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class LORECV(Estimator):
    """Low-rank ordinal embedding with λ and the number of dimensions chosen by cross-validation.

    Every rank is fitted to all folds of the answers but one, at several λ, and predicts the fold
    that was held out. The rank is the smallest one within one standard error of the lowest
    held-out log-loss, and 0 if none is clearly better than guessing. Learners choose the rank in
    the same way. With a fixed λ (`LORE`), few answers give too many dimensions. From 200,000
    answers on, one part of them is held out once, instead of each of five folds in turn. Up to 10
    dimensions are tried, and up to 50 with that many answers.

    Parameters
    ----------
    lambdas : sequence of float, optional
        Weights λ of the rank penalty to choose from; by default a grid that suits the number of
        answers.
    smallest_dimension : float, optional
        Also test whether there is a further dimension that carries at least this share of the
        variance, by its Bayes factor, which is computed by sampling and takes seconds to minutes.
    max_iter : int, default 5000
        Maximum number of iterations of the final fit.
    tol : float, default 1e-4
        Relative stationarity residual at which the final fit has converged.
    random_state : int, default 0
        Seed of the folds and of the sampling.
    n_jobs : int, optional
        Number of threads for the folds; -1 for all processors. The result is the same. None is 1.

    Attributes
    ----------
    embedding_ : array of shape (n_objects, rank_)
        Coordinates on the principal axes, strongest axis first, the largest coordinate of each
        axis positive.
    rank_ : int
        Number of dimensions.
    lam_ : float
        The weight λ that was chosen.
    temperature_ : float
        Scale of the margins at which the held-out answers are predicted best: an answer of margin
        m has the probability 1 / (1 + exp(-m / temperature_)).
    rank_evidence_ : tuple of RankEvidence
        For each rank from 0 (guessing): held-out log-loss, accuracy, λ, and the difference from
        the best rank's log-loss with its standard error.
    loss_below_, loss_above_ : tuple of (float, float) or None
        By how much the held-out log-loss is higher with one dimension fewer or more, and the
        standard error; None where that rank was not fitted.
    further_ : tuple of FurtherDimension
        Log Bayes factors of a further dimension, by the share that it would carry; empty unless
        `smallest_dimension` is given.
    singular_values_ : array of shape (rank_,)
        Singular values of the embedding, in descending order.
    labels_ : tuple of str or None
        Labels of the items in the order of the rows; None if items are known by number.
    n_objects_ : int
        Number of items.
    objective_ : float
        The minimum that the final fit reached.
    n_iter_ : int
        Number of iterations of the final fit.
    converged_ : bool
        Whether the final fit reached `tol` within `max_iter` iterations.

    Examples
    --------
    >>> from lore_active import LORECV
    >>> from lore_active.simulation.observers import gaussian_space, simulated_answers
    >>> answers = simulated_answers(gaussian_space(20, 2, seed=1), 600, seed=2)
    >>> model = LORECV().fit(answers)
    >>> model.rank_, model.embedding_.shape
    (2, (20, 2))
    >>> [evidence.rank for evidence in model.rank_evidence_]
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        lambdas: Sequence[float] | None = None,
        smallest_dimension: float | None = None,
        max_iter: int = 5000,
        tol: float = 1e-4,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.lambdas = lambdas
        self.smallest_dimension = smallest_dimension
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        n_objects: int | None = None,
        progress: Progress | None = None,
    ) -> LORECV:
        """Choose λ and the rank, and fit the embedding to answers.

        Parameters
        ----------
        X : array-like, data frame, file path or Triplets
            Rows (anchor, nearer, farther). Named columns are read by name; see `as_triplets`.
        y : array-like of bool or int, optional
            Only if the rows are questions (anchor, first option, second option): True or 1 where
            the first option is nearer, False, 0 or -1 where the second is.
        sample_weight : array-like of float, optional
            Number of times that each answer counts: whole numbers, since held-out answers are
            counted one by one. `LORE` takes any weights.
        n_objects : int, optional
            Number of items, if not all of them occur in the answers.
        progress : callable, optional
            Called with what is being computed, how many parts of it are done, and their number.

        Returns
        -------
        LORECV
            The fitted estimator.

        Raises
        ------
        InvalidTriplets
            If the answers cannot be read as triplets, or a weight is not a whole number.
        InvalidParameter
            If a parameter is outside its allowed range.
        """
        lambdas = self._validated()
        seed = seed_of(self.random_state, "a whole number of 0 or more")
        triplets = answers_of(X, y, sample_weight, n_objects)
        result = cross_validated_fit(
            triplets,
            seed,
            lambdas,
            self.smallest_dimension,
            self.tol,
            self.max_iter,
            self._threads(),
            progress or (lambda what, done, of: None),
        )
        audit, solution = result.audit, result.solution
        self.n_objects_ = triplets.n_objects
        self.labels_ = triplets.labels
        self.rank_ = 0 if solution is None else solution.rank
        empty = np.zeros((triplets.n_objects, 0))
        self.embedding_: Floats = empty if solution is None else sign_fixed(solution.embedding)
        self.singular_values_: Floats = (
            np.zeros(0) if solution is None else solution.singular_values
        )
        # Without dimensions every margin is 0, and the loss of an answer that of its margin alone.
        self.objective_ = float(np.logaddexp(0.0, 1.0) if solution is None else solution.objective)
        self.n_iter_ = 0 if solution is None else solution.iterations
        self.converged_ = solution is None or solution.converged
        self.lam_ = audit.lam
        self.temperature_ = audit.temperature
        self.rank_evidence_: tuple[RankEvidence, ...] = audit.evidence
        self.loss_below_: LossDifference | None = audit.below
        self.loss_above_: LossDifference | None = audit.above
        self.further_: tuple[FurtherDimension, ...] = result.further
        return self

    def fit_transform(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        n_objects: int | None = None,
        progress: Progress | None = None,
    ) -> Floats:
        """Fit the embedding to answers and return it.

        Parameters
        ----------
        X, y, sample_weight, n_objects, progress
            As in `fit`.

        Returns
        -------
        array of shape (n_objects, rank_)
        """
        return self.fit(X, y, sample_weight, n_objects=n_objects, progress=progress).embedding_

    def plot(self) -> Figure:
        """Draw the map of the first two dimensions, and the held-out log-loss of each rank.

        Needs matplotlib: `pip install 'lore-active[plot]'`.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        NotFitted
            If `fit` has not been called.
        InvalidParameter
            If matplotlib is not installed.
        """
        self._need_fit()
        from lore_active.plotting import overview

        return overview(self.embedding_, self.labels_, self.rank_evidence_)

    def _validated(self) -> tuple[float, ...] | None:
        lambdas = None if self.lambdas is None else tuple(self.lambdas)
        if lambdas == ():
            raise InvalidParameter("lambdas is empty, but must hold at least one λ.")
        for lam in lambdas or (SolverSettings.lam,):
            SolverSettings(lam, tolerance=self.tol, max_iter=self.max_iter)
        share = self.smallest_dimension
        if share is not None and not MIN_SHARE <= share <= MAX_SHARE:
            raise InvalidParameter(
                f"smallest_dimension is {share!r}, but must be None or from {MIN_SHARE} to "
                f"{MAX_SHARE}."
            )
        return lambdas

    def _threads(self) -> int:
        jobs = 1 if self.n_jobs is None else self.n_jobs
        if isinstance(jobs, bool) or not isinstance(jobs, int) or (jobs < 1 and jobs != -1):
            raise InvalidParameter(
                f"n_jobs is {self.n_jobs!r}, but must be None, -1 or a whole number of 1 or more."
            )
        return (os.cpu_count() or 1) if jobs == -1 else jobs
