"""A whole study with simulated people, or with a pool of logged answers in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lore_active.data.comparisons import Triplets
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.learner.learner import Learner
from lore_active.questions.pool import Questions, keys
from lore_active.questions.question import Question, Side
from lore_active.simulation.observers import Observer

# Questions out at a time: about what a handful of people hold.
BATCH = 10


class People(Protocol):
    """Whoever answers."""

    def answer(self, query: Question) -> tuple[Side, str]:
        """The side chosen, and who chose it."""
        ...


class SimulatedPeople:
    """Observers who take turns."""

    def __init__(self, observers: list[Observer]) -> None:
        self._observers = observers
        self._next = 0

    def answer(self, query: Question) -> tuple[Side, str]:
        """The side chosen, and who chose it."""
        who = self._next % len(self._observers)
        self._next += 1
        return self._observers[who].answer(query.anchor, query.left, query.right), f"P{who + 1}"


class LoggedPeople:
    """Answers drawn from those that were logged for the same question."""

    def __init__(self, triplets: Triplets, seed: int) -> None:
        # Weights are votes; a question without any cannot be answered, and is not asked.
        triplets = triplets.take(triplets.weight > 0.0)
        self._rng = np.random.default_rng(seed)
        self._items = triplets.n_objects
        self.questions: Questions = np.column_stack(
            [triplets.anchor, triplets.nearer, triplets.farther]
        ).astype(np.int64)
        self._votes: dict[int, dict[int, float]] = {}
        numbers = keys(self.questions, self._items).tolist()
        for key, row, weight in zip(numbers, self.questions, triplets.weight, strict=True):
            votes = self._votes.setdefault(key, {})
            votes[int(row[1])] = votes.get(int(row[1]), 0.0) + float(weight)

    def answer(self, query: Question) -> tuple[Side, str]:
        """The side chosen, and who chose it."""
        row = np.array([[query.anchor, query.left, query.right]])
        votes = self._votes[int(keys(row, self._items)[0])]
        left, right = votes.get(query.left, 0.0), votes.get(query.right, 0.0)
        return ("left" if self._rng.random() * (left + right) < left else "right"), "pool"


@dataclass
class Spent:
    """Seconds by kind of work, measured with a clock that is passed in."""

    refit: float = 0.0
    audit: float = 0.0
    select: float = 0.0


def simulate(
    learner: Learner,
    people: People,
    answers: int,
    test: Any,
    clock: Callable[[], float],
    stop: bool = True,
    batch: int = BATCH,
) -> Iterator[dict[str, Any]]:
    """Run a study; yields a record for each audit and a summary at the end.

    `test` holds triplets on which accuracy is measured (None: not measured). Without `stop`
    collection goes on to `answers` whatever the rule says; `stopped_at` then tells where it would
    have stopped.
    """
    spent = Spent()
    stopped_at: int | None = None
    stopped_rank: int | None = None

    def accuracy() -> float | None:
        return None if test is None else triplet_accuracy(learner.estimate.embedding, test)

    while learner.estimate.answers < answers:
        begun = clock()
        queries = learner.ask(min(batch, answers - learner.estimate.answers))
        spent.select += clock() - begun
        if not queries:
            break
        for query in queries:
            side, who = people.answer(query)
            learner.tell(query.id, side, who)
        due = learner.due()
        begun = clock()
        if due == "refit":
            learner.refit()
            spent.refit += clock() - begun
        elif due == "audit":
            learner.audit()
            spent.audit += clock() - begun
            decision = learner.decision
            if decision.settled and stopped_at is None:
                stopped_at, stopped_rank = learner.estimate.answers, decision.rank
            yield {
                "answers": learner.estimate.answers,
                "rank": learner.audits[-1].rank,
                "lambda": learner.audits[-1].lam,
                "accuracy": accuracy(),
                "progressive_accuracy": learner.progressive.value,
                "prequential_accuracy": _predicted(learner),
                "decision": "stop" if decision.stop else "go on",
                "message": decision.message,
                **_said(learner),
            }
            if stop and decision.stop:
                break
    yield {
        "summary": True,
        "stopped_at": stopped_at,
        "stopped_rank": stopped_rank,
        "answers": learner.estimate.answers,
        "rank": learner.audits[-1].rank if learner.audits else 0,
        "accuracy": accuracy(),
        "progressive_accuracy": learner.progressive.value,
        "prequential_accuracy": _predicted(learner),
        "message": learner.decision.message,
        **_said(learner),
        "refit_seconds": spent.refit,
        "audit_seconds": spent.audit,
        "select_seconds": spent.select,
    }


def _said(learner: Learner) -> dict[str, str]:
    """The verdict as every page gives it."""
    found = learner.verdict
    return {"stage": found.stage, "headline": found.headline, "explanation": found.explanation}


def _predicted(learner: Learner) -> float | None:
    """Prequential accuracy; None while no map has predicted anything."""
    share = learner.prequential
    return share.value if share.count else None
