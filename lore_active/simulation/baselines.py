"""Embedding methods for comparison: two variants of LORE, and those of cblearn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.data.triplets import Triplets
from lore_active.embedding.fit import fit
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import SolverSettings
from lore_active.estimators.cross_validated import cross_validated_fit
from lore_active.types import Floats

# Dim-CV as in the LORE paper: dimensions 1 to 10, five folds, one start.
MAX_DIMENSIONS = 10
DIMENSION_FOLDS = 5

Fit = Callable[[Triplets, int, int], "BaselineFit"]


@dataclass(frozen=True, eq=False)
class BaselineFit:
    """An embedding, its number of dimensions, and the hyperparameters that were chosen."""

    embedding: Floats
    rank: int
    chose: str = ""


@dataclass(frozen=True)
class Method:
    """An embedding method: `fit` takes answers, the maximum number of dimensions and a seed."""

    key: str
    name: str
    message: str
    fit: Fit
    needs: tuple[str, ...] = ()

    def missing(self) -> str:
        """What has to be installed first, as a message; empty if nothing."""
        for package, extra in (("cblearn", "pip install 'lore-active[compare]'"), ("torch", "")):
            if package in self.needs and find_spec(package) is None:
                return f"{package} is not installed" + (f" ({extra})" if extra else "")
        return ""


def _lore(answers: Triplets, max_rank: int, seed: int) -> BaselineFit:
    solution = fit(as_pairs(answers), SolverSettings(n_components=max_rank))
    return BaselineFit(solution.embedding, solution.rank)


def _lore_audited(answers: Triplets, max_rank: int, seed: int) -> BaselineFit:
    """Rank and λ chosen by cross-validation, then a fit at full accuracy."""
    result = cross_validated_fit(answers, seed)
    if result.solution is None:
        return BaselineFit(np.zeros((answers.n_objects, 1)), 0, "rank 0")
    solution = result.solution
    return BaselineFit(solution.embedding, solution.rank, f"λ = {result.audit.lam:g}")


def _rows(answers: Triplets) -> NDArray[np.int64]:
    """Answers in cblearn's list order; it has no weights, so whole weights repeat rows."""
    each = answers.repeated("cblearn")
    return np.column_stack([each.anchor, each.nearer, each.farther]).astype(np.int64)


def _measured(embedding: Floats) -> int:
    return int(np.linalg.matrix_rank(embedding - embedding.mean(axis=0)))


def _of_cblearn(name: str, **settings: Any) -> Fit:
    """An estimator of cblearn with default settings, apart from dimension and seed."""

    def fitted(answers: Triplets, max_rank: int, seed: int) -> BaselineFit:
        kind = getattr(import_module("cblearn.embedding"), name)
        model = kind(n_components=max_rank, random_state=seed, **settings)
        model.fit(_rows(answers), n_objects=answers.n_objects)
        return BaselineFit(model.embedding_, _measured(model.embedding_))

    return fitted


def _network(answers: Triplets, max_rank: int, seed: int) -> BaselineFit:
    """OENN with its own rules for width (rounded) and encoding (seeded)."""
    kind = import_module("cblearn.embedding").OENN
    size = float(np.log(answers.n_objects))
    width = max(120, int(2 * max_rank * size))
    model = kind(n_components=max_rank, random_state=seed, layer_width=width, device="cpu")
    shape = (answers.n_objects, int(np.ceil(size)) + 1)
    encoding = np.random.default_rng(seed).normal(size=shape)
    model.fit(_rows(answers), encoding=encoding, n_objects=answers.n_objects)
    return BaselineFit(model.embedding_, _measured(model.embedding_))


def _dimension_tested(answers: Triplets, max_rank: int, seed: int) -> BaselineFit:
    """Add dimensions while a test on held-out answers finds one more to be better."""
    cblearn = import_module("cblearn.embedding")
    model = cblearn.SOE(n_components=1, n_init=1, random_state=seed)
    estimate = cblearn.estimate_dimensionality_cv(
        model,
        _rows(answers),
        test_dimensions=list(range(1, min(max_rank, MAX_DIMENSIONS) + 1)),
        n_splits=DIMENSION_FOLDS,
        n_jobs=1,
        random_state=seed,
    )
    return BaselineFit(model.embedding_, estimate.estimated_dimension)


_CBLEARN = ("cblearn",)
_TORCH = ("cblearn", "torch")
METHODS = {
    method.key: method
    for method in (
        Method("lore", "LORE, λ = 0.01", "rank penalty of fixed weight", _lore),
        Method("lore-cv", "LORE, cross-validated", "rank and λ cross-validated", _lore_audited),
        Method("soe", "SOE", "soft ordinal embedding", _of_cblearn("SOE"), _CBLEARN),
        Method("ckl", "CKL", "crowd kernel learning", _of_cblearn("CKL"), _CBLEARN),
        Method("t-ste", "t-STE", "stochastic triplets, heavy tails", _of_cblearn("TSTE"), _CBLEARN),
        Method("gnmds", "GNMDS", "generalised non-metric MDS", _of_cblearn("GNMDS"), _CBLEARN),
        Method("forte", "FORTE", "fast kernel", _of_cblearn("FORTE", device="cpu"), _TORCH),
        Method("oenn", "OENN", "neural network", _network, _TORCH),
        Method("dim-cv", "Dim-CV", "SOE, dimension by tests", _dimension_tested, _CBLEARN),
    )
}
