"""`Learner`: the ask-and-tell interface to an adaptive triplet experiment. No I/O and no clock.

One module, though long: it is the whole public interface of the learner, each method a few lines
over the modules that do the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from lore_active.acquisition import model as acquisition_model
from lore_active.acquisition import proposals
from lore_active.acquisition.local import LocalSelector
from lore_active.acquisition.selectors import FisherSelector, Selector, SelectorState
from lore_active.data.comparisons import MAX_ITEMS, Triplets, as_triplets
from lore_active.embedding import metrics
from lore_active.embedding.solver import Solution, SolverSettings
from lore_active.errors import InvalidParameter
from lore_active.learner import updates
from lore_active.learner.cadence import AUDIT_GROWTH, FIRST_AUDIT, REFIT_EVERY, REFIT_SHARE
from lore_active.learner.history import History
from lore_active.learner.model import Estimate, Model, item_covariances
from lore_active.learner.running_counts import RunningCounts
from lore_active.questions.pool import AllQuestions, QuestionSource
from lore_active.questions.question import (
    Answer,
    Purpose,
    Question,
    Side,
)
from lore_active.rank.cross_validation import Audit
from lore_active.rank.significance import Proportion, wilson
from lore_active.reproducibility import warn_if_not_portable
from lore_active.stopping.rules import (
    Decision,
    Progress,
    RankSettled,
    StoppingRule,
    findings,
)
from lore_active.stopping.smallest_dimension import FurtherDimensionRule
from lore_active.stopping.stages import Collection, Findings
from lore_active.stopping.verdict import Verdict, verdict
from lore_active.types import Floats, Mapper

# Exploration share at rank + 1 once the evidence is already clearly against that dimension, and
# the rule by which it counts as clear.
EXPLORATION_WHEN_CLEAR = 0.1
CLEAR = RankSettled(confidence=0.995)
# Share of the active questions among neighbouring items, under a stopping rule that has to rule out
# a further dimension: only these reveal a weak one.
LOCAL_SHARE = 0.3


class Learner:
    """Adaptive learner: selects questions, fits the answers, and decides when to stop.

    The learner is deterministic: the same seed and the same sequence of calls give the same
    questions, embeddings and decisions. It never acts by itself: the caller asks, tells, and runs
    an audit or a refit when `due` says so.

    Parameters
    ----------
    n_objects : int
        Number of items, at least 4. Items are numbered from 0.
    seed : int, default 0
        Seed of every random choice.
    selector : Selector, optional
        Acquisition function that selects the active questions; `FisherSelector` by default.
    stopping : StoppingRule, optional
        Rule behind `decision`; `RankSettled` by default.
    min_random : float, default 0.10
        Minimum random share: the share of uniformly random questions that remains when the
        acquisition model predicts well. Accuracy is estimated from these questions.
    exploration_share : float, default 0.5
        Share of the active batches that are selected with an acquisition model of one dimension
        more, until the evidence against that dimension is clear.
    source : QuestionSource, optional
        Where questions come from; all possible triplets by default.
    lam : float, optional
        Weight λ of the rank penalty in every published fit; chosen by cross-validation by default.
    mapper : callable, optional
        Runs the independent fits of an audit, like the built-in `map`. The `map` method of an
        executor runs them in parallel, with bitwise identical results.

    Raises
    ------
    InvalidParameter
        If a value is outside its allowed range.

    Examples
    --------
    >>> from lore_active import Learner
    >>> learner = Learner(n_objects=5, seed=7)
    >>> [question] = learner.ask()
    >>> question.purpose
    'cover'
    >>> learner.tell(question.id, "left")
    >>> learner.counted
    1

    Answers collected earlier count as well; with enough of them an audit is due, which
    estimates the rank and publishes the first model:

    >>> learner.add([[a, (a + 1) % 5, (a + 2) % 5] for a in range(5)] * 2)
    >>> learner.due()
    'audit'
    >>> audit = learner.audit()
    >>> learner.estimate.version, learner.estimate.rank == audit.rank
    (1, True)
    >>> learner.decision.stop
    False
    """

    def __init__(
        self,
        n_objects: int,
        seed: int = 0,
        selector: Selector | None = None,
        stopping: StoppingRule | None = None,
        min_random: float = 0.10,
        exploration_share: float = 0.5,
        source: QuestionSource | None = None,
        lam: float | None = None,
        mapper: Mapper = map,
    ) -> None:
        if not 4 <= n_objects <= MAX_ITEMS:
            raise InvalidParameter(f"n_objects is {n_objects}, but must be from 4 to {MAX_ITEMS}.")
        for name, share in (
            ("min_random", min_random),
            ("exploration_share", exploration_share),
        ):
            if not 0.0 <= share <= 1.0:
                raise InvalidParameter(f"{name} is {share!r}, but must be from 0 to 1.")
        if lam is not None and not 0.0 < lam < np.inf:
            raise InvalidParameter(f"lam is {lam!r}, but must be a positive number.")
        warn_if_not_portable()
        self.n_objects = int(n_objects)
        self.seed = int(seed)
        self.selector: Selector = FisherSelector() if selector is None else selector
        rule: StoppingRule = RankSettled()
        self.stopping = rule if stopping is None else stopping
        self.min_random = float(min_random)
        self.exploration_share = float(exploration_share)
        self.source: QuestionSource = AllQuestions(self.n_objects) if source is None else source
        self.lam = lam
        self.mapper = mapper
        self._history = History(self.n_objects, self.seed)
        self._asks = 0
        self._excluded: set[str] = set()
        self._model: Model | None = None
        self._version = 0
        self._forget()

    # ---- asking ---------------------------------------------------------------------------------

    def ask(self, n: int = 1, pending: Iterable[int] | None = None) -> list[Question]:
        """Select and record the next questions.

        Parameters
        ----------
        n : int, default 1
            How many questions to select.
        pending : iterable of int, optional
            Ids of the questions that participants are working on; by default all questions that
            were asked but not answered or skipped. The selector treats pending questions as
            answered. Other unanswered questions may be asked again.

        Returns
        -------
        list of Question
            In the order in which they should be asked. Fewer than `n` only when no new question
            remains.

        Raises
        ------
        InvalidParameter
            If `n` is less than 1.
        """
        seed = (self.seed, self._asks)
        asked = []
        for proposal in self.proposal(n, pending)():
            anchor, left, right = (int(item) for item in proposal.row)
            asked.append(
                self._record(anchor, left, right, proposal.purpose, proposal.score, seed, None)
            )
        return asked

    def proposal(
        self, n: int = 1, pending: Iterable[int] | None = None
    ) -> Callable[[], list[proposals.Proposal]]:
        """Prepare a selection without recording it, to be run later or in another thread.

        Used to verify a recorded selection. It advances the random state exactly as `ask` does.

        Parameters
        ----------
        n : int, default 1
            How many questions to select.
        pending : iterable of int, optional
            As in `ask`.

        Returns
        -------
        callable
            Computes, when it is called, the list of proposals that `ask` would record now.

        Raises
        ------
        InvalidParameter
            If `n` is less than 1.
        """
        if n < 1:
            raise InvalidParameter(f"n is {n}, but must be 1 or more.")
        rng = np.random.default_rng([self.seed, self._asks, 1])
        self._asks += 1
        out = self._history.out() if pending is None else sorted(set(pending))
        known = self._selector_state(out, self._history.taken(out))
        return partial(proposals.sides_drawn, self._chooser(n, known, rng), rng)

    def repeat(self, query: int) -> Question:
        """Record an earlier question again with the options swapped, to measure consistency.

        Parameters
        ----------
        query : int
            Id of the earlier question.

        Returns
        -------
        Question
            The new question, with purpose "repeat".

        Raises
        ------
        UnknownQuestion
            If there is no question with this id.
        """
        old = self.query(query)
        return self._record(
            old.anchor, old.right, old.left, "repeat", 0.0, (self.seed, self._asks), old.id
        )

    def issue(self, anchor: int, left: int, right: int, purpose: Purpose = "random") -> Question:
        """Record a question that was selected elsewhere.

        Parameters
        ----------
        anchor, left, right : int
            Three different items.
        purpose : str, default "random"
            What the question is for. "random" and "cover" claim that the choice did not depend on
            a model: answers to these questions are used to estimate accuracy.

        Returns
        -------
        Question

        Raises
        ------
        InvalidTriplets
            If the items are not three different items of this learner.
        """
        as_triplets([[anchor, left, right]], n_objects=self.n_objects)
        return self._record(anchor, left, right, purpose, 0.0, (self.seed, self._asks), None)

    def _chooser(
        self, n: int, known: SelectorState, rng: np.random.Generator
    ) -> Callable[[], list[proposals.Proposal]]:
        model = self._model
        if model is None:
            counts = self._history.as_anchor.copy(), self._history.as_option.copy()
            return partial(proposals.coverage_design, n, known, *counts, rng)
        return partial(
            proposals.informative,
            *(
                n,
                known,
                model.acquisition,
                self.selector,
                self.random_share,
                self.exploration_now,
                rng,
                self._local,
            ),
        )

    def _record(
        self,
        anchor: int,
        left: int,
        right: int,
        purpose: Purpose,
        score: float,
        seed: tuple[int, int],
        repeats: int | None,
    ) -> Question:
        model = self._model
        query = Question(
            id=len(self._history.asked),
            anchor=anchor,
            left=left,
            right=right,
            purpose=purpose,
            score=score,
            version=0 if model is None else model.version,
            seed=seed,
            margin=0.0 if model is None else model.margin(anchor, left, right),
            repeats=repeats,
        )
        self._history.enter(query)
        self._history.note("ask")
        self._counts.predict(query.margin if query.version else None)
        return query

    # ---- answers --------------------------------------------------------------------------------

    def tell(self, query: int, side: Side, participant: str | None = None) -> None:
        """Record the answer to a question; answers may arrive late and in any order.

        Parameters
        ----------
        query : int
            Id of the question.
        side : {"left", "right"}
            The option that was chosen as nearer to the anchor.
        participant : str, optional
            Who answered; needed for `exclude`.

        Raises
        ------
        UnknownQuestion
            If there is no question with this id.
        AlreadyAnswered
            If the question has been answered before.
        InvalidParameter
            If `side` is neither "left" nor "right".
        """
        self._append(self._history.tell(query, side, participant))

    def skip(self, query: int) -> None:
        """Record that a question will not be answered, so that it may be asked again.

        Parameters
        ----------
        query : int
            Id of the question.

        Raises
        ------
        UnknownQuestion
            If there is no question with this id.
        AlreadyAnswered
            If the question has been answered.
        """
        self._history.skip(query)

    def add(self, triplets: Any, participant: str | None = None) -> None:
        """Add imported answers, which were not given to questions of this learner.

        Parameters
        ----------
        triplets : array-like, data frame, file path or Triplets
            Rows (anchor, nearer, farther) of item numbers; see `as_triplets`. An answer of weight
            3 counts as three answers; weights must be whole numbers.
        participant : str, optional
            Who gave these answers.

        Raises
        ------
        InvalidTriplets
            If the answers cannot be read, or a weight is not a whole number.
        """
        imported = as_triplets(triplets, n_objects=self.n_objects, labels=()).repeated(
            "Learner.add"
        )
        for a, i, j in zip(imported.anchor, imported.nearer, imported.farther, strict=True):
            self._append(Answer(None, int(a), int(i), int(j), participant))

    def _append(self, answer: Answer) -> None:
        self._history.add(answer)
        self._history.note("answer")
        self._count(answer)

    def exclude(self, *participants: str, release: bool = False) -> None:
        """Exclude participants, and recompute the state as if they had never answered.

        Every event is replayed without their answers, with all refits and audits.

        Parameters
        ----------
        *participants : str
            Whose answers no longer count.
        release : bool, default False
            Whether the questions that they answered may be asked again.
        """
        self._excluded.update(participants)
        if release:
            self._history.release(participants)
        self._rebuild()

    def restore(self, participant: str) -> None:
        """Undo the exclusion of a participant, and recompute the state.

        Parameters
        ----------
        participant : str
            Whose answers count again.
        """
        self._excluded.discard(participant)
        self._rebuild()

    # ---- learning -------------------------------------------------------------------------------

    def due(self, resting: bool = False) -> Literal["audit", "refit"] | None:
        """Say which computation is due.

        Parameters
        ----------
        resting : bool, default False
            Whether audits should be postponed because the last one took long. Refits are not.

        Returns
        -------
        {"audit", "refit"} or None
            "audit" once there are two answers per item, and then after every 8 % more answers;
            "refit" after 10 new answers, or 1 % of all answers if that is more.
        """
        count = len(self._counts)
        if not self._audits:
            return "audit" if count >= FIRST_AUDIT * self.n_objects else None
        if count >= AUDIT_GROWTH * self._audits[-1].answers and not resting:
            return "audit"
        return "refit" if self.unfitted >= max(REFIT_EVERY, REFIT_SHARE * count) else None

    def audit(self) -> Audit:
        """Estimate rank and λ by cross-validation over ranks, and publish the fit as a new model.

        Returns
        -------
        Audit
            The chosen rank and λ, with the evidence for every rank.

        Raises
        ------
        InvalidParameter
            If there are no answers yet.
        """
        self._history.note("audit")
        return self._audit()

    def refit(self) -> None:
        """Fit all answers at the rank and λ of the last audit, and publish a new model.

        Raises
        ------
        InvalidParameter
            If there has been no audit yet.
        """
        if not self._audits:
            raise InvalidParameter("There is no audit yet: call audit() before the first refit().")
        self._history.note("refit")
        self._refit()

    def _audit(self) -> Audit:
        triplets = self._triplets()
        if triplets is None:
            raise InvalidParameter("There are no answers to audit yet.")
        audit, acquisition = updates.audited(
            triplets,
            self._counts.model_independent,
            self.seed,
            self._audits,
            self._model,
            self.lam,
            self.mapper,
        )
        self._audits.append(audit)
        self._publish(audit.solution, acquisition)
        rule = self.stopping
        if isinstance(rule, FurtherDimensionRule) and rule.can_change(self._progress):
            # The decision depends on the test, and questions on neither: so it comes last.
            test = updates.tested(triplets, audit, acquisition, rule.smallest_dimension, self.seed)
            audit = self._audits[-1] = replace(audit, further=test)
        return audit

    def _refit(self) -> None:
        triplets, model = self._triplets(), self._model
        if triplets is None or model is None:
            return
        self._publish(
            updates.refitted(triplets, self._audits[-1], model),
            acquisition_model.refitted(triplets, model.acquisition),
        )

    def _publish(
        self, solution: Solution | None, acquisition: acquisition_model.AcquisitionModel
    ) -> None:
        self._version += 1
        self._model = updates.published(
            solution,
            acquisition,
            self._audits[-1],
            self._model,
            self.n_objects,
            self._version,
            len(self._counts),
        )

    # ---- results --------------------------------------------------------------------------------

    @property
    def estimate(self) -> Estimate:
        """The current model with its evidence and its prequential accuracy."""
        model = self._model
        empty = np.zeros((self.n_objects, 0))
        last = self._audits[-1] if self._audits else None
        return Estimate(
            version=0 if model is None else model.version,
            answers=len(self._counts),
            rank=0 if model is None else model.rank,
            lam=0.0 if last is None else last.lam,
            temperature=1.0 if last is None else last.temperature,
            embedding=empty if model is None else model.embedding,
            aligned=empty if model is None else model.aligned,
            spectrum=np.zeros(0) if model is None else model.singular_values,
            evidence=() if last is None else last.evidence,
            progressive=self.progressive,
            ceiling=self.ceiling,
        )

    def uncertainty(self) -> Floats | None:
        """Compute the covariance of each item's coordinates.

        Returns
        -------
        array of shape (n_objects, rank, rank), or None
            One covariance matrix for each item, relative to the other items; None before the first
            audit, at rank 0, and where there are too many coordinates.
        """
        if self._model is None:
            return None
        return item_covariances(self._selector_state([], set()))

    @property
    def progressive(self) -> Proportion:
        """Share of recent random questions predicted correctly before their answers were used.

        A question without a prediction (no dimension reported, or a tie) counts one half.
        """
        return self._counts.progressive

    @property
    def prequential(self) -> Proportion:
        """Prequential accuracy: like `progressive`, over the questions with a prediction only.

        It omits random questions that were asked while no dimension was reported, and ties.
        """
        return self._counts.prequential

    @property
    def held_out(self) -> Proportion:
        """Cross-validated accuracy of the acquisition model on model-independent questions."""
        if self._model is None:
            return wilson(0.0, 0)
        acquisition = self._model.acquisition
        return wilson(acquisition.accuracy * acquisition.judged, acquisition.judged)

    @property
    def ceiling(self) -> float | None:
        """Noise ceiling: the accuracy of a perfect model, estimated from repeated questions.

        None until enough questions have been repeated.
        """
        return self._counts.ceiling

    @property
    def decision(self) -> Decision:
        """The decision of the stopping rule, with its criteria."""
        return self.stopping.decide(self._progress)

    @property
    def _progress(self) -> Progress:
        seen = len(self._counts.items)
        return Progress(self.n_objects, len(self._counts), seen, self._audits, self.held_out)

    @property
    def findings(self) -> Findings | None:
        """The results on which the verdict is based; None before the first audit."""
        return findings(self.decision, self._audits)

    @property
    def verdict(self) -> Verdict:
        """The stage of the study: a headline, an explanation and the criteria that apply."""
        decision, given, count = self.decision, len(self._history.given), len(self._counts)
        return verdict(
            Collection(
                answers=given,
                counted=count,
                not_counted=((given - count, "do not count"),),
                until_first=FIRST_AUDIT * self.n_objects - count,
                budget="the budget is used up" * (decision.stop and not decision.settled),
            ),
            findings(decision, self._audits),
        )

    @property
    def random_share(self) -> float:
        """Current random share: 1 at chance accuracy, falling to `min_random` at 70 % correct."""
        if self._model is None or self._model.acquisition.judged < 10:
            return 0.5
        trust = min(1.0, max(0.0, (self._model.acquisition.accuracy - 0.5) / 0.2))
        return 1.0 - trust * (1.0 - self.min_random)

    @property
    def exploration_now(self) -> float:
        """Current exploration share at rank + 1; at most 0.1 once the rank is clear."""
        return (
            min(self.exploration_share, EXPLORATION_WHEN_CLEAR)
            if CLEAR.clear(self._audits)
            else self.exploration_share
        )

    @property
    def _local(self) -> proposals.Local | None:
        """Questions among neighbours, where the stopping rule is about a further dimension."""
        rule = self.stopping
        if not isinstance(rule, FurtherDimensionRule):
            return None
        return proposals.Local(LocalSelector(rule.smallest_dimension), LOCAL_SHARE)

    def query(self, query: int) -> Question:
        """Look up a question by its id.

        Raises
        ------
        UnknownQuestion
            If there is no question with this id.
        """
        return self._history.query(query)

    def knows(self, query: int) -> bool:
        """Whether there is a question with this id."""
        return 0 <= query < len(self._history.asked)

    def answered(self, query: int) -> bool:
        """Whether this question has been answered."""
        return self._history.answered(query)

    @property
    def model(self) -> Model | None:
        """The most recently published model; None before the first audit."""
        return self._model

    @property
    def queries(self) -> tuple[Question, ...]:
        """All questions asked so far."""
        return tuple(map(self._history.query, range(len(self._history.asked))))

    @property
    def answers(self) -> tuple[Answer, ...]:
        """All answers so far, including those of excluded participants."""
        return tuple(map(self._history.answer, range(len(self._history.given))))

    @property
    def counted(self) -> int:
        """Number of answers that count: without catch trials and excluded participants."""
        return len(self._counts)

    @property
    def unfitted(self) -> int:
        """Number of counted answers that the model has not been fitted to; 0 without a model."""
        return 0 if self._model is None else len(self._counts) - self._model.up_to

    @property
    def audits(self) -> tuple[Audit, ...]:
        """All audits so far."""
        return tuple(self._audits)

    # ---- internals ------------------------------------------------------------------------------

    def _selector_state(self, out: Sequence[int], taken: Set[int]) -> SelectorState:
        model = self._model
        return SelectorState(
            embedding=np.zeros((self.n_objects, 0)) if model is None else model.embedding,
            temperature=1.0 if model is None else model.temperature,
            answered=self._counts.rows,
            pending=self._history.rows(out),
            taken=taken,
            source=self.source,
        )

    def objective(self, embedding: Floats) -> float:
        """Evaluate the objective of the published fit at another embedding of the same answers.

        Parameters
        ----------
        embedding : array of shape (n_objects, n_dimensions)
            Coordinates of the items.

        Returns
        -------
        float

        Raises
        ------
        InvalidParameter
            If there is no model yet.
        """
        triplets, model = self._triplets(), self._model
        if triplets is None or model is None:
            raise InvalidParameter("There is no model yet: call audit() first.")
        return metrics.objective(embedding, triplets, SolverSettings(model.lam))

    def _triplets(self) -> Triplets | None:
        if not len(self._counts):
            return None
        counts = self._counts
        return replace(
            as_triplets(counts.rows, n_objects=self.n_objects),
            trial=counts.trials,
            participant=counts.participants,
        )

    def _count(self, answer: Answer) -> None:
        """Count an answer, unless its participant is excluded."""
        if answer.participant is None or answer.participant not in self._excluded:
            query = None if answer.query is None else self._history.query(answer.query)
            self._counts.count(answer, query, self._history.number_of(answer.participant))

    def _forget(self) -> None:
        """Reset everything that was computed from answers; the history is kept."""
        self._counts = RunningCounts()
        self._audits: list[Audit] = []
        self._model = None
        self._version = 0

    def _rebuild(self) -> None:
        """Replay all events with the current exclusions."""
        self._forget()
        for kind, which in self._history.events():
            if kind == "ask":
                query, model = self._history.query(which), self._model
                self._counts.predict(
                    None if model is None else model.margin(query.anchor, query.left, query.right)
                )
            elif kind == "answer":
                self._count(self._history.answer(which))
            elif len(self._counts) and kind == "audit":
                self._audit()
            elif len(self._counts) and self._audits:
                self._refit()
