"""The worker: reads new answers, refits, audits, refills the queue, decides and publishes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lore_active.learner.cadence import rest_after_audit
from lore_active.learner.learner import Learner
from lore_active.questions.question import Question
from lore_active.stopping.rules import Decision
from lore_active.stopping.verdict import Verdict
from server.learning.background_audit import BackgroundAudit
from server.learning.rebuild import Rebuild, save
from server.learning.replayer import Unusable, model_row, stored_criteria
from server.learning.state_hash import refuse_nonsense, state_hash
from server.status.counting import present
from server.status.verdict import RULE
from server.store import collection, journal, models, summaries
from server.store.database import Connection, Database
from server.store.journal import Step
from server.store.models import ModelRow
from server.study.config import LoadedStudy

# Questions in the queue: enough for what is answered during one turn of the worker, and no more,
# since the most informative question changes with every answer, and a new model replaces them all.
MIN_READY, MAX_READY = 10, 1000
# Of the participants, these many may want a question at the same moment; others come one by one.
MAX_AT_ONCE = 100
# Turns differ in length: the queue lasts for twice the longest of the last ones, with the pause
# after it.
RESERVE, FORGET = 2.0, 0.9
# Pause between turns while no more than answers has to be taken in: each turn is a commit, for
# which participants wait.
PAUSE_SECONDS = 0.1
RATE_WINDOW_MS = 10_000


@dataclass(frozen=True)
class Outcome:
    """The result of a step: everything that it publishes."""

    questions: list[Question]
    model: ModelRow | None
    decision: Decision
    verdict: Verdict


class Worker:
    """The learner of one study, rebuilt from the database; `turn` does what is due.

    `clock` gives milliseconds since 1970, `timer` seconds for measuring work. With `background`,
    audits run in a thread beside the turns, and are taken in by the turn after they are finished.
    """

    def __init__(
        self,
        database: Database,
        study: LoadedStudy,
        clock: Callable[[], int],
        timer: Callable[[], float],
        background: bool = False,
    ) -> None:
        self.database = database
        self.study = study
        self.clock = clock
        self.timer = timer
        self._cycle_seconds = 0.5
        self._resting_until = float("-inf")
        self._background = background
        self._audit: BackgroundAudit | None = None
        self._unpublished: tuple[Outcome, Step] | None = None
        # Last rows of the journal when there was no question left to ask, if that was so.
        self._exhausted: tuple[int, int, int] | None = None
        self.error = ""
        self.rebuild = Rebuild(database, study, clock, timer, self._quarantine)
        self.last, self.replayer = self.rebuild.run()

    @property
    def learner(self) -> Learner:
        """The learner in its current state."""
        return self.replayer.learner

    @property
    def _resting(self) -> bool:
        """Whether audits have used their share of the time; the journal records when they ran."""
        return self.timer() < self._resting_until

    @property
    def published(self) -> bool:
        """Whether the last turn published a model or questions, so that more may be due already."""
        return bool(self.last.work or self.last.asked)

    # ---- working --------------------------------------------------------------------------------

    def turn(self) -> bool:
        """Do what is due, if anything; return whether there was."""
        begun = self.timer()
        if self._unpublished is None:
            planned, deserted = self.database.read(self._plan)
            if planned is None:
                return False
            self._unpublished = self._apply(planned, self.last, deserted)
        # Kept if the database is unavailable now: the next turn publishes it.
        outcome, step = self._unpublished
        ids = self.database.write(lambda c: self._publish(c, step, outcome))
        self.last, self._unpublished = step, None
        self.replayer.record(outcome.questions, ids)
        heads = (step.up_to_question, step.up_to_seq, step.up_to_event)
        self._exhausted = heads if step.asked and not outcome.questions else None
        if step.work == "audit":
            save(self.database, self.learner, step)
            self._resting_until = self.timer() + rest_after_audit(step.seconds.get("audit", 0.0))
        self._cycle_seconds = max(self.timer() - begun, FORGET * self._cycle_seconds)
        return True

    def _plan(self, c: Connection) -> tuple[Step | None, bool]:
        """Return the next step if one is due, and whether no participant is left to answer."""
        last, now = self.last, self.clock()
        questions, seq, event = journal.heads(c)
        ready = journal.ready(c)
        wanted = self._wanted_ready(c, now)
        news = seq > last.up_to_seq or event > last.up_to_event
        idle_minutes = self.study.settings.session.idle_minutes
        deserted = collection.under_way(c, *present(now, idle_minutes)) == 0
        # A postponed audit or a last refit may be due without new answers.
        finished = self._audit is not None and self._audit.finished
        owed = finished or self._due(False, deserted) != ""
        full = len(ready) * 2 >= wanted or self._exhausted == (questions, seq, event)
        if not news and not owed and full:
            return None, deserted
        step = Step(
            id=last.id + 1,
            at=now,
            up_to_question=questions,
            up_to_seq=seq,
            up_to_event=event,
            work="",
            asked=wanted,
            pending=(),
            version=last.version,
            hash="",
            seconds={},
        )
        return step, deserted

    def _wanted_ready(self, c: Connection, now: int) -> int:
        state = collection.state(c)
        assert state is not None
        active = collection.under_way(c, now - 60_000, now + 60_000)
        if state.status == "stopped" and not active:
            return 0
        rate = summaries.recent_answers(c, now - RATE_WINDOW_MS) / (RATE_WINDOW_MS / 1000)
        seconds = self._cycle_seconds + PAUSE_SECONDS
        wanted = min(active, MAX_AT_ONCE) + RESERVE * rate * seconds
        return int(min(MAX_READY, max(MIN_READY, wanted)))

    def _apply(self, step: Step, before: Step, deserted: bool) -> tuple[Outcome, Step]:
        """Pass on what is new, learn and select questions; return the result and the full step."""
        seconds: dict[str, float] = {}
        self._quarantine(self.replayer.unusable(step, before))
        changed = self.replayer.take_in(step, before)
        step = self._learned(step, changed, deserted, seconds)
        refuse_nonsense(self.learner, step)
        # The learner restarts its version count after an exclusion; published versions continue.
        # If removed answers leave no model, that is published as well.
        known = self.learner.model is not None or before.version > 0
        fresh = known and bool(step.work or changed)
        version = before.version + int(fresh)
        pending, asked = self.database.read(lambda c: self._pending(c, step, fresh))
        step = replace(step, pending=pending, asked=asked, version=version)
        begun = self.timer()
        questions = self.replayer.selection(step)()
        if step.asked:
            seconds["select"] = self.timer() - begun
        digest = state_hash(self.learner, questions)
        step = replace(step, hash=digest, seconds=seconds)
        # Built here because the database is locked while publishing.
        model = model_row(self.learner, step) if fresh else None
        learner = self.learner
        return Outcome(questions, model, learner.decision, learner.verdict), step

    def _due(self, changed: bool, deserted: bool) -> str:
        auditing = self._audit is not None
        return self.learner.due(self._resting, auditing, changed, deserted) or ""

    def _learned(
        self, step: Step, changed: bool, deserted: bool, seconds: dict[str, float]
    ) -> Step:
        """Do the work that is due; return the step with that work."""
        audit = self._audit
        if changed and audit is not None:
            # It was computed from answers that no longer count, or without some that do.
            audit.cancel()
            self._audit = audit = None
        if audit is not None and audit.finished:
            self._audit = None
            self.replayer.started = audit.pending
            step = replace(step, work="audit", audit_of=audit.step)
            audit.raise_error()
            self.replayer.learn(step, seconds)
            seconds["audit"] = audit.seconds
            return step
        step = replace(step, work=self._due(changed, deserted))
        if step.work != "audit" or not self._background:
            self.replayer.learn(step, seconds)
            return step
        unfitted = self.learner.audits and self.learner.unfitted
        step = replace(step, work="refit" if unfitted else "")
        self.replayer.learn(step, seconds)
        self._audit = BackgroundAudit(self.learner.start_audit(), step.id, self.timer)
        return step

    def _quarantine(self, rows: list[Unusable]) -> None:
        """Quarantine bad rows, so that they do not stop the study, and report them.

        They stay in the database; a replay leaves them out as well.
        """
        if not rows:
            return
        now = self.clock()

        def work(c: Connection) -> None:
            for row in rows:
                collection.add_event(
                    c, "quarantine", "worker", now, reason=row.why, **{row.what: row.number}
                )

        self.database.write(work)
        more = "" if len(rows) == 1 else f" ({len(rows)} such rows; see the log.)"
        self.error = f"{rows[0]} It was quarantined.{more}"

    def _pending(self, c: Connection, step: Step, fresh: bool) -> tuple[tuple[int, ...], int]:
        """Return the questions out, and how many more are wanted.

        A new model replaces the queue; otherwise it is topped up.
        """
        leased = journal.out(c, step.at, step.up_to_question)
        pending = filter(self.learner.knows, leased)
        ready = [] if fresh else journal.ready(c)
        asked = max(0, step.asked - len(ready))
        if step.asked > MAX_AT_ONCE and len(ready) * 2 >= step.asked:
            # In a crowd a few are used up at every moment.
            asked = 0
        return tuple(sorted({*pending, *ready})), asked

    # ---- publishing -----------------------------------------------------------------------------

    def _publish(self, c: Connection, step: Step, outcome: Outcome) -> list[int]:
        """Store a step with its results, and return the ids of its questions."""
        fresh = step.version != self.last.version
        journal.add_step(c, step)
        if fresh:
            journal.withdraw_ready(c, step.id)
            assert outcome.model is not None
            models.add_model(c, outcome.model)
        ids = journal.add_ready(c, step, self.clock(), outcome.questions)
        if fresh:
            self._decide(c, step, outcome.decision, outcome.verdict)
        return ids

    def _decide(self, c: Connection, step: Step, decision: Decision, verdict: Verdict) -> None:
        models.add_decision(
            c,
            step.id,
            decision.stop,
            decision.settled,
            decision.rank,
            decision.message,
            stored_criteria(decision),
        )
        state = collection.state(c)
        assert state is not None
        if not decision.settled or state.status != "running" or models.overruled(c):
            return
        reason = f"{verdict.headline} {verdict.explanation}"
        if collection.simulated_in(c, step.up_to_event):
            # Answers of bots must not stop a study.
            if not collection.simulated_stopped(c):
                kind = collection.SIMULATED_STOP
                collection.add_event(c, kind, RULE, step.at, reason=reason)
        else:
            collection.set_state(c, status="stopped", reason=reason)
            collection.add_event(c, "stop", RULE, step.at, reason=reason)
