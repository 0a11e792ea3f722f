"""`Learner`: asks, takes in answers, knows the rank and when to stop. No I/O and no clock.

One module, though long: it is the whole public face of the learner, each method a few lines over
the modules that do the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from typing import Any, Literal

import numpy as np

from lore_active.acquisition import model as acquisition_model
from lore_active.acquisition import proposals
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
from lore_active.stopping.stages import Collection, Findings
from lore_active.stopping.verdict import Verdict, verdict
from lore_active.types import Floats, Mapper

# Share of active questions about one dimension more when the evidence is against it already, and
# what that is judged by.
EXPLORATION_WHEN_CLEAR = 0.1
CLEAR = RankSettled(confidence=0.995)


class Learner:
    """The engine between answers and questions.

    n_objects: number of items. seed: of every random choice; the same seed and the same calls give
    the same queries, embeddings and decisions. selector: picks the active questions. stopping: the
    rule behind `decision`. least_random: share of random questions that stays when the model has
    earned full trust; they keep the accuracy honest. widen: share of active questions that are
    chosen for a model with one dimension more than the answers support, until the rank is clear.
    source: where questions come from; all there are, if not given. lam: the weight of the rank
    penalty in every published fit; cross-validated, if not given. mapper: runs an audit's
    independent fits; an executor's `map` runs them side by side, with the same outcome to the last
    bit.
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
        for name, share in (("least_random", min_random), ("widen", exploration_share)):
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
        """The next `n` questions, best first; fewer only when no new question is left.

        `pending` names the queries that are still out with somebody; without it, all that were
        asked and not told. Questions that are no longer pending may be asked again.
        """
        seed = (self.seed, self._asks)
        asked = []
        for one in self.proposal(n, pending)():
            anchor, left, right = (int(item) for item in one.row)
            asked.append(self._record(anchor, left, right, one.purpose, one.score, seed, None))
        return asked

    def proposal(
        self, n: int = 1, pending: Iterable[int] | None = None
    ) -> Callable[[], list[proposals.Proposal]]:
        """What `ask` would choose now, chosen when it is called, be it later or in another thread.

        It counts as having asked, but nothing is recorded: for checking questions asked before.
        """
        if n < 1:
            raise InvalidParameter(f"n is {n}, but must be 1 or more.")
        rng = np.random.default_rng([self.seed, self._asks, 1])
        self._asks += 1
        out = self._history.out() if pending is None else sorted(set(pending))
        known = self._selector_state(out, self._history.taken(out))
        return partial(proposals.sides_drawn, self._chooser(n, known, rng), rng)

    def repeat(self, query: int) -> Question:
        """An earlier question once more, sides swapped: tells how consistent people are."""
        old = self.query(query)
        return self._record(
            old.anchor, old.right, old.left, "repeat", 0.0, (self.seed, self._asks), old.id
        )

    def issue(self, anchor: int, left: int, right: int, purpose: Purpose = "random") -> Question:
        """Take note of a question that somebody else chose."""
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

    # ---- being told -----------------------------------------------------------------------------

    def tell(self, query: int, side: Side, participant: str | None = None) -> None:
        """An answer to a question, in any order and however late."""
        self._append(self._history.tell(query, side, participant))

    def skip(self, query: int) -> None:
        """Nobody will answer this one; it may be asked again."""
        self._history.skip(query)

    def add(self, triplets: Any, participant: str | None = None) -> None:
        """Answers brought from outside: rows (anchor, nearer, farther) of item numbers.

        Here answers are counted one by one: a weight of 3 is three answers, and weights that are
        not whole numbers are refused.
        """
        brought = as_triplets(triplets, n_objects=self.n_objects, labels=()).repeated("Learner.add")
        for a, i, j in zip(brought.anchor, brought.nearer, brought.farther, strict=True):
            self._append(Answer(None, int(a), int(i), int(j), participant))

    def _append(self, answer: Answer) -> None:
        self._history.add(answer)
        self._history.note("answer")
        self._count(answer)

    def exclude(self, *participants: str, release: bool = False) -> None:
        """Leave these participants' answers out, as if they had never been given.

        With `release`, the questions that they answered may be asked again.
        """
        self._excluded.update(participants)
        if release:
            self._history.release(participants)
        self._rebuild()

    def restore(self, participant: str) -> None:
        """Take an excluded participant's answers back in."""
        self._excluded.discard(participant)
        self._rebuild()

    # ---- learning -------------------------------------------------------------------------------

    def due(self, resting: bool = False) -> Literal["audit", "refit"] | None:
        """What should be done now: an audit, a refit, or nothing.

        While `resting` from an audit that took long, the next one waits; refits do not.
        """
        count = len(self._counts)
        if not self._audits:
            return "audit" if count >= FIRST_AUDIT * self.n_objects else None
        if count >= AUDIT_GROWTH * self._audits[-1].answers and not resting:
            return "audit"
        return "refit" if self.unfitted >= max(REFIT_EVERY, REFIT_SHARE * count) else None

    def audit(self) -> Audit:
        """Cross-validate: rank, λ and the evidence; then publish the fit at that rank."""
        self._history.note("audit")
        return self._audit()

    def refit(self) -> None:
        """Fit all answers at the audited rank and λ, from the last fit; publish."""
        if not self._audits:
            raise InvalidParameter("There is no audit yet: call audit() before the first refit().")
        self._history.note("refit")
        self._refit()

    def _audit(self) -> Audit:
        triplets = self._triplets()
        if triplets is None:
            raise InvalidParameter("There are no answers to audit yet.")
        found, acquisition = updates.audited(
            triplets,
            self._counts.model_independent,
            self.seed,
            self._audits,
            self._model,
            self.lam,
            self.mapper,
        )
        self._audits.append(found)
        self._publish(found.solution, acquisition)
        return found

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

    # ---- what is known --------------------------------------------------------------------------

    @property
    def estimate(self) -> Estimate:
        """The model as it stands, with its evidence and its accuracy on questions not yet used."""
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
        """Each item's covariance among the axes: an ellipse in any two of them."""
        if self._model is None:
            return None
        return item_covariances(self._selector_state([], set()))

    @property
    def progressive(self) -> Proportion:
        """Share of the latest random questions that were predicted right before being answered."""
        return self._counts.progressive

    @property
    def prequential(self) -> Proportion:
        """Prequential accuracy: of the latest random questions that a map predicted, those right.

        Unlike `progressive`, it leaves out those asked while no dimension was reported.
        """
        return self._counts.prequential

    @property
    def held_out(self) -> Proportion:
        """Share of the answers to unselected questions that fits without them predict right."""
        if self._model is None:
            return wilson(0.0, 0)
        acquisition = self._model.acquisition
        return wilson(acquisition.accuracy * acquisition.judged, acquisition.judged)

    @property
    def ceiling(self) -> float | None:
        """How often a perfect model could be right, from how often people repeat themselves."""
        return self._counts.ceiling

    @property
    def decision(self) -> Decision:
        """Stop or go on, and why."""
        seen = len(self._counts.items)
        return self.stopping.decide(
            Progress(self.n_objects, len(self._counts), seen, self._audits, self.held_out)
        )

    @property
    def findings(self) -> Findings | None:
        """What the verdict of a study rests on; None before the first audit."""
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
        """Share of random questions: all at chance, falling as the model earns trust."""
        if self._model is None or self._model.acquisition.judged < 10:
            return 0.5
        trust = min(1.0, max(0.0, (self._model.acquisition.accuracy - 0.5) / 0.2))
        return 1.0 - trust * (1.0 - self.min_random)

    @property
    def exploration_now(self) -> float:
        """Share of active questions about one dimension more: few, once the rank is clear."""
        return (
            min(self.exploration_share, EXPLORATION_WHEN_CLEAR)
            if CLEAR.clear(self._audits)
            else self.exploration_share
        )

    def query(self, query: int) -> Question:
        """One question by its number."""
        return self._history.query(query)

    def knows(self, query: int) -> bool:
        """Whether there is a question of this number."""
        return 0 <= query < len(self._history.asked)

    def answered(self, query: int) -> bool:
        """Whether this question has been answered."""
        return self._history.answered(query)

    @property
    def model(self) -> Model | None:
        """The model as published last; None before the first audit."""
        return self._model

    @property
    def queries(self) -> tuple[Question, ...]:
        """Every question so far."""
        return tuple(map(self._history.query, range(len(self._history.asked))))

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Every answer so far, those of excluded participants too."""
        return tuple(map(self._history.answer, range(len(self._history.given))))

    @property
    def counted(self) -> int:
        """How many answers count: not those of excluded participants."""
        return len(self._counts)

    @property
    def unfitted(self) -> int:
        """How many of the answers that count are not in the model; 0 before there is one."""
        return 0 if self._model is None else len(self._counts) - self._model.up_to

    @property
    def audits(self) -> tuple[Audit, ...]:
        """Every audit so far."""
        return tuple(self._audits)

    # ---- inside ---------------------------------------------------------------------------------

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
        """What the published fit minimises, at another embedding of the same answers."""
        triplets, model = self._triplets(), self._model
        if triplets is None or model is None:
            raise InvalidParameter("There is no model yet: call audit() first.")
        return metrics.objective(embedding, triplets, SolverSettings(model.lam))

    def _triplets(self) -> Triplets | None:
        if not len(self._counts):
            return None
        return as_triplets(self._counts.rows, n_objects=self.n_objects)

    def _count(self, answer: Answer) -> None:
        """Let an answer count, unless its participant is left out."""
        if answer.participant is None or answer.participant not in self._excluded:
            query = None if answer.query is None else self._history.query(answer.query)
            self._counts.count(answer, query)

    def _forget(self) -> None:
        """Back to before the first answer counted; what was asked and said is kept."""
        self._counts = RunningCounts()
        self._audits: list[Audit] = []
        self._model = None
        self._version = 0

    def _rebuild(self) -> None:
        """Go through everything that happened again, with the exclusions as they are now."""
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
