"""The terminal: progress on standard error, silent where it is not one, and confirmation."""

from __future__ import annotations

import sys

import click

from lore_active.errors import InvalidParameter


def bar(what: str, done: int, of: int | None = None, note: str = "") -> None:
    """One line that is written over again: `what 3 of 10`, and a note behind it."""
    if sys.stderr.isatty():
        share = "" if not of else f" of {of}"
        end = "\n" if done == of else ""
        behind = f", {note}\x1b[K" if note else ""
        print(f"\r{what} {done}{share}{behind} ", end=end, file=sys.stderr, flush=True)


def clear() -> None:
    """Take the line of the bar away, so that something else can be written there."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def say(message: str) -> None:
    """A sentence of its own."""
    if sys.stderr.isatty():
        print(message, file=sys.stderr, flush=True)


def confirm(question: str) -> None:
    """Ask before something is changed; without a terminal, say how to do without asking."""
    if not interactive():
        raise InvalidParameter("Not an interactive terminal: add --yes to confirm.")
    click.confirm(question, abort=True, err=True)


def interactive() -> bool:
    """Whether questions can be answered at the terminal."""
    return sys.stdin.isatty()
