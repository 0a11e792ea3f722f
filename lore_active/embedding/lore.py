"""`LORE`: the fit as an estimator in scikit-learn's manner."""

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
    """Low-rank ordinal embedding: where the items lie, and in how many dimensions.

    Parameters
    ----------
    n_components: the most dimensions considered; the rank found is usually far lower.
    lam: weight of the rank penalty, relative to the mean loss of an answer.
    p: exponent of the penalty, in (0, 1]; 1 is the nuclear norm.
    margin: by how much the farther item should be farther.
    max_iter, tol: iterations one solve may take, and the relative imbalance at which it ends.
    random_state: None starts from the spectral embedding of the answers, which needs no luck;
        a whole number starts from Gaussian coordinates of that seed, as in the LORE paper.
    trim: also try to do without the weakest dimension. Finds lower objectives and, with few
        answers, better ranks; with many dimensions and this lam it is too strict.

    After `fit`
    -----------
    embedding_: n_objects × n_components on principal axes, strongest first, the largest
        coordinate of each positive; columns from rank_ on are exactly zero.
    labels_: the items' names in the order of its rows; None if they are known by number.
    rank_, singular_values_, objective_, n_iter_, converged_, n_objects_.

    Examples
    --------
    >>> answers = [["pear", "apple", "fig"], ["fig", "pear", "apple"], ["apple", "pear", "fig"]]
    >>> model = LORE(n_components=2).fit(answers)
    >>> model.labels_
    ('apple', 'fig', 'pear')
    >>> model.embedding_.shape
    (3, 2)
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
        """The parameters by name."""
        names = LORE.__init__.__code__.co_varnames[1 : LORE.__init__.__code__.co_argcount]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> LORE:
        """Change parameters by name."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise InvalidParameter(f"{name!r} is not a parameter; there are {sorted(known)}.")
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
        """Fit answers.

        X: rows (anchor, nearer, farther), as an array-like, a pandas or polars frame, a file or
            `Triplets`; columns that have names are taken by these.
        y: only for rows that are questions (anchor, one option, the other): True or 1 where the
            first option is nearer, False, 0 or -1 where the second is.
        sample_weight: how much each answer counts.
        n_objects: the number of items, if not all of them occur. init: coordinates to start from.
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
        """Fit and return the embedding."""
        return self.fit(X, y, sample_weight, n_objects=n_objects, init=init).embedding_

    def transform(self, X: Any = None) -> Floats:
        """The embedding of the items; answers, if given, only have to be about these."""
        self._need_fit()
        if X is not None:
            as_triplets(X, self.n_objects_, labels=self.labels_ or ())
        return self.embedding_

    def score(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Share of answers that the embedding agrees with; `X`, `y` and weights as in `fit`."""
        self._need_fit()
        triplets = as_triplets(X, self.n_objects_, sample_weight, self.labels_ or (), y)
        return triplet_accuracy(self.embedding_, triplets)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called, as scikit-learn asks it."""
        return hasattr(self, "embedding_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn needs to know; only called where it is installed."""
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
    """Each axis turned so that its largest coordinate is positive."""
    if embedding.size == 0:
        return embedding
    largest = np.abs(embedding).argmax(axis=0)
    return np.asarray(embedding * np.sign(embedding[largest, np.arange(embedding.shape[1])]))


def unseen_items(triplets: Triplets) -> str:
    """Which items no answer is about, in a sentence; empty if there are none."""
    unseen = triplets.unseen
    if not len(unseen):
        return ""
    names = [str(item) if triplets.labels is None else triplets.labels[item] for item in unseen]
    which = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    many = "Items occur" if len(names) > 1 else "An item occurs"
    them = "their places mean" if len(names) > 1 else "its place means"
    return f"{many} in no answer, so that {them} nothing: {which}."


def _warn_of_gaps(triplets: Triplets) -> None:
    """Say which numbers were skipped: counting from 1 makes an item 0 that nobody asked about."""
    if len(triplets.unseen):
        warnings.warn(
            f"{unseen_items(triplets)} Items are numbered from 0; pass n_objects if that is meant.",
            UserWarning,
            stacklevel=3,
        )
