"""Hashes of what a step of the journal led to: numbers only, so that texts can be reworded."""

from __future__ import annotations

import hashlib
import json
import struct
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from lore_active.data.row_table import NOTHING
from lore_active.errors import LoreError
from lore_active.learner.history import PURPOSES
from lore_active.learner.learner import Learner
from lore_active.questions.question import Question
from lore_active.stopping.rules import Decision
from server.store import models
from server.store.database import Database
from server.store.journal import Step

if TYPE_CHECKING:
    from hashlib import _Hash as Digest


class NotANumber(LoreError):
    """A fit that came to nothing."""


# Marks hashes of numbers alone. Those of earlier versions have no mark: they covered sentences,
# too, so they cannot come out again once a sentence has been reworded.
NUMBERS_ONLY = "2:"


def state_hash(learner: Learner, queries: list[Question]) -> str:
    """A digest of the model to the last bit, of the questions just asked, and of the decision."""
    return with_queries(model_digest(learner), queries)


def with_queries(digest: Digest, queries: list[Question]) -> str:
    """The digest, when it has taken in the questions too."""
    for query in queries:
        digest.update(
            _packed(
                *(query.id, query.anchor, query.left, query.right),
                *(PURPOSES.index(query.purpose), query.score, query.version, *query.seed),
                *(query.margin, NOTHING if query.repeats is None else query.repeats),
            )
        )
    return NUMBERS_ONLY + digest.hexdigest()


def model_digest(learner: Learner) -> Digest:
    """A digest of the model and the decision, before the questions: numbers, never sentences."""
    digest = hashlib.sha256()
    model = learner.model
    if model is not None:
        acquisition = model.acquisition
        for array in (
            *(model.embedding, model.singular_values, model.aligned),
            *(acquisition.embedding, acquisition.wider),
        ):
            digest.update(_packed(*array.shape))
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(_packed(model.version, model.up_to, model.rank, model.lam, model.temperature))
        digest.update(_packed(*decision_numbers(learner.decision)))
    return digest


def decision_numbers(decision: Decision) -> tuple[float, ...]:
    """All numbers of a decision: stop, settled, rank; each criterion's value, threshold, passed."""
    criteria = ((one.value, one.threshold, one.passed) for one in decision.criteria)
    return tuple(
        float(number)
        for number in (decision.stop, decision.settled, decision.rank, *chain(*criteria))
    )


def stored_numbers(reasons: str) -> tuple[float, ...]:
    """The numbers of a decision's criteria, from how they are stored."""
    return tuple(
        float(one[name]) for one in json.loads(reasons) for name in ("value", "threshold", "passed")
    )


def _packed(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def comes_out(learner: Learner, queries: list[Question], step: Step, database: Database) -> bool:
    """Whether a learner is in the state that a step published.

    Steps of versions that hashed sentences are judged by the published embedding, if they
    published one.
    """
    if step.hash.startswith(NUMBERS_ONLY):
        return state_hash(learner, queries) == step.hash
    stored = database.read(lambda c: models.model_of_step(c, step.id))
    found = np.ascontiguousarray(learner.estimate.embedding).tobytes()
    return stored is None or stored.embedding == found


def refuse_nonsense(learner: Learner, step: Step) -> None:
    """Values that are no numbers are never published: the last good model stands."""
    model = learner.model
    if model is None:
        return
    for array in (
        model.embedding,
        model.aligned,
        model.singular_values,
        model.acquisition.embedding,
    ):
        if not np.isfinite(array).all():
            raise NotANumber(
                f"The model of step {step.id}, of {learner.counted} answers, has values that are "
                "no numbers; it was not published, and the one before stands."
            )
