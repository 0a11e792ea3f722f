"""Stopping rule that rules out a further dimension of the smallest size of interest.

Held-out predictions cannot show that there is no further dimension: a weak one that is poorly
identified predicts no better than none. As in an equivalence test, the experimenter names the
smallest effect of interest, here the share δ of the differences between items that a dimension must
carry to matter, and collection continues until the answers are clearly less probable with a further
dimension of that size than without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Protocol, runtime_checkable

from lore_active.errors import InvalidParameter
from lore_active.rank.cross_validation import Audit
from lore_active.stopping.criteria import Criterion
from lore_active.stopping.rules import Progress, RankSettled

# Consecutive audits that must rule the dimension out: a single Bayes factor is estimated by
# sampling, and while answers are few it varies from audit to audit.
PERSISTENCE = 2
MIN_SHARE, MAX_SHARE = 0.02, 0.5


@runtime_checkable
class FurtherDimensionRule(Protocol):
    """Protocol of a stopping rule that needs the Bayes factor of a further dimension."""

    @property
    def smallest_dimension(self) -> float:
        """Share of the variance that the further dimension would carry."""
        ...

    def can_change(self, progress: Progress) -> bool:
        """Whether testing for a further dimension now could change the decision."""
        ...


@dataclass(frozen=True)
class SmallestDimension(RankSettled):
    """Stop when a further dimension of the smallest size of interest is ruled out.

    The rank must also have held through some audits, and fewer dimensions must be refuted by
    held-out answers and by the marginal likelihood.

    Parameters
    ----------
    smallest_dimension : float, default 0.10
        Smallest share of the variance of the embedding that a dimension of interest carries.
    evidence : float, default 20
        Required Bayes factor against a further dimension of that share.
    confidence, audits, min_answers, max_answers
        As in `RankSettled`; `audits` is 3 by default.

    Raises
    ------
    InvalidParameter
        If a value is outside its allowed range.

    Examples
    --------
    >>> from lore_active import Learner
    >>> from lore_active.stopping.smallest_dimension import SmallestDimension
    >>> learner = Learner(20, stopping=SmallestDimension(smallest_dimension=0.2))
    >>> [criterion.name for criterion in learner.decision.criteria][-1]
    'further_dimension'
    """

    audits: int = 3
    name: str = "smallest_dimension"
    smallest_dimension: float = 0.10
    evidence: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not MIN_SHARE <= self.smallest_dimension <= MAX_SHARE:
            raise InvalidParameter(
                f"smallest_dimension is {self.smallest_dimension!r}, but must be from "
                f"{MIN_SHARE} to {MAX_SHARE}."
            )
        if not 1.0 < self.evidence < 1e6:
            raise InvalidParameter(
                f"evidence is {self.evidence!r}, but must be above 1 and below 1,000,000."
            )

    def criteria(self, progress: Progress) -> tuple[Criterion, ...]:
        """All criteria, met or not."""
        return (
            *self._basic(progress),
            self._bayes_factor(progress, -1),
            self._further(progress.audits),
        )

    def can_change(self, progress: Progress) -> bool:
        """Whether everything else is met, or the rank has to hold for only one audit more.

        Because a verdict needs two tests in a row, testing starts one audit before it can be given.
        """
        others = self.criteria(progress)[:-1]
        waiting = [criterion for criterion in others if not criterion.passed]
        return all(
            criterion.name == "audits_unchanged" and criterion.value >= criterion.threshold - 1
            for criterion in waiting
        )

    def _further(self, audits: Sequence[Audit]) -> Criterion:
        """The log Bayes factor against a further dimension, the lowest of the last two tests.

        Where chains from different starts disagree there is no verdict.
        """
        name, need = "further_dimension", log(self.evidence)
        known = [
            test
            for audit in audits[-PERSISTENCE:]
            if audit.rank == audits[-1].rank
            for test in audit.further
            if test.agree and test.share == self.smallest_dimension
        ]
        if len(known) < PERSISTENCE:
            # One test is shown, but does not suffice.
            value = -known[-1].log_bayes_factor if known else 0.0
            return Criterion(name, value, need, False, self.smallest_dimension)
        value = min(-test.log_bayes_factor for test in known)
        return Criterion(name, value, need, value >= need, self.smallest_dimension)
