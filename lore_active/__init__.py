"""lore-active: adaptive triplet similarity experiments that estimate their dimensionality."""

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
