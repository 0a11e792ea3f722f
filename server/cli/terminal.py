"""Progress and notes on standard error if it is a terminal, and confirmation."""

from __future__ import annotations

import sys

import click

from lore_active.errors import InvalidParameter


def bar(what: str, done: int, of: int | None = None, note: str = "") -> None:
    """Overwrite the progress line: `what 3 of 10, note`."""
    if sys.stderr.isatty():
        share = "" if not of else f" of {of}"
        end = "\n" if done == of else ""
        behind = f", {note}\x1b[K" if note else ""
        print(f"\r{what} {done}{share}{behind} ", end=end, file=sys.stderr, flush=True)


def clear() -> None:
    """Clear the progress line, so that other output can take its place."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def say(message: str) -> None:
    """Print a message on a line of its own."""
    if sys.stderr.isatty():
        print(message, file=sys.stderr, flush=True)


def confirm(question: str) -> None:
    """Ask before something is changed; without a terminal, refuse and name `--yes`."""
    if not interactive():
        raise InvalidParameter("Not an interactive terminal: add --yes to confirm.")
    click.confirm(question, abort=True, err=True)


def interactive() -> bool:
    """Tell whether standard input is a terminal."""
    return sys.stdin.isatty()
