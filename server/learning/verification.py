"""Going through a study again: is every row as recorded, and do models and questions come out?"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lore_active.acquisition.proposals import Proposal
from lore_active.errors import LoreError
from lore_active.learner.model import Model
from lore_active.questions.question import Question
from lore_active.reproducibility import fingerprint
from lore_active.stopping.verdict import verdict
from server.learning.replayer import Progress, Replayer, model_row, new_learner
from server.learning.state_hash import (
    NUMBERS_ONLY,
    decision_numbers,
    model_digest,
    stored_numbers,
    with_queries,
)
from server.status import verdict as study_verdict
from server.status.counting import answer_counts
from server.store import collection, erasure, journal, models
from server.store.database import Database
from server.store.hash_chain import verification as chain_verification
from server.store.journal import Step
from server.store.models import ModelRow
from server.store.recovery import repair
from server.study.config import LoadedStudy

if TYPE_CHECKING:
    from hashlib import _Hash as Digest

# On another machine or version the last bits differ, and a fit ends where its steps are small, not
# where the last bit is right: coordinates may differ by this share of their spread.
TOLERANCE = 0.02
# Or it ends in another optimum, where few answers leave several: one that is as good, to this share
# of the objective.
AS_GOOD = 1e-3
# Choices that may wait for a core; each holds what was known when it was made.
MAX_WAITING = 4
# The columns of a model that are results of computation.
NUMERICAL = ("rank", "lam", "temperature", "objective", "picture", "embedding", "spread")


@dataclass(frozen=True)
class Mismatch:
    """Something that came out differently, or is not as recorded, and where it is."""

    step: int | None
    line: int | None
    table: str
    row: int | None
    what: str

    def __str__(self) -> str:
        places = {"line": self.line, "step": self.step}
        place = ", ".join(f"{name} {at}" for name, at in places.items() if at is not None)
        return f"{place}: {self.what}" if place else self.what


@dataclass
class Replayed:
    """What a replay found.

    `rows_checked` rows are as the hash chain last recorded them, of which `rows_before` were there
    when it began at `covered_from` (milliseconds; None: there is no chain). `periods` says why it
    began, and why it began again.
    """

    rows_checked: int = 0
    records_checked: int = 0
    covered_from: int | None = None
    rows_before: int = 0
    periods: list[str] = field(default_factory=list)
    last_hash: str = ""
    models_checked: int = 0
    models_identical: int = 0
    """Models that came out bit for bit; all of them where the fingerprint is the same."""
    queries_checked: int = 0
    decisions_checked: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)
    fingerprint_match: bool = True
    seconds: float = 0.0
    original_seconds: float = 0.0
    erased: list[int] = field(default_factory=list)
    steps_erased: int = 0
    recovered: list[dict[str, Any]] = field(default_factory=list)
    cores: int = 1
    counts: dict[str, int] = field(default_factory=dict)
    verdict: dict[str, str] = field(default_factory=dict)
    """What can be said of the study, by the models that came out: stage, headline, explanation."""


def verify(
    database: Database,
    study: LoadedStudy,
    timer: Callable[[], float],
    lines: dict[tuple[str, int], int] | None = None,
    progress: Progress = lambda done, of: None,
    cores: int = 1,
) -> Replayed:
    """Compare every row with the hash chain; re-run the journal and compare what was published.

    Bit for bit where the fingerprint is the same. Elsewhere the choice of questions is not made
    again, and models may differ by TOLERANCE. `lines` tells where each row stands in a log.
    The learner goes on with the questions as they were asked, so one that was not chosen so does
    not hide what comes after; choices are therefore checked beside the fits, on all `cores`.

    Where somebody's answers were erased, steps before that cannot come out again: they are counted
    in `steps_erased`. The models after it never used those answers and must come out, bit for bit.
    """
    begun, result = timer(), Replayed(cores=cores)
    result.recovered = database.read(repair.recoveries)
    _check_rows(database, lines or {}, result)
    try:
        result.counts = database.read(answer_counts).plain()
        _check_steps(database, study, timer, lines or {}, progress, result)
    except Exception as error:
        if not result.mismatches:
            raise
        # What was changed outside can be anything; that it was has been told.
        what = f"the models cannot be made again: {error!r}."
        result.mismatches.append(Mismatch(None, None, "steps", None, what))
    result.mismatches.sort(key=lambda one: one.step or 0)
    result.seconds = timer() - begun
    return result


def _check_rows(database: Database, lines: dict[tuple[str, int], int], result: Replayed) -> None:
    """Every stored row against the hash chain, and exclusions against the events."""
    found = database.read(chain_verification.verify)
    result.rows_checked, result.records_checked = found.rows, found.records
    result.covered_from, result.rows_before = found.covered_from, found.rows_before
    result.periods, result.last_hash = found.periods, found.last_hash
    if lines and ("chain_head", 1) not in lines:
        # The log came without its chain; the one there is now was only just begun.
        result.rows_checked = result.records_checked = result.rows_before = 0
        result.covered_from, result.last_hash = None, ""
    differences = [(one.table, one.row, one.what) for one in found.differences]
    for number, excluded in database.read(collection.exclusions_without_event):
        but = "but by no event" if excluded else "but the last event says that it is"
        what = f"participants row {number} is {'' if excluded else 'not '}excluded, {but}."
        differences.append(("participants", number, what))
    for table, row, what in differences:
        line = None if row is None else lines.get((table, row))
        result.mismatches.append(Mismatch(None, line, table, row, what))


def _check_steps(
    database: Database,
    study: LoadedStudy,
    timer: Callable[[], float],
    lines: dict[tuple[str, int], int],
    progress: Progress,
    result: Replayed,
) -> None:
    """Every step of the journal, made again."""
    cores = result.cores
    state = database.read(collection.state)
    # Where that row was deleted, the folder still says which seed the study began with.
    seed = study.settings.seed if state is None else state.seed
    steps = database.read(journal.steps)
    result.fingerprint_match = database.read(models.fingerprints) <= {fingerprint()}
    result.erased = [one[0] for one in database.read(erasure.erased)]
    gone = database.read(erasure.answers_gone)
    choices = deque[Callable[[], None]]()
    # Numerical work lets go of the interpreter, so threads are enough, and nothing is copied.
    with ThreadPoolExecutor(cores) as pool:
        learner = new_learner(study, seed, mapper=pool.map if cores > 1 else map)
        fold = Replayer(database, study, learner, timer)
        try:
            for step, _, _ in fold.through(steps, progress=progress):
                checks = _Checks(step, fold, lines, result)
                if step.up_to_event < gone:
                    result.steps_erased += 1
                else:
                    checks.model(database.read(partial(models.model_of_step, step=step.id)))
                    checks.decision(database.read(partial(models.decision_of_step, step=step.id)))
                digest = model_digest(learner)
                proposal = learner.proposal(step.asked, step.pending) if step.asked else list
                queries = fold.as_asked(step)
                if result.fingerprint_match and not gone:
                    stored = database.read(partial(journal.scored_in, step=step.id))
                    chosen = pool.submit(proposal)
                    choices.append(partial(checks.choice, chosen, queries, stored, digest))
                    while len(choices) > MAX_WAITING * cores:
                        choices.popleft()()
                result.original_seconds += sum(step.seconds.values())
        except LoreError as error:
            # Questions or answers before are not as they were, so these are about none.
            checks = _Checks(fold.at, fold, lines, result)
            checks.differs("steps", fold.at.id, f"it cannot go on from here: {error}")
        while choices:
            choices.popleft()()
    # What was fitted is what came out here, not what the database says of it.
    fitted = 0 if learner.model is None else learner.model.up_to
    result.counts = replace(database.read(answer_counts), fitted=fitted).plain()
    if state is None:
        # Whether it was open, and with which budget, is lost: there is no verdict without.
        return
    at = steps[-1].at if steps else 0
    collection_now, _ = database.read(lambda c: study_verdict.parts(c, study, at))
    said = verdict(collection_now, learner.findings)
    result.verdict = {
        "stage": said.stage,
        "headline": said.headline,
        "explanation": said.explanation,
    }


def _as_far_as_told(stored: str, now: str) -> bool:
    """Whether a summary is the same in all that it holds: earlier versions told less."""
    told, again = json.loads(stored), json.loads(now)
    return all(name in again and again[name] == value for name, value in told.items())


class _Checks:
    """One step's comparisons."""

    def __init__(
        self, step: Step, fold: Replayer, lines: dict[tuple[str, int], int], result: Replayed
    ) -> None:
        self.step, self.fold, self.lines, self.result = step, fold, lines, result
        self.exact = result.fingerprint_match
        self.found = False

    def differs(self, table: str, row: int, what: str) -> None:
        """Take note of a mismatch."""
        self.found = True
        line = self.lines.get((table, row))
        self.result.mismatches.append(Mismatch(self.step.id, line, table, row, what))

    def model(self, stored: ModelRow | None) -> None:
        """The published model against the one that comes out now."""
        if stored is None:
            return
        self.result.models_checked += 1
        learner = self.fold.learner
        now = model_row(learner, self.step)
        if all(getattr(stored, name) == getattr(now, name) for name in NUMERICAL):
            self.result.models_identical += 1
        if self.exact:
            other = [
                one.name
                for one in fields(ModelRow)
                if getattr(stored, one.name) != getattr(now, one.name)
                and not (one.name == "summary" and _as_far_as_told(stored.summary, now.summary))
            ]
            if other:
                what = f"model {stored.version} does not come out so now: {', '.join(other)}."
                self.differs("models", stored.version, what)
        elif learner.model is not None:
            self._similar(stored, learner.model)
        elif stored.rank > 0:
            what = f"now there is no model {stored.version} at all."
            self.differs("models", stored.version, what)

    def _similar(self, stored: ModelRow, model: Model) -> None:
        """The same rank, and the same space up to the signs of its axes."""
        if model.rank != stored.rank:
            what = f"rank {stored.rank}, but now it is {model.rank}."
            self.differs("models", stored.version, what)
            return
        if len(stored.embedding) != model.embedding.nbytes:
            self.differs("models", stored.version, "its coordinates are not of its items and rank.")
            return
        published = np.frombuffer(stored.embedding).reshape(model.embedding.shape)
        gap = np.minimum(np.abs(published - model.embedding), np.abs(published + model.embedding))
        spread = float(np.sqrt(np.mean(published**2))) if published.size else 1.0
        if not gap.size or float(gap.max()) <= TOLERANCE * spread:
            return
        if self.fold.learner.objective(published) > model.objective * (1.0 + AS_GOOD):
            what = f"model {stored.version} has other coordinates than come out now."
            self.differs("models", stored.version, what)

    def decision(self, stored: tuple[bool, bool, int, str, str] | None) -> None:
        """The published decision against the one that comes out now."""
        if stored is None:
            return
        self.result.decisions_checked += 1
        now = self.fold.learner.decision
        numbers = decision_numbers(now)
        again = (*stored[:3], *stored_numbers(stored[4]))
        compared = len(numbers) if self.exact else 3
        if again[:compared] != numbers[:compared] or (self.exact and len(again) != compared):
            what = f"the decision was {stored[3]!r}, but now it is {now.message!r}"
            self.differs("decisions", self.step.id, what)

    def choice(
        self,
        chosen: Future[list[Proposal]],
        queries: list[Question],
        stored: list[tuple[int, int, float]],
        digest: Digest,
    ) -> None:
        """The questions asked then against those that are chosen now, and the step's hash."""
        self.result.queries_checked += len(stored)
        now = chosen.result()
        if len(now) != len(stored):
            what = f"{len(stored)} questions were asked, but now there are {len(now)}."
            self.differs("steps", self.step.id, what)
            return
        again = []
        for one, query, (row, learner, score) in zip(now, queries, stored, strict=True):
            anchor, left, right = (int(item) for item in one.row)
            # Sides are drawn again for whoever is given a question.
            options = {query.left, query.right}
            chosen_now = (anchor, {left, right}, one.purpose, one.score, learner)
            if chosen_now != (query.anchor, options, query.purpose, score, query.id):
                self.differs("queries", row, f"question {row} is not the one chosen now.")
            margin = -query.margin if left != query.left and query.margin else query.margin
            seed = (query.seed[0], query.seed[1] - 1)
            again.append(
                replace(query, left=left, right=right, margin=margin, score=one.score, seed=seed)
            )
        if (
            not self.found
            and self.step.hash.startswith(NUMBERS_ONLY)
            and with_queries(digest, again) != self.step.hash
        ):
            self.differs("steps", self.step.id, "the state after the step has another hash.")
