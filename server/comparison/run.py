"""Methods side by side on the same folds: each in a process with a time limit, then the figures."""

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

from lore_active.data.comparisons import Triplets
from lore_active.errors import InvalidParameter
from lore_active.rank.cross_validation import folds as folded
from lore_active.simulation.baselines import METHODS, Method
from lore_active.simulation.parallel import sweep
from server.comparison.method_process import FoldResult, Job

# Loading packages and compiling do not count as the method's time, but they must end, too.
START_SECONDS = 600.0
# Methods this close to the best, in shares of answers, are compared by their rank.
CLOSE = 0.01

Status = Literal["done", "stopped", "failed", "missing"]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Result:
    """What became of a method; figures are of the folds that were done."""

    method: str
    name: str
    status: Status
    words: str
    folds: tuple[FoldResult, ...]

    def figures(self) -> dict[str, Any]:
        """Plain data: means over the folds, standard error, and each fold."""
        one = asdict(self)
        one["folds_done"] = len(self.folds)
        one["accuracy"] = self.accuracy
        one["accuracy_se"] = self.error
        one["rank"] = _mean([fold.rank for fold in self.folds])
        one["seconds"] = _mean([fold.seconds for fold in self.folds])
        return one

    @property
    def accuracy(self) -> float | None:
        """Mean share of held-out answers predicted right."""
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
    """Methods by name; all if none is named."""
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise InvalidParameter(
            f"--methods names {', '.join(map(repr, unknown))}, but there are {', '.join(METHODS)}."
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
    spread: bool = False,
) -> list[Result]:
    """Every method on the same folds, each for `limit` seconds at most.

    One after another, so that their seconds can be compared; or, with `spread`, as a sweep.
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
    # An embedding of N items fills N − 1 dimensions at most.
    most = min(components, answers.n_objects - 1)
    jobs = [(method, answers, folds, most, seed, limit) for method in methods]
    if not spread:
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
    """One method over all folds; ended after `limit` seconds."""
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
        )
        job = Job(method.key, str(file), answers.n_objects, folds, components, seed)
        return _heard(method, job, limit, progress)


def _heard(method: Method, job: Job, limit: float, progress: Progress) -> Result:
    done: list[FoldResult] = []
    progress(method.name, 0, job.folds)

    def ended(status: Status, words: str) -> Result:
        return Result(method.key, method.name, status, words, tuple(done))

    with _Child(job) as child:
        if (first := child.line(START_SECONDS)) is None:
            return ended("stopped", f"did not begin within {START_SECONDS:g} s")
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
    """What the method chose in the folds, each once."""
    return ", ".join(dict.fromkeys(fold.chose for fold in done if fold.chose))


class _Child:
    """The process of a job; it does not outlive the block."""

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
        # Only heard where a fold is still waited for.
        code = self._process.wait()
        self._said.seek(0)
        last = self._said.read().decode(errors="replace").strip().splitlines()[-1:]
        self._lines.put({"failed": " ".join([f"the process ended with code {code}.", *last])})

    def line(self, seconds: float) -> dict[str, Any] | None:
        """What it says next; None if that takes longer."""
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
    """The most accurate method, and the lowest rank among those within one point of it."""
    whole = [one for one in results if one.status == "done"]
    if not whole:
        return {"best": None, "simplest": None}
    best = max(whole, key=lambda one: one.accuracy or 0.0)
    close = [one for one in whole if (best.accuracy or 0.0) - (one.accuracy or 0.0) <= CLOSE]
    simplest = min(close, key=lambda one: (one.rank or 0.0, -(one.accuracy or 0.0)))
    return {"best": best.method, "simplest": simplest.method}
