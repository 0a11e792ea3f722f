"""What excluding a participant would change: the same cross-validation with and without them.

It takes seconds or minutes, so it runs in a separate process with low priority: neither
participants nor the worker wait for it. The process writes one JSON object per line: first its
progress, then the result.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np

from lore_active.errors import InvalidParameter, LoreError
from lore_active.wording import many
from server.clock import now
from server.processes.child import QUIET
from server.processes.lifetime import stop_signal
from server.store import collection, imports, journal
from server.store.database import Connection
from server.study.workspace import reading

if TYPE_CHECKING:
    # Importing them at run time would load the compiler into the web process.
    from lore_active.types import Floats
    from server.store.imports import Trial
    from server.study.config import LoadedStudy

NICE = 15
# Interval between lines: a closed page is only noticed when something is written to it.
LINE_SECONDS = 1.0
MODEL_INDEPENDENT = ("cover", "random")
_ONE_AT_A_TIME = threading.Lock()


class AlreadyComputing(LoreError):
    """Another comparison is still running."""


@dataclass(frozen=True)
class FitSummary:
    """Result of a cross-validation."""

    answers: int
    rank: int
    accuracy: float | None
    """Held-out accuracy."""


@dataclass(frozen=True)
class Effect:
    """Results with and without a participant, and the correlation of all inter-item distances."""

    excluded: bool
    with_them: FitSummary
    without: FitSummary
    correlation: float | None


# ---- in the web process -------------------------------------------------------------------------


def lines(folder: Path, participant: int) -> Iterator[bytes]:
    """Start the comparison and yield its lines; raise `AlreadyComputing` if one is running."""
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise AlreadyComputing("Another comparison is running. Please wait until it has finished.")
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "server.learning.exclusion_effect",
                str(folder),
                str(participant),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **QUIET},
            start_new_session=True,
        )
    except BaseException:
        _ONE_AT_A_TIME.release()
        raise
    return _Lines(process)


class _Lines:
    """Lines of a process, and an empty object after each second without one.

    Not a generator, since a generator that was never started could not release the lock.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._queue: Queue[bytes] = Queue()
        self._closed = False
        assert process.stdout is not None
        threading.Thread(target=self._forward, args=(process.stdout,), daemon=True).start()

    def _forward(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._queue.put(line)
        self._queue.put(b"")

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._closed:
            raise StopIteration
        try:
            line = self._queue.get(timeout=LINE_SECONDS)
        except Empty:
            return b"{}\n"
        if not line:
            self.close()
            raise StopIteration
        return line

    def close(self) -> None:
        """End the process; called by the web server when the response is complete or aborted."""
        if self._closed:
            return
        self._closed = True
        try:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
        finally:
            _ONE_AT_A_TIME.release()


# ---- in the separate process --------------------------------------------------------------------


def effect(folder: Path, participant: int) -> Iterator[dict[str, Any]]:
    """Yield progress, then the effect, as plain data."""
    yield _progress(0, "Reading the answers")
    # The temporary copy is deleted before the long computation: this process may be killed.
    with reading(folder, now) as (study, database):
        answers, imported, excluded, seed = database.read(lambda c: _read(c, participant))
    if not any(answer.participant == participant for answer in answers):
        raise InvalidParameter(f"P{participant} has no answers that the model uses.")
    included = [
        answer for answer in answers if not answer.excluded or answer.participant == participant
    ]
    others = [answer for answer in included if answer.participant != participant]
    yield _progress(1, f"Fitting the answers with P{participant}")
    with_them, z = _fitted(study, included, imported, seed)
    yield _progress(2, f"Fitting the answers without P{participant}")
    without, other_z = _fitted(study, others, imported, seed)
    result = Effect(excluded, with_them, without, distance_correlation(z, other_z))
    yield {
        "done": 3,
        "of": 3,
        "effect": {
            "excluded": result.excluded,
            "with": vars(result.with_them),
            "without": vars(result.without),
            "correlation": result.correlation,
        },
    }


def _read(
    c: Connection, participant: int
) -> tuple[list[journal.CountedAnswer], list[Trial], bool, int]:
    answers = journal.counted(c)
    excluded = any(answer.excluded for answer in answers if answer.participant == participant)
    state = collection.state(c)
    assert state is not None
    return answers, imports.counted(c), excluded, state.seed


def _fitted(
    study: LoadedStudy,
    answers: list[journal.CountedAnswer],
    imported: list[Trial],
    seed: int,
) -> tuple[FitSummary, Floats]:
    from lore_active.learner.cadence import first_audit
    from lore_active.learner.updates import audited
    from server.learning.comparisons import comparisons_of, trials_of

    trials = [*imported, *trials_of(study.kind, answers)]
    items = len(study.items)
    needed = first_audit(items, study.kind)
    if len(trials) < needed:
        raise InvalidParameter(
            "Too few answers to compare: one of the two models would have "
            f"{many(len(trials), 'answer')}, and the first estimate needs {needed}."
        )
    independent = [True] * len(imported) + [
        answer.purpose in MODEL_INDEPENDENT for answer in answers
    ]
    answered = comparisons_of(trials, items)
    by_comparison = np.repeat(independent, [len(trial) for trial in trials])
    audit = audited(answered, by_comparison, seed, [], None, kind=study.kind)[0]
    accuracy = next((row.accuracy for row in audit.evidence if row.rank == audit.rank), None)
    z = np.zeros((items, 0)) if audit.solution is None else audit.solution.embedding
    return FitSummary(len(trials), audit.rank, accuracy), z


def distance_correlation(first: Floats, second: Floats) -> float | None:
    """Correlate all inter-item distances of two embeddings; None if one has rank 0."""
    if not first.shape[1] or not second.shape[1]:
        return None
    upper = np.triu_indices(len(first), 1)
    distances = [
        np.linalg.norm(z[:, None, :] - z[None, :, :], axis=2)[upper] for z in (first, second)
    ]
    if min(float(part.std()) for part in distances) == 0.0:
        return None
    return float(np.corrcoef(distances)[0, 1])


def _progress(done: int, message: str) -> dict[str, Any]:
    return {"done": done, "of": 3, "message": message}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("participant", type=int)
def main(folder: Path, participant: int) -> None:
    """Run the comparison for the monitor."""
    stop = stop_signal()
    threading.Thread(target=lambda: (stop.wait(), os._exit(0)), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICE)
    try:
        for line in effect(folder, participant):
            print(json.dumps(line), flush=True)
    except LoreError as error:
        print(json.dumps({"problem": str(error)}), flush=True)


if __name__ == "__main__":
    main()
