"""Independent runs of one function in parallel, on the cores of a machine or on a cluster.

`joblib.parallel_config` selects the backend. Results come in the order of the jobs, so a sweep
gives the same results on every backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from lore_active.errors import InvalidParameter

Result = TypeVar("Result")
# A scheduler that does not respond within this time is reported as unreachable.
SCHEDULER_TIMEOUT = "10s"
Progress = Callable[[int, int], None]


def sweep(
    function: Callable[..., Result],
    jobs: Sequence[tuple[Any, ...]],
    progress: Progress = lambda done, of: None,
) -> Iterator[Result]:
    """Call `function(*job)` for each job in parallel; yield results in the order of the jobs."""
    progress(0, len(jobs))
    results = Parallel(return_as="generator")(delayed(_alone)(function, job) for job in jobs)
    for done, result in enumerate(results, 1):
        progress(done, len(jobs))
        yield result


def _alone(function: Callable[..., Result], job: tuple[Any, ...]) -> Result:
    """Run a job on one thread: jobs already use all cores, and bits must not depend on threads."""
    with threadpool_limits(1):
        return function(*job)


@contextmanager
def running(jobs: int | None, scheduler: str | None) -> Iterator[None]:
    """Run the sweeps inside on `jobs` cores of this machine, or on the scheduler's cluster."""
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
        client = Client(scheduler, timeout=SCHEDULER_TIMEOUT)
    except (OSError, TimeoutError, ValueError) as error:
        raise InvalidParameter(f"--scheduler {scheduler!r} cannot be reached: {error}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise InvalidParameter(f"--scheduler {scheduler!r} has no workers.")
        yield client
