"""Speed of the learner by kind of question: selections, refits and audits of as many comparisons.

Seconds are of processor time, each kind in turn in one process, so that ratios can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.tables import Page
from lore_active.learner.learner import Learner
from lore_active.questions.kinds import kind
from lore_active.questions.pool_of_kinds import draw_grids
from lore_active.row_table import NOTHING
from lore_active.simulation.observers import (
    Observer,
    ObserverNoise,
    gaussian_space,
    random_questions,
)
from lore_active.stopping.registry import stopping_rule

KINDS = ("triplet", "choose-1-of-4", "choose-2-of-4", "rank-2-of-8", "odd-one-out")
ITEMS, RANK, COMPARISONS, SEED = 100, 3, 6000, 820
# Refits after so many more trials than before, and audits after 8 % more.
REFIT_GROWTH, AUDIT_GROWTH = 1.01, 1.08
ROUNDS, SELECTED = 5, 20


def seconds(action: Callable[[], Any]) -> float:
    """Processor time of an action."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


class Study:
    """Random questions of one kind, answered by one simulated participant."""

    def __init__(self, label: str) -> None:
        asked = kind(label)
        self.learner = Learner(ITEMS, SEED, stopping=stopping_rule("rank_settled"), kind=asked)
        noise = ObserverNoise(noise=0.1)
        self._observer = Observer(gaussian_space(ITEMS, RANK, SEED + 1), noise, SEED + 2)
        self._trials = int(COMPARISONS / asked.n_comparisons)
        count = 2 * self._trials
        if label == "triplet":
            self._rows = random_questions(ITEMS, count, SEED + 3)
        else:
            self._rows = draw_grids(ITEMS, asked, count, np.random.default_rng(SEED + 3))
        self._answered = 0

    def grow(self, factor: float = 1.0) -> None:
        """Answer questions until there are as many as wanted, or by a factor more."""
        end = max(self._trials, round(self._answered * factor))
        for anchor, *options in self._rows[self._answered : end].tolist():
            known = None if anchor == NOTHING else anchor
            question = self.learner.issue(known, options)
            chosen = self._observer.choose(self.learner.kind, known, options)
            self.learner.tell(question.id, chosen=chosen)
        self._answered = end

    def measured(self) -> dict[str, float]:
        """Seconds of an audit, a refit and a selection: medians."""
        self.grow()
        self.learner.audit()
        audits, refits, selections = [], [], []
        for _ in range(ROUNDS):
            self.grow(AUDIT_GROWTH)
            audits.append(seconds(self.learner.audit))
            self.grow(REFIT_GROWTH)
            refits.append(seconds(self.learner.refit))
            selections.append(seconds(lambda: self.learner.ask(SELECTED, pending=[])))
        found = {"audit": audits, "refit": refits, "selection": selections}
        return {name: float(np.median(values)) for name, values in found.items()}


def main() -> None:
    page = Page("kinds-speed", "Speed by kind of question", "make bench-kinds-speed")
    rows: list[list[object]] = []
    with threadpool_limits(1):
        # Compiles the kernels of every kind.
        results = {label: (Study(label).measured(), Study(label).measured())[1] for label in KINDS}
    base = results["triplet"]
    for label, found in results.items():
        asked = kind(label)
        cells = [
            f"{1e3 * found[name]:.1f} ({found[name] / base[name]:.1f})"
            for name in ("refit", "audit")
        ]
        trials = int(COMPARISONS / asked.n_comparisons)
        rows.append(
            [label, f"{trials:,}", asked.n_comparisons, *cells, f"{1e3 * found['selection']:.0f}"]
        )
    page.text(
        f"Milliseconds of processor time on one core, {ITEMS} items, true rank {RANK}, from about "
        f"{COMPARISONS:,} comparisons on; in brackets the ratio to triplets with as many "
        f"comparisons. Audits without the test for a further dimension. Medians of {ROUNDS}; "
        f"audits after 8 % more trials each, refits after 1 % more, selections of {SELECTED} "
        "questions."
    )
    page.table(["kind", "trials", "comparisons each", "refit", "audit", "selection"], rows)
    page.write()


if __name__ == "__main__":
    main()
