"""Exceptions of the library; each message names the value that was found and the rule."""

from __future__ import annotations


class LoreError(Exception):
    """Base class of all exceptions of the library."""


class InvalidTriplets(LoreError, ValueError):
    """Answers that cannot be read as triplets (anchor, nearer, farther)."""


class InvalidParameter(LoreError, ValueError):
    """A parameter outside its allowed range."""


class NotFitted(LoreError, AttributeError):
    """An attribute or method that needs `fit` was used before it."""


class ReproducibilityWarning(UserWarning):
    """Results will agree with those of other machines within a tolerance, not bit for bit."""


class FewAnswersWarning(UserWarning):
    """So few answers per item that a fixed λ tends to find more dimensions than there are."""
