"""Methods compared on the same folds: each in a process with a time limit, then the results."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lore_active.data.triplets import Triplets
from lore_active.errors import InvalidParameter
from lore_active.rank.folds import folds as folded
from lore_active.simulation.baselines import METHODS, Method
from lore_active.simulation.parallel import sweep
from server.comparison.method_process import FoldResult, Job

# Loading packages and compiling do not count as the method's time, but are limited, too.
START_SECONDS = 600.0
# Methods within this accuracy of the best are compared by rank.
CLOSE = 0.01

Status = Literal["done", "stopped", "failed", "missing"]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Result:
    """Result of a method over the completed folds."""

    method: str
    name: str
    status: Status
    message: str
    folds: tuple[FoldResult, ...]

    def figures(self) -> dict[str, Any]:
        """Return plain data: means over the folds, standard error, and each fold."""
        figures = asdict(self)
        figures["folds_done"] = len(self.folds)
        figures["accuracy"] = self.accuracy
        figures["accuracy_se"] = self.error
        figures["rank"] = _mean([fold.rank for fold in self.folds])
        figures["seconds"] = _mean([fold.seconds for fold in self.folds])
        return figures

    @property
    def accuracy(self) -> float | None:
        """Mean held-out accuracy."""
        return _mean([fold.accuracy for fold in self.folds])

    @property
    def error(self) -> float | None:
        """Standard error of the mean over folds."""
        shares = [fold.accuracy for fold in self.folds]
        if len(shares) < 2:
            return None
        return float(np.std(shares, ddof=1) / np.sqrt(len(shares)))

    @property
    def rank(self) -> float | None:
        """Mean rank over folds."""
        return _mean([fold.rank for fold in self.folds])


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def chosen(names: Sequence[str]) -> list[Method]:
    """Look up methods by name; all if none is named."""
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise InvalidParameter(
            f"--methods has {', '.join(map(repr, unknown))}, but must be some of "
            f"{', '.join(METHODS)}."
        )
    return [METHODS[name] for name in dict.fromkeys(names)] or list(METHODS.values())


def compare(
    answers: Triplets,
    methods: Sequence[Method],
    folds: int,
    limit: float,
    components: int,
    seed: int,
    progress: Progress = lambda name, done, of: None,
    in_parallel: bool = False,
) -> list[Result]:
    """Run every method on the same folds, each for at most `limit` seconds.

    One after another, so that run times are comparable; or, with `in_parallel`, in parallel.
    """
    if folds < 2:
        raise InvalidParameter(f"--folds is {folds}, but must be 2 or more.")
    if not limit > 0:
        raise InvalidParameter(f"--seconds is {limit:g}, but must be more than 0.")
    if components < 1:
        raise InvalidParameter(f"--components is {components}, but must be 1 or more.")
    if seed < 0:
        raise InvalidParameter(f"--seed is {seed}, but must be 0 or more.")
    if len(np.unique(folded(answers, seed, folds))) < folds:
        raise InvalidParameter(
            f"There are fewer than {folds} different questions: --folds must be smaller."
        )
    # An embedding of N items has at most N − 1 dimensions.
    dimensions = min(components, answers.n_objects - 1)
    jobs = [(method, answers, folds, dimensions, seed, limit) for method in methods]
    if not in_parallel:
        return [tried(*job, progress) for job in jobs]
    return list(sweep(tried, jobs, lambda done, of: progress("methods", done, of)))


def tried(
    method: Method,
    answers: Triplets,
    folds: int,
    components: int,
    seed: int,
    limit: float,
    progress: Progress = lambda name, done, of: None,
) -> Result:
    """Run one method over all folds; end it after `limit` seconds."""
    if lacking := method.missing():
        return Result(method.key, method.name, "missing", lacking, ())
    with tempfile.TemporaryDirectory(prefix="lore-active-") as home:
        file = Path(home) / "answers.npz"
        np.savez(
            file,
            anchor=answers.anchor,
            nearer=answers.nearer,
            farther=answers.farther,
            weights=answers.weight,
            # Folds keep the comparisons of a trial together.
            trial=answers.trial,
            participant=answers.participant,
        )
        job = Job(method.key, str(file), answers.n_objects, folds, components, seed)
        return _run(method, job, limit, progress)


def _run(method: Method, job: Job, limit: float, progress: Progress) -> Result:
    done: list[FoldResult] = []
    progress(method.name, 0, job.folds)

    def ended(status: Status, message: str) -> Result:
        return Result(method.key, method.name, status, message, tuple(done))

    with _Child(job) as child:
        if (first := child.line(START_SECONDS)) is None:
            return ended("stopped", f"did not start within {START_SECONDS:g} s")
        until = time.monotonic() + limit
        line: dict[str, Any] | None = first
        while len(done) < job.folds:
            if line is None:
                return ended("stopped", f"stopped after {limit:g} s")
            if "failed" in line:
                return ended("failed", line["failed"])
            if "ready" not in line:
                done.append(FoldResult(**line))
                progress(method.name, len(done), job.folds)
            if len(done) < job.folds:
                line = child.line(until - time.monotonic())
    return ended("done", _choices(done))


def _choices(done: Sequence[FoldResult]) -> str:
    """List what the method chose in the folds, without duplicates."""
    return ", ".join(dict.fromkeys(fold.chose for fold in done if fold.chose))


class _Child:
    """The process of a job, ended with the block."""

    def __init__(self, job: Job) -> None:
        self._lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end of the block
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "server.comparison.method_process", json.dumps(asdict(job))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=environment,
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
        # Only read if a fold is still missing.
        code = self._process.wait()
        self._said.seek(0)
        last = self._said.read().decode(errors="replace").strip().splitlines()[-1:]
        self._lines.put({"failed": " ".join([f"the process ended with code {code}.", *last])})

    def line(self, seconds: float) -> dict[str, Any] | None:
        """Return its next line; None if that takes longer."""
        try:
            return self._lines.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._thread.join()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            assert stream is not None
            stream.close()


def verdict(results: Sequence[Result]) -> dict[str, Any]:
    """Return the most accurate method, and the lowest rank within one percentage point of it."""
    complete = [result for result in results if result.status == "done"]
    if not complete:
        return {"best": None, "simplest": None}
    best = max(complete, key=lambda result: result.accuracy or 0.0)
    close = [
        result for result in complete if (best.accuracy or 0.0) - (result.accuracy or 0.0) <= CLOSE
    ]
    simplest = min(close, key=lambda result: (result.rank or 0.0, -(result.accuracy or 0.0)))
    return {"best": best.method, "simplest": simplest.method}
