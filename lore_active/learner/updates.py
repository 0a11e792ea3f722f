"""From answers to the next model: audits, refits, and how their fits are published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition import model as acquisition_model
from lore_active.acquisition.model import AcquisitionModel
from lore_active.data.comparisons import Triplets
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.learner.model import Model, procrustes_aligned, sign_aligned
from lore_active.rank import evidence
from lore_active.rank.cross_validation import LAMBDAS, Audit, compare
from lore_active.rank.significance import SUPPORTED_FROM, SUPPORTED_STILL
from lore_active.types import Floats, Mapper

REFIT_TOLERANCE = 1e-3
# Questions are asked for this many dimensions at least, if that many predict best.
MIN_ASKED = 2


def audited(
    triplets: Triplets,
    model_independent: NDArray[np.bool_],
    seed: int,
    audits: Sequence[Audit],
    previous: Model | None,
    lam: float | None = None,
    mapper: Mapper = map,
) -> tuple[Audit, AcquisitionModel]:
    """A cross-validation of all answers, and the model that is to ask from now on.

    Ranks near that of the last audit are tried first. With `lam` they are judged, and fitted, at
    that λ alone.
    """
    lambdas = LAMBDAS if lam is None else (lam,)
    last = audits[-1].rank if audits else None
    compared = compare(triplets, seed, 1 if last is None else last, lambdas, mapper)
    most = min(max(compared.best + 1, MIN_ASKED), triplets.n_objects - 2)
    acquisition, steps = acquisition_model.chosen(
        triplets,
        model_independent,
        seed,
        most,
        None if previous is None else previous.acquisition,
        mapper,
    )
    found = compared.audit(
        supported=acquisition.beyond_guessing >= (SUPPORTED_STILL if last else SUPPORTED_FROM)
    )
    below, above = evidence.log_bayes_factors(
        triplets, found.rank, (acquisition.embedding, acquisition.wider)
    )
    found = replace(
        found,
        solution=_lowest(triplets, found, previous),
        map_above=steps.get(found.rank),
        log_bayes_below=below,
        log_bayes_above=above,
    )
    return found, acquisition


def _lowest(triplets: Triplets, found: Audit, previous: Model | None) -> Solution | None:
    """The audit's fit, or one from the last model's where that is lower.

    The answers may leave several optima; a cold fit need not find the lowest.
    """
    if found.solution is None or previous is None or previous.rank != found.rank:
        return found.solution
    warm = _solved(triplets, previous.embedding, found.lam)
    lower = warm.rank == found.rank and warm.objective < found.solution.objective
    return warm if lower else found.solution


def refitted(triplets: Triplets, last: Audit, model: Model) -> Solution | None:
    """The fit at the audited rank and λ, from the model's."""
    if last.solution is None:
        return None
    start = model.embedding if model.rank == last.rank else last.solution.embedding
    return _solved(triplets, start, last.lam)


def published(
    solution: Solution | None,
    acquisition: AcquisitionModel,
    last: Audit,
    previous: Model | None,
    n_objects: int,
    version: int,
    up_to: int,
) -> Model:
    """A fit as a model, turned to face the way the previous one did."""
    if solution is None:
        embedding, spectrum = np.zeros((n_objects, 0)), np.zeros(0)
    else:
        embedding, spectrum = solution.embedding, solution.singular_values
    faced = sign_aligned(embedding, None if previous is None else previous.embedding)
    return Model(
        version=version,
        up_to=up_to,
        rank=faced.shape[1],
        lam=last.lam,
        temperature=last.temperature,
        embedding=np.ascontiguousarray(faced),
        singular_values=spectrum,
        aligned=procrustes_aligned(faced, None if previous is None else previous.aligned),
        acquisition=acquisition,
        objective=0.0 if solution is None else solution.objective,
    )


def _solved(triplets: Triplets, start: Floats, lam: float) -> Solution:
    settings = SolverSettings(lam, tolerance=REFIT_TOLERANCE, n_components=start.shape[1])
    return solve(as_pairs(triplets), start, settings)
