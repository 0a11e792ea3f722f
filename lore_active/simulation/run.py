"""Simulate a whole study, with simulated observers or with a pool of recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lore_active.data.triplets import Triplets
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.learner.learner import Learner
from lore_active.questions.pool import Questions, keys
from lore_active.questions.question import Question, Side
from lore_active.simulation.observers import Observer

Chosen = Side | Sequence[int]
# Questions pending at a time: as if ten participants took part at once.
BATCH = 10


class Participants(Protocol):
    """Protocol of a source of answers."""

    def answer(self, question: Question) -> tuple[Chosen, str] | None:
        """Return the chosen options (or side), and the participant who chose them.

        None if every participant has had this question.
        """
        ...


class SimulatedParticipants:
    """Simulated observers who take turns; none is asked the same question twice."""

    def __init__(self, observers: list[Observer]) -> None:
        self._observers = observers
        self._line = list(range(len(observers)))
        self._had: set[tuple[int, Hashable]] = set()

    def answer(self, question: Question) -> tuple[Chosen, str] | None:
        """Return the chosen options, and who chose them: the next who can be asked."""
        asked = question.kind.key(question.anchor, question.options)
        observer = next(
            (candidate for candidate in self._line if (candidate, asked) not in self._had), None
        )
        if observer is None:
            return None
        self._had.add((observer, asked))
        self._line.remove(observer)
        self._line.append(observer)
        chosen = self._observers[observer].choose(question.kind, question.anchor, question.options)
        return chosen, f"P{observer + 1}"


class LoggedParticipants:
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

    def answer(self, question: Question) -> tuple[Side, str]:
        """Return the chosen side, and the participant who chose it."""
        row = np.array([[question.anchor, question.left, question.right]])
        votes = self._votes[int(keys(row, self._items)[0])]
        left, right = votes.get(question.left, 0.0), votes.get(question.right, 0.0)
        return ("left" if self._rng.random() * (left + right) < left else "right"), "pool"


@dataclass
class Spent:
    """Seconds by kind of computation, measured with the clock that is passed in."""

    refit: float = 0.0
    audit: float = 0.0
    select: float = 0.0


def simulate(
    learner: Learner,
    participants: Participants,
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
    participants : Participants
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
    >>> from lore_active.simulation.run import SimulatedParticipants, simulate
    >>> participants = SimulatedParticipants([Observer(gaussian_space(6, 1, seed=1), seed=2)])
    >>> records = list(simulate(Learner(6), participants, 20, test=None, clock=lambda: 0.0))
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
        questions = learner.ask(min(batch, answers - learner.estimate.answers))
        spent.select += clock() - begun
        if not questions:
            break
        nobody = True
        for question in questions:
            answer = participants.answer(question)
            if answer is None:
                learner.skip(question.id)
            else:
                learner.tell(question.id, *answer)
                nobody = False
        if nobody:
            break
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
                stopped_at, stopped_rank = learner.estimate.answers, decision.dimensions
            yield {
                "answers": learner.estimate.answers,
                "rank": learner.audits[-1].rank,
                "lambda": learner.audits[-1].lam,
                "accuracy": accuracy(),
                "prequential_accuracy": _predicted(learner),
                "decision": "stop" if decision.stop else "continue",
                "message": decision.message,
                **_sensitivity(learner),
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
        "prequential_accuracy": _predicted(learner),
        "message": learner.decision.message,
        **_sensitivity(learner),
        **_said(learner),
        "refit_seconds": spent.refit,
        "audit_seconds": spent.audit,
        "select_seconds": spent.select,
    }


def _sensitivity(learner: Learner) -> dict[str, Any]:
    """What is known about further dimensions; nothing under rules that do not test for them."""
    known = learner.sensitivity
    return {
        "ruled_out_share": None if known is None else known.ruled_out,
        "found_share": None if known is None else known.found,
        "possible_ranks": None if known is None else list(known.ranks),
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
