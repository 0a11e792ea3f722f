"""Updates of the model: audits, refits, and the publication of their fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition import model as acquisition_model
from lore_active.acquisition.model import AcquisitionModel
from lore_active.data.comparisons import Triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.learner.model import Model, procrustes_aligned, sign_aligned
from lore_active.rank import evidence
from lore_active.rank.cross_validation import LAMBDAS, Audit, compare
from lore_active.rank.further_dimension import FurtherDimension, further_dimensions
from lore_active.rank.significance import SUPPORTED_FROM, SUPPORTED_STILL
from lore_active.types import Floats, Mapper

REFIT_TOLERANCE = 1e-3
# The acquisition model may have at least this many dimensions.
MIN_ASKED = 2
# Sizes of a further dimension that are tested beside the one that the stopping rule is about.
SENSITIVITY_SHARES = (0.05, 0.1, 0.2, 0.35, 0.5)


def audited(
    triplets: Triplets,
    model_independent: NDArray[np.bool_],
    seed: int,
    audits: Sequence[Audit],
    previous: Model | None,
    lam: float | None = None,
    mapper: Mapper = map,
) -> tuple[Audit, AcquisitionModel]:
    """Cross-validate all answers; return the audit and the new acquisition model.

    Ranks near that of the last audit are tried first. With `lam`, only that λ is used.
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
    audit = compared.audit(
        supported=acquisition.beyond_guessing >= (SUPPORTED_STILL if last else SUPPORTED_FROM)
    )
    below, above = evidence.log_bayes_factors(
        triplets, audit.rank, (acquisition.embedding, acquisition.wider)
    )
    audit = replace(
        audit,
        solution=_lowest(triplets, audit, previous),
        map_above=steps.get(audit.rank),
        log_bayes_below=below,
        log_bayes_above=above,
    )
    return audit, acquisition


def tested(
    triplets: Triplets, audit: Audit, acquisition: AcquisitionModel, share: float, seed: int
) -> tuple[FurtherDimension, ...]:
    """Test for a further dimension of the given share, and of others for the sensitivity.

    Empty where no further dimension could be identified.
    """
    rank = audit.rank
    if not 1 <= rank <= triplets.n_objects - 3:
        return ()
    pairs, count = as_pairs(triplets), len(triplets)
    fits = map_embedding.fits_by_rank(
        pairs, count, acquisition.noise, rank + 1, fine=True, least=rank
    )
    for start in (acquisition.embedding, acquisition.wider):
        width = start.shape[1]
        if width in fits:
            warm = map_embedding.fitted(pairs, count, acquisition.noise, start, fine=True)
            fits[width] = min(fits[width], warm, key=lambda fit: fit[1])
    return further_dimensions(
        triplets,
        fits[rank][0],
        sorted({share, *SENSITIVITY_SHARES}),
        seed + count,
        precision=acquisition.noise,
        wider=fits[rank + 1][0],
    )


def _lowest(triplets: Triplets, audit: Audit, previous: Model | None) -> Solution | None:
    """The audit's fit, or one that starts from the previous model if its objective is lower.

    There may be several optima, and a cold fit need not find the lowest.
    """
    if audit.solution is None or previous is None or previous.rank != audit.rank:
        return audit.solution
    warm = _solved(triplets, previous.embedding, audit.lam)
    lower = warm.rank == audit.rank and warm.objective < audit.solution.objective
    return warm if lower else audit.solution


def refitted(triplets: Triplets, last: Audit, model: Model) -> Solution | None:
    """Fit at the rank and λ of the last audit, starting from the model."""
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
    """Make a model of a fit, aligned in sign and by Procrustes to the previous one."""
    if solution is None:
        embedding, spectrum = np.zeros((n_objects, 0)), np.zeros(0)
    else:
        embedding, spectrum = solution.embedding, solution.singular_values
    signed = sign_aligned(embedding, None if previous is None else previous.embedding)
    return Model(
        version=version,
        up_to=up_to,
        rank=signed.shape[1],
        lam=last.lam,
        temperature=last.temperature,
        embedding=np.ascontiguousarray(signed),
        singular_values=spectrum,
        aligned=procrustes_aligned(signed, None if previous is None else previous.aligned),
        acquisition=acquisition,
        objective=0.0 if solution is None else solution.objective,
    )


def _solved(triplets: Triplets, start: Floats, lam: float) -> Solution:
    settings = SolverSettings(lam, tolerance=REFIT_TOLERANCE, n_components=start.shape[1])
    return solve(as_pairs(triplets), start, settings)
