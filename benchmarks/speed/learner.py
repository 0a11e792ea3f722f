"""Speed of the learner: refit, selection and audit, beside a cold fit, as studies grow.

With `--beside REVISION` an older commit is measured in the same run, in turns with this one: on a
machine that others use as well, only such ratios mean something. Seconds are of processor time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lore_active.data.comparisons import as_triplets
from lore_active.embedding.fit import fit
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import SolverSettings
from lore_active.learner.learner import Learner
from lore_active.simulation import run
from lore_active.simulation.observers import Observer, ObserverNoise, gaussian_space
from lore_active.simulation.observers import simulated_answers as answered
from lore_active.stopping.registry import stopping_rule
from lore_active.warmup import warm

# Older commits have another name for it.
SimulatedParticipants = next(value for name, value in vars(run).items() if name[:9] == "Simulated")

HERE = Path(__file__).parents[2]
RANK = 3
SIZES = ((50, 1400), (100, 5000), (200, 20_000), (500, 50_000))
# Audits that lead up to the size, as in a study: one after every 8 % more answers.
AUDITS, GROWTH = 8, 1.08
ROUNDS = 5
# A cold fit at this λ, which is the default of `LORE`, is what the target of audits was set by.
FIXED_LAMBDA = 0.01
# A whole simulated study.
STUDY_ITEMS, STUDY_ANSWERS = 50, 1500
RULES = ("rank_settled", "smallest_dimension")


def seconds(action: Callable[[], Any]) -> float:
    """Processor time of an action."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def measure(items: int, answers: int) -> dict[str, float]:
    """Seconds of each part at one size; audits as they come in a study, without further tests."""
    rows = answered(gaussian_space(items, RANK, 800), answers + 25 * ROUNDS, 801)
    learner = Learner(items, 802, stopping=stopping_rule("rank_settled"))
    counts = [round(answers / GROWTH**k) for k in range(AUDITS, -1, -1)]
    learner.add(rows[: counts[0]])
    learner.audit()
    audits = []
    for before, count in pairwise(counts):
        learner.add(rows[before:count])
        audits.append(seconds(learner.audit))
    refits, selections = [], []
    for k in range(ROUNDS):
        learner.add(rows[answers + 25 * k : answers + 25 * (k + 1)])
        refits.append(seconds(learner.refit))
        selections.append(seconds(lambda: learner.ask(50, pending=[])))
    lam, pairs = learner.estimate.lam, as_pairs(as_triplets(rows[:answers], items))
    cold = [seconds(lambda: fit(pairs, SolverSettings(lam))) for _ in range(3)]
    fixed = [seconds(lambda: fit(pairs, SolverSettings(FIXED_LAMBDA))) for _ in range(3)]
    return {
        "rank": learner.estimate.rank,
        "lam": lam,
        "cold": float(np.median(cold)),
        "fixed": float(np.median(fixed)),
        "refit": float(np.median(refits)),
        "select": float(np.median(selections)),
        "audit": float(np.mean(audits)),
    }


def study(rule: str) -> dict[str, float]:
    """Seconds of a whole simulated study of 1,500 answers that does not stop before."""
    observers = [Observer(gaussian_space(STUDY_ITEMS, RANK, 810), ObserverNoise(noise=0.1), seed=1)]
    learner = Learner(STUDY_ITEMS, 811, stopping=stopping_rule(rule))
    participants = SimulatedParticipants(observers)
    begun = time.process_time()
    records = list(
        run.simulate(learner, participants, STUDY_ANSWERS, None, time.process_time, stop=False)
    )
    spent = {name: records[-1][f"{name}_seconds"] for name in ("refit", "audit", "select")}
    return {"all": time.process_time() - begun, **spent}


def measured(part: str, source: Path) -> dict[str, float]:
    """Measure one part in a process of its own, with the code in a folder."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__)), "--measure", part]
    result = subprocess.run(
        command, env=environment, cwd=source, check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found


def _measure(part: str) -> None:
    warm()
    with threadpool_limits(1):
        if part in RULES:
            study(part)
            found = study(part)
        else:
            items, answers = map(int, part.split("x"))
            found = measure(items, answers)
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument(
        "--beside", metavar="REVISION", help="measure this commit as well, in turns"
    )
    chosen = parser.parse_args()
    if chosen.measure:
        _measure(chosen.measure)
        return

    from benchmarks.load.load import checked_out, short_name
    from benchmarks.tables import Page

    page = Page("learner", "Speed of the learner", "make bench-learner")
    with contextlib.ExitStack() as stack:
        sources = {"now": HERE}
        if chosen.beside:
            older = stack.enter_context(checked_out(chosen.beside))
            sources = {short_name(older): older, **sources}
        rows: list[list[object]] = []
        for items, answers in SIZES:
            for version, source in sources.items():
                found = measured(f"{items}x{answers}", source)
                cold = found["cold"]
                cells = (
                    f"{1e3 * found[name]:.1f} ({found[name] / cold:.2f})"
                    for name in ("refit", "select", "audit")
                )
                rank = int(found["rank"])
                fits = f"{1e3 * cold:.0f} ({found['lam']:g})", f"{1e3 * found['fixed']:.0f}"
                ratio = f"{found['audit'] / found['fixed']:.1f}"
                rows.append([items, f"{answers:,}", version, rank, *fits, *cells, ratio])
        page.text(
            f"Milliseconds of processor time on one core, true rank {RANK}, and in brackets the "
            "ratio to a cold fit of the same answers. Refit: after 25 more answers, of the "
            "published model and of the acquisition model, including the grouping of all answers. "
            f"Selection: 50 questions at once. Medians of {ROUNDS}. Audit: mean of the last "
            f"{AUDITS}, one after every 8 % more answers, without the test for a further "
            "dimension.\n\nA cold fit is one at the λ that the audit chose, in brackets. In the "
            f"smallest studies that λ is larger than {FIXED_LAMBDA:g}, the default of `LORE`, and "
            "a fit takes less time; in the largest it is smaller, up to ten dimensions are left, "
            "and a fit takes ten times as long. The last column is the ratio of an audit to a "
            f"cold fit at λ = {FIXED_LAMBDA:g}."
        )
        header = ["items", "answers", "version", "rank", "cold fit (λ)", "fit at λ = 0.01", "refit"]
        page.table([*header, "50 questions", "audit", "audit / fit at λ = 0.01"], rows)
        rows = []
        for rule in RULES:
            for version, source in sources.items():
                found = measured(rule, source)
                spent = (f"{found[name]:.1f}" for name in ("all", "audit", "refit", "select"))
                rows.append([rule, version, *spent])
        page.text(
            f"## A whole study\n\nSeconds of processor time for a simulated study of "
            f"{STUDY_ANSWERS:,} answers about {STUDY_ITEMS} items, one question at a time for each "
            "of ten participants, by stopping rule (which does not end it). Audits include the "
            "tests for a further dimension, where the rule has them."
        )
        page.table(["rule", "version", "all", "audits", "refits", "selection"], rows)
    page.write()


if __name__ == "__main__":
    main()
