"""Stopping rules: they decide whether to stop, and give the reasons as numbers and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, log
from statistics import NormalDist
from typing import Protocol

from lore_active.errors import InvalidParameter
from lore_active.rank.audit import Audit, LossDifference
from lore_active.rank.significance import Proportion
from lore_active.stopping.criteria import (
    Criterion,
    message,
    not_met,
    of_interest,
    with_weaker,
)
from lore_active.stopping.stages import Findings
from lore_active.stopping.verdict import only_a_bound


@dataclass(frozen=True)
class Progress:
    """The state of a study that a stopping rule decides by.

    `bits` says how many triplets an answer counts for where a number of answers is required.
    """

    n_objects: int
    answers: int
    items_seen: int
    audits: Sequence[Audit]
    held_out: Proportion
    bits: float = 1.0


@dataclass(frozen=True)
class Decision:
    """Stop or continue. `settled`: the rank is; a stop without that means the budget is used up.

    `rank` is that of the map. Under a rule about dimensions of a certain size, some of them may be
    weaker than those of interest, of which there are `dimensions`.
    """

    stop: bool
    settled: bool
    rank: int
    criteria: tuple[Criterion, ...]

    @property
    def dimensions(self) -> int:
        """Number of dimensions of interest."""
        return of_interest(self.rank, self.criteria)[0]

    @property
    def message(self) -> str:
        """The decision as sentences."""
        if self.settled:
            met = (message(criterion, self.rank) for criterion in self.criteria if criterion.passed)
            found = with_weaker(*of_interest(self.rank, self.criteria))
            return f"The rank is settled at {found}. {' '.join(met)}"
        start = "The budget is used up. " if self.stop else ""
        open_ = [criterion for criterion in self.criteria if not criterion.passed]
        messages = " ".join(message(criterion, self.rank) for criterion in open_)
        return f"{start}{not_met([criterion.name for criterion in open_])} {messages}".strip()


def findings(decision: Decision, audits: Sequence[Audit]) -> Findings | None:
    """What has been found so far, for the verdict; None before the first audit."""
    if not audits:
        return None
    guessing = next((evidence for evidence in audits[-1].evidence if evidence.rank == 0), None)
    return Findings(
        decision.rank,
        decision.settled,
        decision.criteria,
        tuple(audit.rank for audit in audits),
        only_a_bound(
            decision.rank,
            None if guessing is None else (guessing.difference, guessing.error),
        ),
    )


class StoppingRule(Protocol):
    """Decides from the progress of a study whether to stop."""

    @property
    def name(self) -> str:
        """Its name in settings."""
        ...

    def decide(self, progress: Progress) -> Decision:
        """Stop or continue, with the criteria as reasons."""
        ...


def _unchanged(audits: Sequence[Audit]) -> int:
    """The number of audits, up to the last, at which the rank has been the same."""
    held = 0
    for audit in reversed(audits):
        if audit.rank != audits[-1].rank:
            break
        held += 1
    return held


# The log Bayes factor needed against a further dimension: this per item, divided by the rank. A
# dimension adds one coordinate per item, and the information of an answer is shared among the
# dimensions, so the Bayes factor for the correct rank grows with the former and falls with the
# latter.
LOG_BAYES_PER_ITEM = 0.4


@dataclass(frozen=True)
class RankSettled:
    """Stop when the rank predicts held-out answers better than its neighbours, over several audits.

    In addition, Bayes factors at the last audit must favour that rank. confidence: one-sided
    confidence of each comparison. audits: the number of consecutive audits with the same rank.
    min_answers: the minimum number of answers (None: four per item). max_answers: the budget, at
    which collection ends in any case.
    """

    confidence: float = 0.975
    audits: int = 5
    min_answers: int | None = None
    max_answers: int | None = None
    name: str = "rank_settled"

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence < 1.0:
            raise InvalidParameter(
                f"confidence is {self.confidence!r}, but must be at least 0.5 and below 1."
            )
        if self.audits < 1:
            raise InvalidParameter(f"audits is {self.audits!r}, but must be 1 or more.")

    def decide(self, progress: Progress) -> Decision:
        """Stop or continue, with the criteria as reasons."""
        rank = progress.audits[-1].rank if progress.audits else 0
        criteria = self.criteria(progress)
        settled = all(criterion.passed for criterion in criteria)
        spent = self.max_answers is not None and progress.answers >= self.max_answers
        return Decision(settled or spent, settled, rank, criteria)

    def criteria(self, progress: Progress) -> tuple[Criterion, ...]:
        """All criteria, met or not."""
        return (
            *self._basic(progress),
            self._against(progress.audits, +1),
            self._bayes_factor(progress, -1),
            self._bayes_factor(progress, +1),
        )

    def _basic(self, progress: Progress) -> tuple[Criterion, ...]:
        """Enough answers that predict, and a rank that has held and predicts better than fewer."""
        return (
            self._seen(progress),
            self._enough(progress),
            self._predicts(progress),
            self._held(progress.audits),
            self._against(progress.audits, -1),
        )

    def _seen(self, progress: Progress) -> Criterion:
        return Criterion(
            "items_seen",
            progress.items_seen,
            progress.n_objects,
            progress.items_seen >= progress.n_objects,
        )

    def _enough(self, progress: Progress) -> Criterion:
        minimum = self.min_answers
        if minimum is None:
            minimum = ceil(4 * progress.n_objects / progress.bits)
        return Criterion(
            "answers",
            progress.answers,
            minimum,
            progress.answers >= minimum,
        )

    def _predicts(self, progress: Progress) -> Criterion:
        low = progress.held_out.low
        return Criterion("better_than_chance", low, 0.5, low > 0.5)

    def _held(self, audits: Sequence[Audit]) -> Criterion:
        held = _unchanged(audits)
        return Criterion("audits_unchanged", held, self.audits, held >= self.audits)

    def clear(self, audits: Sequence[Audit]) -> bool:
        """Whether the held-out criteria are met, regardless of the number of answers and items."""
        reasons = (self._held(audits), self._against(audits, -1), self._against(audits, +1))
        return all(reason.passed for reason in reasons)

    def _against(self, audits: Sequence[Audit], step: int) -> Criterion:
        """The advantage of the rank over a neighbour in held-out log-loss, over the last audits.

        The evidence of a single audit varies, and while answers are few, the correct rank may be
        slightly worse; hence the mean over audits. Against one further dimension there are two
        estimators, the published fit and the acquisition model: each alone can miss a dimension
        for some time. So their mean must reach the threshold, and each of them half of it.
        """
        name = "preferred_to_fewer" if step < 0 else "preferred_to_more"
        need = NormalDist().inv_cdf(self.confidence)
        recent = audits[-min(self.audits, _unchanged(audits)) :]
        if not audits:
            return Criterion(name, 0.0, need, False)
        if audits[-1].rank == 0:
            return Criterion(name, 0.0, need, False)
        published = [audit.below if step < 0 else audit.above for audit in recent]
        acquisition = [audit.map_above for audit in recent] if step > 0 else []
        pooled = [mean for mean in (_pooled(published), _pooled(acquisition)) if mean is not None]
        if not pooled:
            # The penalty always removed further dimensions, so there is nothing to compare with.
            return Criterion(name, inf, need, step > 0)
        advantage = min(sum(pooled) / len(pooled), 2.0 * min(pooled))
        return Criterion(name, advantage, need, advantage >= need)

    def _bayes_factor(self, progress: Progress, step: int) -> Criterion:
        """The log Bayes factor of the rank over a neighbour at the last audit.

        Held-out predictions get worse with a dimension that exists but is weakly identified; the
        marginal likelihood does not penalise it for that.
        """
        name = "bayes_factor_fewer" if step < 0 else "bayes_factor_more"
        sure = log(self.confidence / (1.0 - self.confidence))
        last = progress.audits[-1] if progress.audits else None
        if last is None or last.rank == 0:
            return Criterion(name, 0.0, sure, False)
        need = sure if step < 0 else LOG_BAYES_PER_ITEM * progress.n_objects / last.rank
        value = last.log_bayes_below if step < 0 else last.log_bayes_above
        if value is None:
            return Criterion(name, inf, need, True)
        return Criterion(name, value, need, value >= need)


def _pooled(differences: Sequence[LossDifference | None]) -> float | None:
    """The mean advantage in standard errors, over the audits that have one."""
    known = [difference for difference in differences if difference is not None]
    if not known:
        return None
    return sum(mean / error if error > 0 else 0.0 for mean, error in known) / len(known)


@dataclass(frozen=True)
class Unchanged:
    """Naive rule, for comparison only: stop once the rank has been the same for some audits."""

    audits: int = 5
    max_answers: int | None = None
    name: str = "unchanged"

    def decide(self, progress: Progress) -> Decision:
        """Stop or continue, with the criteria as reasons."""
        held = _unchanged(progress.audits)
        rank = progress.audits[-1].rank if progress.audits else 0
        criterion = Criterion("audits_unchanged", held, self.audits, held >= self.audits)
        spent = self.max_answers is not None and progress.answers >= self.max_answers
        return Decision(criterion.passed or spent, criterion.passed, rank, (criterion,))
