"""Where sweeps run: on this machine's cores, or on a Dask cluster (extra `distributed`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from joblib import parallel_config

from lore_active.errors import InvalidParameter

# A scheduler that does not answer within this time is not there.
PATIENCE = "10s"
Command = TypeVar("Command", bound=Callable[..., Any])


def options(command: Command) -> Command:
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
def running(jobs: int | None, scheduler: str | None) -> Iterator[None]:
    """Sweeps inside run on `jobs` cores of this machine, or on the scheduler's cluster."""
    if scheduler is None:
        with parallel_config(backend="loky", n_jobs=jobs or -1):
            yield
        return
    if jobs is not None:
        raise InvalidParameter("--jobs is for this machine; with --scheduler, the cluster decides.")
    with _client(scheduler), parallel_config(backend="dask"):
        yield


@contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    try:
        from dask.distributed import Client
    except ImportError:
        raise InvalidParameter(
            "--scheduler needs Dask, which is not installed: "
            "pip install 'lore-active[distributed]'."
        ) from None
    try:
        client = Client(scheduler, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise InvalidParameter(f"--scheduler {scheduler!r} cannot be reached: {error}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise InvalidParameter(f"--scheduler {scheduler!r} has no workers.")
        yield client
