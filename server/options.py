"""Options that several commands have: where a server listens, and how fast bots answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def host(words: str) -> Callable[[Command], Command]:
    """`--host`, explained by `words`."""
    return click.option("--host", default="127.0.0.1", show_default=True, help=words)


def port(words: str) -> Callable[[Command], Command]:
    """`--port`, explained by `words`."""
    return click.option(
        "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help=words
    )


def think(command: Command) -> Command:
    """`--think`, of commands that start bots."""
    return click.option(
        "--think",
        type=click.FloatRange(0.0),
        default=1.0,
        show_default=True,
        help="Seconds a bot takes.",
    )(command)
