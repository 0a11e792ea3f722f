"""`Learner`: the ask-and-tell interface to an adaptive experiment. No I/O and no clock.

One module, though long: it is the whole public interface of the learner, each method a few lines
over the modules that do the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lore_active.acquisition import proposals
from lore_active.acquisition.selectors import FisherSelector
from lore_active.acquisition.state import Selector, SelectorState
from lore_active.data.comparisons import MAX_ITEMS, as_triplets
from lore_active.data.triplets import Triplets
from lore_active.embedding import metrics
from lore_active.embedding.solver import SolverSettings
from lore_active.errors import InvalidParameter
from lore_active.learner import cadence, selection
from lore_active.learner.cadence import Work, first_audit
from lore_active.learner.history import History
from lore_active.learner.model import Estimate, Model, item_covariances
from lore_active.learner.models import Models
from lore_active.learner.pending_audit import PendingAudit
from lore_active.learner.running_counts import RunningCounts
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.questions.kinds import kind as kind_by_label
from lore_active.questions.pool import AllQuestions, QuestionSource
from lore_active.questions.pool_of_kinds import AllGrids
from lore_active.questions.question import Answer, Purpose, Question, Side
from lore_active.rank.audit import Audit
from lore_active.rank.significance import Proportion
from lore_active.reproducibility import warn_if_not_portable
from lore_active.stopping.criteria import of_interest
from lore_active.stopping.rules import (
    Decision,
    Progress,
    StoppingRule,
    findings,
)
from lore_active.stopping.sensitivity import Sensitivity, sensitivity
from lore_active.stopping.smallest_dimension import (
    PERSISTENCE,
    FurtherDimensionRule,
    SmallestDimension,
)
from lore_active.stopping.stages import Collection, Findings
from lore_active.stopping.verdict import Verdict, verdict
from lore_active.types import Floats, Mapper


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
        Rule behind `decision`; `SmallestDimension` by default.
    min_random : float, default 0.10
        Minimum random share: the share of uniformly random questions that remains when the
        acquisition model predicts well. Accuracy is estimated from these questions.
    exploration_share : float, default 0.5
        Share of the active batches that are selected with an acquisition model of one dimension
        more, until the evidence against that dimension is clear.
    source : QuestionSource, optional
        Where questions come from; all possible ones by default.
    lam : float, optional
        Weight λ of the rank penalty in every published fit; chosen by cross-validation by default.
    mapper : callable, optional
        Runs the independent fits of an audit, like the built-in `map`. The `map` method of an
        executor runs them in parallel, with bitwise identical results.
    kind : Kind or str, default "triplet"
        What is asked, such as "rank-2-of-8"; see `Kind`.

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

    Questions can carry more than one comparison:

    >>> grids = Learner(n_objects=20, seed=7, kind="rank-2-of-8")
    >>> [question] = grids.ask()
    >>> grids.tell(question.id, chosen=question.options[:2])
    >>> len(question.options), len(grids.answers[0].comparisons)
    (8, 13)
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
        kind: Kind | str = TRIPLET,
    ) -> None:
        self.kind = kind if isinstance(kind, Kind) else kind_by_label(kind)
        if not 4 <= n_objects <= MAX_ITEMS:
            raise InvalidParameter(f"n_objects is {n_objects}, but must be from 4 to {MAX_ITEMS}.")
        if n_objects < self.kind.items:
            raise InvalidParameter(
                f"n_objects is {n_objects}, but a question of the kind {self.kind.label!r} shows "
                f"{self.kind.items} items."
            )
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
        rule: StoppingRule = SmallestDimension()
        self.stopping = rule if stopping is None else stopping
        self.min_random = float(min_random)
        self.exploration_share = float(exploration_share)
        every: QuestionSource = AllQuestions(self.n_objects)
        if self.kind != TRIPLET:
            every = AllGrids(self.n_objects, self.kind)
        self.source = every if source is None else source
        self.lam = lam
        self.mapper = mapper
        self._history = History(self.n_objects, self.seed, self.kind)
        self._asks = 0
        self._excluded: set[str] = set()
        self._forget()

    # ---- asking ---------------------------------------------------------------------------------

    def ask(
        self,
        n: int = 1,
        pending: Iterable[int] | None = None,
        participant: str | None = None,
    ) -> list[Question]:
        """Select and record the next questions.

        Parameters
        ----------
        n : int, default 1
            How many questions to select.
        pending : iterable of int, optional
            Ids of the questions that participants are working on; by default all questions that
            were asked but not answered or skipped. The selector treats pending questions as
            answered. Other unanswered questions may be asked again.
        participant : str, optional
            Who will be asked. Once half of all questions have been answered, each may be asked of
            several participants, but not of this one again. If it is not given, the caller must
            see to it that nobody gets a question twice.

        Returns
        -------
        list of Question
            In the order in which they should be asked. Fewer than `n` only when no question
            remains.

        Raises
        ------
        InvalidParameter
            If `n` is less than 1.
        """
        return [self.record(question) for question in self.proposal(n, pending, participant)()]

    def proposal(
        self,
        n: int = 1,
        pending: Iterable[int] | None = None,
        participant: str | None = None,
    ) -> Callable[[], list[Question]]:
        """Prepare a selection without recording it, to be run later or in another thread.

        It advances the random state exactly as `ask` does. Pass the questions to `record` when they
        are asked, under ids of your own if you like.

        Parameters
        ----------
        n : int, default 1
            How many questions to select.
        pending : iterable of int, optional
            As in `ask`.
        participant : str, optional
            As in `ask`.

        Returns
        -------
        callable
            Computes, when it is called, the list of questions that `ask` would record now.

        Raises
        ------
        InvalidParameter
            If `n` is less than 1.
        """
        if n < 1:
            raise InvalidParameter(f"n is {n}, but must be 1 or more.")
        rng = np.random.default_rng([self.seed, self._asks, 1])
        draw, self._asks = self._asks, self._asks + 1
        history, model = self._history, self.model
        out = (
            history.out()
            if pending is None
            else sorted({history.index(number) for number in pending})
        )
        taken = history.taken(out, self.source.asks_again, participant)
        choose = self._chooser(n, self._selector_state(out, taken), rng)
        first = history.next_id

        def select() -> list[Question]:
            drawn = enumerate(proposals.order_drawn(choose, rng), first)
            return [
                selection.question_of(self.kind, number, chosen, model, (self.seed, draw))
                for number, chosen in drawn
            ]

        return select

    def record(self, question: Question) -> Question:
        """Record a question that `proposal` selected, before anything else is learned.

        Parameters
        ----------
        question : Question
            As it was selected; it may have another id.

        Returns
        -------
        Question
            The same question.

        Raises
        ------
        InvalidParameter
            If the id is negative or that of another question.
        """
        self._history.enter(question)
        self._history.note("ask")
        self._predict(question)
        return question

    def repeat(self, question: int, id: int | None = None) -> Question:
        """Record an earlier question again with its options in the reverse order.

        Agreement of the two answers measures consistency.

        Parameters
        ----------
        question : int
            Id of the earlier question.
        id : int, optional
            Id of the new question; the next number by default.

        Returns
        -------
        Question
            The new question, with purpose "repeat".

        Raises
        ------
        UnknownQuestion
            If there is no question with this id.
        InvalidParameter
            If the new id is negative or that of another question.
        """
        old = self.question(question)
        row = selection.row_of(old.anchor, old.options[::-1])
        return self._issue(id, proposals.Proposal(row, "repeat", 0.0), old.id)

    def issue(
        self,
        anchor: int | None,
        options: Sequence[int],
        purpose: Purpose = "random",
        id: int | None = None,
    ) -> Question:
        """Record a question that was selected elsewhere.

        Parameters
        ----------
        anchor : int or None
            The item that the options are compared with; None for the odd one out.
        options : sequence of int
            Items shown as options, in the order in which they are shown.
        purpose : str, default "random"
            What the question is for. "random" and "cover" claim that the choice did not depend on
            a model: answers to these questions are used to estimate accuracy.
        id : int, optional
            Id of the question; the next number by default.

        Returns
        -------
        Question

        Raises
        ------
        InvalidTriplets or InvalidParameter
            If these are not as many different items of this learner as its kind of question has, or
            if the id is negative or that of another question.
        """
        if self.kind == TRIPLET:
            as_triplets([[anchor, *options]], n_objects=self.n_objects)
        self.kind.check_question(anchor, options)
        for item in options if anchor is None else (anchor, *options):
            if not 0 <= item < self.n_objects:
                raise InvalidParameter(
                    f"The question shows item {item}, but there are {self.n_objects} items, "
                    f"numbered 0 to {self.n_objects - 1}."
                )
        return self._issue(id, proposals.Proposal(selection.row_of(anchor, options), purpose, 0.0))

    def _issue(
        self, id: int | None, chosen: proposals.Proposal, repeats: int | None = None
    ) -> Question:
        number = self._history.next_id if id is None else int(id)
        seed = (self.seed, self._asks)
        return self.record(
            selection.question_of(self.kind, number, chosen, self.model, seed, repeats)
        )

    def _predict(self, question: Question) -> None:
        """Note what the model predicted for a question when it was asked."""
        if not question.version or self.model is None:
            self._counts.predict(None)
            return
        _, positions = self.model.prediction(question.kind, question.anchor, question.options)
        self._counts.predict(question.margin, positions)

    def _chooser(
        self, n: int, state: SelectorState, rng: np.random.Generator
    ) -> Callable[[], list[proposals.Proposal]]:
        model = self.model
        if model is None:
            counts = self._history.as_anchor.copy(), self._history.as_option.copy()
            return partial(proposals.coverage_design, n, state, *counts, rng)
        return partial(
            proposals.informative,
            *(
                n,
                state,
                model.acquisition,
                self.selector,
                self.random_share,
                self.exploration_now,
                rng,
                selection.local_questions(self.stopping, self.selector, self.n_objects),
            ),
        )

    # ---- answers --------------------------------------------------------------------------------

    def tell(
        self,
        question: int,
        chosen: Side | Sequence[int],
        participant: str | None = None,
    ) -> None:
        """Record the answer to a question; answers may arrive late and in any order.

        Parameters
        ----------
        question : int
            Id of the question.
        chosen : sequence of int, or {"left", "right"}
            The options that were chosen, in the order in which they were: those nearer to the
            anchor, or the odd one out. Of a triplet, "left" or "right" will do.
        participant : str, optional
            Who answered; needed for `exclude`.

        Raises
        ------
        UnknownQuestion
            If there is no question with this id.
        AlreadyAnswered
            If the question has been answered before.
        InvalidParameter
            If these are not as many different options of the question as can be chosen.
        """
        if isinstance(chosen, str):
            asked = self.question(question)
            if self.kind != TRIPLET or chosen not in ("left", "right"):
                allowed = "'left' or 'right'" if self.kind == TRIPLET else "a list of items"
                raise InvalidParameter(f"chosen is {chosen!r}, but must be {allowed}.")
            chosen = [asked.left if chosen == "left" else asked.right]
        self._append(self._history.tell(question, chosen, participant))

    def skip(self, question: int) -> None:
        """Record that a question will not be answered, so that it may be asked again.

        Parameters
        ----------
        question : int
            Id of the question.

        Raises
        ------
        UnknownQuestion
            If there is no question with this id.
        AlreadyAnswered
            If the question has been answered.
        """
        self._history.skip(question)

    def add(self, triplets: Any, participant: str | None = None) -> None:
        """Add imported answers, which were not given to questions of this learner.

        Parameters
        ----------
        triplets : array-like, data frame, file path or Triplets
            Rows (anchor, nearer, farther) of item numbers; see `as_triplets`. An answer of weight
            3 counts as three answers; weights must be whole numbers. Comparisons of one trial stay
            together.
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
        _, first, numbers, sizes = np.unique(
            imported.trial, return_index=True, return_inverse=True, return_counts=True
        )
        base, compound = len(self._history.given), imported.compound
        for row in np.lexsort((np.arange(len(numbers)), first[numbers])):
            a, i, j = (
                int(column[row]) for column in (imported.anchor, imported.nearer, imported.farther)
            )
            # A trial is numbered by its first comparison.
            shared = compound and sizes[numbers[row]] > 1
            trial = base + int(first[numbers[row]]) if shared else None
            self._append(Answer(None, a, (i, j), (i,), participant, trial=trial))

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

    def due(
        self,
        resting: bool = False,
        auditing: bool = False,
        changed: bool = False,
        deserted: bool = False,
    ) -> Work | None:
        """Say which computation is due.

        Parameters
        ----------
        resting : bool, default False
            Whether audits should be postponed because the last one took long. Refits are not, and
            neither is the first audit.
        auditing : bool, default False
            Whether an audit that was started has not been finished: no other is due then.
        changed : bool, default False
            Whether participants were excluded or restored, or imported answers added or removed:
            the next audit does not wait for more answers then.
        deserted : bool, default False
            Whether no participant is left to give more answers: a refit does not wait for them
            then.

        Returns
        -------
        {"audit", "refit"} or None
            "audit" once there are two answers per item, and then after every 8 % more answers;
            "refit" after 10 new answers, or 1 % of all answers if that is more. Answers that
            carry more than a triplet count for more, except in percentages.
        """
        return cadence.due(
            len(self._counts),
            self.unfitted,
            self._models.audits[-1].answers if self._models.audits else None,
            self.n_objects,
            resting=resting,
            auditing=auditing,
            changed=changed,
            deserted=deserted,
            kind=self.kind,
        )

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
        return self.finish_audit(self.start_audit())

    def start_audit(self) -> PendingAudit:
        """Start an audit of the answers so far, to be run beside the learner.

        Returns
        -------
        PendingAudit
            Its method `run` does the work, in any thread; then pass it to `finish_audit`.

        Raises
        ------
        InvalidParameter
            If there are no answers yet.
        """
        pending = self._audit_of_now()
        self._history.note("start")
        return pending

    def finish_audit(self, pending: PendingAudit) -> Audit:
        """Take in an audit that was started earlier, and publish a new model of all answers.

        It must be the last audit that was started, and no participant may have been excluded or
        restored since.

        Parameters
        ----------
        pending : PendingAudit
            As returned by `start_audit`; it is run now unless it has been.

        Returns
        -------
        Audit
        """
        result = pending.run()
        self._history.note("audit")
        return self._models.take_in(result, self._triplets(), len(self._counts))

    def refit(self) -> None:
        """Fit all answers at the rank and λ of the last audit, and publish a new model.

        Raises
        ------
        InvalidParameter
            If there has been no audit yet.
        """
        if not self._models.audits:
            raise InvalidParameter("There is no audit yet: call audit() before the first refit().")
        self._history.note("refit")
        self._models.refit(self._triplets(), len(self._counts))

    def _audit_of_now(self) -> PendingAudit:
        triplets = self._triplets()
        if triplets is None:
            raise InvalidParameter("There are no answers to audit yet.")
        models = self._models
        return PendingAudit(
            *(triplets, self._counts.model_independent, self.seed, models.audits, models.current),
            *(models.warm, self.lam, self.mapper, self.stopping, self.kind),
        )

    # ---- results --------------------------------------------------------------------------------

    @property
    def estimate(self) -> Estimate:
        """The current model with its evidence and its prequential accuracy."""
        model = self.model
        empty = np.zeros((self.n_objects, 0))
        last = self._models.audits[-1] if self._models.audits else None
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
            prequential=self.prequential,
            ceiling=self.ceiling,
            sensitivity=self.sensitivity,
        )

    def uncertainty(self) -> Floats | None:
        """Compute the covariance of each item's coordinates.

        Returns
        -------
        array of shape (n_objects, rank, rank), or None
            One covariance matrix for each item, relative to the other items; None before the first
            audit and at rank 0.
        """
        if self.model is None:
            return None
        return item_covariances(self._selector_state([], set()))

    @property
    def prequential(self) -> Proportion:
        """Prequential accuracy: recent random questions predicted before their answers were used.

        The share predicted correctly, of those with a prediction: it omits questions that were
        asked while no dimension was reported, and ties.
        """
        return self._counts.prequential

    @property
    def held_out(self) -> Proportion:
        """Cross-validated accuracy of the acquisition model on model-independent questions."""
        return self._models.held_out

    @property
    def ceiling(self) -> float | None:
        """Noise ceiling: the accuracy of a perfect model, estimated from repeated questions.

        None until enough questions have been repeated.
        """
        return self._counts.ceiling

    @property
    def sensitivity(self) -> Sensitivity | None:
        """The smallest share of a further dimension that is ruled out, and the ranks that are not.

        None unless the stopping rule tests for a further dimension and has tested the current rank.
        """
        rule = self.stopping
        if not isinstance(rule, FurtherDimensionRule):
            return None
        weaker = of_interest(self.decision.rank, self.decision.criteria)[1]
        return sensitivity(self._models.audits, rule.evidence, rule.share, PERSISTENCE, weaker)

    @property
    def decision(self) -> Decision:
        """The decision of the stopping rule, with its criteria."""
        return self.stopping.decide(self._progress)

    def decided_by(self, rule: StoppingRule) -> Decision:
        """What another stopping rule would decide on the same audits.

        Parameters
        ----------
        rule : StoppingRule
            A rule that needs no other tests than the learner's own.

        Returns
        -------
        Decision
        """
        return rule.decide(self._progress)

    @property
    def _progress(self) -> Progress:
        seen = len(self._counts.items)
        return Progress(
            *(self.n_objects, len(self._counts), seen, self._models.audits, self.held_out),
            bits=self.kind.bits,
        )

    @property
    def findings(self) -> Findings | None:
        """The results on which the verdict is based; None before the first audit."""
        return findings(self.decision, self._models.audits)

    @property
    def verdict(self) -> Verdict:
        """The stage of the study: a headline, an explanation and the criteria that apply."""
        decision, given, count = self.decision, self._history.n_answers, len(self._counts)
        return verdict(
            Collection(
                answers=given,
                counted=count,
                not_counted=((given - count, "do not count"),),
                until_first=first_audit(self.n_objects, self.kind) - count,
                budget="the budget is used up" * (decision.stop and not decision.settled),
            ),
            findings(decision, self._models.audits),
        )

    @property
    def random_share(self) -> float:
        """Current random share: 1 at chance accuracy, falling to `min_random` at 70 % correct."""
        return selection.random_share(self.model, self.min_random)

    @property
    def exploration_now(self) -> float:
        """Current exploration share at rank + 1; at most 0.1 once the rank is clear or settled.

        While a further dimension has been found, or the reported rank is above that at which the
        acquisition model predicts best, all: the questions are to place that dimension.
        """
        if selection.places_a_dimension(self.model, self.sensitivity):
            return 1.0
        return (
            min(self.exploration_share, selection.EXPLORATION_WHEN_CLEAR)
            if selection.CLEAR.clear(self._models.audits) or self.decision.settled
            else self.exploration_share
        )

    def question(self, question: int) -> Question:
        """Look up a question by its id.

        Raises
        ------
        UnknownQuestion
            If there is no question with this id.
        """
        return self._history.question(self._history.index(question))

    def knows(self, question: int) -> bool:
        """Whether there is a question with this id."""
        return self._history.knows(question)

    def answered(self, question: int) -> bool:
        """Whether this question has been answered."""
        return self._history.answered(question)

    @property
    def model(self) -> Model | None:
        """The most recently published model; None before the first audit."""
        return self._models.current

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions asked so far."""
        return tuple(map(self._history.question, range(len(self._history.asked))))

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
        return 0 if self.model is None else len(self._counts) - self.model.up_to

    @property
    def audits(self) -> tuple[Audit, ...]:
        """All audits so far."""
        return tuple(self._models.audits)

    # ---- internals ------------------------------------------------------------------------------

    def _selector_state(self, out: Sequence[int], taken: Set[int]) -> SelectorState:
        model = self.model
        return SelectorState(
            embedding=np.zeros((self.n_objects, 0)) if model is None else model.embedding,
            temperature=1.0 if model is None else model.temperature,
            answered=self._counts.rows,
            pending=self._history.rows(out),
            taken=taken,
            source=self.source,
            kind=self.kind,
            trials=self._counts.trials,
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
        triplets, model = self._triplets(), self.model
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
            question = None if answer.question is None else self.question(answer.question)
            self._counts.count(answer, question, self._history.number_of(answer.participant))

    def _forget(self) -> None:
        """Reset everything that was computed from answers; the history is kept."""
        self._counts = RunningCounts(self._history.index, self.kind)
        self._models = Models(self.n_objects)

    def _rebuild(self) -> None:
        """Replay all events with the current exclusions."""
        self._forget()
        started: PendingAudit | None = None
        for kind, which in self._history.events():
            if kind == "ask":
                question, model = self._history.question(which), self.model
                if model is None:
                    self._counts.predict(None)
                else:
                    self._counts.predict(
                        *model.prediction(question.kind, question.anchor, question.options)
                    )
            elif kind == "answer":
                self._count(self._history.answer(which))
            elif not len(self._counts):
                continue
            elif kind == "start":
                started = self._audit_of_now()
            elif kind == "audit":
                # In snapshots of earlier versions, audits have no start of their own.
                result = (started or self._audit_of_now()).run()
                self._models.take_in(result, self._triplets(), len(self._counts))
                started = None
            elif self._models.audits:
                self._models.refit(self._triplets(), len(self._counts))
