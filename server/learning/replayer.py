"""Event-sourced replay: a learner driven by the worker's journal, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from lore_active.acquisition.registry import SELECTORS
from lore_active.errors import InvalidTriplets
from lore_active.learner.learner import Learner
from lore_active.questions.pool import QuestionSource
from lore_active.questions.question import Purpose, Question, UnknownQuestion
from lore_active.reproducibility import fingerprint
from lore_active.stopping.registry import stopping_rule
from lore_active.stopping.rules import Decision
from lore_active.types import Mapper
from server.store import collection, imports, journal
from server.store.database import Database
from server.store.journal import AnswerToLearn, JournalChange, ServerQuestion, Step
from server.store.models import ModelRow
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
            audits=stopping.audits,
            min_answers=stopping.min_answers or None,
            smallest_dimension=stopping.smallest_dimension,
            evidence=stopping.evidence,
        ),
        min_random=max(0.0, MIN_RANDOM - settings.session.random),
        source=source,
        lam=lam,
        mapper=mapper,
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

    `numbers` maps the web server's own questions to the learner's numbers, as long as the database
    does not have them. `timer` gives seconds, for measuring work. `fixed` are participants whose
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
        self.numbers: dict[int, int] = {}
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
        questions: `ask` selects them again, `as_asked` takes those of the journal. `work` can
        override the work of a step; `prepare` is called with each step and the one before it.
        """
        for done, step in enumerate(steps):
            progress(done, len(steps))
            self.at = step
            prepare(step, before)
            _, changed = self.take_in(step, before)
            doing = work(step, changed)
            self.learn(replace(step, work=doing), {})
            yield step, doing, changed
            before = step
        progress(len(steps), len(steps))

    def take_in(self, step: Step, before: Step) -> tuple[list[tuple[int, int]], bool]:
        """Pass questions, answers, exclusions and imports since the last step to the learner.

        Returns the learner's numbers of the web server's own questions, as (learner, query), and
        whether participants were excluded or restored, or imported answers added or removed.
        """
        queries, answers, changes = self.database.read(
            lambda c: (
                journal.server_questions(c, before.up_to_query, step.up_to_query),
                journal.answers_to_learn(c, before.up_to_seq, step.up_to_seq, before.up_to_event),
                journal.changes(c, before.up_to_event, step.up_to_event),
            )
        )
        numbers = []
        for query in queries:
            old = query.repeats_learner
            if query.repeats is not None and old is None:
                old = self.numbers.get(query.repeats)
            if query.purpose == "repeat" and old is not None:
                question = self.learner.repeat(old)
            else:
                question = self.learner.issue(
                    query.anchor, query.left, query.right, _purpose(query)
                )
            self.numbers[query.id] = question.id
            numbers.append((question.id, query.id))
        for answer in answers:
            number = self.numbers.get(answer.query) if answer.learner is None else answer.learner
            if number is None:
                raise UnknownQuestion(f"Question {answer.query} is unknown to the learner.")
            if answer.chosen is None or answer.left_out:
                # A question that only a simulated participant answered may be asked again.
                self.learner.skip(number)
                continue
            side = self.learner.query(number).side_of(answer.chosen)
            self.learner.tell(number, side, str(answer.participant))
        changes = [change for change in changes if change.participant not in self.fixed]
        for change in changes:
            self._change(change, step)
        return numbers, bool(changes)

    def unusable(self, step: Step, before: Step) -> list[Unusable]:
        """List questions and answers since the last step that the learner cannot use.

        The database rejects such rows, so they come from a file that was edited or damaged.
        """
        queries, answers = self.database.read(
            lambda c: (
                journal.server_questions(c, before.up_to_query, step.up_to_query),
                journal.answers_to_learn(c, before.up_to_seq, step.up_to_seq, before.up_to_event),
            )
        )
        rows, items = [], range(self.learner.n_objects)
        options = {query.id: (query.left, query.right) for query in queries}
        for query in queries:
            shown = (query.anchor, query.left, query.right)
            if not all(item in items for item in shown) or len(set(shown)) < 3:
                del options[query.id]
                why = f"it has items {shown}, but must have three different ones of {len(items)}"
                rows.append(Unusable("question", query.id, why))
        for answer in answers:
            why = self._unusable(answer, options)
            if why:
                rows.append(Unusable("answer", answer.seq, why))
        return rows

    def _unusable(self, answer: AnswerToLearn, new: dict[int, tuple[int, int]]) -> str:
        number = self.numbers.get(answer.query) if answer.learner is None else answer.learner
        if answer.query in new:
            options = new[answer.query]
        elif number is None or not self.learner.knows(number):
            return f"question {answer.query} is unknown to the learner"
        elif self.learner.answered(number):
            return f"question {answer.query} has already been answered"
        else:
            question = self.learner.query(number)
            options = (question.left, question.right)
        if answer.chosen is not None and answer.chosen not in options:
            return f"item {answer.chosen} is not an option of question {answer.query}: {options}"
        return ""

    def _change(self, change: JournalChange, step: Step) -> None:
        if change.kind in ("prior", "prior_out"):
            number = change.prior
            assert number is not None
            # An import is a source like a participant, and can be excluded like one.
            source = f"prior {number}"
            if change.kind == "prior_out":
                self.learner.exclude(source)
            else:
                self.learner.add(self.database.read(lambda c: imports.rows(c, [number])), source)
            return
        if change.kind == collection.SIMULATED_OUT:
            so_far = self.database.read(lambda c: journal.simulated_until(c, step.up_to_seq))
            self.learner.exclude(*map(str, so_far), release=True)
            return
        if self.database.read(lambda c: journal.settled_before(c, change)):
            return
        act = self.learner.exclude if change.kind == "exclude" else self.learner.restore
        act(str(change.participant))

    def due(self, changed: bool, resting: bool = False, deserted: bool = False) -> str:
        """Return what is due after `take_in`: "audit", "refit" or nothing ("").

        A refit normally waits for a number of new answers. If no participant is left to give more
        (`deserted`), it does not wait.
        """
        due = self.learner.due(resting)
        if due is None and changed and self.learner.audits:
            return "audit"
        if due is None and deserted and self.learner.unfitted:
            return "refit"
        return due or ""

    def learn(self, step: Step, seconds: dict[str, float]) -> None:
        """Do the step's work, unless the answers it needs have been erased since."""
        if step.work and (self.learner.audits or step.work == "audit") and self.learner.counted:
            begun = self.timer()
            if step.work == "audit":
                self.learner.audit()
            else:
                self.learner.refit()
            seconds[step.work] = self.timer() - begun

    def as_asked(self, step: Step) -> list[Question]:
        """Issue the step's questions as recorded in the journal."""
        rows = self.database.read(lambda c: journal.asked_in(c, step.id))
        try:
            return [self.learner.issue(*row) for row in rows]
        except InvalidTriplets as error:
            raise InvalidTriplets(
                f"The questions of step {step.id} cannot be asked again: {error}"
            ) from error

    def ask(self, step: Step, seconds: dict[str, float]) -> list[Question]:
        """Select the step's questions."""
        if step.asked == 0:
            return []
        begun = self.timer()
        queries = self.learner.ask(step.asked, pending=step.pending)
        seconds["select"] = self.timer() - begun
        return queries


def _purpose(query: ServerQuestion) -> Purpose:
    """Return random for the web server's own questions; those of dropped steps keep theirs."""
    if query.purpose == "cover":
        return "cover"
    repeats_a_lost_one = query.purpose == "repeat" and query.repeats is None
    return "active" if query.purpose == "active" or repeats_a_lost_one else "random"


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
        "progressive": asdict(estimate.progressive),
        "prequential": asdict(learner.prequential),
        "ceiling": estimate.ceiling,
        "random_share": learner.random_share,
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
        picture=np.ascontiguousarray(estimate.aligned[:, :rank]).tobytes(),
        embedding=np.ascontiguousarray(estimate.embedding).tobytes(),
        spread=np.ascontiguousarray(covariance).tobytes(),
        summary=json.dumps(summary),
        hash=step.hash,
        fingerprint=fingerprint(),
    )
