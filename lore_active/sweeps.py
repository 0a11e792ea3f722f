"""Many independent runs of one function: on all cores, or wherever joblib has been told to.

`joblib.parallel_config` chooses the place: a caller that holds a cluster enters it and calls the
same functions. Results come in the order of the jobs, so a sweep is the same wherever it ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

Result = TypeVar("Result")
Progress = Callable[[int, int], None]


def sweep(
    function: Callable[..., Result],
    jobs: Sequence[tuple[Any, ...]],
    progress: Progress = lambda done, of: None,
) -> Iterator[Result]:
    """Call `function(*job)` for each job, in parallel; yields results in the jobs' order."""
    progress(0, len(jobs))
    results = Parallel(return_as="generator")(delayed(_alone)(function, job) for job in jobs)
    for done, result in enumerate(results, 1):
        progress(done, len(jobs))
        yield result


def _alone(function: Callable[..., Result], job: tuple[Any, ...]) -> Result:
    """One job on one core: the jobs themselves fill the machine, and bits do not depend on it."""
    with threadpool_limits(1):
        return function(*job)
