"""What a learner's next questions are made of: shares of random, active and local questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lore_active.acquisition.local import LocalSelector
from lore_active.acquisition.proposals import Local, Proposal
from lore_active.acquisition.state import Selector
from lore_active.learner.model import Model
from lore_active.questions.kinds import Kind
from lore_active.questions.pool import Questions
from lore_active.questions.question import Question
from lore_active.row_table import NOTHING
from lore_active.stopping.rules import RankSettled, StoppingRule
from lore_active.stopping.sensitivity import Sensitivity
from lore_active.stopping.smallest_dimension import FurtherDimensionRule

# Minimum number of model-independent answers from which the random share follows the accuracy.
MIN_JUDGED = 10
# Exploration share at rank + 1 once the evidence is already clearly against that dimension, and the
# rule by which it counts as clear.
EXPLORATION_WHEN_CLEAR = 0.1
CLEAR = RankSettled(confidence=0.995)
# Share of the active questions among neighbouring items, under a stopping rule that has to rule out
# a further dimension: only these reveal a weak one.
LOCAL_SHARE = 0.3


def random_share(model: Model | None, minimum: float) -> float:
    """Random share: 1 at chance accuracy, falling to `minimum` at 70 % correct."""
    if model is None or model.acquisition.judged < MIN_JUDGED:
        return 0.5
    trust = min(1.0, max(0.0, (model.acquisition.accuracy - 0.5) / 0.2))
    return 1.0 - trust * (1.0 - minimum)


def places_a_dimension(model: Model | None, known: Sensitivity | None) -> bool:
    """Whether all active questions are to place a dimension that the acquisition model lacks.

    It does while a further dimension has been found, or the reported rank is above that at which
    the acquisition model predicts best.
    """
    if known is not None and known.found is not None:
        return True
    return model is not None and model.rank > model.acquisition.embedding.shape[1]


def local_questions(rule: StoppingRule, selector: Selector, n_objects: int) -> Local | None:
    """Questions among neighbours, where the stopping rule is about a further dimension."""
    # Random questions are not selected by anything.
    if not isinstance(rule, FurtherDimensionRule) or selector.name == "random":
        return None
    return Local(LocalSelector(rule.share), LOCAL_SHARE)


def row_of(anchor: int | None, options: Sequence[int]) -> Questions:
    """A question as a row (anchor, option, option, …)."""
    return np.array([NOTHING if anchor is None else anchor, *options], dtype=np.int64)


def question_of(
    kind: Kind,
    number: int,
    chosen: Proposal,
    model: Model | None,
    seed: tuple[int, int],
    repeats: int | None = None,
) -> Question:
    """A question with the margin that a model predicts for it."""
    first, *options = (int(item) for item in chosen.row)
    anchor = first if kind.has_anchor else None
    return Question(
        id=number,
        anchor=anchor,
        options=tuple(options),
        purpose=chosen.purpose,
        score=chosen.score,
        version=0 if model is None else model.version,
        seed=seed,
        margin=0.0 if model is None else model.prediction(kind, anchor, options)[0],
        repeats=repeats,
        kind=kind,
    )
