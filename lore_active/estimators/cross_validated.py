"""A fit whose λ and rank are chosen by cross-validation, with the evidence for its rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from lore_active.acquisition import model as acquisition_model
from lore_active.data.triplets import Triplets
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.errors import InvalidParameter
from lore_active.learner.updates import tested
from lore_active.rank import hold_out
from lore_active.rank.audit import Audit
from lore_active.rank.bayes_factor import Decisive, FurtherDimension
from lore_active.rank.cross_validation import LAMBDAS, audit
from lore_active.rank.folds import FOLDS
from lore_active.rank.hold_out import HOLD_OUT_FROM, held_out_audit
from lore_active.types import Mapper

# What is being computed, how many parts of it are done, and of how many.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class CrossValidatedFit:
    """The audit that chose rank and λ, the fit of all answers, and tests for a further dimension.

    `solution` is None if no dimension is supported.
    """

    audit: Audit
    solution: Solution | None
    further: tuple[FurtherDimension, ...]


def cross_validated_fit(
    triplets: Triplets,
    seed: int = 0,
    lambdas: Sequence[float] | None = None,
    share: float | None = None,
    tolerance: float = SolverSettings.tolerance,
    max_iter: int = SolverSettings.max_iter,
    threads: int = 1,
    progress: Progress = lambda what, done, of: None,
) -> CrossValidatedFit:
    """Choose rank and λ by cross-validation, then fit all answers to `tolerance`.

    From `HOLD_OUT_FROM` answers on, a part of them is held out instead: see `rank.hold_out`.

    With `share`, also test for a further dimension that carries this share of the variance. The
    result does not depend on the number of `threads`.
    """
    triplets = triplets.repeated("cross-validation")
    if len(triplets) >= HOLD_OUT_FROM:
        if share is not None:
            raise InvalidParameter(
                f"There are {len(triplets)} answers, but a further dimension can be tested with "
                f"fewer than {HOLD_OUT_FROM}: draw some of them, or omit smallest_dimension."
            )
        result = held_out_audit(
            triplets,
            seed,
            hold_out.LAMBDAS if lambdas is None else lambdas,
            progress=lambda done, of: progress("Hold-out validation: λ", done, of),
        )
        return CrossValidatedFit(result, _refined(triplets, result, tolerance, max_iter), ())
    with _mapping(threads, progress) as mapper:
        result = audit(triplets, seed, lambdas=lambdas or LAMBDAS, mapper=mapper)
        solution = _refined(triplets, result, tolerance, max_iter)
        further: tuple[FurtherDimension, ...] = ()
        if share is not None and result.rank >= 1:
            acquisition = acquisition_model.chosen(
                triplets, np.ones(len(triplets), dtype=bool), seed, result.rank + 1, mapper=mapper
            ).acquisition
            further = tested(
                *(triplets, result.rank, acquisition, Decisive(share), seed),
                progress=lambda done, of: progress("Test for a further dimension: step", done, of),
            )
    return CrossValidatedFit(result, solution, further)


def _refined(triplets: Triplets, result: Audit, tolerance: float, max_iter: int) -> Solution | None:
    """The audit's fit, at full accuracy."""
    if result.solution is None:
        return None
    start, curvature = result.solution.embedding, result.solution.curvature
    settings = SolverSettings(
        result.lam, tolerance=tolerance, max_iter=max_iter, n_components=start.shape[1]
    )
    return solve(as_pairs(triplets), start, settings, curvature)


@contextmanager
def _mapping(threads: int, progress: Progress) -> Iterator[Mapper]:
    """A `map` over the folds, in threads, that reports each fold that is done."""

    def counted(results: Iterable[Any]) -> Iterator[Any]:
        progress("Cross-validation: fold", 0, FOLDS)
        for done, result in enumerate(results, 1):
            progress("Cross-validation: fold", done, FOLDS)
            yield result

    if threads == 1:
        yield lambda function, parts: counted(map(function, parts))
        return
    # Numerical work releases the interpreter lock, so threads suffice, without copying.
    with ThreadPoolExecutor(threads) as pool:
        yield lambda function, parts: counted(pool.map(function, parts))
