"""Hashes of the state after a step of the journal: numbers only, so that texts can change."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from lore_active.errors import LoreError
from lore_active.learner.history import PURPOSES
from lore_active.learner.learner import Learner
from lore_active.questions.question import Question
from lore_active.row_table import NOTHING
from lore_active.stopping.rules import Decision
from server.store import models
from server.store.database import Database
from server.store.journal import NUMBERED, AskedQuestion, Step

if TYPE_CHECKING:
    from hashlib import _Hash as Digest


class NotANumber(LoreError):
    """A fit with values that are not finite."""


# Prefix of hashes. Those of earlier versions have NUMBERED, and also cover the learner's own
# numbers of the questions; or none, and also cover sentences: these cannot be reproduced once a
# sentence was reworded.
CURRENT = "3:"


def state_hash(learner: Learner, questions: Sequence[Question]) -> str:
    """Hash the model, the questions just selected and the decision, bit for bit."""
    return with_questions(model_digest(learner), questions)


def with_questions(digest: Digest, questions: Sequence[Question]) -> str:
    """Add the questions to the digest and return the hash; the database assigns their ids."""
    for question in questions:
        digest.update(_packed(*_question_numbers(question)))
    return CURRENT + digest.hexdigest()


def matches(
    digest: Digest, questions: Sequence[Question], stored: str, numbers: Sequence[int | None]
) -> bool:
    """Return whether a stored hash is that of the questions and the digest.

    `numbers` are the learner's own numbers of the questions, where there were any. Hashes that
    cannot be reproduced match.
    """
    if not stored.startswith(NUMBERED):
        return ":" not in stored or with_questions(digest, questions) == stored
    for number, question in zip(numbers, questions, strict=True):
        known = NOTHING if number is None else number
        digest.update(_packed(known, *_question_numbers(question), NOTHING))
    return NUMBERED + digest.hexdigest() == stored


def _question_numbers(question: Question) -> tuple[float, ...]:
    return (
        NOTHING if question.anchor is None else question.anchor,
        *(*question.options, PURPOSES.index(question.purpose)),
        *(question.score, question.version, *question.seed, question.margin),
    )


def model_digest(learner: Learner) -> Digest:
    """Return a digest of model and decision: numbers, never sentences."""
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
    """List a decision's numbers: stop, settled, rank; value, threshold, result per criterion."""
    criteria = (
        (criterion.value, criterion.threshold, criterion.passed) for criterion in decision.criteria
    )
    return tuple(
        float(number)
        for number in (decision.stop, decision.settled, decision.rank, *chain(*criteria))
    )


def stored_numbers(reasons: str) -> tuple[float, ...]:
    """Return the numbers of a decision's criteria as stored."""
    return tuple(
        float(criterion[name])
        for criterion in json.loads(reasons)
        for name in ("value", "threshold", "passed")
    )


def _packed(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def comes_out(
    learner: Learner,
    questions: Sequence[Question],
    asked: Sequence[AskedQuestion],
    step: Step,
    database: Database,
) -> bool:
    """Return whether a learner is in the state that a step published, and selected `asked`.

    For steps of versions that hashed sentences, the published embedding is compared, if there is
    one.
    """
    if len(questions) != len(asked):
        return False
    if ":" in step.hash:
        numbers = [question.number for question in asked]
        return matches(model_digest(learner), questions, step.hash, numbers)
    stored = database.read(lambda c: models.model_of_step(c, step.id))
    embedding = np.ascontiguousarray(learner.estimate.embedding).tobytes()
    return stored is None or stored.embedding == embedding


def refuse_nonsense(learner: Learner, step: Step) -> None:
    """Raise NotANumber for values that are not finite, so that the last valid model is kept."""
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
                "not finite; it was not published, and the one before is kept."
            )
