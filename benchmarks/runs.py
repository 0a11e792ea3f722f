"""Finished runs of a long benchmark, so that it can be interrupted and continued, and checked.

Runs are appended to build/NAME.jsonl, one JSON object a line, and packed into
benchmarks/results/NAME.jsonl.xz, which belongs to the repository: the tables under docs/benchmarks
can be checked, and a benchmark goes on where another machine left it. Every run names the numerics
that it was computed with; runs of other numerics are left out.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from itertools import chain
from multiprocessing import Pool
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lore_active.data.comparisons import as_triplets
from lore_active.learner.learner import Learner
from lore_active.rank.further_dimension import further_dimensions
from lore_active.simulation.observers import Observer, gaussian_space, simulated_answers
from lore_active.simulation.run import SimulatedParticipants, simulate

HERE = Path(__file__).parent
Run = dict[str, Any]
Task = TypeVar("Task")
# Size of the studies behind a hash: so many answers to triplets.
STUDY_BITS = 200


class Runs:
    """Finished runs of the benchmark of this name.

    Parameters
    ----------
    name : str
        Name of the benchmark.
    key : callable
        What identifies a run: equal for two runs that are the same.
    kinds : sequence of str
        Kinds of questions whose numerics the runs depend on.
    """

    def __init__(
        self, name: str, key: Callable[[Run], Hashable], kinds: Sequence[str] = ("triplet",)
    ) -> None:
        self._key, self._kinds = key, tuple(kinds)
        self._new = HERE.parent / "build" / f"{name}.jsonl"
        self._packed = HERE / "results" / f"{name}.jsonl.xz"

    def load(self) -> list[Run]:
        """All runs of the present numerics, in the order in which they were finished."""
        runs = {self._key(run): run for run in self._stored()}
        known = [run for run in runs.values() if run["numerics"] == numerics(self._kinds)]
        if len(known) < len(runs):
            print(f"{len(runs) - len(known)} runs of other numerics are left out.", flush=True)
        return known

    def collect(
        self,
        function: Callable[[Task], Run],
        tasks: Sequence[Task],
        processes: int,
        line: Callable[[Run], str],
    ) -> None:
        """Run all tasks, each stored as soon as it is finished, and print a line for each."""
        self._new.parent.mkdir(exist_ok=True)
        with Pool(processes) as pool, self._new.open("a", encoding="utf-8") as stream:
            for number, run in enumerate(pool.imap_unordered(function, tasks), 1):
                stream.write(json.dumps({**run, "numerics": numerics(self._kinds)}) + "\n")
                stream.flush()
                print(f"{number} of {len(tasks)}: {line(run)}", flush=True)

    def pack(self) -> None:
        """Move all runs of the present numerics into the repository."""
        runs = sorted(self.load(), key=lambda run: str(self._key(run)))
        self._packed.parent.mkdir(exist_ok=True)
        text = "".join(json.dumps(run, separators=(",", ":")) + "\n" for run in runs)
        self._packed.write_bytes(lzma.compress(text.encode()))

    def _stored(self) -> Iterable[Run]:
        packed = (
            lzma.decompress(self._packed.read_bytes()).decode() if self._packed.exists() else ""
        )
        new = self._new.read_text(encoding="utf-8") if self._new.exists() else ""
        return map(json.loads, chain(packed.splitlines(), new.splitlines()))


@cache
def numerics(kinds: tuple[str, ...]) -> str:
    """Hash of what small studies of these kinds compute: a change that matters changes it.

    Of each study, what audits find, the map and the criteria; then tests for a further dimension.
    """
    digest = hashlib.sha256()
    plane = gaussian_space(12, 2, seed=1)
    for label in kinds:
        learner = Learner(12, seed=2, kind=label)
        participants = SimulatedParticipants([Observer(plane, seed=3)])
        answers = int(STUDY_BITS / learner.kind.bits)
        for record in simulate(learner, participants, answers, None, float, stop=False):
            digest.update(repr((record["answers"], record["rank"])).encode())
        digest.update(np.ascontiguousarray(learner.estimate.embedding).tobytes())
        for criterion in learner.decision.criteria:
            digest.update(repr((criterion.name, float(criterion.value))).encode())
    triplets = as_triplets(simulated_answers(plane, 200, seed=4), 12)
    for test in further_dimensions(triplets, plane[:, :1] * 4.0, (0.1, 0.3)):
        digest.update(repr((test.log_bayes_factor, test.standard_error)).encode())
    return digest.hexdigest()[:16]
