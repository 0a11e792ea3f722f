"""Adaptive similarity experiments that estimate how many dimensions a percept has.

Answers to questions such as "Is A more like B or like C?" are modelled by LORE (Low-Rank Ordinal
Embedding; Anand et al., 2026), a map of the items with as few dimensions as the answers support.

LORECV
    Fit answers that are there; λ and the number of dimensions are chosen by cross-validation.
LORE
    The same at a given λ.
Learner
    Ask and tell: select the most informative questions, refit, and decide when to stop.
as_triplets
    Read and validate answers from arrays, data frames or files, as `Triplets`.

Errors are `LoreError`, with one sentence that names the value and the rule.

Examples
--------
>>> from lore_active import LORECV
>>> from lore_active.simulation.observers import gaussian_space, simulated_answers
>>> answers = simulated_answers(gaussian_space(12, 1, seed=1), 300, seed=2)
>>> model = LORECV().fit(answers)
>>> model.rank_, model.embedding_.shape
(1, (12, 1))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lore_active._version import __version__
from lore_active.reproducibility import fix_instruction_set

# Before anything loads NumPy.
fix_instruction_set()

if TYPE_CHECKING:
    from lore_active.data.comparisons import as_triplets
    from lore_active.data.triplets import Triplets
    from lore_active.errors import (
        FewAnswersWarning,
        InvalidParameter,
        InvalidTriplets,
        LoreError,
        NotFitted,
    )
    from lore_active.estimators.lore import LORE
    from lore_active.estimators.lore_cv import LORECV
    from lore_active.learner.learner import Learner
    from lore_active.questions.question import Question

__all__ = [
    "LORE",
    "LORECV",
    "FewAnswersWarning",
    "InvalidParameter",
    "InvalidTriplets",
    "Learner",
    "LoreError",
    "NotFitted",
    "Question",
    "Triplets",
    "__version__",
    "as_triplets",
]

# Imported on first use: a web process, which never fits anything, should not wait for the compiler
# to be imported.
_MODULES = {
    "LORE": "estimators.lore",
    "LORECV": "estimators.lore_cv",
    "FewAnswersWarning": "errors",
    "InvalidParameter": "errors",
    "InvalidTriplets": "errors",
    "Learner": "learner.learner",
    "LoreError": "errors",
    "NotFitted": "errors",
    "Question": "questions.question",
    "Triplets": "data.triplets",
    "as_triplets": "data.comparisons",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'lore_active' has no attribute {name!r}")
    return getattr(import_module(f"lore_active.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
