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
from lore_active.rank.audit import Audit
from lore_active.rank.bayes_factor import FurtherDimension
from lore_active.rank.significance import CLEARLY_WORSE, MAX_FOUND, REFUTED
from lore_active.stopping.criteria import Criterion
from lore_active.stopping.rules import Progress, RankSettled
from lore_active.stopping.sensitivity import (
    DEFAULT_SHARE,
    MAX_SHARE,
    MIN_SHARE,
    evidence_against,
    joint,
)

# Consecutive audits that must together rule the dimension out: a single Bayes factor is estimated
# by sampling, and while answers are few it varies from audit to audit.
PERSISTENCE = 3
# A dimension of the map that carries this part of the share of interest counts as one of interest:
# where a study settles, shares are known to about a fifth.
PART_OF_INTEREST = 0.8
# After a test with less than this share of the evidence that is needed, one audit has no test,
# unless the answers have grown by this factor since.
FAR_FROM_VERDICT, MANY_MORE = 0.4, 1.2


@runtime_checkable
class FurtherDimensionRule(Protocol):
    """Protocol of a stopping rule that needs the Bayes factor of a further dimension."""

    @property
    def share(self) -> float:
        """Share of the variance that the further dimension would carry."""
        ...

    @property
    def evidence(self) -> float:
        """Required Bayes factor."""
        ...

    def can_change(self, progress: Progress) -> bool:
        """Whether testing for a further dimension now could change the decision."""
        ...

    def needs_fewer(self, progress: Progress) -> bool:
        """Whether the last dimension rests on a Bayes factor that has to be computed again."""
        ...


@dataclass(frozen=True)
class SmallestDimension(RankSettled):
    """Stop when a further dimension of the smallest size of interest is ruled out.

    The rank must also have held through some audits, and fewer dimensions must be refuted by
    held-out answers and by the marginal likelihood.

    Parameters
    ----------
    smallest_dimension : float, optional
        Smallest share of the variance of the embedding that a dimension of interest carries; 0.10
        by default.
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
    marginal_likelihood = False
    smallest_dimension: float | None = None
    evidence: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        share = self.smallest_dimension
        if share is not None and not MIN_SHARE <= share <= MAX_SHARE:
            raise InvalidParameter(
                f"smallest_dimension is {share!r}, but must be from {MIN_SHARE} to {MAX_SHARE}."
            )
        if not 1.0 < self.evidence < 1e6:
            raise InvalidParameter(
                f"evidence is {self.evidence!r}, but must be above 1 and below 1,000,000."
            )

    @property
    def share(self) -> float:
        """Smallest share of interest."""
        return self.smallest_dimension or DEFAULT_SHARE

    def criteria(self, progress: Progress) -> tuple[Criterion, ...]:
        """All criteria, met or not."""
        basic = tuple(
            self._fewer(progress.audits, criterion)
            if criterion.name == "preferred_to_fewer"
            else criterion
            for criterion in self._basic(progress)
        )
        return (*basic, self._further(progress.audits, self.share))

    def can_change(self, progress: Progress) -> bool:
        """Whether everything else is met, or the rank only has to hold for a few audits more.

        Because a verdict needs several tests in a row, testing starts so many audits before it can
        be given.
        """
        others = self.criteria(progress)[:-1]
        waiting = [criterion for criterion in others if not criterion.passed]
        if not all(
            criterion.name == "audits_unchanged"
            and criterion.value >= criterion.threshold - (PERSISTENCE - 1)
            for criterion in waiting
        ):
            return False
        # The evidence of a few more answers does not turn a test that was far from a verdict.
        last = progress.audits[-2] if len(progress.audits) > 1 else None
        if last is None or last.rank != progress.audits[-1].rank or not last.further:
            return True
        if progress.audits[-1].answers >= MANY_MORE * last.answers:
            return True
        against = _against(last.further, self.share)
        return against is None or against >= FAR_FROM_VERDICT * log(self.evidence)

    def needs_fewer(self, progress: Progress) -> bool:
        """Whether the Bayes factor of the map's last dimension matters now.

        It does where all other criteria are met but held-out answers do not suffice, and where the
        last dimension was found by its Bayes factor only: the map without it may have been a poor
        fit then.
        """
        audits = progress.audits
        if not audits or audits[-1].rank < 2 or audits[-1].fewer:
            return False
        held_out = self._against(audits, -1)
        if held_out.passed and held_out.value >= REFUTED:
            return False
        if all(criterion.passed for criterion in self.criteria(progress)):
            return True
        found = any(test.found(self.evidence) for test in _tests_of(audits, audits[-1].rank - 1))
        return found and not held_out.passed

    def _fewer(self, audits: Sequence[Audit], held_out: Criterion) -> Criterion:
        """Evidence against one dimension fewer: by held-out answers and, at last, the Bayes factor.

        Each alone can err. Held-out answers can prefer a dimension that is not there for some
        audits; and a Bayes factor finds a dimension before predictions show it, but they must not
        clearly show the contrary.
        """
        value = held_out.value
        decided = value < -CLEARLY_WORSE or (held_out.passed and value >= REFUTED)
        if not audits or not audits[-1].fewer or decided:
            return held_out
        tests = [test for test in audits[-1].fewer if test.share <= MAX_FOUND]
        value = max((test.log_bayes_factor for test in tests), default=0.0)
        found = any(test.found(self.evidence) for test in tests)
        return Criterion("bayes_factor_fewer", value, log(self.evidence), found)

    def _further(self, audits: Sequence[Audit], share: float) -> Criterion:
        """The log Bayes factor against a further dimension, by the last tests together."""
        name, need = "further_dimension", log(self.evidence)
        weaker = self.weaker(audits)
        tested = [
            _against(audit.further, share)
            for audit in audits[-PERSISTENCE:]
            if audit.rank == audits[-1].rank
        ]
        known = [value for value in tested if value is not None]
        if len(known) < PERSISTENCE:
            # One test is shown, but does not suffice.
            return Criterion(name, known[-1] if known else 0.0, need, False, share, weaker)
        value = joint(known)
        return Criterion(name, value, need, value >= need, share, weaker)

    def weaker(self, audits: Sequence[Audit]) -> int:
        """How many dimensions of the map carry less than those of interest.

        Predictions can show a dimension that is too weak to matter; the map keeps it.
        """
        solution = audits[-1].solution if audits else None
        if solution is None or solution.rank < 2:
            return 0
        squares = solution.singular_values[: solution.rank] ** 2
        return int((squares[1:] < PART_OF_INTEREST * self.share * squares.sum()).sum())


def _tests_of(audits: Sequence[Audit], rank: int) -> tuple[FurtherDimension, ...]:
    """The last tests of a map of this rank, at audits of that rank or of one more dimension."""
    for audit in reversed(audits):
        tests = audit.further if audit.rank == rank else audit.fewer
        if audit.rank in (rank, rank + 1) and tests:
            return tests
    return ()


def _against(tests: Sequence[FurtherDimension], share: float) -> float | None:
    """Evidence against a further dimension of at least a share; None without a test.

    Where a smaller share is ruled out, so is this one: the clearest test counts.
    """
    known = [
        against
        for test, against in zip(tests, evidence_against(tests), strict=True)
        if test.share <= share and (test.agree or test.against)
    ]
    return max(known, default=None)
