"""Event-sourced replay: a learner driven by the worker's journal, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from lore_active.acquisition.registry import SELECTORS
from lore_active.errors import InvalidParameter, InvalidTriplets
from lore_active.learner.learner import Learner
from lore_active.learner.pending_audit import PendingAudit
from lore_active.questions.pool import QuestionSource
from lore_active.questions.question import Purpose, Question
from lore_active.reproducibility import fingerprint
from lore_active.stopping.registry import stopping_rule
from lore_active.stopping.rules import Decision
from lore_active.types import Mapper
from server.learning.comparisons import comparisons_of
from server.store import collection, imports, journal
from server.store.database import Database
from server.store.journal import (
    AnswerToLearn,
    AskedQuestion,
    JournalChange,
    ServerQuestion,
    Step,
)
from server.store.models import ModelRow
from server.store.sqlite.item_lists import Items
from server.study.config import LoadedStudy

# Minimum share of random questions, from the schedule and the learner together.
MIN_RANDOM = 0.05
Progress = Callable[[int, int], None]
BEFORE_ALL = Step(0, 0, 0, 0, 0, "", 0, (), 0, "", {})


def new_learner(
    study: LoadedStudy,
    seed: int,
    source: QuestionSource | None = None,
    lam: float | None = None,
    mapper: Mapper = map,
) -> Learner:
    """Create a learner from a study's settings; `source` can restrict its questions."""
    settings = study.settings
    stopping = settings.stopping
    return Learner(
        len(study.items),
        seed,
        SELECTORS.make(settings.learning.selector),
        stopping_rule(
            stopping.rule,
            confidence=stopping.confidence,
            audits=stopping.audits or None,
            min_answers=stopping.min_answers or None,
            smallest_dimension=stopping.smallest_dimension or None,
            evidence=stopping.evidence,
        ),
        min_random=max(0.0, MIN_RANDOM - settings.session.random),
        source=source,
        lam=lam,
        mapper=mapper,
        kind=study.kind,
    )


@dataclass(frozen=True)
class Unusable:
    """A row that the learner cannot use; `what` is question or answer."""

    what: str
    number: int
    why: str

    def __str__(self) -> str:
        return f"{self.what.capitalize()} {self.number} cannot be used: {self.why}."


class Replayer:
    """Applies steps of the journal to a learner; worker, verification and what-if all use it.

    `timer` gives seconds, for measuring work. `fixed` are participants whose
    exclusion is fixed, whatever the journal says.
    """

    def __init__(
        self,
        database: Database,
        study: LoadedStudy,
        learner: Learner,
        timer: Callable[[], float],
        fixed: frozenset[int] = frozenset(),
    ) -> None:
        self.database = database
        self.study = study
        self.learner = learner
        self.timer = timer
        self.fixed = fixed
        # The audit that was started last, and has not been taken in.
        self.started: PendingAudit | None = None
        # The current step, for error messages.
        self.at = BEFORE_ALL

    def through(
        self,
        steps: Sequence[Step],
        before: Step = BEFORE_ALL,
        work: Callable[[Step, bool], str] = lambda step, changed: step.work,
        prepare: Callable[[Step, Step], None] = lambda step, before: None,
        progress: Progress = lambda done, of: None,
    ) -> Iterator[tuple[Step, str, bool]]:
        """Apply steps of the journal; `before` is the one before the first of them.

        Yields each step after its work was done, with that work and whether participants were
        excluded or restored, or imported answers added or removed. The caller then asks its
        questions: `selection` selects them again, `as_asked` takes those of the journal. `work` can
        override the work of a step; `prepare` is called with each step and the one before it.
        """
        starts = {step.audit_of for step in steps}
        for done, step in enumerate(steps):
            progress(done, len(steps))
            self.at = step
            prepare(step, before)
            changed = self.take_in(step, before)
            doing = work(step, changed)
            self.learn(replace(step, work=doing), {})
            if step.id in starts and self.learner.counted:
                self.started = self.learner.start_audit()
            yield step, doing, changed
            before = step
        progress(len(steps), len(steps))

    def take_in(self, step: Step, before: Step) -> bool:
        """Pass questions, answers, exclusions and imports since the last step to the learner.

        Returns whether participants were excluded or restored, or imported answers added or
        removed.
        """
        questions, answers, changes = self.database.read(
            lambda c: (
                journal.server_questions(c, before.up_to_question, step.up_to_question),
                journal.answers_to_learn(c, before.up_to_seq, step.up_to_seq, before.up_to_event),
                journal.changes(c, before.up_to_event, step.up_to_event),
            )
        )
        for new in questions:
            old = new.repeats
            if new.purpose == "repeat" and old is not None and self.learner.knows(old):
                self.learner.repeat(old, new.id)
            else:
                self.learner.issue(new.anchor, new.options, _purpose(new), new.id)
        for answer in answers:
            if answer.chosen is None or answer.left_out:
                # A question that only a simulated participant answered may be asked again.
                self.learner.skip(answer.question)
                continue
            self.learner.tell(answer.question, answer.chosen, str(answer.participant))
        changes = [change for change in changes if change.participant not in self.fixed]
        for change in changes:
            self._change(change, step)
        return bool(changes)

    def unusable(self, step: Step, before: Step) -> list[Unusable]:
        """List questions and answers since the last step that the learner cannot use.

        The database rejects such rows, so they come from a file that was edited or damaged.
        """
        questions, answers = self.database.read(
            lambda c: (
                journal.server_questions(c, before.up_to_question, step.up_to_question),
                journal.answers_to_learn(c, before.up_to_seq, step.up_to_seq, before.up_to_event),
            )
        )
        rows, items, kind = [], range(self.learner.n_objects), self.learner.kind
        options = {question.id: question.options for question in questions}
        for question in questions:
            anchor = () if question.anchor is None else (question.anchor,)
            shown = (*anchor, *question.options)
            different = {*shown} & {*items}
            if len(anchor) != kind.has_anchor or not len(shown) == len(different) == kind.items:
                del options[question.id]
                why = (
                    f"it has items {shown}, but must have {kind.items} different ones of "
                    f"{len(items)}"
                )
                rows.append(Unusable("question", question.id, why))
        for answer in answers:
            why = self._unusable(answer, options)
            if why:
                rows.append(Unusable("answer", answer.seq, why))
        return rows

    def _unusable(self, answer: AnswerToLearn, new: dict[int, Items]) -> str:
        if answer.question in new:
            options = new[answer.question]
        elif not self.learner.knows(answer.question):
            return f"question {answer.question} is unknown to the learner"
        elif self.learner.answered(answer.question):
            return f"question {answer.question} has already been answered"
        else:
            options = self.learner.question(answer.question).options
        if answer.chosen is not None:
            try:
                self.learner.kind.check(options, answer.chosen)
            except InvalidParameter as error:
                return f"{str(error)[:1].lower()}{str(error)[1:].removesuffix('.')}"
        return ""

    def _change(self, change: JournalChange, step: Step) -> None:
        if change.kind in ("import", "import_removed"):
            number = change.file
            assert number is not None
            # An import is a source like a participant, and can be excluded like one.
            source = f"import {number}"
            if change.kind == "import_removed":
                self.learner.exclude(source)
            else:
                imported = self.database.read(lambda c: imports.trials(c, [number]))
                self.learner.add(comparisons_of(imported, self.learner.n_objects), source)
            return
        if change.kind == collection.SIMULATED_OUT:
            so_far = self.database.read(lambda c: journal.simulated_until(c, step.up_to_seq))
            self.learner.exclude(*map(str, so_far), release=True)
            return
        if self.database.read(lambda c: journal.settled_before(c, change)):
            return
        act = self.learner.exclude if change.kind == "exclude" else self.learner.restore
        act(str(change.participant))

    def learn(self, step: Step, seconds: dict[str, float]) -> None:
        """Do the step's work, unless the answers it needs have been erased since."""
        if step.work and (self.learner.audits or step.work == "audit") and self.learner.counted:
            begun = self.timer()
            if step.work == "audit" and step.audit_of is not None and self.started is not None:
                self.learner.finish_audit(self.started)
            elif step.work == "audit":
                self.learner.audit()
            else:
                self.learner.refit()
            seconds[step.work] = self.timer() - begun
        if step.work == "audit":
            self.started = None

    def as_asked(self, step: Step) -> list[AskedQuestion]:
        """Issue the step's questions as recorded in the journal."""
        asked = self.database.read(lambda c: journal.asked_in(c, step.id))
        try:
            for question in asked:
                self.learner.issue(question.anchor, question.options, question.purpose, question.id)
        except (InvalidParameter, InvalidTriplets) as error:
            raise InvalidTriplets(
                f"The questions of step {step.id} cannot be asked again: {error}"
            ) from error
        return asked

    def selection(self, step: Step) -> Callable[[], list[Question]]:
        """Prepare the selection of the step's questions, which are recorded once they have ids."""
        return self.learner.proposal(step.asked, step.pending) if step.asked else list

    def record(self, questions: Sequence[Question], ids: Sequence[int]) -> None:
        """Record selected questions under the ids that the database assigned."""
        for question, number in zip(questions, ids, strict=True):
            self.learner.record(replace(question, id=number))


def _purpose(question: ServerQuestion) -> Purpose:
    """Return random for the web server's own questions; those of dropped steps keep theirs."""
    if question.purpose == "cover":
        return "cover"
    repeats_a_lost_one = question.purpose == "repeat" and question.repeats is None
    return "active" if question.purpose == "active" or repeats_a_lost_one else "random"


def stored_criteria(decision: Decision) -> str:
    """Serialise a decision's criteria."""
    return json.dumps([criterion.stored() for criterion in decision.criteria], ensure_ascii=False)


def model_row(learner: Learner, step: Step) -> ModelRow:
    """Build the model row that a step publishes; without a model, one of rank 0."""
    estimate, model = learner.estimate, learner.model
    covariance = learner.uncertainty()
    count, rank = estimate.embedding.shape
    if covariance is None or rank == 0:
        covariance = np.zeros((count, rank, rank))
    summary = {
        "spectrum": estimate.spectrum.tolist(),
        "evidence": [asdict(candidate) for candidate in estimate.evidence],
        "prequential": asdict(estimate.prequential),
        "ceiling": estimate.ceiling,
        "random_share": learner.random_share,
        "rule": learner.stopping.name,
        "sensitivity": None if estimate.sensitivity is None else estimate.sensitivity.stored(),
    }
    return ModelRow(
        version=step.version,
        step=step.id,
        up_to_seq=step.up_to_seq,
        answers=estimate.answers,
        audit=int(step.work == "audit"),
        rank=estimate.rank,
        lam=estimate.lam,
        temperature=estimate.temperature,
        objective=0.0 if model is None else model.objective,
        seed=learner.seed,
        aligned=np.ascontiguousarray(estimate.aligned[:, :rank]).tobytes(),
        embedding=np.ascontiguousarray(estimate.embedding).tobytes(),
        covariance=np.ascontiguousarray(covariance).tobytes(),
        summary=json.dumps(summary),
        hash=step.hash,
        fingerprint=fingerprint(),
    )
