"""Verification by replay: rows against the hash chain; models, questions, decisions recomputed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lore_active.errors import LoreError
from lore_active.learner.model import Model
from lore_active.questions.question import Question
from lore_active.reproducibility import fingerprint
from lore_active.stopping.verdict import verdict
from lore_active.wording import many
from server.learning.replayer import Progress, Replayer, model_row, new_learner
from server.learning.state_hash import (
    decision_numbers,
    matches,
    model_digest,
    stored_numbers,
)
from server.status import verdict as study_verdict
from server.status.counting import answer_counts
from server.store import collection, erasure, journal, models
from server.store.database import Database
from server.store.hash_chain import verification as chain_verification
from server.store.journal import AskedQuestion, Step
from server.store.models import ModelRow
from server.store.recovery import repair
from server.store.sqlite.former_names import model_summary
from server.study.config import LoadedStudy

if TYPE_CHECKING:
    from hashlib import _Hash as Digest

# On another machine or version the last bits differ, and so does the point where a fit converges:
# coordinates may differ by this share of their standard deviation.
TOLERANCE = 0.02
# With few answers a fit may also reach another optimum: one as good, within this share of the
# objective.
AS_GOOD = 1e-3
# Selections that may wait for a core; each holds a copy of the selector's state.
MAX_WAITING = 4
# Columns of a model that are computed.
NUMERICAL = ("rank", "lam", "temperature", "objective", "aligned", "embedding", "covariance")


@dataclass(frozen=True)
class Mismatch:
    """A result that differs in the replay, or a row that differs from the hash chain, and where."""

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
    """Result of a verification.

    `rows_checked` rows match the hash chain; `rows_before` of them were there when it started at
    `covered_from` (milliseconds; None if there is no chain). `periods` says why it started, and
    why it started over.
    """

    rows_checked: int = 0
    records_checked: int = 0
    covered_from: int | None = None
    rows_before: int = 0
    periods: list[str] = field(default_factory=list)
    last_hash: str = ""
    models_checked: int = 0
    models_identical: int = 0
    """Models that are identical bit for bit; all of them if the fingerprint is the same."""
    questions_checked: int = 0
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
    """Conclusion from the recomputed models: stage, headline, explanation."""


def verify(
    database: Database,
    study: LoadedStudy,
    timer: Callable[[], float],
    lines: dict[tuple[str, int], int] | None = None,
    progress: Progress = lambda done, of: None,
    cores: int = 1,
) -> Replayed:
    """Compare every row with the hash chain; replay the journal and compare what was published.

    With the same fingerprint, bit for bit; otherwise questions are not selected again, and models
    may differ by TOLERANCE. `lines` gives the line of each row in a log. The learner continues with
    the questions of the journal, so that a difference in one selection does not hide later ones;
    selections are therefore verified in parallel with the fits, on all `cores`.

    If answers were erased, earlier steps cannot be reproduced: they are counted in `steps_erased`.
    Later models never used those answers and must be reproduced bit for bit.
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
        # The data were changed, which is reported, so that any error may follow.
        message = f"the models cannot be recomputed: {error!r}."
        result.mismatches.append(Mismatch(None, None, "steps", None, message))
    result.mismatches.sort(key=lambda mismatch: mismatch.step or 0)
    result.seconds = timer() - begun
    return result


def _check_rows(database: Database, lines: dict[tuple[str, int], int], result: Replayed) -> None:
    """Compare every stored row with the hash chain, and exclusions with the events."""
    verified = database.read(chain_verification.verify)
    result.rows_checked, result.records_checked = verified.rows, verified.records
    result.covered_from, result.rows_before = verified.covered_from, verified.rows_before
    result.periods, result.last_hash = verified.periods, verified.last_hash
    if lines and ("chain_head", 1) not in lines:
        # The log has no chain; the current one was started when it was imported.
        result.rows_checked = result.records_checked = result.rows_before = 0
        result.covered_from, result.last_hash = None, ""
    differences = [
        (difference.table, difference.row, difference.what) for difference in verified.differences
    ]
    for number, excluded in database.read(collection.exclusions_without_event):
        but = "but no event records that" if excluded else "but the last event says that it is"
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
    """Replay every step of the journal and compare its results."""
    cores = result.cores
    state = database.read(collection.state)
    # If that row was deleted, the settings still have the seed.
    seed = study.settings.seed if state is None else state.seed
    steps = database.read(journal.steps)
    result.fingerprint_match = database.read(models.fingerprints) <= {fingerprint()}
    result.erased = [row[0] for row in database.read(erasure.erased)]
    gone = database.read(erasure.answers_gone)
    choices = deque[Callable[[], None]]()
    # Numerical work releases the interpreter lock, so threads suffice, without copying.
    with ThreadPoolExecutor(cores) as pool:
        learner = new_learner(study, seed, mapper=pool.map if cores > 1 else map)
        replayer = Replayer(database, study, learner, timer)
        try:
            for step, _, _ in replayer.through(steps, progress=progress):
                checks = _Checks(step, replayer, lines, result)
                if step.up_to_event < gone:
                    result.steps_erased += 1
                else:
                    checks.model(database.read(partial(models.model_of_step, step=step.id)))
                    checks.decision(database.read(partial(models.decision_of_step, step=step.id)))
                digest = model_digest(learner)
                select = replayer.selection(step)
                asked = replayer.as_asked(step)
                if result.fingerprint_match and not gone:
                    choices.append(partial(checks.choice, pool.submit(select), asked, digest))
                    while len(choices) > MAX_WAITING * cores:
                        choices.popleft()()
                result.original_seconds += sum(step.seconds.values())
        except LoreError as error:
            # Earlier questions or answers were changed, so this step cannot use them.
            checks = _Checks(replayer.at, replayer, lines, result)
            checks.differs(
                "steps", replayer.at.id, f"the replay cannot continue from here: {error}"
            )
        while choices:
            choices.popleft()()
    # The number of answers in the recomputed model, not in the stored one.
    fitted = 0 if learner.model is None else learner.model.up_to
    result.counts = replace(database.read(answer_counts), fitted=fitted).plain()
    if state is None:
        # Without its status and budget there is no conclusion.
        return
    at = steps[-1].at if steps else 0
    collection_now, _ = database.read(lambda c: study_verdict.parts(c, study, at))
    conclusion = verdict(collection_now, learner.findings)
    result.verdict = {
        "stage": conclusion.stage,
        "headline": conclusion.headline,
        "explanation": conclusion.explanation,
    }


def _same_entries(stored: str, now: str) -> bool:
    """Return whether all stored entries are the same; earlier versions stored fewer."""
    before, after = model_summary(stored), model_summary(now)
    return all(name in after and after[name] == value for name, value in before.items())


class _Checks:
    """Comparisons of one step."""

    def __init__(
        self, step: Step, replayer: Replayer, lines: dict[tuple[str, int], int], result: Replayed
    ) -> None:
        self.step, self.replayer, self.lines, self.result = step, replayer, lines, result
        self.exact = result.fingerprint_match
        self.differing = False

    def differs(self, table: str, row: int, what: str) -> None:
        """Record a mismatch."""
        self.differing = True
        line = self.lines.get((table, row))
        self.result.mismatches.append(Mismatch(self.step.id, line, table, row, what))

    def model(self, stored: ModelRow | None) -> None:
        """Compare the published model with the recomputed one."""
        if stored is None:
            return
        self.result.models_checked += 1
        learner = self.replayer.learner
        now = model_row(learner, self.step)
        if all(getattr(stored, name) == getattr(now, name) for name in NUMERICAL):
            self.result.models_identical += 1
        if self.exact:
            other = [
                column.name
                for column in fields(ModelRow)
                if getattr(stored, column.name) != getattr(now, column.name)
                and not (column.name == "summary" and _same_entries(stored.summary, now.summary))
            ]
            if other:
                what = f"model {stored.version} differs in the replay: {', '.join(other)}."
                self.differs("models", stored.version, what)
        elif learner.model is not None:
            self._similar(stored, learner.model)
        elif stored.rank > 0:
            what = f"the replay has no model {stored.version}."
            self.differs("models", stored.version, what)

    def _similar(self, stored: ModelRow, model: Model) -> None:
        """Compare the rank, and the coordinates up to the signs of the axes."""
        if model.rank != stored.rank:
            what = f"the rank was {stored.rank}, but is {model.rank} in the replay."
            self.differs("models", stored.version, what)
            return
        if len(stored.embedding) != model.embedding.nbytes:
            self.differs(
                "models",
                stored.version,
                "the number of coordinates does not match its items and rank.",
            )
            return
        published = np.frombuffer(stored.embedding).reshape(model.embedding.shape)
        gap = np.minimum(np.abs(published - model.embedding), np.abs(published + model.embedding))
        deviation = float(np.sqrt(np.mean(published**2))) if published.size else 1.0
        if not gap.size or float(gap.max()) <= TOLERANCE * deviation:
            return
        if self.replayer.learner.objective(published) > model.objective * (1.0 + AS_GOOD):
            what = f"the coordinates of model {stored.version} differ in the replay."
            self.differs("models", stored.version, what)

    def decision(self, stored: tuple[bool, bool, int, str, str] | None) -> None:
        """Compare the published decision with the recomputed one."""
        if stored is None:
            return
        self.result.decisions_checked += 1
        now = self.replayer.learner.decision
        numbers = decision_numbers(now)
        again = (*stored[:3], *stored_numbers(stored[4]))
        compared = len(numbers) if self.exact else 3
        if again[:compared] != numbers[:compared] or (self.exact and len(again) != compared):
            what = f"the decision was {stored[3]!r}, but is {now.message!r} in the replay"
            self.differs("decisions", self.step.id, what)

    def choice(
        self, selected: Future[list[Question]], asked: list[AskedQuestion], digest: Digest
    ) -> None:
        """Compare the questions asked with those selected in the replay, and the step's hash."""
        self.result.questions_checked += len(asked)
        now = selected.result()
        if len(now) != len(asked):
            were = many(len(asked), "question was", "questions were")
            what = f"{were} asked, but {len(now)} are selected in the replay."
            self.differs("steps", self.step.id, what)
            return
        for question, stored in zip(now, asked, strict=True):
            options, displayed = question.options, stored.options
            if stored.number is not None and options == displayed[::-1]:
                # Earlier versions drew the order again when a question was assigned.
                options = displayed
            selected_now = (question.anchor, options, question.purpose, question.score)
            if selected_now != (stored.anchor, displayed, stored.purpose, stored.score):
                what = f"the replay selects another question than {stored.id}."
                self.differs("queries", stored.id, what)
        numbers = [stored.number for stored in asked]
        if not self.differing and not matches(digest, now, self.step.hash, numbers):
            self.differs("steps", self.step.id, "the hash of the state after this step differs.")
