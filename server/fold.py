"""The learner as a fold over the database: one step of the worker's journal after another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from lore_active.learner import Learner, Query
from lore_active.selection import selector_named
from lore_active.stopping import Decision, RankSettled
from lore_active.study import LoadedStudy
from server.store import learning, priors
from server.store.database import Database
from server.store.learning import Change, Step

# Random questions that are always asked, from the schedule and the learner together.
LEAST_RANDOM = 0.05
BEFORE_ALL = Step(0, 0, 0, 0, 0, "", 0, (), 0, "", {})


def new_learner(study: LoadedStudy, seed: int) -> Learner:
    """The learner that a study's settings ask for."""
    settings = study.settings
    stopping = settings.stopping
    return Learner(
        len(study.items),
        seed,
        selector_named(settings.learning.selector),
        RankSettled(stopping.confidence, stopping.audits, stopping.min_answers or None),
        least_random=max(0.0, LEAST_RANDOM - settings.session.random),
    )


class Fold:
    """A learner that goes through steps; the worker lives them, replay goes through them again.

    `numbers` holds the learner's numbers of the web's own questions that the database does not
    have yet. `timer` gives seconds, for measuring work.
    """

    def __init__(
        self, database: Database, study: LoadedStudy, learner: Learner, timer: Callable[[], float]
    ) -> None:
        self.database = database
        self.study = study
        self.learner = learner
        self.timer = timer
        self.numbers: dict[int, int] = {}

    def again(self, step: Step, before: Step, as_asked: bool = False) -> tuple[list[Query], str]:
        """Go through a step that the journal holds: its questions, and the hash that came out.

        With `as_asked` the questions are those that were asked then, not chosen again: on another
        machine or version the last bits differ, and with them, sooner or later, the choice.
        """
        self.take_in(step, before)
        self.learn(step, {})
        if as_asked:
            rows = self.database.read(lambda c: learning.asked_in(c, step.id))
            queries = [self.learner.issue(*row) for row in rows]
        else:
            queries = self.ask(step, {})
        return queries, state_hash(self.learner, queries)

    def take_in(self, step: Step, before: Step) -> tuple[list[tuple[int, int]], bool]:
        """Tell the learner what was asked, answered, excluded and brought in since the step before.

        Gives the learner's numbers of the web's own questions, as (learner, query), and whether
        anybody was excluded or restored, or prior answers came or went.
        """
        queries, told, changes = self.database.read(
            lambda c: (
                learning.web_queries(c, before.up_to_query, step.up_to_query),
                learning.told(c, before.up_to_seq, step.up_to_seq),
                learning.changes(c, before.up_to_event, step.up_to_event),
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
                known = self.learner.issue(query.anchor, query.left, query.right, "random")
            self.numbers[query.id] = known.id
            numbers.append((known.id, query.id))
        for answer in told:
            number = self.numbers.get(answer.query) if answer.learner is None else answer.learner
            assert number is not None
            if answer.chosen is None:
                self.learner.skip(number)
                continue
            side = self.learner.query(number).side_of(answer.chosen)
            self.learner.tell(number, side, str(answer.participant))
        for change in changes:
            self._change(change)
        return numbers, bool(changes)

    def _change(self, change: Change) -> None:
        if change.kind in ("prior", "prior_out"):
            number = change.prior
            assert number is not None
            # A source like a participant: leaving it out is the same thing.
            source = f"prior {number}"
            if change.kind == "prior_out":
                self.learner.exclude(source)
            else:
                self.learner.add(self.database.read(lambda c: priors.rows(c, [number])), source)
            return
        act = self.learner.exclude if change.kind == "exclude" else self.learner.restore
        act(str(change.participant))

    def learn(self, step: Step, seconds: dict[str, float]) -> None:
        """Do the step's work; none, where what it was done with has been erased since."""
        if step.work and (self.learner.audits or step.work == "audit") and self.learner.counted:
            begun = self.timer()
            if step.work == "audit":
                self.learner.audit()
            else:
                self.learner.refit()
            seconds[step.work] = self.timer() - begun

    def ask(self, step: Step, seconds: dict[str, float]) -> list[Query]:
        """The step's questions."""
        if step.asked == 0:
            return []
        begun = self.timer()
        queries = self.learner.ask(step.asked, pending=step.pending)
        seconds["select"] = self.timer() - begun
        return queries


def state_hash(learner: Learner, queries: list[Query]) -> str:
    """A digest of the model to the last bit, of the questions just asked, and of the decision."""
    digest = hashlib.sha256()
    model = learner.model
    if model is not None:
        asker = model.asker
        for array in (
            *(model.embedding, model.singular_values, model.picture),
            *(asker.embedding, asker.wider),
        ):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(
            repr((model.version, model.up_to, model.rank, model.lam, model.temperature)).encode()
        )
        digest.update(repr(_plain(learner.decision)).encode())
    for query in queries:
        digest.update(repr(query).encode())
    return digest.hexdigest()


def _plain(decision: Decision) -> tuple[Any, ...]:
    return decision.stop, decision.settled, decision.rank, decision.words
