"""`Learner`: asks, is told, knows the rank, and knows when to stop. No I/O, no clock, no luck."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lore_active.errors import InvalidParameter, LoreError
from lore_active.model import Model, facing, item_covariances, turned
from lore_active.pairs import as_pairs
from lore_active.path import LAMBDAS, Audit, RankEvidence, audit
from lore_active.questions import AllQuestions, Source, keys
from lore_active.selection import FisherSelector, Knowledge, Selector
from lore_active.solver import Settings, Solution, solve
from lore_active.stopping import Decision, Progress, RankSettled, Share, StoppingRule, wilson
from lore_active.triplets import Triplets, as_triplets
from lore_active.types import Floats

Side = Literal["left", "right"]
Purpose = Literal["cover", "random", "active", "repeat", "catch"]

# An audit is due when there are this many times the answers of the last one; the first when every
# item has been an anchor about twice.
AUDIT_GROWTH = 1.08
FIRST_AUDIT = 2
REFIT_EVERY = 10
REFIT_SHARE = 0.01
REFIT_TOLERANCE = 1e-3
# Random questions that tell how good the model is now.
WINDOW = 200


class UnknownQuery(LoreError, KeyError):
    """An answer to a question that was never asked."""

    def __str__(self) -> str:
        return str(self.args[0])


class AlreadyTold(LoreError, ValueError):
    """A second answer to the same question."""


@dataclass(frozen=True)
class Query:
    """A question, and how it came to be asked.

    `score` is the selector's, `version` the model's that selected and predicts it (0: none yet),
    `seed` what the choice was drawn with, `margin` the prediction (positive: left nearer).
    """

    id: int
    anchor: int
    left: int
    right: int
    purpose: Purpose
    score: float
    version: int
    seed: tuple[int, int]
    margin: float
    repeats: int | None = None


@dataclass(frozen=True, eq=False)
class Estimate:
    """All that is known now; `ceiling` is how often a perfect model could be right."""

    version: int
    answers: int
    rank: int
    lam: float
    temperature: float
    embedding: Floats
    picture: Floats
    spectrum: Floats
    evidence: tuple[RankEvidence, ...]
    progressive: Share
    ceiling: float | None


@dataclass(frozen=True)
class Answer:
    """What was said; `query` is None for answers brought from outside."""

    query: int | None
    anchor: int
    nearer: int
    farther: int
    participant: str | None


class Learner:
    """The engine between answers and questions.

    n_objects: number of items. seed: of every random choice; the same seed and the same calls give
    the same queries, embeddings and decisions. selector: picks the active questions. stopping: the
    rule behind `decision`. least_random: share of random questions that stays when the model has
    earned full trust; they keep the accuracy honest. widen: share of active questions that are
    chosen for a model with one dimension more than the answers support so far. source: where
    questions come from; all there are, if not given.
    """

    def __init__(
        self,
        n_objects: int,
        seed: int = 0,
        selector: Selector | None = None,
        stopping: StoppingRule | None = None,
        least_random: float = 0.10,
        widen: float = 0.5,
        source: Source | None = None,
    ) -> None:
        if n_objects < 4:
            raise InvalidParameter(f"n_objects is {n_objects}, but at least 4 items are needed.")
        if not 0.0 <= least_random <= 1.0:
            raise InvalidParameter(f"least_random is {least_random!r}, but must be from 0 to 1.")
        self.n_objects = int(n_objects)
        self.seed = int(seed)
        self.selector: Selector = FisherSelector() if selector is None else selector
        rule: StoppingRule = RankSettled()
        self.stopping = rule if stopping is None else stopping
        self.least_random = float(least_random)
        self.widen = float(widen)
        self.source: Source = AllQuestions(self.n_objects) if source is None else source
        self._queries: list[Query] = []
        self._state: list[str] = []
        self._answered: set[int] = set()
        self._as_anchor = np.zeros(n_objects, dtype=np.int64)
        self._as_option = np.zeros(n_objects, dtype=np.int64)
        self._asks = 0
        self._answers: list[Answer] = []
        self._excluded: set[str] = set()
        self._model: Model | None = None
        self._version = 0
        self._known_rows: NDArray[np.int64] = _rows([])
        # What happened, in order: ("ask", query), ("answer", index), ("refit", 0), ("audit", 0).
        self._events: list[tuple[str, int]] = []
        self._forget()

    # ---- asking ---------------------------------------------------------------------------------

    def ask(self, n: int = 1, pending: Iterable[int] | None = None) -> list[Query]:
        """The next `n` questions, best first; fewer only when no new question is left.

        `pending` names the queries that are still out with somebody; without it, all that were
        asked and not told. Questions that are no longer pending may be asked again.
        """
        if n < 1:
            raise InvalidParameter(f"n is {n}, but must be 1 or more.")
        seed = (self.seed, self._asks)
        self._asks += 1
        rng = np.random.default_rng([*seed, 1])
        out = self._open() if pending is None else sorted(set(pending))
        taken = self._taken_keys(out)
        rows, purposes, scores = self._choose(n, out, taken, rng)
        flips = rng.random(len(rows)) < 0.5
        asked = []
        for row, purpose, score, flip in zip(rows, purposes, scores, flips, strict=True):
            left, right = (row[2], row[1]) if flip else (row[1], row[2])
            asked.append(
                self._record(int(row[0]), int(left), int(right), purpose, float(score), seed, None)
            )
        return asked

    def repeat(self, query: int) -> Query:
        """An earlier question once more, sides swapped: tells how consistent people are."""
        old = self._query(query)
        return self._record(
            old.anchor, old.right, old.left, "repeat", 0.0, (self.seed, self._asks), old.id
        )

    def issue(self, anchor: int, left: int, right: int, purpose: Purpose = "random") -> Query:
        """Take note of a question that somebody else chose."""
        as_triplets([[anchor, left, right]], n_objects=self.n_objects)
        return self._record(anchor, left, right, purpose, 0.0, (self.seed, self._asks), None)

    def _choose(
        self, n: int, out: Sequence[int], taken: set[int], rng: np.random.Generator
    ) -> tuple[list[NDArray[np.int64]], list[Purpose], list[float]]:
        rows: list[NDArray[np.int64]] = []
        purposes: list[Purpose] = []
        scores: list[float] = []

        def take(row: NDArray[np.int64], purpose: Purpose, score: float) -> None:
            rows.append(row)
            purposes.append(purpose)
            scores.append(score)
            taken.add(int(keys(row[None], self.n_objects)[0]))

        if self._model is None or self._model.rank == 0:
            anchors, options = self._as_anchor.copy(), self._as_option.copy()
            for k in range(n):
                # Once there is a model, every fifth is uniformly random, to judge the model by.
                judge = self._model is not None and k % 5 == 4
                if judge:
                    found = self.source.new(1, taken, rng)
                else:
                    found = self.source.covering(anchors, options, taken, rng)
                if len(found):
                    take(found[0], "random" if judge else "cover", 0.0)
            return rows, purposes, scores
        is_random = rng.random(n) < self.random_share
        uniform = self.source.new(int(is_random.sum()), taken, rng)
        reserved = taken | {int(key) for key in keys(uniform, self.n_objects)}
        chosen = iter(self._pick(int(n - is_random.sum()), out, reserved, rng))
        randoms = iter(uniform)
        for wants_random in is_random:
            if wants_random:
                row = next(randoms, None)
                if row is not None:
                    take(row, "random", 0.0)
            else:
                pick = next(chosen, None)
                if pick is not None:
                    take(pick[0], "active", float(pick[1]))
        return rows, purposes, scores

    def _pick(
        self, count: int, out: Sequence[int], taken: set[int], rng: np.random.Generator
    ) -> list[tuple[NDArray[np.int64], float]]:
        """Active questions, some of them for the model with a dimension more.

        A model of too low a rank sees no use in questions about what it lacks; asked for by a
        wider model, they show whether that dimension is there.
        """
        assert self._model is not None
        wide = int(rng.binomial(count, self.widen)) if self._model.wider.shape[1] else 0
        picked: list[tuple[NDArray[np.int64], float]] = []
        for many, embedding in ((wide, self._model.wider), (count - wide, self._model.embedding)):
            if many:
                known = replace(self._knowledge(out, taken), embedding=embedding)
                picks = self.selector.pick(known, many, rng)
                picked += zip(picks.questions, picks.scores.tolist(), strict=True)
                taken = taken | {int(key) for key in keys(picks.questions, self.n_objects)}
        return [picked[k] for k in rng.permutation(len(picked))]

    def _record(
        self,
        anchor: int,
        left: int,
        right: int,
        purpose: Purpose,
        score: float,
        seed: tuple[int, int],
        repeats: int | None,
    ) -> Query:
        model = self._model
        query = Query(
            id=len(self._queries),
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
        self._queries.append(query)
        self._state.append("open")
        self._as_anchor[anchor] += 1
        self._as_option[[left, right]] += 1
        self._events.append(("ask", query.id))
        self._predictions[query.id] = query.margin if query.version else None
        return query

    # ---- being told -----------------------------------------------------------------------------

    def tell(self, query: int, side: Side, participant: str | None = None) -> None:
        """An answer to a question, in any order and however late."""
        asked = self._query(query)
        if side not in ("left", "right"):
            raise InvalidParameter(f"side is {side!r}, but must be 'left' or 'right'.")
        if self._state[query] == "told":
            raise AlreadyTold(f"Query {query} has been answered already.")
        self._state[query] = "told"
        nearer, farther = asked.left, asked.right
        if side == "right":
            nearer, farther = farther, nearer
        self._append(Answer(query, asked.anchor, nearer, farther, participant))

    def skip(self, query: int) -> None:
        """Nobody will answer this one; it may be asked again."""
        self._query(query)
        if self._state[query] == "told":
            raise AlreadyTold(f"Query {query} has been answered already and cannot be skipped.")
        self._state[query] = "skipped"

    def add(self, triplets: Any, participant: str | None = None) -> None:
        """Answers brought from outside: rows (anchor, nearer, farther)."""
        brought = as_triplets(triplets, n_objects=self.n_objects)
        for a, i, j in zip(brought.anchor, brought.nearer, brought.farther, strict=True):
            self._append(Answer(None, int(a), int(i), int(j), participant))

    def _append(self, answer: Answer) -> None:
        self._answers.append(answer)
        self._answered.add(self._key(answer.anchor, answer.nearer, answer.farther))
        self._events.append(("answer", len(self._answers) - 1))
        self._count(len(self._answers) - 1)

    def exclude(self, participant: str) -> None:
        """Leave a participant's answers out, as if they had never been given."""
        self._excluded.add(participant)
        self._rebuild()

    def restore(self, participant: str) -> None:
        """Take an excluded participant's answers back in."""
        self._excluded.discard(participant)
        self._rebuild()

    # ---- learning -------------------------------------------------------------------------------

    def due(self) -> Literal["audit", "refit"] | None:
        """What should be done now: an audit, a refit, or nothing."""
        count = len(self._live)
        if not self._audits:
            return "audit" if count >= FIRST_AUDIT * self.n_objects else None
        if count >= AUDIT_GROWTH * self._audits[-1].answers:
            return "audit"
        model = self._model
        fresh = count - (0 if model is None else model.up_to)
        return "refit" if fresh >= max(REFIT_EVERY, REFIT_SHARE * count) else None

    def audit(self) -> Audit:
        """Cross-validate: rank, λ and the evidence; then publish the fit at that rank."""
        self._events.append(("audit", 0))
        return self._audit()

    def refit(self) -> None:
        """Fit all answers at the audited rank and λ, from the last fit; publish."""
        if not self._audits:
            raise InvalidParameter("There is no audit yet: call audit() before the first refit().")
        self._events.append(("refit", 0))
        self._refit()

    def _audit(self) -> Audit:
        triplets = self._triplets()
        if triplets is None:
            raise InvalidParameter("There are no answers to audit yet.")
        expected = self._audits[-1].rank if self._audits else 1
        found = audit(triplets, self.seed, expected)
        previous = self._model
        if found.solution is not None and previous is not None and previous.rank == found.rank:
            # The answers may leave several optima; a cold fit need not find the lowest.
            warm = self._solved(triplets, previous.embedding, found.lam)
            if warm.rank == found.rank and warm.objective < found.solution.objective:
                found = replace(found, solution=warm)
        self._audits.append(found)
        self._publish(found.solution, found.wider, found)
        return found

    def _refit(self) -> None:
        triplets = self._triplets()
        last, model = self._audits[-1], self._model
        if triplets is None or last.solution is None or model is None:
            self._publish(None, None, last)
            return
        start = model.embedding if model.rank == last.rank else last.solution.embedding
        self._publish(
            self._solved(triplets, start, last.lam),
            self._solved(triplets, model.wider, LAMBDAS[-1]) if model.wider.shape[1] else None,
            last,
        )

    def _solved(self, triplets: Triplets, start: Floats, lam: float) -> Solution:
        settings = Settings(lam, tolerance=REFIT_TOLERANCE, n_components=start.shape[1])
        return solve(as_pairs(triplets), start, settings)

    def _publish(self, solution: Solution | None, wider: Solution | None, last: Audit) -> None:
        previous = self._model
        if solution is None:
            embedding, spectrum = np.zeros((self.n_objects, 0)), np.zeros(0)
        else:
            embedding, spectrum = solution.embedding, solution.singular_values
        faced = facing(embedding, None if previous is None else previous.embedding)
        self._version += 1
        self._model = Model(
            version=self._version,
            up_to=len(self._live),
            rank=faced.shape[1],
            lam=last.lam,
            temperature=last.temperature,
            embedding=np.ascontiguousarray(faced),
            singular_values=spectrum,
            picture=turned(faced, None if previous is None else previous.picture),
            wider=np.zeros((self.n_objects, 0)) if wider is None else wider.embedding,
            objective=0.0 if solution is None else solution.objective,
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
            answers=len(self._live),
            rank=0 if model is None else model.rank,
            lam=0.0 if last is None else last.lam,
            temperature=1.0 if last is None else last.temperature,
            embedding=empty if model is None else model.embedding,
            picture=empty if model is None else model.picture,
            spectrum=np.zeros(0) if model is None else model.singular_values,
            evidence=() if last is None else last.evidence,
            progressive=self.progressive,
            ceiling=self.ceiling,
        )

    def uncertainty(self) -> Floats | None:
        """Each item's covariance among the axes: an ellipse in any two of them."""
        if self._model is None:
            return None
        return item_covariances(self._knowledge([], set()))

    @property
    def progressive(self) -> Share:
        """Share of the latest random questions that were predicted right before being answered."""
        recent = self._hits[-WINDOW:]
        return wilson(float(sum(recent)), len(recent))

    @property
    def ceiling(self) -> float | None:
        """How often a perfect model could be right, from how often people repeat themselves."""
        if len(self._agreements) < 10:
            return None
        agreement = sum(self._agreements) / len(self._agreements)
        return float(0.5 * (1.0 + np.sqrt(max(0.0, 2.0 * agreement - 1.0))))

    @property
    def decision(self) -> Decision:
        """Stop or go on, and why."""
        seen = len(np.unique(self._live_rows()))
        return self.stopping.decide(
            Progress(self.n_objects, len(self._live), seen, self._audits, self.progressive)
        )

    @property
    def random_share(self) -> float:
        """Share of random questions: all at chance, falling as the model earns trust."""
        recent = self.progressive
        if recent.count < 10:
            return 0.5
        trust = min(1.0, max(0.0, (recent.value - 0.5) / 0.2))
        return 1.0 - trust * (1.0 - self.least_random)

    @property
    def queries(self) -> tuple[Query, ...]:
        """Every question so far."""
        return tuple(self._queries)

    @property
    def audits(self) -> tuple[Audit, ...]:
        """Every audit so far."""
        return tuple(self._audits)

    # ---- inside ---------------------------------------------------------------------------------

    def _query(self, query: int) -> Query:
        if not 0 <= query < len(self._queries):
            raise UnknownQuery(f"There is no query {query}; {len(self._queries)} were asked.")
        return self._queries[query]

    def _open(self) -> list[int]:
        return [query for query, state in enumerate(self._state) if state == "open"]

    def _taken_keys(self, out: Sequence[int]) -> set[int]:
        """Questions that have an answer or are out; skipped and lapsed ones are free again."""
        pending = (self._query(one) for one in out)
        return self._answered | {self._key(one.anchor, one.left, one.right) for one in pending}

    def _key(self, anchor: int, one: int, other: int) -> int:
        return int(keys(_rows([(anchor, one, other)]), self.n_objects)[0])

    def _knowledge(self, out: Sequence[int], taken: set[int]) -> Knowledge:
        assert self._model is not None
        pending = [self._query(one) for one in out]
        return Knowledge(
            embedding=self._model.embedding,
            temperature=self._model.temperature,
            answered=self._live_rows(),
            pending=_rows([(one.anchor, one.left, one.right) for one in pending]),
            taken=taken,
            source=self.source,
        )

    def _triplets(self) -> Triplets | None:
        if not self._live:
            return None
        return as_triplets(self._live_rows(), n_objects=self.n_objects)

    def _live_rows(self) -> NDArray[np.int64]:
        """The answers that count, as rows; only those that came since the last call are added."""
        fresh = [self._answers[index] for index in self._live[len(self._known_rows) :]]
        if fresh:
            rows = _rows([(one.anchor, one.nearer, one.farther) for one in fresh])
            self._known_rows = np.concatenate([self._known_rows, rows])
        return self._known_rows

    def _count(self, index: int) -> None:
        """Let an answer count: for the fit, for the accuracy, for consistency."""
        answer = self._answers[index]
        if answer.participant is not None and answer.participant in self._excluded:
            return
        query = None if answer.query is None else self._queries[answer.query]
        if query is not None and query.purpose == "catch":
            return
        self._live.append(index)
        if query is None:
            return
        chose_left = answer.nearer == query.left
        self._left[query.id] = chose_left
        margin = self._predictions.get(query.id)
        if query.purpose == "random" and margin is not None:
            right = 0.5 if margin == 0.0 else float((margin > 0.0) == chose_left)
            self._hits.append(right)
        if query.repeats is not None and query.repeats in self._left:
            # Sides were swapped: agreeing means choosing the other side.
            self._agreements.append(float(self._left[query.repeats] != chose_left))

    def _forget(self) -> None:
        """Back to before the first answer counted; what was asked and said is kept."""
        self._live: list[int] = []
        self._known_rows = _rows([])
        self._audits: list[Audit] = []
        self._model = None
        self._version = 0
        self._predictions: dict[int, float | None] = {}
        self._hits: list[float] = []
        self._left: dict[int, bool] = {}
        self._agreements: list[float] = []

    def _rebuild(self) -> None:
        """Go through everything that happened again, with the exclusions as they are now."""
        self._forget()
        for kind, which in self._events:
            if kind == "ask":
                query = self._queries[which]
                model = self._model
                self._predictions[which] = (
                    None if model is None else model.margin(query.anchor, query.left, query.right)
                )
            elif kind == "answer":
                self._count(which)
            elif self._live and kind == "audit":
                self._audit()
            elif self._live and self._audits:
                self._refit()


def _rows(rows: list[tuple[int, int, int]]) -> NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(-1, 3)
