"""The worker: follows the answers, refits, audits, refills the queue, decides, publishes."""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lore_active import snapshot
from lore_active.errors import LoreError
from lore_active.fingerprint import fingerprint
from lore_active.learner import Learner, Query
from lore_active.selection import selector_named
from lore_active.stopping import Decision, RankSettled
from lore_active.study import LoadedStudy
from server.store import collection, learning
from server.store.database import Connection, Database
from server.store.learning import ModelRow, Ready, Step

# How many questions wait for people: enough for what is answered during one turn of the worker,
# and no more, since the best question changes with every answer.
LEAST_READY, MOST_READY = 10, 300
RATE_WINDOW_MS = 20_000
# Random questions that are always asked, from the schedule and the learner together.
LEAST_RANDOM = 0.05


class CannotRebuild(LoreError):
    """What the journal says does not come out again."""


@dataclass(frozen=True)
class Outcome:
    """What a step led to."""

    learner_numbers: list[tuple[int, int]]
    queries: list[Query]
    hash: str
    seconds: dict[str, float]


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


class Worker:
    """One study's learner, as a fold over the database; `turn` does what is due.

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
        self._numbers: dict[int, int] = {}
        self._cycle_seconds = 0.5
        self._unpublished: tuple[Outcome, Step] | None = None
        self.last, self.learner = self._rebuilt()

    # ---- living ---------------------------------------------------------------------------------

    def turn(self) -> bool:
        """Look once whether there is something to do, and do it; tells whether there was."""
        begun = self.timer()
        if self._unpublished is None:
            planned, before = self.database.read(self._plan)
            if planned is None:
                return False
            self._unpublished = self._apply(planned, before)
        # What was learnt stands even if the database cannot take it now: the next turn tries again.
        outcome, step = self._unpublished
        self.database.write(lambda c: self._publish(c, step, outcome))
        self.last, self._unpublished = step, None
        for _, query in outcome.learner_numbers:
            self._numbers.pop(query, None)
        if step.work == "audit":
            self._save(step)
        self._cycle_seconds = self.timer() - begun
        return True

    def _plan(self, c: Connection) -> tuple[Step | None, Step]:
        """The next step, if anything calls for one."""
        last, now = self.last, self.clock()
        queries, seq, event = learning.heads(c)
        ready = learning.ready(c)
        wanted = self._wanted_ready(c, now)
        news = seq > last.up_to_seq or event > last.up_to_event
        if not news and len(ready) * 2 >= wanted:
            return None, last
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
        return step, last

    def _wanted_ready(self, c: Connection, now: int) -> int:
        state = collection.state(c)
        assert state is not None
        active = collection.under_way(c, now - 60_000)
        if state.status == "stopped" and not active:
            return 0
        rate = learning.recent_answers(c, now - RATE_WINDOW_MS) / (RATE_WINDOW_MS / 1000)
        wanted = active + 1.5 * rate * self._cycle_seconds
        return int(min(MOST_READY, max(LEAST_READY, wanted)))

    def _apply(self, step: Step, before: Step) -> tuple[Outcome, Step]:
        """Take in what came, learn, ask; decides what is due and what is out, and notes it."""
        seconds: dict[str, float] = {}
        numbers, changed = self._take_in(step, before)
        due = self.learner.due()
        if due is None and changed and self.learner.audits:
            due = "audit"
        step = replace(step, work=due or "")
        self._learn(step, seconds)
        # The learner counts its versions anew when somebody is excluded; published ones go on.
        fresh = self.learner.model is not None and bool(due or changed)
        version = before.version + int(fresh)
        pending, asked = self.database.read(lambda c: self._pending(c, step, fresh))
        step = replace(step, pending=pending, asked=asked, version=version)
        queries = self._ask(step, seconds)
        digest = state_hash(self.learner, queries)
        step = replace(step, hash=digest, seconds=seconds)
        return Outcome(numbers, queries, digest, seconds), step

    def _take_in(self, step: Step, before: Step) -> tuple[list[tuple[int, int]], bool]:
        """Tell the learner what was asked, answered and excluded since the step before."""
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
                old = self._numbers.get(query.repeats)
            if query.purpose == "repeat" and old is not None:
                known = self.learner.repeat(old)
            else:
                known = self.learner.issue(query.anchor, query.left, query.right, "random")
            self._numbers[query.id] = known.id
            numbers.append((known.id, query.id))
        for answer in told:
            number = self._numbers.get(answer.query) if answer.learner is None else answer.learner
            assert number is not None
            if answer.chosen is None:
                self.learner.skip(number)
                continue
            side = self.learner.query(number).side_of(answer.chosen)
            self.learner.tell(number, side, str(answer.participant))
        for change in changes:
            act = self.learner.exclude if change.kind == "exclude" else self.learner.restore
            act(str(change.participant))
        return numbers, bool(changes)

    def _learn(self, step: Step, seconds: dict[str, float]) -> None:
        if step.work:
            begun = self.timer()
            if step.work == "audit":
                self.learner.audit()
            else:
                self.learner.refit()
            seconds[step.work] = self.timer() - begun

    def _pending(self, c: Connection, step: Step, fresh: bool) -> tuple[tuple[int, ...], int]:
        """What is out (as the learner's numbers), and how many more questions are wanted.

        A new model takes back what is ready and asks anew; otherwise the queue is topped up.
        """
        known = (
            self._numbers.get(query) if number is None else number
            for query, number in learning.out(c, step.at, step.up_to_query)
        )
        pending = [number for number in known if number is not None]
        ready = [] if fresh else learning.ready(c)
        return tuple(sorted({*pending, *ready})), max(0, step.asked - len(ready))

    def _ask(self, step: Step, seconds: dict[str, float]) -> list[Query]:
        if step.asked == 0:
            return []
        begun = self.timer()
        queries = self.learner.ask(step.asked, pending=step.pending)
        seconds["select"] = self.timer() - begun
        return queries

    # ---- publishing -----------------------------------------------------------------------------

    def _publish(self, c: Connection, step: Step, outcome: Outcome) -> None:
        fresh = step.version != self.last.version
        learning.add_step(c, step)
        learning.set_learner_numbers(c, outcome.learner_numbers)
        if fresh:
            learning.withdraw_ready(c, step.id)
            learning.add_model(c, self._model_row(step))
        learning.add_ready(
            c,
            step.id,
            self.clock(),
            [_ready(one, step.version) for one in outcome.queries],
        )
        if fresh:
            self._decide(c, step)

    def _decide(self, c: Connection, step: Step) -> None:
        decision = self.learner.decision
        before = learning.last_decision(c)
        learning.add_decision(
            c,
            step.id,
            decision.stop,
            decision.settled,
            decision.rank,
            decision.words,
            [asdict(one) for one in decision.reasons],
        )
        state = collection.state(c)
        assert state is not None
        # Only when it becomes settled: a study that the experimenter reopens stays open.
        newly = decision.settled and not (before is not None and before[1])
        if newly and state.status == "running":
            collection.set_state(c, status="stopped", reason=decision.words)
            collection.add_event(c, "stop", "stopping rule", step.at, reason=decision.words)

    def _model_row(self, step: Step) -> ModelRow:
        estimate, model = self.learner.estimate, self.learner.model
        assert model is not None
        spread = self.learner.uncertainty()
        count, rank = estimate.embedding.shape
        if spread is None or rank == 0:
            spread = np.zeros((count, rank, rank))
        summary = {
            "spectrum": estimate.spectrum.tolist(),
            "evidence": [asdict(one) for one in estimate.evidence],
            "progressive": asdict(estimate.progressive),
            "ceiling": estimate.ceiling,
            "random_share": self.learner.random_share,
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
            objective=model.objective,
            seed=self.learner.seed,
            picture=np.ascontiguousarray(estimate.picture[:, :rank]).tobytes(),
            embedding=np.ascontiguousarray(estimate.embedding).tobytes(),
            spread=np.ascontiguousarray(spread).tobytes(),
            summary=json.dumps(summary),
            hash=step.hash,
            fingerprint=fingerprint(),
        )

    # ---- coming back ----------------------------------------------------------------------------

    def _save(self, step: Step) -> None:
        document, arrays = snapshot.dump(self.learner)
        packed = io.BytesIO()
        np.savez(packed, **arrays)  # type: ignore[arg-type]
        text = zlib.compress(json.dumps(document).encode(), 1)
        self.database.write(lambda c: learning.save_snapshot(c, step.id, text, packed.getvalue()))

    def _rebuilt(self) -> tuple[Step, Learner]:
        """The learner as it was when the last step was published, or a CannotRebuild."""
        saved = self.database.read(learning.snapshot)
        if saved is not None:
            try:
                return self._replayed(saved)
            except CannotRebuild:
                # A snapshot of another version of the program; the journal alone must do.
                pass
        return self._replayed(None)

    def _replayed(self, saved: tuple[int, bytes, bytes] | None) -> tuple[Step, Learner]:
        state = self.database.read(collection.state)
        assert state is not None
        before = Step(0, 0, 0, 0, 0, "", 0, (), 0, "", {})
        self.learner = new_learner(self.study, state.seed)
        if saved is not None:
            number, text, packed = saved
            with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
                self.learner = snapshot.load(
                    json.loads(zlib.decompress(text)), {name: arrays[name] for name in arrays}
                )
            found = self.database.read(lambda c: learning.step_numbered(c, number))
            if found is None:
                raise CannotRebuild(f"The snapshot is of step {number}, which is not there.")
            before = found
        start = before.id
        for step in self.database.read(lambda c: learning.steps(c, start)):
            self._take_in(step, before)
            self._learn(step, {})
            queries = self._ask(step, {})
            found_hash = state_hash(self.learner, queries)
            if found_hash != step.hash:
                raise CannotRebuild(
                    f"Step {step.id} of the worker's journal came out differently "
                    f"({found_hash[:12]} instead of {step.hash[:12]})."
                )
            before = step
        self._numbers.clear()
        return before, self.learner


def state_hash(learner: Learner, queries: list[Query]) -> str:
    """A digest of the model to the last bit, of the questions just asked, and of the decision."""
    digest = hashlib.sha256()
    model = learner.model
    if model is not None:
        asker = model.asker
        arrays = (model.embedding, model.singular_values, model.picture)
        for array in (*arrays, asker.embedding, asker.wider):
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


def _ready(query: Query, version: int) -> Ready:
    return Ready(
        query.id,
        query.purpose,
        query.anchor,
        query.left,
        query.right,
        version,
        query.score,
        "/".join(str(part) for part in query.seed),
    )
