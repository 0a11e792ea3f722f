"""What the same bits on every machine cost, beside the instructions a processor would choose.

Each measurement is a process of its own, because libraries choose their instructions when they are
loaded. Portable and native processes take turns, so that a busy machine hits both alike.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

ROUNDS = 7
SIZES = ((50, 1400), (100, 5000), (200, 20_000))
RANK = 3
WORK = ("cold fit", "refit", "50 questions", "audit")


def measured() -> dict[str, dict[str, float]]:
    """Seconds of processor time in this process, by size and kind of work."""
    import time

    from lore_active.data.comparisons import as_triplets
    from lore_active.embedding.fit import fit
    from lore_active.embedding.pairs import as_pairs
    from lore_active.embedding.solver import SolverSettings
    from lore_active.learner.learner import Learner
    from lore_active.reproducibility import instruction_set
    from lore_active.simulation.observers import gaussian_space, simulated_answers
    from lore_active.warmup import warm

    def seconds(action, times):
        begun = time.process_time()
        for _ in range(times):
            action()
        return (time.process_time() - begun) / times

    warm()
    found: dict[str, dict[str, float]] = {}
    for items, answers in SIZES:
        rows = simulated_answers(gaussian_space(items, RANK, 900), answers + 25, 901)
        pairs = as_pairs(as_triplets(rows, items))
        learner = Learner(items, seed=902)
        learner.add(rows[:answers])
        audit = seconds(learner.audit, 1)
        learner.add(rows[answers:])
        found[f"{items} items, {answers:,} answers"] = {
            "cold fit": seconds(lambda pairs=pairs: fit(pairs, SolverSettings(0.01)), 3),
            "refit": seconds(learner.refit, 5),
            "50 questions": seconds(lambda learner=learner: learner.ask(50, pending=[]), 5),
            "audit": audit,
        }
    return {"": {"portable": float(instruction_set() == "x86-64-v3")}, **found}


def run(choice: str) -> dict[str, dict[str, float]]:
    environment = {**os.environ, "LORE_ACTIVE_INSTRUCTION_SET": choice, "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed.portability", "measure"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return json.loads(result.stdout)


def main() -> None:
    from benchmarks.tables import Page

    runs = {"portable": [], "native": []}
    for _ in range(ROUNDS):
        for choice, taken in runs.items():
            taken.append(run(choice))
            assert taken[-1].pop("")["portable"] == (choice == "portable")
            print(".", end="", file=sys.stderr, flush=True)
    page = Page(
        "portability",
        "The cost of computing the same bits on every machine",
        "make bench-portability",
    )
    page.text(
        "Processor time with the portable instruction set divided by that with the processor's "
        "own, true "
        f"rank {RANK}, one thread; the minimum of {ROUNDS} processes each, alternating. "
        "Above 1: portable is slower."
    )
    rows = []
    for size in runs["native"][0]:
        least = {
            choice: {work: min(record[size][work] for record in taken) for work in WORK}
            for choice, taken in runs.items()
        }
        ratios = (least["portable"][work] / least["native"][work] for work in WORK)
        rows.append([size, *(f"{ratio:.2f}" for ratio in ratios)])
    page.table(["", *WORK], rows)
    page.write()


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        print(json.dumps(measured()))
    else:
        main()
