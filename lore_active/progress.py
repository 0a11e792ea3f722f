"""Progress on standard error, for a person who watches; silent where nobody does."""

from __future__ import annotations

import sys


def bar(what: str, done: int, of: int | None = None) -> None:
    """One line that is written over again: `what 3 of 10`."""
    if sys.stderr.isatty():
        share = "" if not of else f" of {of}"
        end = "\n" if done == of else ""
        print(f"\r{what} {done}{share} ", end=end, file=sys.stderr, flush=True)


def say(message: str) -> None:
    """A sentence of its own."""
    if sys.stderr.isatty():
        print(message, file=sys.stderr, flush=True)
