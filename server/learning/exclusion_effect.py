"""What excluding a participant would change: the same cross-validation with and without them.

It computes for seconds or minutes, so it runs in a process of its own, with low priority: neither
participants nor the worker wait for it. The process writes a JSON object a line: first its
progress, then what it found.
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
from server.clock import now
from server.processes.child import QUIET
from server.processes.lifetime import stop_signal
from server.store import collection, imports, journal
from server.store.database import Connection
from server.study.workspace import reading

if TYPE_CHECKING:
    # Importing them would bring the compiler into the web process.
    from lore_active.types import Floats
    from server.study.config import LoadedStudy

# Fewer answers than this for each item cannot be divided into parts that are predicted in turns.
MIN_ANSWERS_PER_ITEM = 2
NICE = 15
# A line at least this often: a page that was closed is noticed when it is written to.
LINE_SECONDS = 1.0
MODEL_INDEPENDENT = ("cover", "random")
_ONE_AT_A_TIME = threading.Lock()


class AlreadyComputing(LoreError):
    """Another comparison has not ended yet."""


@dataclass(frozen=True)
class FitSummary:
    """What a cross-validation of some answers found."""

    answers: int
    rank: int
    accuracy: float | None
    """Share of answers that fits without them predict right."""


@dataclass(frozen=True)
class Effect:
    """Both, and how alike their maps are: the correlation of all distances between items."""

    excluded: bool
    with_them: FitSummary
    without: FitSummary
    correlation: float | None


# ---- in the web process -------------------------------------------------------------------------


def lines(folder: Path, participant: int) -> Iterator[bytes]:
    """Start the comparison, and give its lines as they come; `AlreadyComputing` if one runs."""
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise AlreadyComputing("Another comparison is running. Please wait until it has ended.")
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
    """The lines of a process, and one whenever a second has passed without any.

    Not a generator: one that was never begun could not let go of the lock.
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
        """End the process; the web server calls it when the page has all, or is gone."""
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


# ---- in a process of its own --------------------------------------------------------------------


def effect(folder: Path, participant: int) -> Iterator[dict[str, Any]]:
    """Progress, then the effect, as plain data."""
    yield _progress(0, "Reading the answers")
    # The copy that is read is gone before anything long begins: this process may be killed.
    with reading(folder, now) as (study, database):
        told, imported, excluded, seed = database.read(lambda c: _read(c, participant))
    if not any(one.participant == participant for one in told):
        raise InvalidParameter(f"P{participant} has given no answer that counts for the model.")
    everybody = [one for one in told if not one.excluded or one.participant == participant]
    others = [one for one in everybody if one.participant != participant]
    yield _progress(1, f"Fitting the answers with P{participant}")
    with_them, z = _fitted(study, everybody, imported, seed)
    yield _progress(2, f"Fitting the answers without P{participant}")
    without, other_z = _fitted(study, others, imported, seed)
    found = Effect(excluded, with_them, without, distance_correlation(z, other_z))
    yield {
        "done": 3,
        "of": 3,
        "effect": {
            "excluded": found.excluded,
            "with": vars(found.with_them),
            "without": vars(found.without),
            "correlation": found.correlation,
        },
    }


def _read(
    c: Connection, participant: int
) -> tuple[list[journal.CountedAnswer], list[tuple[int, int, int]], bool, int]:
    told = journal.counted(c)
    excluded = any(one.excluded for one in told if one.participant == participant)
    state = collection.state(c)
    assert state is not None
    return told, imports.counted(c), excluded, state.seed


def _fitted(
    study: LoadedStudy,
    told: list[journal.CountedAnswer],
    imported: list[tuple[int, int, int]],
    seed: int,
) -> tuple[FitSummary, Floats]:
    from lore_active.data.comparisons import as_triplets
    from lore_active.learner.updates import audited

    rows = [*imported, *((one.anchor, one.nearer, one.farther) for one in told)]
    items = len(study.items)
    if len(rows) < MIN_ANSWERS_PER_ITEM * items:
        raise InvalidParameter(
            f"There are {len(rows)} answers to fit; the first estimate needs "
            f"{MIN_ANSWERS_PER_ITEM * items}, {MIN_ANSWERS_PER_ITEM} for each item."
        )
    independent = [True] * len(imported) + [one.purpose in MODEL_INDEPENDENT for one in told]
    found, _ = audited(as_triplets(rows, n_objects=items), np.array(independent), seed, [], None)
    accuracy = next((one.accuracy for one in found.evidence if one.rank == found.rank), None)
    z = np.zeros((items, 0)) if found.solution is None else found.solution.embedding
    return FitSummary(len(rows), found.rank, accuracy), z


def distance_correlation(one: Floats, other: Floats) -> float | None:
    """Correlation of all distances between items in two maps; None where one has no dimension."""
    if not one.shape[1] or not other.shape[1]:
        return None
    upper = np.triu_indices(len(one), 1)
    distances = [np.linalg.norm(z[:, None, :] - z[None, :, :], axis=2)[upper] for z in (one, other)]
    if min(float(part.std()) for part in distances) == 0.0:
        return None
    return float(np.corrcoef(distances)[0, 1])


def _progress(done: int, message: str) -> dict[str, Any]:
    return {"done": done, "of": 3, "message": message}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("participant", type=int)
def main(folder: Path, participant: int) -> None:
    """Compare, for the monitor."""
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
