"""Every error that the library raises on purpose; each says what was found and what is allowed."""

from __future__ import annotations


class LoreError(Exception):
    """Root of the library's errors: catch this to catch them all."""


class InvalidTriplets(LoreError, ValueError):
    """Answers that cannot be read as triplets (anchor, nearer, farther)."""


class InvalidParameter(LoreError, ValueError):
    """A setting outside its allowed range."""


class NotFitted(LoreError, AttributeError):
    """A fitted attribute or score was asked for before `fit`."""


class ReproducibilityWarning(UserWarning):
    """Results that will agree with another machine's within a tolerance, not bit for bit."""
