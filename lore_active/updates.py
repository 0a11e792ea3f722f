"""From answers to the next model: audits, refits, and how their fits are published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lore_active.asking import Asker
from lore_active.model import Model, facing, turned
from lore_active.pairs import as_pairs
from lore_active.path import LAMBDAS, Audit, audit
from lore_active.solver import Settings, Solution, solve
from lore_active.triplets import Triplets
from lore_active.types import Floats, Mapper

REFIT_TOLERANCE = 1e-3


def audited(
    triplets: Triplets,
    seed: int,
    audits: Sequence[Audit],
    previous: Model | None,
    lam: float | None = None,
    mapper: Mapper = map,
) -> Audit:
    """A cross-validation of all answers; ranks near that of the last one are tried first.

    With `lam` ranks are judged, and fitted, at that λ alone.
    """
    lambdas = LAMBDAS if lam is None else (lam,)
    expected = audits[-1].rank if audits else 1
    found = audit(triplets, seed, expected, lambdas=lambdas, mapper=mapper)
    if found.solution is None or previous is None or previous.rank != found.rank:
        return found
    # The answers may leave several optima; a cold fit need not find the lowest.
    warm = _solved(triplets, previous.embedding, found.lam)
    if warm.rank == found.rank and warm.objective < found.solution.objective:
        return replace(found, solution=warm)
    return found


def refitted(triplets: Triplets, last: Audit, model: Model) -> Solution | None:
    """The fit at the audited rank and λ, from the model's."""
    if last.solution is None:
        return None
    start = model.embedding if model.rank == last.rank else last.solution.embedding
    return _solved(triplets, start, last.lam)


def published(
    solution: Solution | None,
    asker: Asker,
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
    faced = facing(embedding, None if previous is None else previous.embedding)
    return Model(
        version=version,
        up_to=up_to,
        rank=faced.shape[1],
        lam=last.lam,
        temperature=last.temperature,
        embedding=np.ascontiguousarray(faced),
        singular_values=spectrum,
        picture=turned(faced, None if previous is None else previous.picture),
        asker=asker,
        objective=0.0 if solution is None else solution.objective,
    )


def _solved(triplets: Triplets, start: Floats, lam: float) -> Solution:
    settings = Settings(lam, tolerance=REFIT_TOLERANCE, n_components=start.shape[1])
    return solve(as_pairs(triplets), start, settings)
