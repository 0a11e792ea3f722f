"""How a study went, answer by answer, and how it would have gone under other settings."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from lore_active.data.comparisons import Triplets, as_triplets
from lore_active.errors import InvalidParameter
from lore_active.learner.learner import Learner
from lore_active.questions.pool import PooledQuestions, QuestionSource
from lore_active.rank.cross_validation import RankEvidence
from lore_active.rank.significance import Proportion
from lore_active.simulation.run import LoggedPeople, simulate
from lore_active.stopping.stages import Collection
from lore_active.stopping.verdict import verdict
from lore_active.types import Mapper
from server.learning.replayer import Progress, Replayer, new_learner
from server.learning.what_if import Supposition, replaced
from server.status import verdict as study_verdict
from server.store import collection, journal, models, summaries
from server.store.database import Connection, Database
from server.store.journal import Step
from server.study.config import LoadedStudy, Study

SEED_OF_PEOPLE = 1


@dataclass(frozen=True)
class TrajectoryPoint:
    """How a study stood after an audit.

    answers: as in `Trajectory`, until then. fitted: answers in the model. held_out: share of
    answers that fits of the same rank without them predicted right. progressive: share of the
    latest random questions predicted right before their answers were used, with its 95 % interval;
    None where there were none.
    """

    answers: int
    fitted: int
    rank: int
    lam: float
    held_out: float | None
    progressive: float | None
    low: float | None
    high: float | None


@dataclass
class Trajectory:
    """A study from its first audit to its last answer; `stopped_at` is where the rule stopped it.

    It is followed beyond its stop as far as there are answers. `answers` are all that were
    collected, practice aside; where another selector is supposed, only those that it can choose
    from. `words` is the last decision, and `headline` what is said of the study at its end.
    """

    answers: int
    points: list[TrajectoryPoint] = field(default_factory=list)
    stopped_at: int | None = None
    stopped_rank: int | None = None
    words: str = ""
    headline: str = field(default="", compare=False)

    def decided(self, answers: int, settled: bool, rank: int, words: str) -> None:
        """Take note of a decision."""
        self.words = words
        if settled and self.stopped_at is None:
            self.stopped_at, self.stopped_rank = answers, rank

    def at(self, answers: int) -> TrajectoryPoint | None:
        """How it stood when so many answers had come; None before the first audit."""
        place = bisect_right(self.points, answers, key=lambda one: one.answers)
        return self.points[place - 1] if place else None


@dataclass
class WhatIf:
    """The original beside what would have been.

    same_pool: the study's own selector choosing from the same logged questions, where another
    selector is supposed: what having only those questions does. answers_saved, answers_missing:
    against the original's stop, or against all answers if it never stopped; both None if the
    supposed study would not have been settled either.
    """

    original: Trajectory
    what_if: Trajectory
    same_pool: Trajectory | None
    answers_saved: int | None
    answers_missing: int | None
    seconds: float


def what_if(
    database: Database,
    study: LoadedStudy,
    change: Supposition,
    timer: Callable[[], float],
    progress: Progress = lambda done, of: None,
    mapper: Mapper = map,
) -> WhatIf:
    """Recompute a study's way on its logged answers, under `change`; `mapper` as of `Learner`."""
    begun = timer()
    told = database.read(journal.counted)
    left_out = database.read(lambda c: _left_out(c, change))
    if change.selector is None:
        seqs = database.read(summaries.answer_seqs)
    else:
        seqs = [one.seq for one in told if one.participant not in left_out]
    original = database.read(lambda c: _published(c, seqs))
    if not original.points:
        raise InvalidParameter(
            "The study has no audit yet, so there is nothing to compare with; its first comes "
            "when there are twice as many answers as items."
        )
    supposing = _Recomputation(database, study, change, timer, progress, mapper)
    same_pool = None
    if change.selector is None:
        supposed = supposing.along_the_journal(seqs)
    else:
        pool = _pool(told, len(study.items), left_out)
        own = study.settings.learning.selector
        if change.selector != own:
            same_pool = supposing.from_the_pool(pool, own)
        supposed = supposing.from_the_pool(pool, change.selector)
    saved, missing = _difference(original, supposed)
    return WhatIf(original, supposed, same_pool, saved, missing, timer() - begun)


def _difference(original: Trajectory, supposed: Trajectory) -> tuple[int | None, int | None]:
    """Answers saved, answers missing."""
    if supposed.stopped_at is None:
        return None, None
    spent = original.answers if original.stopped_at is None else original.stopped_at
    saved = spent - supposed.stopped_at
    return (saved, None) if saved >= 0 else (None, -saved)


# ---- as it was ----------------------------------------------------------------------------------


def _published(c: Connection, seqs: Sequence[int]) -> Trajectory:
    found = Trajectory(len(seqs))
    for one in models.published(c):
        answers = bisect_right(seqs, one.up_to_seq)
        found.decided(answers, bool(one.settled), one.rank, one.words)
        if one.audit:
            summary = json.loads(one.summary)
            evidence = [RankEvidence(**row) for row in summary["evidence"]]
            share = Proportion(**summary["progressive"])
            found.points.append(_point(answers, one.answers, one.rank, one.lam, evidence, share))
    # As far as the learner goes: that somebody ended collection is not what is compared.
    learnt = study_verdict.findings(c)
    found.headline = verdict(Collection(counted=found.answers), learnt).headline
    return found


# ---- as it would have been ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Recomputation:
    database: Database
    study: LoadedStudy
    change: Supposition
    timer: Callable[[], float]
    progress: Progress
    mapper: Mapper

    def along_the_journal(self, seqs: Sequence[int]) -> Trajectory:
        """The same questions and answers at the same steps; what is learnt from them is new."""
        change, steps = self.change, self.database.read(journal.steps)
        learner = self._learner(self.change.settings, None)
        for number in change.exclude:
            learner.exclude(str(number))
        fixed = frozenset((*change.exclude, *change.restore))
        fold = Replayer(self.database, self.study, learner, self.timer, fixed)
        found = Trajectory(len(seqs))

        def work(step: Step, changed: bool) -> str:
            # Where everybody had left, the journal has a refit that was not due otherwise.
            return fold.due(changed, deserted=step.work == "refit")

        for step, done, changed in fold.through(steps, work=work, progress=self.progress):
            fold.as_asked(step)
            if done or changed:
                _note(found, learner, bisect_right(seqs, step.up_to_seq), done == "audit")
        return found

    def from_the_pool(self, pool: Triplets, selector: str) -> Trajectory:
        """Questions chosen anew, but only among those that were answered; each is asked once."""
        people = LoggedPeople(pool, self.study.settings.seed + SEED_OF_PEOPLE)
        settings = replaced(self.change.settings, "learning", selector=selector)
        learner = self._learner(settings, PooledQuestions(people.questions, pool.n_objects))
        found = Trajectory(0)
        for record in simulate(learner, people, len(pool), None, self.timer, stop=False):
            found.answers = learner.estimate.answers
            self.progress(found.answers, len(pool))
            if not record.get("summary"):
                _note(found, learner, found.answers, True)
        self.progress(len(pool), len(pool))
        return found

    def _learner(self, settings: Study, source: QuestionSource | None) -> Learner:
        state = self.database.read(collection.state)
        assert state is not None
        supposed = msgspec.structs.replace(self.study, settings=settings)
        return new_learner(supposed, state.seed, source, self.change.lam, self.mapper)


def _note(found: Trajectory, learner: Learner, answers: int, audited: bool) -> None:
    decision, estimate = learner.decision, learner.estimate
    found.decided(answers, decision.settled, estimate.rank, decision.message)
    found.headline = verdict(Collection(counted=learner.counted), learner.findings).headline
    if audited:
        found.points.append(
            _point(
                answers,
                estimate.answers,
                estimate.rank,
                estimate.lam,
                estimate.evidence,
                estimate.progressive,
            )
        )


def _point(
    answers: int,
    fitted: int,
    rank: int,
    lam: float,
    evidence: Sequence[RankEvidence],
    share: Proportion,
) -> TrajectoryPoint:
    held_out = next((one.accuracy for one in evidence if one.rank == rank), None)
    some = (share.value, share.low, share.high) if share.count else (None, None, None)
    return TrajectoryPoint(answers, fitted, rank, lam, held_out, *some)


def _left_out(c: Connection, change: Supposition) -> set[int]:
    """Whose answers do not count in the end."""
    excluded = {one.id for one in summaries.people(c) if one.excluded}
    return (excluded | set(change.exclude)) - set(change.restore)


def _pool(told: Sequence[journal.CountedAnswer], items: int, left_out: set[int]) -> Triplets:
    """The answers that count as rows anchor, nearer, farther."""
    rows = [
        (one.anchor, one.nearer, one.farther) for one in told if one.participant not in left_out
    ]
    if not rows:
        raise InvalidParameter("Nobody's answers are left to choose from.")
    return as_triplets(rows, n_objects=items)
