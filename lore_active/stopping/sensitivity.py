"""Sensitivity: how weak a further dimension would have to be to have remained unnoticed.

Computed from the tests of an audit (`Audit.further`) and stored with the model. Does not import
numba, because pages use it as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil, exp, log
from typing import Any, Protocol

from lore_active.rank.bayes_factor import REALISED
from lore_active.rank.significance import MAX_FOUND
from lore_active.stopping.criteria import NAMES, dimensions, percent

# Smallest share of interest by default.
DEFAULT_SHARE = 0.10
# Range of shares of interest.
MIN_SHARE, MAX_SHARE = 0.02, 0.5
# Excess of the held-out log-loss, in standard errors, from which a smaller rank is excluded.
EXCLUDED_FROM = 1.96


class ShareTest(Protocol):
    """Protocol of a test for a further dimension that carries a share of the variance."""

    @property
    def share(self) -> float:
        """Share of the variance."""
        ...

    @property
    def log_bayes_factor(self) -> float:
        """Natural logarithm; positive for a further dimension, negative against it."""
        ...

    @property
    def chains(self) -> Sequence[float]:
        """The log Bayes factor by each chain."""
        ...

    @property
    def agree(self) -> bool:
        """Whether the chains agree within their errors."""
        ...

    @property
    def against(self) -> Sequence[float]:
        """Log Bayes factor against this share or more, by each chain; empty in earlier versions."""
        ...

    @property
    def there(self) -> Sequence[float]:
        """Log Bayes factor for a quarter of this share or more; empty in earlier versions."""
        ...


class Loss(Protocol):
    """Protocol of the cross-validation results of a rank."""

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        ...

    @property
    def difference(self) -> float:
        """Excess of the held-out log-loss over that of the best rank."""
        ...

    @property
    def error(self) -> float:
        """Standard error of that excess."""
        ...


class Tested(Protocol):
    """Protocol of an audit with its tests for a further dimension, if it has any."""

    @property
    def answers(self) -> int:
        """Number of answers."""
        ...

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        ...

    @property
    def evidence(self) -> Sequence[Loss]:
        """Cross-validation results by rank."""
        ...

    @property
    def further(self) -> Sequence[ShareTest]:
        """Tests for a further dimension, by increasing share."""
        ...


@dataclass(frozen=True)
class Sensitivity:
    """What can be said about further dimensions, and about the number of dimensions.

    Attributes
    ----------
    rank : int
        Number of dimensions of the map that was tested.
    answers : int
        Number of answers at the last test.
    odds : float
        Bayes factor from which a share counts as ruled out or a dimension as found.
    smallest : float or None
        Smallest share of interest of the stopping rule, if it has one.
    ruled_out : float or None
        Smallest share that is ruled out, but not less than `smallest`: no further dimension carries
        that much or more of the differences between items. None if nothing is ruled out yet.
    found : float or None
        Share at which the evidence for a further dimension is strongest, if there is one.
    ranks : tuple of int and int or None
        Smallest and largest number of dimensions of interest that cannot be excluded; None: there
        may be more.

    Examples
    --------
    >>> from lore_active.stopping.sensitivity import Sensitivity
    >>> known = Sensitivity(2, 480, 20.0, 0.1, ruled_out=0.14, found=None, ranks=(2, None))
    >>> known.message
    'A further dimension that carries 14 % or more of the differences between items is ruled out \
(20 : 1); two or more dimensions are possible.'
    """

    rank: int
    answers: int
    odds: float
    smallest: float | None
    ruled_out: float | None
    found: float | None
    ranks: tuple[int, int | None]

    @property
    def message(self) -> str:
        """What is ruled out and what is possible, as a sentence."""
        return f"{self._further}; {self._possible}."

    @property
    def _further(self) -> str:
        odds = f"{self.odds:.3g} : 1"
        if self.found is not None:
            there = (
                f"There is a further dimension, which carries about {percent(self.found)} of the "
                f"differences between items ({odds})"
            )
            if self.ruled_out is None:
                return there
            return f"{there}; one that carries {percent(self.ruled_out)} or more is ruled out"
        if self.ruled_out is None:
            return "A further dimension of any strength may have remained unnoticed so far"
        return (
            f"A further dimension that carries {percent(self.ruled_out)} or more of the "
            f"differences between items is ruled out ({odds})"
        )

    @property
    def _possible(self) -> str:
        low, high = self.ranks
        least = NAMES[low] if low < len(NAMES) else str(low)
        if high is None:
            return f"{least} or more dimensions are possible"
        if low == high:
            return f"{dimensions(low)} {'is' if low == 1 else 'are'} left"
        return f"{least} to {dimensions(high)} are possible"

    def stored(self) -> dict[str, Any]:
        """As it is kept with a model."""
        return asdict(self)


def from_stored(row: Mapping[str, Any] | None) -> Sensitivity | None:
    """A sensitivity from a database; None for models without one."""
    if row is None:
        return None
    low, high = row["ranks"]
    return Sensitivity(**{**row, "ranks": (low, high)})


def sensitivity(
    audits: Sequence[Tested],
    bayes_factor: float,
    smallest: float | None = None,
    persistence: int = 1,
    weaker: int = 0,
) -> Sensitivity | None:
    """Sensitivity at the last audits; None if a map of the last audit's rank was never tested.

    Parameters
    ----------
    audits : sequence of audits
        All audits so far. Those from the last change of the rank on are used, as far as they were
        tested.
    bayes_factor : float
        Required Bayes factor.
    smallest : float, optional
        Smallest share of interest.
    persistence : int, default 1
        Number of tests in a row that must together rule out a share.
    weaker : int, default 0
        How many dimensions of the map are weaker than those of interest.
    """
    tested: list[Tested] = []
    for audit in reversed(audits):
        if audit.rank != audits[-1].rank or len(tested) == persistence:
            break
        if audit.further:
            tested.append(audit)
    if not tested:
        return None
    last = tested[0]
    small = [test for test in last.further if test.share <= max(MAX_FOUND, smallest or 0.0)]
    found = max(small, key=lambda test: test.log_bayes_factor, default=last.further[0])
    is_found = min(_values(found)) >= log(bayes_factor)
    is_found = is_found and min(found.there, default=REALISED) >= REALISED
    ruled_out = None
    if len(tested) == persistence:
        ruled_out = smallest_ruled_out(
            *(audit.further for audit in tested), bayes_factor=bayes_factor
        )
    if ruled_out is not None and smallest is not None:
        # Questions are selected for dimensions of interest: weaker ones are judged by answers that
        # say little of them.
        ruled_out = max(ruled_out, smallest)
    if is_found and ruled_out is not None and ruled_out <= found.share:
        ruled_out = None
    of_interest = is_found and (smallest is None or found.share >= smallest)
    low = last.rank + 1 if of_interest else _least_rank(audits[-1])
    high = last.rank - weaker
    enough = ruled_out is not None and smallest is not None and ruled_out <= smallest
    return Sensitivity(
        rank=last.rank,
        answers=last.answers,
        odds=bayes_factor,
        smallest=smallest,
        ruled_out=ruled_out,
        found=found.share if is_found else None,
        ranks=(min(low, high), high) if enough else (low, None),
    )


def smallest_ruled_out(*profiles: Sequence[ShareTest], bayes_factor: float) -> float | None:
    """Smallest share, in whole per cent, that is ruled out by all tests together, or None.

    A share is ruled out if the answers are less probable with it, by this Bayes factor, than with a
    smaller one or with none. A stronger dimension would show in the test for a weaker one as well,
    so whatever is larger is ruled out with it. Between the last share that is not ruled out and the
    first that is, the evidence is interpolated linearly in the logarithm of the share.
    """
    before: tuple[float, float] | None = None
    for share, against, agree in joint_evidence(*profiles):
        if against < log(bayes_factor):
            before = (share, against) if agree else None
            continue
        bound = share
        if before is not None and against > before[1]:
            part = (against - log(bayes_factor)) / (against - before[1])
            bound = exp((1.0 - part) * log(bound) + part * log(before[0]))
        # Rounded up, so that nothing is claimed that was not shown; tested shares are exact.
        return ceil(round(100.0 * bound, 6)) / 100.0
    return None


def joint_evidence(*profiles: Sequence[ShareTest]) -> list[tuple[float, float, bool]]:
    """Evidence against each share by all tests together, and whether all chains agree.

    See `evidence_against` and `joint`. A test of fewer shares than the others had ruled out its
    last one, and every larger one with it.
    """
    known = [
        {
            test.share: (against, test.agree)
            for test, against in zip(tests, evidence_against(tests), strict=True)
        }
        for tests in profiles
    ]
    joined = []
    for share in sorted(set().union(*known)):
        values = [
            profile.get(share, profile[max(profile)])
            for profile in known
            if share in profile or share > max(profile)
        ]
        if len(values) == len(known):
            joined.append(
                (share, joint([against for against, _ in values]), all(same for _, same in values))
            )
    return joined


def joint(values: Sequence[float]) -> float:
    """Log Bayes factor by several tests: their mean, or twice the weakest if that is less.

    A single test is estimated by sampling and varies; one that is much less clear than the others
    keeps them from a verdict, and one to the contrary counts alone.
    """
    weakest = min(values)
    return min(sum(values) / len(values), 2.0 * weakest) if weakest > 0.0 else weakest


def evidence_against(tests: Sequence[ShareTest]) -> list[float]:
    """Log Bayes factor against a further dimension of each share or more, by the least clear chain.

    Tests of earlier versions have none: there it is that of the best smaller share, or none, over
    that share; where chains disagree, each must say so.

    Parameters
    ----------
    tests : sequence of tests
        By increasing share.

    Returns
    -------
    list of float
    """
    best, against = 0.0, []
    for test in tests:
        against.append(min(test.against, default=best - max(_values(test))))
        best = max(best, min(_values(test)))
    return against


def _values(test: ShareTest) -> Sequence[float]:
    """The log Bayes factor; where chains disagree, that of each."""
    return [test.log_bayes_factor] if test.agree else test.chains


def _least_rank(audit: Tested) -> int:
    """Smallest rank, up to that of the audit, whose held-out log-loss is not clearly worse."""
    possible = [
        loss.rank
        for loss in audit.evidence
        if loss.rank <= audit.rank and loss.difference < EXCLUDED_FROM * loss.error
    ]
    return min(possible, default=audit.rank)
