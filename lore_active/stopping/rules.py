"""When has enough been asked? Rules that decide, and say why in words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log
from statistics import NormalDist
from typing import Protocol

from lore_active.errors import InvalidParameter
from lore_active.rank.cross_validation import Audit, LossDifference
from lore_active.rank.significance import Proportion
from lore_active.stopping.criteria import Criterion, dimensions, message, not_met
from lore_active.stopping.stages import Findings
from lore_active.stopping.verdict import only_a_bound


@dataclass(frozen=True)
class Progress:
    """What a rule may look at."""

    n_objects: int
    answers: int
    items_seen: int
    audits: Sequence[Audit]
    held_out: Proportion


@dataclass(frozen=True)
class Decision:
    """Stop or go on. `settled`: the rank is, and that is why; otherwise only the budget ended."""

    stop: bool
    settled: bool
    rank: int
    criteria: tuple[Criterion, ...]

    @property
    def message(self) -> str:
        """The decision as sentences."""
        if self.settled:
            held = (message(one, self.rank) for one in self.criteria if one.passed)
            return f"The rank is settled at {dimensions(self.rank)}. {' '.join(held)}"
        start = "The budget is used up. " if self.stop else ""
        open_ = [one for one in self.criteria if not one.passed]
        said = " ".join(message(one, self.rank) for one in open_)
        return f"{start}{not_met([one.name for one in open_])} {said}".strip()


def findings(decision: Decision, audits: Sequence[Audit]) -> Findings | None:
    """What a learner has found, for its verdict; None before the first audit."""
    if not audits:
        return None
    guessing = next((one for one in audits[-1].evidence if one.rank == 0), None)
    return Findings(
        decision.rank,
        decision.settled,
        decision.criteria,
        tuple(one.rank for one in audits),
        only_a_bound(decision.rank, None if guessing is None else (guessing.worse, guessing.error)),
    )


class StoppingRule(Protocol):
    """Looks at the progress of a study and decides."""

    @property
    def name(self) -> str:
        """What it is called in settings."""
        ...

    def decide(self, progress: Progress) -> Decision:
        """Stop or go on, with reasons."""
        ...


def _unchanged(audits: Sequence[Audit]) -> int:
    """Through how many audits, up to the last, the rank has been the same."""
    held = 0
    for one in reversed(audits):
        if one.rank != audits[-1].rank:
            break
        held += 1
    return held


# Log odds that are needed against one dimension more: this for each item, divided by the number of
# dimensions found. A dimension has a coordinate for each item, and of what an answer tells, a share
# goes to each dimension; so odds of a right rank grow with the one and fall with the other.
LOG_BAYES_PER_ITEM = 0.4


@dataclass(frozen=True)
class RankSettled:
    """Stop when held-out answers prefer one rank to its neighbours, audit after audit.

    And when in the last audit, besides, all answers together are likelier at that rank.
    confidence: how sure each of the preferences must be. audits: through how many audits in a
    row the rank must have been the same. min_answers: not before this many answers (None: four
    for each item). max_answers: the budget, at which collection ends in any case.
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
        """Stop or go on, with reasons."""
        rank = progress.audits[-1].rank if progress.audits else 0
        criteria = (
            self._seen(progress),
            self._enough(progress),
            self._predicts(progress),
            self._held(progress.audits),
            self._against(progress.audits, -1),
            self._against(progress.audits, +1),
            self._bayes_factor(progress, -1),
            self._bayes_factor(progress, +1),
        )
        settled = all(one.passed for one in criteria)
        spent = self.max_answers is not None and progress.answers >= self.max_answers
        return Decision(settled or spent, settled, rank, criteria)

    def _seen(self, progress: Progress) -> Criterion:
        return Criterion(
            "items_seen",
            progress.items_seen,
            progress.n_objects,
            progress.items_seen >= progress.n_objects,
        )

    def _enough(self, progress: Progress) -> Criterion:
        least = 4 * progress.n_objects if self.min_answers is None else self.min_answers
        return Criterion(
            "answers",
            progress.answers,
            least,
            progress.answers >= least,
        )

    def _predicts(self, progress: Progress) -> Criterion:
        low = progress.held_out.low
        return Criterion("better_than_chance", low, 0.5, low > 0.5)

    def _held(self, audits: Sequence[Audit]) -> Criterion:
        held = _unchanged(audits)
        return Criterion("audits_unchanged", held, self.audits, held >= self.audits)

    def clear(self, audits: Sequence[Audit]) -> bool:
        """Whether the rank is settled, however many answers and items there should be."""
        reasons = (self._held(audits), self._against(audits, -1), self._against(audits, +1))
        return all(one.passed for one in reasons)

    def _against(self, audits: Sequence[Audit], step: int) -> Criterion:
        """How clearly held-out answers prefer the rank to a neighbour, over the last audits.

        One audit's evidence wavers; and while answers are too few for a dimension that is there,
        its rank loses by a little, sometimes. The mean over audits is what must be clear. Against
        one dimension more there are two witnesses, the published fit and the model that asks:
        each of them alone has overlooked a dimension for some time. So their mean must be clear,
        and the weaker one say half as much.
        """
        name = "preferred_to_fewer" if step < 0 else "preferred_to_more"
        need = NormalDist().inv_cdf(self.confidence)
        recent = audits[-min(self.audits, _unchanged(audits)) :]
        if not audits:
            return Criterion(name, 0.0, need, False)
        if audits[-1].rank == 0:
            return Criterion(name, 0.0, need, False)
        gaps = [one.below if step < 0 else one.above for one in recent]
        smooth = [one.map_above for one in recent] if step > 0 else []
        pooled = [mean for mean in (_pooled(gaps), _pooled(smooth)) if mean is not None]
        if not pooled:
            # More dimensions never survived the penalty: nothing there to be preferred.
            return Criterion(name, inf, need, step > 0)
        said = min(sum(pooled) / len(pooled), 2.0 * min(pooled))
        return Criterion(name, said, need, said >= need)

    def _bayes_factor(self, progress: Progress, step: int) -> Criterion:
        """How much likelier all answers are at the rank than at a neighbour, by the last audit.

        The two witnesses judge by predictions, and a dimension that is there but badly known makes
        these worse; odds do not hold that against it.
        """
        name = "bayes_factor_fewer" if step < 0 else "bayes_factor_more"
        sure = log(self.confidence / (1.0 - self.confidence))
        last = progress.audits[-1] if progress.audits else None
        if last is None or last.rank == 0:
            return Criterion(name, 0.0, sure, False)
        need = sure if step < 0 else LOG_BAYES_PER_ITEM * progress.n_objects / last.rank
        said = last.log_bayes_below if step < 0 else last.log_bayes_above
        if said is None:
            return Criterion(name, inf, need, True)
        return Criterion(name, said, need, said >= need)


def _pooled(gaps: Sequence[LossDifference | None]) -> float | None:
    """The mean preference in standard errors, over the audits that know one."""
    known = [gap for gap in gaps if gap is not None]
    if not known:
        return None
    return sum(mean / error if error > 0 else 0.0 for mean, error in known) / len(known)


@dataclass(frozen=True)
class Unchanged:
    """The naive rule: stop when the rank has been the same for some audits. For comparison only."""

    audits: int = 5
    max_answers: int | None = None
    name: str = "unchanged"

    def decide(self, progress: Progress) -> Decision:
        """Stop or go on, with reasons."""
        held = _unchanged(progress.audits)
        rank = progress.audits[-1].rank if progress.audits else 0
        criterion = Criterion("audits_unchanged", held, self.audits, held >= self.audits)
        spent = self.max_answers is not None and progress.answers >= self.max_answers
        return Decision(criterion.passed or spent, criterion.passed, rank, (criterion,))
