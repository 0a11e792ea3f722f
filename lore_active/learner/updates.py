"""Updates of the model: audits, refits, and the publication of their fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition import model as acquisition_model
from lore_active.acquisition.model import AcquisitionModel
from lore_active.data.triplets import Triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.pairs import Pairs, as_pairs
from lore_active.embedding.solver import Solution, SolverSettings, solve
from lore_active.learner.model import Model, procrustes_aligned, sign_aligned
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.rank import evidence
from lore_active.rank.audit import Audit
from lore_active.rank.bayes_factor import Decisive, FurtherDimension
from lore_active.rank.comparison import NO_STARTS, WarmStarts
from lore_active.rank.cross_validation import LAMBDAS, compare
from lore_active.rank.further_dimension import further_dimensions
from lore_active.rank.significance import SUPPORTED_FROM, SUPPORTED_STILL
from lore_active.trials.stages import as_trials, pairs_of
from lore_active.types import Floats, Mapper

REFIT_TOLERANCE = 1e-3
# The acquisition model may have at least this many dimensions.
MIN_ASKED = 2
# Sizes of a further dimension that are tested beside the one that the stopping rule is about and
# its half and quarter, which tell a weaker dimension from one of that size.
SENSITIVITY_SHARES = (0.1, 0.2, 0.35, 0.5)


def audited(
    triplets: Triplets,
    model_independent: NDArray[np.bool_],
    seed: int,
    audits: Sequence[Audit],
    previous: Model | None,
    warm: WarmStarts = NO_STARTS,
    lam: float | None = None,
    mapper: Mapper = map,
    marginal_likelihood: bool = True,
    kind: Kind = TRIPLET,
    decisive: Decisive | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Audit, AcquisitionModel, WarmStarts]:
    """Cross-validate all answers: the audit, the new acquisition model, and what they leave.

    Ranks near that of the last audit are tried first, from the starts in `warm`. With `lam`, only
    that λ is used. Marginal likelihoods of the neighbouring ranks are optional, because they take
    long for many items. With `decisive`, ranks are raised where earlier audits found a dimension
    and kept where one is found now; `progress` is that of these tests.
    """
    lambdas = LAMBDAS if lam is None else (lam,)
    last = audits[-1].rank if audits else None
    check = warm.check_due(len(triplets))
    compared = compare(triplets, seed, 1 if last is None else last, lambdas, mapper, warm)
    max_rank = min(max(compared.best + 1, MIN_ASKED), triplets.n_objects - 2)
    chosen = acquisition_model.chosen(
        triplets,
        model_independent,
        seed,
        max_rank,
        None if previous is None else previous.acquisition,
        mapper,
        compared.warm,
        compared.best,
        check,
        kind,
    )
    acquisition = chosen.acquisition

    def solved(rank: int, at: float) -> Solution | None:
        """The fit of all answers from the previous model, or a cold one if its objective is lower.

        There may be several optima, and neither start need find the lowest.
        """
        if rank == 0:
            return None
        near = None
        if previous is not None and previous.rank == rank:
            near = _solved(as_pairs(triplets), previous.embedding, at)
        if near is not None and near.rank == rank and not check:
            return near
        cold = compared.solved(rank, at)
        fits = [fit for fit in (cold, near) if fit is not None and fit.rank == rank]
        return min(fits, key=lambda fit: fit.objective) if fits else cold

    supported = acquisition.beyond_guessing >= (SUPPORTED_STILL if last else SUPPORTED_FROM)
    found = set() if decisive is None else found_beyond(audits, decisive)
    audit = compared.audit(supported=supported, solved=solved, found=found)
    if decisive is not None and last == audit.rank + 1 and audit.rank:
        # Predictions of neighbouring ranks hardly differ where the last dimension is weak; it is
        # given up only if the Bayes factor does not show it.
        tests = tested(triplets, audit.rank, acquisition, decisive, seed, progress)
        if any(map(decisive.found, tests)):
            found = {*found, audit.rank}
            audit = compared.audit(supported=supported, solved=solved, found=found)
        kept = audit.rank == last
        audit = replace(audit, fewer=tests) if kept else replace(audit, further=tests)
    audit = replace(audit, map_above=chosen.steps.get(audit.rank))
    if marginal_likelihood:
        below, above = evidence.log_bayes_factors(
            triplets, audit.rank, (acquisition.embedding, acquisition.wider)
        )
        audit = replace(audit, log_bayes_below=below, log_bayes_above=above)
    used = tuple(sorted({audit.lam, compared.judged[audit.rank].lam}))
    return audit, acquisition, replace(chosen.warm, rank=audit.rank, lambdas=used)


def found_beyond(audits: Sequence[Audit], decisive: Decisive) -> set[int]:
    """Ranks beyond which a dimension of interest was found, when they were tested last."""
    latest: dict[int, tuple[FurtherDimension, ...]] = {}
    for audit in audits:
        for rank, tests in ((audit.rank, audit.further), (audit.rank - 1, audit.fewer)):
            if tests:
                latest[rank] = tests
    return {rank for rank, tests in latest.items() if any(map(decisive.found, tests))}


def tested(
    triplets: Triplets,
    rank: int,
    acquisition: AcquisitionModel,
    decisive: Decisive,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[FurtherDimension, ...]:
    """Test for a further dimension of the share of interest, and of others for the sensitivity.

    Empty where no further dimension could be identified.
    """
    if not 1 <= rank <= triplets.n_objects - 3:
        return ()
    answers, count = as_trials(triplets), len(triplets)
    fits = map_embedding.fits_by_rank(
        answers, count, acquisition.noise, rank + 1, final=True, min_rank=rank
    )
    for start in (acquisition.embedding, acquisition.wider):
        width = start.shape[1]
        if width in fits:
            warm = map_embedding.fitted(answers, count, acquisition.noise, start, final=True)
            fits[width] = min(fits[width], warm, key=lambda fit: fit[1])
    return further_dimensions(
        triplets,
        fits[rank][0],
        sorted({decisive.share / 4, decisive.share / 2, decisive.share, *SENSITIVITY_SHARES}),
        seed + count,
        wider=fits[rank + 1][0],
        decisive=decisive,
        progress=progress,
    )


def refitted(
    triplets: Triplets, last: Audit, model: Model, acquisition: AcquisitionModel
) -> tuple[Solution | None, AcquisitionModel]:
    """Fit at the rank and λ of the last audit, starting from the model; refit the other as well."""
    triplets.refuse_weights("the acquisition model")
    answers, solution = as_trials(triplets), None
    if last.solution is not None:
        start = model.embedding if model.rank == last.rank else last.solution.embedding
        solution = _solved(pairs_of(answers), start, last.lam)
    return solution, acquisition_model.refitted(answers, len(triplets), acquisition)


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


def _solved(pairs: Pairs, start: Floats, lam: float) -> Solution:
    settings = SolverSettings(lam, tolerance=REFIT_TOLERANCE, n_components=start.shape[1])
    return solve(pairs, start, settings)
