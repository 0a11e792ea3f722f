"""The course of a study, audit by audit, and its course under other settings (what-if)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from lore_active.data.triplets import Triplets
from lore_active.errors import InvalidParameter
from lore_active.learner.learner import Learner
from lore_active.questions.kinds import TRIPLET
from lore_active.questions.pool import PooledQuestions, QuestionSource
from lore_active.rank.audit import RankEvidence
from lore_active.rank.significance import Proportion
from lore_active.simulation.run import LoggedParticipants, simulate
from lore_active.stopping.stages import Collection
from lore_active.stopping.verdict import verdict
from lore_active.types import Mapper
from server.learning.comparisons import comparisons_of, trials_of
from server.learning.replayer import Progress, Replayer, new_learner
from server.learning.what_if import WhatIfChange, replaced
from server.status import verdict as study_verdict
from server.store import collection, journal, models, summaries
from server.store.database import Connection, Database
from server.store.journal import Step
from server.store.sqlite.former_names import model_summary
from server.study.config import LoadedStudy, Study

SEED_OF_PARTICIPANTS = 1


@dataclass(frozen=True)
class TrajectoryPoint:
    """State of a study after an audit.

    answers: as in `Trajectory`, so far. fitted: answers in the model. held_out: held-out accuracy
    at this rank. prequential: accuracy over the latest random questions (predicted
    before their answers were used), with its 95 % interval; None if there were none.
    """

    answers: int
    fitted: int
    rank: int
    lam: float
    held_out: float | None
    prequential: float | None
    low: float | None
    high: float | None


@dataclass
class Trajectory:
    """The course of a study; `stopped_at` is where the stopping rule ended it.

    It continues after the stop as long as there are answers. `answers` counts all collected
    answers except practice; with another selector, only those that it can choose from. `message` is
    the message of the last decision, and `headline` the conclusion at the end.
    """

    answers: int
    points: list[TrajectoryPoint] = field(default_factory=list)
    stopped_at: int | None = None
    stopped_rank: int | None = None
    message: str = ""
    headline: str = field(default="", compare=False)

    def decided(self, answers: int, settled: bool, rank: int, message: str) -> None:
        """Record a decision."""
        self.message = message
        if settled and self.stopped_at is None:
            self.stopped_at, self.stopped_rank = answers, rank

    def at(self, answers: int) -> TrajectoryPoint | None:
        """Return the state after this many answers; None before the first audit."""
        index = bisect_right(self.points, answers, key=lambda point: point.answers)
        return self.points[index - 1] if index else None


@dataclass
class WhatIf:
    """The original course of a study and its course under other settings.

    same_pool: with another selector, the study's own selector restricted to the same logged
    questions, which isolates the effect of that restriction. answers_saved, answers_missing:
    relative to the original stop, or to all answers if it never stopped; both None if the
    alternative would not have settled.
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
    change: WhatIfChange,
    timer: Callable[[], float],
    progress: Progress = lambda done, of: None,
    mapper: Mapper = map,
) -> WhatIf:
    """Recompute a study's course from its answers under `change`; `mapper` as in `Learner`."""
    begun = timer()
    if change.selector is not None and study.kind != TRIPLET:
        raise InvalidParameter(
            "Another selector can only be tried out on triplets: of questions of the kind "
            f"{study.kind.label}, hardly any that it would ask was answered."
        )
    answers = database.read(journal.counted)
    left_out = database.read(lambda c: _left_out(c, change))
    if change.selector is None:
        seqs = database.read(summaries.answer_seqs)
    else:
        seqs = [answer.seq for answer in answers if answer.participant not in left_out]
    original = database.read(lambda c: _published(c, seqs))
    if not original.points:
        raise InvalidParameter(
            "The study has no audit yet, so there is nothing to compare with; the first one "
            "needs twice as many answers as items."
        )
    recomputation = _Recomputation(database, study, change, timer, progress, mapper)
    same_pool = None
    if change.selector is None:
        alternative = recomputation.along_the_journal(seqs)
    else:
        pool = _pool(answers, len(study.items), left_out)
        own = study.settings.learning.selector
        if change.selector != own:
            same_pool = recomputation.from_the_pool(pool, own)
        alternative = recomputation.from_the_pool(pool, change.selector)
    saved, missing = _difference(original, alternative)
    return WhatIf(original, alternative, same_pool, saved, missing, timer() - begun)


def _difference(original: Trajectory, alternative: Trajectory) -> tuple[int | None, int | None]:
    """Return answers saved and answers missing."""
    if alternative.stopped_at is None:
        return None, None
    spent = original.answers if original.stopped_at is None else original.stopped_at
    saved = spent - alternative.stopped_at
    return (saved, None) if saved >= 0 else (None, -saved)


# ---- original -----------------------------------------------------------------------------------


def _published(c: Connection, seqs: Sequence[int]) -> Trajectory:
    course = Trajectory(len(seqs))
    for row in models.published(c):
        answers = bisect_right(seqs, row.up_to_seq)
        course.decided(answers, bool(row.settled), row.rank, row.message)
        if row.audit:
            summary = model_summary(row.summary)
            evidence = [RankEvidence(**row) for row in summary["evidence"]]
            share = Proportion(**summary["prequential"])
            course.points.append(_point(answers, row.answers, row.rank, row.lam, evidence, share))
    # By the learner alone: a stop by the experimenter is not compared.
    learnt = study_verdict.findings(c)
    course.headline = verdict(Collection(counted=course.answers), learnt).headline
    return course


# ---- what if ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Recomputation:
    database: Database
    study: LoadedStudy
    change: WhatIfChange
    timer: Callable[[], float]
    progress: Progress
    mapper: Mapper

    def along_the_journal(self, seqs: Sequence[int]) -> Trajectory:
        """Replay the same questions and answers in the same steps, fitting new models."""
        change, steps = self.change, self.database.read(journal.steps)
        learner = self._learner(self.change.settings, None)
        for number in change.exclude:
            learner.exclude(str(number))
        fixed = frozenset((*change.exclude, *change.restore))
        replayer = Replayer(self.database, self.study, learner, self.timer, fixed)
        course = Trajectory(len(seqs))

        def work(step: Step, changed: bool) -> str:
            if not fixed:
                # The same audits of the same answers, so that only what was changed has an effect.
                return step.work
            # Without some answers, audits are due at other steps. When no participant was left, the
            # journal has a refit that was not due otherwise.
            return learner.due(changed=changed, deserted=step.work == "refit") or ""

        for step, done, changed in replayer.through(steps, work=work, progress=self.progress):
            replayer.as_asked(step)
            if done or changed:
                _note(course, learner, bisect_right(seqs, step.up_to_seq), done == "audit")
        return course

    def from_the_pool(self, pool: Triplets, selector: str) -> Trajectory:
        """Select questions again, but only from those that were answered, each once."""
        participants = LoggedParticipants(pool, self.study.settings.seed + SEED_OF_PARTICIPANTS)
        settings = replaced(self.change.settings, "learning", selector=selector)
        learner = self._learner(settings, PooledQuestions(participants.questions, pool.n_objects))
        course = Trajectory(0)
        for record in simulate(learner, participants, len(pool), None, self.timer, stop=False):
            course.answers = learner.estimate.answers
            self.progress(course.answers, len(pool))
            if not record.get("summary"):
                _note(course, learner, course.answers, True)
        self.progress(len(pool), len(pool))
        return course

    def _learner(self, settings: Study, source: QuestionSource | None) -> Learner:
        state = self.database.read(collection.state)
        assert state is not None
        changed_study = msgspec.structs.replace(self.study, settings=settings)
        return new_learner(changed_study, state.seed, source, self.change.lam, self.mapper)


def _note(course: Trajectory, learner: Learner, answers: int, audited: bool) -> None:
    decision, estimate = learner.decision, learner.estimate
    course.decided(answers, decision.settled, estimate.rank, decision.message)
    course.headline = verdict(Collection(counted=learner.counted), learner.findings).headline
    if audited:
        course.points.append(
            _point(
                answers,
                estimate.answers,
                estimate.rank,
                estimate.lam,
                estimate.evidence,
                estimate.prequential,
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
    held_out = next((row.accuracy for row in evidence if row.rank == rank), None)
    accuracy = (share.value, share.low, share.high) if share.count else (None, None, None)
    return TrajectoryPoint(answers, fitted, rank, lam, held_out, *accuracy)


def _left_out(c: Connection, change: WhatIfChange) -> set[int]:
    """Whose answers do not count in the end."""
    excluded = {participant.id for participant in summaries.participants(c) if participant.excluded}
    return (excluded | set(change.exclude)) - set(change.restore)


def _pool(answers: Sequence[journal.CountedAnswer], items: int, left_out: set[int]) -> Triplets:
    """The answers to triplets that count as rows anchor, nearer, farther."""
    trials = trials_of(
        TRIPLET, (answer for answer in answers if answer.participant not in left_out)
    )
    if not trials:
        raise InvalidParameter("No answers are left to choose from.")
    return comparisons_of(trials, items)
