"""Shared by several commands: options, and where results are written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lore_active.errors import InvalidParameter
from lore_active.simulation.worlds import WORLDS

Command = TypeVar("Command", bound=Callable[..., Any])


def host(text: str) -> Callable[[Command], Command]:
    """Add `--host` with this help text."""
    return click.option("--host", default="127.0.0.1", show_default=True, help=text)


def port(text: str) -> Callable[[Command], Command]:
    """Add `--port` with this help text."""
    return click.option(
        "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help=text
    )


def think(command: Command) -> Command:
    """Add `--think`, for commands that start bots."""
    return click.option(
        "--think",
        type=click.FloatRange(0.0),
        default=1.0,
        show_default=True,
        help="Response time of a bot, in seconds.",
    )(command)


def answer_format(command: Command) -> Command:
    """Add `--format`, for commands that read files of answers."""
    return click.option(
        "--format",
        "label",
        metavar="KIND",
        help="What a row is, if its columns do not say so: odd-one-out (the odd one last), "
        "rank-2-of-8 or choose-2-of-8 (query, picked references, others), or triplet.",
    )(command)


def sweep(command: Command) -> Command:
    """Add `--jobs` and `--scheduler`, for commands that can run in parallel."""
    command = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the Dask cluster with this scheduler, e.g. tcp://10.0.0.1:8786.",
    )(command)
    return click.option(
        "--jobs",
        type=click.IntRange(1),
        help="Number of parallel processes on this machine.",
    )(command)


def world(command: Command) -> Command:
    """Add `--world` and `--space`, for commands that simulate participants."""
    command = click.option(
        "--space",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Coordinates that participants perceive, as CSV (item,dim_1,…), instead of a world; "
        "the strongest axes are used, as many as the rank.",
    )(command)
    return click.option(
        "--world",
        type=click.Choice(list(WORLDS)),
        help="Kind of space that participants perceive; equal by default. "
        + " ".join(f"{known.name}: {known.description}" for known in WORLDS.values()),
    )(command)


def place_beside(path: Path, study: str, name: str) -> Path:
    """Return the default place for a file or folder of results.

    The study's folder, or the folder of its log; if that is read-only (an archive, for example),
    the current folder, with the study's name as a prefix.
    """
    home = path if path.is_dir() else path.parent
    if os.access(home, os.W_OK):
        return home / name
    if os.access(Path.cwd(), os.W_OK):
        return Path(f"{study}-{name}")
    raise InvalidParameter(
        f"Neither {home} nor the current folder is writable: choose a place with --out."
    )
