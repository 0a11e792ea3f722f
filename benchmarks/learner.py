"""Speed of the learner: refit, selection and audit, beside a cold fit, as studies grow."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.tables import Page
from lore_active.data.comparisons import as_triplets
from lore_active.embedding.fit import fit
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import SolverSettings
from lore_active.learner.learner import Learner
from lore_active.simulation.observers import gaussian_space, simulated_answers
from lore_active.warmup import warm

RANK = 3
SIZES = ((50, 1000), (50, 5000), (100, 5000), (100, 20_000), (200, 10_000), (500, 50_000))


def seconds(action: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def measure(items: int, answers: int) -> list[object]:
    rounds = 5
    rows = simulated_answers(gaussian_space(items, RANK, 800), answers + 25 * rounds, 801)
    learner = Learner(items, seed=802)
    learner.add(rows[:answers])
    audit = seconds(learner.audit)
    refits, selections = [], []
    for k in range(rounds):
        learner.add(rows[answers + 25 * k : answers + 25 * (k + 1)])
        refits.append(seconds(learner.refit))
        selections.append(seconds(lambda: learner.ask(50, pending=[])))
    lam = learner.estimate.lam
    cold = seconds(lambda: fit(as_pairs(as_triplets(rows, items)), SolverSettings(lam)))
    refit, select = float(np.median(refits)), float(np.median(selections))
    return [
        items,
        f"{answers:,}",
        learner.estimate.rank,
        f"{1e3 * cold:.0f}",
        f"{1e3 * refit:.1f} ({refit / cold:.2f})",
        f"{1e3 * select:.0f} ({select / cold:.2f})",
        f"{1e3 * audit:.0f} ({audit / cold:.1f})",
    ]


def main() -> None:
    warm()
    page = Page("learner", "Speed of the learner", "make bench-learner")
    with threadpool_limits(1):
        rows = [measure(items, answers) for items, answers in SIZES]
    page.text(
        f"Milliseconds on one core, true rank {RANK}, and in brackets the ratio to a cold fit of "
        "the same answers. Refit: after 25 more answers, of the published model and of the "
        "acquisition model, including the grouping of all answers. Selection: 50 questions at "
        "once. Medians of "
        "5; one audit."
    )
    page.table(["items", "answers", "rank", "cold fit", "refit", "50 questions", "audit"], rows)
    page.write()


if __name__ == "__main__":
    main()
