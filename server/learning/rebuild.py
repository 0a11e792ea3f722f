"""Rebuilding the learner when a worker starts: from a snapshot, or from the journal."""

from __future__ import annotations

import io
import json
import logging
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from lore_active.errors import LoreError
from lore_active.learner import snapshot
from lore_active.learner.learner import Learner
from lore_active.reproducibility import fingerprint
from server.learning.replayer import BEFORE_ALL, Replayer, Unusable, new_learner
from server.learning.state_hash import comes_out
from server.store import collection, journal
from server.store.database import Database
from server.store.journal import Step
from server.study.config import LoadedStudy

logger = logging.getLogger(__name__)


class CannotRebuild(LoreError):
    """The journal cannot be reproduced."""


def save(database: Database, learner: Learner, step: Step) -> None:
    """Store a snapshot of the learner after a step, from which a worker can start."""
    document, arrays = snapshot.dump(learner)
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    text = zlib.compress(json.dumps(document).encode(), 1)
    database.write(lambda c: journal.save_snapshot(c, step.id, text, packed.getvalue()))


@dataclass(frozen=True)
class Rebuild:
    """Rebuilds the learner of a study; `quarantine` stores rows that it cannot use."""

    database: Database
    study: LoadedStudy
    clock: Callable[[], int]
    timer: Callable[[], float]
    quarantine: Callable[[list[Unusable]], None]

    def run(self) -> tuple[Step, Replayer]:
        """Rebuild the learner in the state of the last published step, or raise CannotRebuild."""
        saved = self.database.read(journal.snapshot)
        if saved is not None:
            try:
                return self.replayed(saved)
            except Exception as error:
                # A snapshot is only a shortcut: if it is damaged or of another version, the
                # journal suffices.
                logger.warning("The snapshot cannot be used: %r", error)
        try:
            return self.replayed(None)
        except (LoreError, AssertionError) as error:
            # Another machine or version. Questions and answers stay; from here on, the models are
            # those that this machine computes from them.
            reason = str(error)
            self.database.write(
                lambda c: collection.add_event(
                    c, "rebuilt", "worker", self.clock(), reason=reason, fingerprint=fingerprint()
                )
            )
            return self.replayed(None, as_asked=True)

    def replayed(
        self, saved: tuple[int, bytes, bytes] | None, as_asked: bool = False
    ) -> tuple[Step, Replayer]:
        """Go through the journal, from a snapshot if there is one; return the last step."""
        state = self.database.read(collection.state)
        assert state is not None
        before, learner = BEFORE_ALL, new_learner(self.study, state.seed)
        if saved is not None:
            number, text, packed = saved
            with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
                learner = snapshot.load(
                    json.loads(zlib.decompress(text)),
                    {name: arrays[name] for name in arrays},
                    self.database.read(journal.ids_of_numbers),
                )
            snapshot_step = self.database.read(lambda c: journal.step_numbered(c, number))
            if snapshot_step is None:
                raise CannotRebuild(f"The snapshot is of step {number}, which does not exist.")
            before = snapshot_step
            asked = self.database.read(lambda c: journal.asked_in(c, number))
            questions = [learner.question(question.id) for question in asked]
            if not comes_out(learner, questions, asked, before, self.database):
                raise CannotRebuild(f"The snapshot differs from what step {number} published.")
        replayer, start = Replayer(self.database, self.study, learner, self.timer), before.id
        steps = self.database.read(lambda c: journal.steps(c, start))

        def prepare(step: Step, before: Step) -> None:
            if as_asked:
                self._leave_out(replayer.unusable(step, before))

        for step, _, _ in replayer.through(steps, before, prepare=prepare):
            select = replayer.selection(step)
            if as_asked:
                # On another machine or version the last bits differ, and eventually the selected
                # questions.
                replayer.as_asked(step)
            else:
                questions = select()
                asked = self.database.read(partial(journal.asked_in, step=step.id))
                if not comes_out(learner, questions, asked, step, self.database):
                    raise CannotRebuild(
                        f"Step {step.id} of the worker's journal could not be reproduced."
                    )
                replayer.record(questions, [question.id for question in asked])
            before = step
        return before, replayer

    def _leave_out(self, rows: list[Unusable]) -> None:
        """Quarantine bad rows in a replay, where questions can no longer be left out."""
        for row in rows:
            if row.what == "question":
                raise CannotRebuild(
                    f"{row} It was used before: restore the row from the log or a backup."
                )
        self.quarantine(rows)
