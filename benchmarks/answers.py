"""How many answers, which rank, when to stop: the learner on simulated participants, many seeds.

The benchmark can be interrupted and resumed (see `benchmarks.runs`); the page is
written from the runs that are there.

One module, though long: a benchmark reads from its simulations to its page.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmarks.runs import Runs
from benchmarks.tables import FOLDER, Axis, Page, Panel, draw
from lore_active.data.comparisons import as_triplets
from lore_active.embedding.fit import fit
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import SolverSettings
from lore_active.learner.learner import Learner
from lore_active.simulation.observers import (
    Observer,
    ObserverNoise,
    gaussian_space,
    simulated_answers,
)
from lore_active.simulation.run import SimulatedParticipants, simulate

RUNS = Runs("answers", lambda one: (one["cell"], one["seed"]))
RANDOM_ANSWERS = 2800
# Where else random questions are fitted, for the chart; of 2,800.
RANDOM_CURVE = (100, 200, 300, 400, 500, 600, 800, 1000, 1400, 2000, 2800)
NAIVE_AUDITS = 5
# Reporting seeds; development used seeds below 1,000, and earlier learners 5,000 to 13,199.
FIRST_SEED = 14_000
# A study takes several seeds.
SEED_STEP = 10
# A study whose rank is not settled goes on to this many answers at most.
MOST = 4000


@dataclass(frozen=True)
class Cell:
    """One condition: people, items, how far to go at least, and whether on until the rule stops.

    `judged`: at how many answers rank and accuracy are looked at.
    """

    rank: int
    noise: float = 0.1
    items: int = 50
    answers: int = 1400
    lapse: float = 0.0
    until_stopped: bool = False
    judged: int = 1400

    @property
    def name(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


DRAWN = tuple(Cell(rank, answers=1800, until_stopped=True) for rank in (1, 2, 3, 5))
MAIN = (*DRAWN[:3], replace(DRAWN[3], rank=4), DRAWN[3], Cell(8, answers=2800, judged=2800))
NOISES = tuple(Cell(rank, noise, until_stopped=True) for noise in (0.05, 0.5) for rank in (2, 3))
# Where only the stop is looked at.
ENDED = tuple(
    Cell(rank, noise, answers=0, until_stopped=True) for noise in (0.05, 0.5) for rank in (1, 4, 5)
)
STOPS = sorted((*MAIN[:5], *NOISES, *ENDED), key=lambda cell: (cell.noise, cell.rank))
NOTHING = Cell(0)
OTHERS = (
    *(Cell(3, items=items, answers=28 * items, judged=28 * items) for items in (30, 100, 200)),
    *(Cell(rank, noise=1.0) for rank in (2, 3)),
    *(Cell(rank, lapse=0.05) for rank in (2, 3)),
)
# How many seeds the others get for each seed of the first.
PACE = (
    (MAIN[:5], 1.0),
    (NOISES, 1.0),
    (ENDED, 1.0),
    ((MAIN[5], NOTHING), 0.5),
    (OTHERS, 0.25),
)


def reporting(count: int) -> range:
    """The first so many reporting seeds."""
    return range(FIRST_SEED, FIRST_SEED + SEED_STEP * count, SEED_STEP)


def run(task: tuple[Cell, int]) -> dict[str, Any]:
    """One study without stopping, and what random questions reach on the same people."""
    cell, seed = task
    dimensions = max(cell.rank, 1)
    space = gaussian_space(cell.items, dimensions, seed)
    observer_noise = ObserverNoise(cell.noise, lapse=cell.lapse if cell.rank else 1.0)
    test = simulated_answers(space, 3000, seed + 1, ObserverNoise(noise=0.0))
    participants = SimulatedParticipants([Observer(space, observer_noise, seed + 2)])
    learner = Learner(cell.items, seed)
    records = list(
        simulate(learner, participants, cell.answers, test, time.perf_counter, stop=False)
    )
    if cell.until_stopped and records[-1]["stopped_at"] is None:
        more = list(simulate(learner, participants, MOST, test, time.perf_counter))
        records = [*records[:-1], *more]
    many = RANDOM_ANSWERS * cell.items // 50
    random = simulated_answers(space, many, seed + 3, observer_noise)
    curve = [
        (answers, fit(as_pairs(as_triplets(random[:answers], cell.items)), SolverSettings()))
        for answers in (at * cell.items // 50 for at in RANDOM_CURVE)
        if cell in DRAWN or answers == many
    ]
    plain = curve[-1][1]
    return {
        "cell": cell.name,
        "seed": seed,
        "random_accuracy": triplet_accuracy(plain.embedding, test),
        "random_rank": plain.rank,
        "random_curve": [
            [answers, one.rank, triplet_accuracy(one.embedding, test)] for answers, one in curve
        ],
        "audits": [[one["answers"], one["rank"], one["accuracy"]] for one in records[:-1]],
        "summary": records[-1],
    }


def load(seeds: int) -> list[dict[str, Any]]:
    """The runs that are there, of the first so many seeds of each condition."""
    wanted = {(cell.name, seed) for cells, _ in PACE for cell in cells for seed in reporting(seeds)}
    return [one for one in RUNS.load() if (one["cell"], one["seed"]) in wanted]


def crossing(curve: list[list[float]], level: float) -> float:
    """First answers from which accuracy stays at the level or above."""
    reached = float("inf")
    for answers, _, accuracy in reversed(curve):
        if accuracy < level:
            break
        reached = answers
    return reached


def until(audits: list[list[float]], answers: int) -> list[list[float]]:
    """The audits up to a number of answers."""
    return [one for one in audits if one[0] <= answers]


def last_change(audits: list[list[float]], until: float) -> float:
    changed = audits[0][0]
    for before, after in itertools.pairwise(audits):
        if after[0] <= until and before[1] != after[1]:
            changed = after[0]
    return changed


def naive_stop(audits: list[list[float]]) -> tuple[float, int] | None:
    for end in range(NAIVE_AUDITS, len(audits) + 1):
        ranks = {one[1] for one in audits[end - NAIVE_AUDITS : end]}
        if len(ranks) == 1:
            return audits[end - 1][0], int(audits[end - 1][1])
    return None


def report(page: Page, runs: list[dict[str, Any]]) -> None:
    def of(cell: Cell) -> list[dict[str, Any]]:
        return [one for one in runs if one["cell"] == cell.name]

    rows = []
    for cell in (*MAIN, *NOISES, *OTHERS):
        found = of(cell)
        if not found:
            continue
        full = RANDOM_ANSWERS * cell.items // 50
        need = [
            crossing(until(one["audits"], cell.answers), one["random_accuracy"]) for one in found
        ]
        level = np.mean([one["random_accuracy"] for one in found])
        middle = float(np.median(need))
        judged = [until(one["audits"], cell.judged)[-1] for one in found]
        right = np.mean([rank == cell.rank for _, rank, _ in judged])
        accuracy = np.mean([accuracy for _, _, accuracy in judged])
        rows.append(
            [
                cell.items,
                cell.rank,
                cell.noise,
                cell.lapse,
                len(found),
                f"{level:.4f}",
                f"more than {cell.answers}" if middle == float("inf") else f"{middle:.0f}",
                "–" if middle == float("inf") else f"{middle / full:.2f}",
                f"{100 * right:.0f} %",
                f"{accuracy:.4f} at {cell.judged}",
            ]
        )
    page.text(
        "## Answers to accuracy, and the rank\n\nRandom: accuracy on 3,000 noiseless test triplets "
        "of random questions fitted by LORE at λ = 0.01, with 2,800 answers for 50 items (56 for "
        "each item otherwise). Needed: number of answers after which the learner stays at or "
        "above that (median over runs). Right rank: share of runs in which the last audit, at the "
        "number of answers in the last column, finds the true rank."
    )
    page.table(
        [
            "items",
            "rank",
            "noise",
            "lapses",
            "runs",
            "random",
            "needed",
            "share",
            "right rank",
            "accuracy",
        ],
        rows,
    )
    chart(page, {cell: of(cell) for cell in DRAWN})
    rows = []
    for cell in STOPS:
        found = of(cell)
        if not found:
            continue
        stops = [
            (one["summary"]["stopped_at"], one["summary"]["stopped_rank"], one["audits"])
            for one in found
            if one["summary"]["stopped_at"] is not None
        ]
        ratio = [at / last_change(audits, at) for at, _, audits in stops]
        naive = [stop for one in found if (stop := naive_stop(one["audits"])) is not None]
        rows.append(
            [
                cell.rank,
                cell.noise,
                len(found),
                len(stops),
                f"{np.mean([rank == cell.rank for _, rank, _ in stops]):.2f}" if stops else "–",
                f"{np.median([at for at, _, _ in stops]):.0f}" if stops else "–",
                f"{np.median(ratio):.2f}" if stops else "–",
                f"{np.mean([rank == cell.rank for _, rank in naive]):.2f}" if naive else "–",
                f"{np.median([at for at, _ in naive]):.0f}" if naive else "–",
            ]
        )
    page.text(
        f"## Stopping\n\nStudies that continue until the rule stops them, up to {MOST:,} answers: "
        "where it stopped, whether at the true rank, and the ratio to the number of answers at "
        f"the last change of rank; compared with the naive rule (unchanged for {NAIVE_AUDITS} "
        "audits)."
    )
    page.table(
        [
            "rank",
            "noise",
            "runs",
            "stopped",
            "right",
            "at (median)",
            "of last change",
            "naive right",
            "naive at",
        ],
        rows,
    )
    pooled(page, [one for cell in STOPS for one in of(cell)])
    found = of(NOTHING)
    if found:
        ranks = [one["audits"][-1][1] for one in found]
        stopped = sum(one["summary"]["stopped_at"] is not None for one in found)
        page.text(
            f"## Nothing to find\n\nPure guesses, {len(found)} runs of {NOTHING.answers} "
            f"answers: last ranks {ranks}; stopped as settled in {stopped} of them."
        )


def pooled(page: Page, runs: list[dict[str, Any]]) -> None:
    """All stops of ranks 1 to 5 together."""
    right = wrong = 0
    ratios = []
    for one in runs:
        at, rank = one["summary"]["stopped_at"], one["summary"]["stopped_rank"]
        if at is None:
            continue
        right += rank == json.loads(one["cell"])["rank"]
        wrong += rank != json.loads(one["cell"])["rank"]
        ratios.append(at / last_change(one["audits"], at))
    if ratios:
        page.text(
            f"Ranks 1 to 5 together: of {len(runs)} runs {right} stopped at the true rank, {wrong} "
            f"at another, and {len(runs) - right - wrong} had not stopped at the end. Median "
            f"of the ratio to the last change of rank: {np.median(ratios):.2f}."
        )


def mean_curve(curves: list[list[list[float]]]) -> list[tuple[float, float]]:
    """Mean accuracy at the answers at which every run has one."""
    tables = [{answers: accuracy for answers, _, accuracy in curve} for curve in curves]
    common = sorted(set.intersection(*(set(one) for one in tables)))
    return [(at, float(np.mean([one[at] for one in tables]))) for at in common]


def chart(page: Page, found: dict[Cell, list[dict[str, Any]]]) -> None:
    """Accuracy against answers, beside random questions."""
    panels = [
        Panel(
            f"true rank {cell.rank}, {len(runs)} run{'s' if len(runs) > 1 else ''}",
            [
                mean_curve([until(one["audits"], 1800) for one in runs]),
                mean_curve([one["random_curve"] for one in runs]),
            ],
            float(np.mean([one["random_accuracy"] for one in runs])),
        )
        for cell, runs in found.items()
        if runs
    ]
    draw(
        FOLDER / "answers.svg",
        panels,
        ["this learner", "random questions, LORE at λ = 0.01"],
        "random at 2,800",
        Axis(0, 2800, [(at, f"{at:,}") for at in range(0, 2801, 700)], "answers"),
        Axis(0.5, 1.0, [(0.1 * k, f"{10 * k} %") for k in range(5, 11)], "test questions right"),
    )
    page.text(
        "![Accuracy by number of answers for true ranks 1, 2, 3 and 5, compared with random "
        "questions]"
        "(answers.svg)\n\nMean over runs, 50 items, noise 0.1. While no rank is reported, the "
        "published embedding has no dimensions and predicts at chance level."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="only write the page")
    chosen = parser.parse_args()
    runs = load(chosen.seeds)
    if not chosen.report:
        done = {(one["cell"], one["seed"]) for one in runs}
        # A seed at a time, the main conditions ahead: an early end leaves a full table.
        queue = [
            ((number + 1) / pace, place, cell, seed)
            for place, (cells, pace) in enumerate(PACE)
            for cell in cells
            for number, seed in enumerate(reporting(chosen.seeds))
        ]
        queue.sort(key=lambda one: one[:2])
        RUNS.collect(
            run,
            [(cell, seed) for _, _, cell, seed in queue if (cell.name, seed) not in done],
            chosen.processes,
            lambda one: f"{one['cell']}, seed {one['seed']}",
        )
        runs = load(chosen.seeds)
    page = Page("answers", "Answers needed, ranks and stopping", "make bench-answers")
    report(page, runs)
    page.write()
    RUNS.pack()


if __name__ == "__main__":
    main()
