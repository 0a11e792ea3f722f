"""Simulate a whole study, with simulated observers or with a pool of recorded answers."""

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

# Questions pending at a time: as if ten participants took part at once.
BATCH = 10


class People(Protocol):
    """Protocol of a source of answers."""

    def answer(self, query: Question) -> tuple[Side, str]:
        """Return the chosen side, and the participant who chose it."""
        ...


class SimulatedPeople:
    """Simulated observers who take turns."""

    def __init__(self, observers: list[Observer]) -> None:
        self._observers = observers
        self._next = 0

    def answer(self, query: Question) -> tuple[Side, str]:
        """Return the chosen side, and the participant who chose it."""
        observer = self._next % len(self._observers)
        self._next += 1
        side = self._observers[observer].answer(query.anchor, query.left, query.right)
        return side, f"P{observer + 1}"


class LoggedPeople:
    """Answers drawn from those that were recorded for the same question."""

    def __init__(self, triplets: Triplets, seed: int) -> None:
        # Weights count votes; a question without any vote cannot be answered, so it is not asked.
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
        """Return the chosen side, and the participant who chose it."""
        row = np.array([[query.anchor, query.left, query.right]])
        votes = self._votes[int(keys(row, self._items)[0])]
        left, right = votes.get(query.left, 0.0), votes.get(query.right, 0.0)
        return ("left" if self._rng.random() * (left + right) < left else "right"), "pool"


@dataclass
class Spent:
    """Seconds by kind of computation, measured with the clock that is passed in."""

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
    """Simulate a study.

    Parameters
    ----------
    learner : Learner
        A new learner; its stopping rule decides when the study ends.
    people : People
        Source of the answers.
    answers : int
        Maximum number of answers.
    test : array-like, Triplets or None
        Triplets on which accuracy is measured; None if it is not measured.
    clock : callable
        Returns seconds, for instance `time.perf_counter`.
    stop : bool, default True
        Whether to end when the stopping rule is met. If False, collection continues to `answers`,
        and `stopped_at` in the summary says where it would have ended.
    batch : int, default 10
        Number of questions that are pending at a time.

    Yields
    ------
    dict
        A record after each audit, and a summary (with the key "summary") at the end.

    Examples
    --------
    >>> from lore_active import Learner
    >>> from lore_active.simulation.observers import Observer, gaussian_space
    >>> from lore_active.simulation.run import SimulatedPeople, simulate
    >>> people = SimulatedPeople([Observer(gaussian_space(6, 1, seed=1), seed=2)])
    >>> records = list(simulate(Learner(6), people, 20, test=None, clock=lambda: 0.0))
    >>> [record["answers"] for record in records]
    [20, 20]
    >>> records[-1]["summary"]
    True
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
    """The verdict in the same wording as on the pages."""
    verdict = learner.verdict
    return {
        "stage": verdict.stage,
        "headline": verdict.headline,
        "explanation": verdict.explanation,
    }


def _predicted(learner: Learner) -> float | None:
    """Prequential accuracy; None while there are no predictions."""
    share = learner.prequential
    return share.value if share.count else None
