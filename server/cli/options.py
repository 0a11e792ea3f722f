"""What several commands share: options, the study or log they work on, where results go."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from lore_active.errors import InvalidParameter
from server.clock import now
from server.exports import log
from server.store.database import Database
from server.study.config import LoadedStudy
from server.study.workspace import DATABASE, reading

Command = TypeVar("Command", bound=Callable[..., Any])
# Where each row of a log is: its line, by table and number.
Lines = dict[tuple[str, int], int]


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


def sweep(command: Command) -> Command:
    """`--jobs` and `--scheduler`, for every command that sweeps."""
    command = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the Dask cluster of this scheduler, e.g. tcp://10.0.0.1:8786.",
    )(command)
    return click.option(
        "--jobs",
        type=click.IntRange(1),
        help="Processes on this machine.",
    )(command)


@contextmanager
def opened(path: Path, incomplete: bool = False) -> Iterator[tuple[LoadedStudy, Database, Lines]]:
    """The study in a folder, or the one that a log tells of (then with its lines)."""
    if path.is_dir():
        with reading(path, now, incomplete) as (study, database):
            yield study, database, {}
        return
    with tempfile.TemporaryDirectory(prefix="lore-active-") as home:
        study, database, lines = log.load(path, Path(home) / DATABASE, now)
        try:
            yield study, database, lines
        finally:
            database.close()


def place_beside(path: Path, study: str, name: str) -> Path:
    """Where a file or folder of results goes when nothing else was said.

    Into the study's folder, or beside its log; where that cannot be written (an archive, a disk
    that is read-only), into the current folder, under the study's name.
    """
    home = path if path.is_dir() else path.parent
    if os.access(home, os.W_OK):
        return home / name
    if os.access(Path.cwd(), os.W_OK):
        return Path(f"{study}-{name}")
    raise InvalidParameter(
        f"Neither {home} nor the current folder can be written: say where with --out."
    )
