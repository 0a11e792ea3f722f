"""Going through a logged study again: does every model, question and decision come out the same?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lore_active.errors import LoreError
from lore_active.fingerprint import fingerprint
from lore_active.learner import Query
from lore_active.study import LoadedStudy
from server.fold import BEFORE_ALL, Fold, new_learner
from server.store import collection, erasing, learning
from server.store.database import Database
from server.store.learning import ModelRow, Step

# On another machine or version the last bits differ, and a fit ends where its steps are small, not
# where the last bit is right: coordinates may differ by this share of their spread.
TOLERANCE = 0.02
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Mismatch:
    """Something that came out differently, and where it stands."""

    step: int
    line: int | None
    what: str

    def __str__(self) -> str:
        place = f"step {self.step}" if self.line is None else f"line {self.line}, step {self.step}"
        return f"{place}: {self.what}"


@dataclass
class Replayed:
    """What a replay found."""

    models_checked: int = 0
    queries_checked: int = 0
    decisions_checked: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)
    fingerprint_match: bool = True
    seconds: float = 0.0
    original_seconds: float = 0.0
    erased: list[int] = field(default_factory=list)
    steps_erased: int = 0


def replay(
    database: Database,
    study: LoadedStudy,
    timer: Callable[[], float],
    lines: dict[tuple[str, int], int] | None = None,
    progress: Progress = lambda done, of: None,
) -> Replayed:
    """Re-run every step of the journal and compare it with what was published.

    Bit for bit where the fingerprint is the same. Elsewhere the questions are taken as they were
    asked, and models may differ by TOLERANCE. `lines` tells where each row stands in a log.

    Where somebody's answers were erased, steps before that cannot come out again: they are counted
    in `steps_erased`. The models after it never used those answers and must come out, bit for bit.
    """
    begun, result = timer(), Replayed()
    state = database.read(collection.state)
    assert state is not None
    steps = database.read(learning.steps)
    prints = database.read(learning.fingerprints)
    result.fingerprint_match = prints <= {fingerprint()}
    exact = result.fingerprint_match
    result.erased = [one[0] for one in database.read(erasing.erased)]
    gone = database.read(erasing.answers_gone)
    fold = Fold(database, study, new_learner(study, state.seed), timer)
    before = BEFORE_ALL
    for done, step in enumerate(steps):
        progress(done, len(steps))
        checks = _Checks(step, fold, lines or {}, result, exact)
        try:
            queries, digest = fold.again(step, before, as_asked=not exact or gone > 0)
        except LoreError as error:
            # Other questions came out before, so these answers are about none of them.
            checks.differs("steps", step.id, f"it cannot go on from here: {error}")
            break
        before = step
        result.original_seconds += sum(step.seconds.values())
        if step.up_to_event < gone:
            result.steps_erased += 1
            continue
        checks.model(database.read(lambda c, at=step.id: learning.model_of_step(c, at)))  # type: ignore[misc]
        checks.decision(database.read(lambda c, at=step.id: learning.decision_of_step(c, at)))  # type: ignore[misc]
        if exact and not gone:
            checks.queries(
                queries,
                database.read(lambda c, at=step.id: learning.scored_in(c, at)),  # type: ignore[misc]
            )
            if digest != step.hash and not checks.found:
                checks.differs("steps", step.id, "the state after the step has another hash.")
    progress(len(steps), len(steps))
    result.seconds = timer() - begun
    return result


class _Checks:
    """One step's comparisons."""

    def __init__(
        self,
        step: Step,
        fold: Fold,
        lines: dict[tuple[str, int], int],
        result: Replayed,
        exact: bool,
    ) -> None:
        self.step, self.fold, self.lines = step, fold, lines
        self.result, self.exact = result, exact
        self.found = False

    def differs(self, table: str, row: int, what: str) -> None:
        """Take note of a mismatch."""
        self.found = True
        self.result.mismatches.append(Mismatch(self.step.id, self.lines.get((table, row)), what))

    def model(self, stored: ModelRow | None) -> None:
        """The published model against the one that comes out now."""
        if stored is None:
            return
        self.result.models_checked += 1
        model = self.fold.learner.model
        if model is None and stored.rank == 0:
            return
        if model is None or model.rank != stored.rank:
            rank = None if model is None else model.rank
            self.differs("models", stored.version, f"rank {stored.rank}, but now it is {rank}.")
            return
        shape = model.embedding.shape
        if len(stored.embedding) != model.embedding.nbytes:
            self.differs("models", stored.version, "its coordinates are not of its items and rank.")
            return
        published = np.frombuffer(stored.embedding).reshape(shape)
        if self.exact:
            same = published.tobytes() == np.ascontiguousarray(model.embedding).tobytes()
        else:
            # The same space up to the signs of its axes.
            gap = np.minimum(
                np.abs(published - model.embedding), np.abs(published + model.embedding)
            )
            spread = float(np.sqrt(np.mean(published**2))) if published.size else 1.0
            same = not gap.size or float(gap.max()) <= TOLERANCE * spread
        if not same:
            what = f"model {stored.version} has other coordinates than come out now."
            self.differs("models", stored.version, what)
        elif self.exact and (stored.lam, stored.temperature) != (model.lam, model.temperature):
            self.differs("models", stored.version, "λ or temperature differ from what comes out.")

    def decision(self, stored: tuple[bool, bool, int, str] | None) -> None:
        """The published decision against the one that comes out now."""
        if stored is None:
            return
        self.result.decisions_checked += 1
        now = self.fold.learner.decision
        again = (now.stop, now.settled, now.rank, now.words)
        if (stored if self.exact else stored[:3]) != (again if self.exact else again[:3]):
            what = f"the decision was {stored[3]!r}, but now it is {now.words!r}"
            self.differs("decisions", self.step.id, what)

    def queries(
        self, queries: list[Query], stored: list[tuple[int, int, int, int, int, str, float]]
    ) -> None:
        """The questions asked then against those that are chosen now."""
        self.result.queries_checked += len(stored)
        if len(queries) != len(stored):
            what = f"{len(stored)} questions were asked, but now there are {len(queries)}."
            self.differs("steps", self.step.id, what)
            return
        for query, (row, learner, anchor, one, other, purpose, score) in zip(
            queries, stored, strict=True
        ):
            options = tuple(sorted((query.left, query.right)))
            again = (query.id, query.anchor, options, query.purpose, query.score)
            if again != (learner, anchor, tuple(sorted((one, other))), purpose, score):
                self.differs("queries", row, f"question {row} is not the one chosen now.")
