"""The worker: reads new answers, refits, audits, refills the queue, decides and publishes."""

from __future__ import annotations

import io
import json
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lore_active.errors import LoreError
from lore_active.learner import snapshot
from lore_active.learner.cadence import rest_after_audit
from lore_active.learner.learner import Learner
from lore_active.questions.question import Question
from lore_active.reproducibility import fingerprint
from lore_active.stopping.rules import Decision
from lore_active.stopping.verdict import Verdict
from server.learning.replayer import (
    BEFORE_ALL,
    Replayer,
    Unusable,
    model_row,
    new_learner,
    stored_criteria,
)
from server.learning.state_hash import comes_out, refuse_nonsense, state_hash
from server.status.counting import present
from server.status.verdict import RULE
from server.store import collection, journal, models, summaries
from server.store.database import Connection, Database
from server.store.journal import ReadyQuestion, Step
from server.store.models import ModelRow
from server.study.config import LoadedStudy

# Questions in the queue: enough for what is answered during one turn of the worker, and no more,
# since the most informative question changes with every answer.
MIN_READY, MAX_READY = 10, 300
RATE_WINDOW_MS = 20_000


class CannotRebuild(LoreError):
    """The journal cannot be reproduced."""


@dataclass(frozen=True)
class Outcome:
    """The result of a step: everything that it publishes."""

    learner_numbers: list[tuple[int, int]]
    queries: list[Question]
    model: ModelRow | None
    decision: Decision
    verdict: Verdict


class Worker:
    """The learner of one study, rebuilt from the database; `turn` does what is due.

    `clock` gives milliseconds since 1970, `timer` seconds for measuring work.
    """

    def __init__(
        self,
        database: Database,
        study: LoadedStudy,
        clock: Callable[[], int],
        timer: Callable[[], float],
    ) -> None:
        self.database = database
        self.study = study
        self.clock = clock
        self.timer = timer
        self._cycle_seconds = 0.5
        self._resting_until = float("-inf")
        self._unpublished: tuple[Outcome, Step] | None = None
        self.trouble = ""
        self.last, self.replayer = self._rebuilt()

    @property
    def learner(self) -> Learner:
        """The learner in its current state."""
        return self.replayer.learner

    @property
    def _resting(self) -> bool:
        """Whether audits have used their share of the time; the journal records when they ran."""
        return self.timer() < self._resting_until

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
        self.database.write(lambda c: self._publish(c, step, outcome))
        self.last, self._unpublished = step, None
        for _, query in outcome.learner_numbers:
            self.replayer.numbers.pop(query, None)
        if step.work == "audit":
            self._save(step)
            self._resting_until = self.timer() + rest_after_audit(step.seconds.get("audit", 0.0))
        self._cycle_seconds = self.timer() - begun
        return True

    def _plan(self, c: Connection) -> tuple[Step | None, bool]:
        """Return the next step if one is due, and whether no participant is left to answer."""
        last, now = self.last, self.clock()
        queries, seq, event = journal.heads(c)
        ready = journal.ready(c)
        wanted = self._wanted_ready(c, now)
        news = seq > last.up_to_seq or event > last.up_to_event
        idle_minutes = self.study.settings.session.idle_minutes
        deserted = collection.under_way(c, *present(now, idle_minutes)) == 0
        # A postponed audit or a last refit may be due without new answers.
        owed = self.replayer.due(False, self._resting, deserted) != ""
        if not news and not owed and len(ready) * 2 >= wanted:
            return None, deserted
        step = Step(
            id=last.id + 1,
            at=now,
            up_to_query=queries,
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
        wanted = active + 1.5 * rate * self._cycle_seconds
        return int(min(MAX_READY, max(MIN_READY, wanted)))

    def _apply(self, step: Step, before: Step, deserted: bool) -> tuple[Outcome, Step]:
        """Pass on what is new, learn and select questions; return the result and the full step."""
        seconds: dict[str, float] = {}
        self._quarantine(self.replayer.unusable(step, before))
        numbers, changed = self.replayer.take_in(step, before)
        step = replace(step, work=self.replayer.due(changed, self._resting, deserted))
        self.replayer.learn(step, seconds)
        refuse_nonsense(self.learner, step)
        # The learner restarts its version count after an exclusion; published versions continue.
        # If removed answers leave no model, that is published as well.
        known = self.learner.model is not None or before.version > 0
        fresh = known and bool(step.work or changed)
        version = before.version + int(fresh)
        pending, asked = self.database.read(lambda c: self._pending(c, step, fresh))
        step = replace(step, pending=pending, asked=asked, version=version)
        queries = self.replayer.ask(step, seconds)
        digest = state_hash(self.learner, queries)
        step = replace(step, hash=digest, seconds=seconds)
        # Built here because the database is locked while publishing.
        model = model_row(self.learner, step) if fresh else None
        learner = self.learner
        return Outcome(numbers, queries, model, learner.decision, learner.verdict), step

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
                    c, "set aside", "worker", now, reason=row.why, **{row.what: row.number}
                )

        self.database.write(work)
        more = "" if len(rows) == 1 else f" ({len(rows)} such rows; see the log.)"
        self.trouble = f"{rows[0]} It was quarantined.{more}"

    def _leave_out(self, rows: list[Unusable]) -> None:
        """Quarantine bad rows in a replay, where questions can no longer be left out."""
        for row in rows:
            if row.what == "question":
                raise CannotRebuild(
                    f"{row} It was used before, and the learner's numbers of later questions "
                    "depend on it: restore the row from the log or a backup."
                )
        self._quarantine(rows)

    def _pending(self, c: Connection, step: Step, fresh: bool) -> tuple[tuple[int, ...], int]:
        """Return the questions out (by the learner's numbers), and how many more are wanted.

        A new model replaces the queue; otherwise it is topped up.
        """
        known = (
            self.replayer.numbers.get(query) if number is None else number
            for query, number in journal.out(c, step.at, step.up_to_query)
        )
        pending = [number for number in known if number is not None]
        ready = [] if fresh else journal.ready(c)
        return tuple(sorted({*pending, *ready})), max(0, step.asked - len(ready))

    # ---- publishing -----------------------------------------------------------------------------

    def _publish(self, c: Connection, step: Step, outcome: Outcome) -> None:
        fresh = step.version != self.last.version
        journal.add_step(c, step)
        journal.set_learner_numbers(c, outcome.learner_numbers)
        if fresh:
            journal.withdraw_ready(c, step.id)
            assert outcome.model is not None
            models.add_model(c, outcome.model)
        journal.add_ready(
            c,
            step.id,
            self.clock(),
            [_ready(query, step.version) for query in outcome.queries],
        )
        if fresh:
            self._decide(c, step, outcome.decision, outcome.verdict)

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

    # ---- starting -------------------------------------------------------------------------------

    def _save(self, step: Step) -> None:
        document, arrays = snapshot.dump(self.learner)
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
        text = zlib.compress(json.dumps(document).encode(), 1)
        self.database.write(lambda c: journal.save_snapshot(c, step.id, text, packed.getvalue()))

    def _rebuilt(self) -> tuple[Step, Replayer]:
        """Rebuild the learner in the state of the last published step, or raise CannotRebuild."""
        saved = self.database.read(journal.snapshot)
        if saved is not None:
            try:
                return self._replayed(saved)
            except Exception as error:
                # A snapshot is only a shortcut: if it is damaged or of another version, the
                # journal suffices.
                print(f"The snapshot cannot be used: {error!r}", file=sys.stderr, flush=True)
        try:
            return self._replayed(None)
        except (LoreError, AssertionError) as error:
            # Another machine or version. Questions and answers stay; from here on, the models are
            # those that this machine computes from them.
            reason = str(error)
            self.database.write(
                lambda c: collection.add_event(
                    c, "rebuilt", "worker", self.clock(), reason=reason, fingerprint=fingerprint()
                )
            )
            return self._replayed(None, as_asked=True)

    def _replayed(
        self, saved: tuple[int, bytes, bytes] | None, as_asked: bool = False
    ) -> tuple[Step, Replayer]:
        state = self.database.read(collection.state)
        assert state is not None
        before, learner = BEFORE_ALL, new_learner(self.study, state.seed)
        if saved is not None:
            number, text, packed = saved
            with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
                learner = snapshot.load(
                    json.loads(zlib.decompress(text)), {name: arrays[name] for name in arrays}
                )
            snapshot_step = self.database.read(lambda c: journal.step_numbered(c, number))
            if snapshot_step is None:
                raise CannotRebuild(f"The snapshot is of step {number}, which does not exist.")
            before = snapshot_step
            asked = self.database.read(lambda c: journal.scored_in(c, number))
            queries = [learner.query(row[1]) for row in asked]
            if not comes_out(learner, queries, before, self.database):
                raise CannotRebuild(f"The snapshot differs from what step {number} published.")
        replayer, start = Replayer(self.database, self.study, learner, self.timer), before.id
        steps = self.database.read(lambda c: journal.steps(c, start))

        def prepare(step: Step, before: Step) -> None:
            if as_asked:
                self._leave_out(replayer.unusable(step, before))

        for step, _, _ in replayer.through(steps, before, prepare=prepare):
            # On another machine or version the last bits differ, and eventually the selected
            # questions.
            queries = replayer.as_asked(step) if as_asked else replayer.ask(step, {})
            if not as_asked and not comes_out(learner, queries, step, self.database):
                raise CannotRebuild(
                    f"Step {step.id} of the worker's journal could not be reproduced."
                )
            before = step
        replayer.numbers.clear()
        return before, replayer


def _ready(query: Question, version: int) -> ReadyQuestion:
    return ReadyQuestion(
        query.id,
        query.purpose,
        query.anchor,
        query.left,
        query.right,
        version,
        query.score,
        "/".join(str(part) for part in query.seed),
    )
