"""Results of an audit: the rank that the answers support, and the evidence for every rank."""

from __future__ import annotations

from dataclasses import dataclass

from lore_active.embedding.solver import Solution
from lore_active.rank.bayes_factor import FurtherDimension

# Mean paired difference of held-out log-losses, and its standard error.
LossDifference = tuple[float, float]


@dataclass(frozen=True)
class RankEvidence:
    """Cross-validation results for one rank.

    loss: mean held-out log-loss at the best λ and temperature (rank 0: guessing). difference: its
    difference from the best rank's log-loss. error: standard error of that difference.
    """

    rank: int
    lam: float
    temperature: float
    loss: float
    accuracy: float
    difference: float
    error: float


@dataclass(frozen=True, eq=False)
class Audit:
    """Results of an audit: the chosen rank, its λ and temperature, and the evidence.

    `solution` is the fit of all answers at that rank and λ. `below` and `above` are the differences
    of the neighbouring ranks' held-out log-losses from the chosen one's, with standard errors,
    where those ranks were fitted. `map_above` is the same as `above` for the acquisition model,
    which overfits less and so detects a dimension earlier. `log_bayes_below` and `log_bayes_above`
    are the natural log Bayes factors of the chosen rank against its neighbours, where computed.
    `further` are the tests for a further dimension, by size, where the stopping rule needs them;
    `fewer` are the same for a map of one dimension fewer, where these found the last dimension.
    """

    answers: int
    rank: int
    lam: float
    temperature: float
    evidence: tuple[RankEvidence, ...]
    solution: Solution | None
    below: LossDifference | None
    above: LossDifference | None
    map_above: LossDifference | None = None
    log_bayes_below: float | None = None
    log_bayes_above: float | None = None
    further: tuple[FurtherDimension, ...] = ()
    fewer: tuple[FurtherDimension, ...] = ()
