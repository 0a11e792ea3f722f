"""One method over all folds, in a separate process that can be ended at any time.

Run as `python -m server.comparison.method_process JOB`. Prints one JSON object per line on standard
output: `ready` when the work starts, then each fold, or `failed` with the reason.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lore_active.data.comparisons import as_triplets
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.rank.folds import folds
from lore_active.simulation.baselines import METHODS
from lore_active.warmup import warm


@dataclass(frozen=True)
class Job:
    """The task of a process: a method on a file of answers."""

    method: str
    file: str
    items: int
    folds: int
    components: int
    seed: int


@dataclass(frozen=True)
class FoldResult:
    """Result of a method on the held-out answers of one fold."""

    accuracy: float
    rank: int
    seconds: float
    chose: str


def run(job: Job, say: Any) -> None:
    """Fit and score fold by fold."""
    answers, method = as_triplets(job.file, job.items), METHODS[job.method]
    part = folds(answers, job.seed, job.folds)
    if not method.needs:
        warm()
    for package in method.needs:
        __import__(package)
    say({"ready": True})
    for fold in range(job.folds):
        fit, held = answers.take(np.flatnonzero(part != fold)), np.flatnonzero(part == fold)
        begun = time.perf_counter()
        fitted = method.fit(fit, job.components, job.seed)
        seconds = time.perf_counter() - begun
        accuracy = triplet_accuracy(fitted.embedding, answers.take(held))
        say(asdict(FoldResult(accuracy, fitted.rank, seconds, fitted.chose)))


def _end_with_parent() -> None:
    def watch() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Run the job given as JSON."""
    # Libraries may print anything; the real standard output is reserved for the results.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(line: dict[str, Any]) -> None:
        print(json.dumps(line), file=out, flush=True)

    _end_with_parent()
    try:
        with threadpool_limits(1):
            run(Job(**json.loads(sys.argv[1])), say)
    except Exception as error:
        message = " ".join(str(error).split())[:300]
        say({"failed": f"{type(error).__name__}: {message}"})


if __name__ == "__main__":
    main()
