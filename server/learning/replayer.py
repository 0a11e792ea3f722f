"""The learner as a fold over the database: one step of the worker's journal after another."""

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

# Random questions that are always asked, from the schedule and the learner together.
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
    """The learner that a study's settings ask for; replay may give it less to choose from."""
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
        ),
        min_random=max(0.0, MIN_RANDOM - settings.session.random),
        source=source,
        lam=lam,
        mapper=mapper,
    )


@dataclass(frozen=True)
class Unusable:
    """A row that cannot be learnt from: `what` is question or answer."""

    what: str
    number: int
    why: str

    def __str__(self) -> str:
        return f"{self.what.capitalize()} {self.number} cannot be used: {self.why}."


class Replayer:
    """A learner that goes through steps; the worker lives them, replay goes through them again.

    `numbers` holds the learner's numbers of the web's own questions that the database does not
    have yet. `timer` gives seconds, for measuring work. `fixed` names participants whose exclusion
    is already decided, whatever the journal says of them.
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
        # The step that it is at, for whoever meets an error there.
        self.at = BEFORE_ALL

    def through(
        self,
        steps: Sequence[Step],
        before: Step = BEFORE_ALL,
        work: Callable[[Step, bool], str] = lambda step, changed: step.work,
        prepare: Callable[[Step, Step], None] = lambda step, before: None,
        progress: Progress = lambda done, of: None,
    ) -> Iterator[tuple[Step, str, bool]]:
        """Go through steps of the journal, `before` being the one before the first of them.

        Yields each step after its work was done, with that work and whether participants were
        excluded or restored, or imported answers came or went. The caller then asks its questions:
        `ask` chooses them again, `as_asked` takes those that were asked. `work` says what to do
        where that is not what was done; `prepare` is called with each step and the one before it.
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
        """Tell the learner what was asked, answered, excluded and brought in since the step before.

        Gives the learner's numbers of the web's own questions, as (learner, query), and whether
        anybody was excluded or restored, or prior answers came or went.
        """
        queries, told, changes = self.database.read(
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
                known = self.learner.repeat(old)
            else:
                known = self.learner.issue(query.anchor, query.left, query.right, _purpose(query))
            self.numbers[query.id] = known.id
            numbers.append((known.id, query.id))
        for answer in told:
            number = self.numbers.get(answer.query) if answer.learner is None else answer.learner
            if number is None:
                raise UnknownQuestion(f"Question {answer.query} is not one that the learner knows.")
            if answer.chosen is None or answer.left_out:
                # What only a simulated participant was asked may be asked again.
                self.learner.skip(number)
                continue
            side = self.learner.query(number).side_of(answer.chosen)
            self.learner.tell(number, side, str(answer.participant))
        changes = [one for one in changes if one.participant not in self.fixed]
        for change in changes:
            self._change(change, step)
        return numbers, bool(changes)

    def unusable(self, step: Step, before: Step) -> list[Unusable]:
        """Questions and answers since the step before that the learner could not be told of.

        The database refuses such rows; they come from outside: a file that was edited or damaged.
        """
        queries, told = self.database.read(
            lambda c: (
                journal.server_questions(c, before.up_to_query, step.up_to_query),
                journal.answers_to_learn(c, before.up_to_seq, step.up_to_seq, before.up_to_event),
            )
        )
        found, items = [], range(self.learner.n_objects)
        options = {one.id: (one.left, one.right) for one in queries}
        for query in queries:
            shown = (query.anchor, query.left, query.right)
            if not all(item in items for item in shown) or len(set(shown)) < 3:
                del options[query.id]
                words = f"it is about items {shown}, but must be about three of {len(items)}"
                found.append(Unusable("question", query.id, words))
        for answer in told:
            why = self._unusable(answer, options)
            if why:
                found.append(Unusable("answer", answer.seq, why))
        return found

    def _unusable(self, answer: AnswerToLearn, new: dict[int, tuple[int, int]]) -> str:
        number = self.numbers.get(answer.query) if answer.learner is None else answer.learner
        if answer.query in new:
            known = new[answer.query]
        elif number is None or not self.learner.knows(number):
            return f"question {answer.query} is not one that the learner knows"
        elif self.learner.answered(number):
            return f"question {answer.query} has been answered already"
        else:
            asked = self.learner.query(number)
            known = (asked.left, asked.right)
        if answer.chosen is not None and answer.chosen not in known:
            return f"item {answer.chosen} is no option of question {answer.query}: {known}"
        return ""

    def _change(self, change: JournalChange, step: Step) -> None:
        if change.kind in ("prior", "prior_out"):
            number = change.prior
            assert number is not None
            # A source like a participant: leaving it out is the same thing.
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
        """What should be done after taking in: "audit", "refit" or nothing ("").

        A refit is worth its time only for a number of new answers. Where nobody is left who could
        give more (`deserted`), the last few do not wait for company that may never come.
        """
        due = self.learner.due(resting)
        if due is None and changed and self.learner.audits:
            return "audit"
        if due is None and deserted and self.learner.unfitted:
            return "refit"
        return due or ""

    def learn(self, step: Step, seconds: dict[str, float]) -> None:
        """Do the step's work; none, where what it was done with has been erased since."""
        if step.work and (self.learner.audits or step.work == "audit") and self.learner.counted:
            begun = self.timer()
            if step.work == "audit":
                self.learner.audit()
            else:
                self.learner.refit()
            seconds[step.work] = self.timer() - begun

    def as_asked(self, step: Step) -> list[Question]:
        """The step's questions as they were chosen then."""
        rows = self.database.read(lambda c: journal.asked_in(c, step.id))
        try:
            return [self.learner.issue(*row) for row in rows]
        except InvalidTriplets as error:
            raise InvalidTriplets(
                f"The questions of step {step.id} cannot be asked again: {error}"
            ) from error

    def ask(self, step: Step, seconds: dict[str, float]) -> list[Question]:
        """The step's questions."""
        if step.asked == 0:
            return []
        begun = self.timer()
        queries = self.learner.ask(step.asked, pending=step.pending)
        seconds["select"] = self.timer() - begun
        return queries


def _purpose(query: ServerQuestion) -> Purpose:
    """The web's own questions are random; those of a step that a recovery dropped keep theirs."""
    if query.purpose == "cover":
        return "cover"
    repeats_a_lost_one = query.purpose == "repeat" and query.repeats is None
    return "active" if query.purpose == "active" or repeats_a_lost_one else "random"


def stored_criteria(decision: Decision) -> str:
    """A decision's criteria as they are stored."""
    return json.dumps([asdict(one) for one in decision.criteria], ensure_ascii=False)


def model_row(learner: Learner, step: Step) -> ModelRow:
    """The learner's model as a step publishes it; one without dimensions, where there is none."""
    estimate, model = learner.estimate, learner.model
    spread = learner.uncertainty()
    count, rank = estimate.embedding.shape
    if spread is None or rank == 0:
        spread = np.zeros((count, rank, rank))
    summary = {
        "spectrum": estimate.spectrum.tolist(),
        "evidence": [asdict(one) for one in estimate.evidence],
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
        spread=np.ascontiguousarray(spread).tobytes(),
        summary=json.dumps(summary),
        hash=step.hash,
        fingerprint=fingerprint(),
    )
