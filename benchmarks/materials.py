"""Real people's answers as a pool: Fisher against random selection on the Materials data."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import time
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Page
from lore_active.fit import fit
from lore_active.learner import Learner
from lore_active.metrics import triplet_accuracy
from lore_active.pairs import as_pairs
from lore_active.questions import PooledQuestions
from lore_active.selection import selector_named
from lore_active.simulation import LoggedPeople, simulate
from lore_active.solver import Settings
from lore_active.triplets import Triplets, as_triplets

MATERIALS = Path(__file__).parent.parent.parent / "shared" / "data" / "materials.csv.gz"
STORE = Path(__file__).parent.parent / "build" / "materials.jsonl"
ITEMS = 100
CHECKS = (600, 1000, 1500, 2000, 3000, 4000, 5000, 6000)
# Reporting seeds; earlier learners had 7,000 to 7,199. Where the rule would have stopped studies
# of 7,200 to 7,319 was looked at when it was mended, so those that it ends have seeds of their own.
FIRST_SEED = 7200
FIRST_STOPPED_SEED = 7320
# Share of the studies beside random ones that are run until the rule ends them.
STOPPED_SHARE = 0.5


def read_materials(split: str, file: Path = MATERIALS) -> Triplets:
    """Every answer of a split: each question twice, weighted by the votes for either option."""
    with gzip.open(file, "rt") as stream:
        table = [row for row in csv.DictReader(stream) if row["split"] == split]
    rows, votes = [], []
    for row in table:
        a, i, j = int(row["anchor"]), int(row["first"]), int(row["second"])
        for near, far, count in ((i, j, row["votes_first"]), (j, i, row["votes_second"])):
            if int(count):
                rows.append((a, near, far))
                votes.append(float(count))
    return as_triplets(np.array(rows), ITEMS, votes)


def majority(triplets: Triplets, ties: bool = False) -> NDArray[np.int64]:
    """Rows (anchor, nearer, farther) by majority; with `ties`, the first listed of even votes."""
    votes: dict[tuple[int, int, int], list[float]] = {}
    columns = (triplets.anchor, triplets.nearer, triplets.farther, triplets.weight)
    for a, i, j, weight in zip(*columns, strict=True):
        turned = (int(a), int(j), int(i))
        if turned in votes:
            votes[turned][1] += float(weight)
        else:
            votes.setdefault((int(a), int(i), int(j)), [0.0, 0.0])[0] += float(weight)
    rows = []
    for (a, i, j), (one, other) in votes.items():
        if one > other or (ties and one == other):
            rows.append((a, i, j))
        elif other > one:
            rows.append((a, j, i))
    return np.array(rows, dtype=np.int64)


def run(task: tuple[str, int, int]) -> dict[str, Any]:
    """One study on the pool; accuracy on the authors' test questions at each audit.

    The rule may end it if its seed is one of those for that.
    """
    selector, seed, answers = task
    pool = as_triplets(majority(read_materials("train")), ITEMS)
    test = majority(read_materials("test"))
    people = LoggedPeople(pool, seed)
    source = PooledQuestions(people.questions, ITEMS)
    learner = Learner(ITEMS, seed, selector_named(selector), source=source)
    if selector == "random":
        learner.widen = 0.0
    records = list(
        simulate(
            learner,
            people,
            answers,
            test,
            time.perf_counter,
            stop=seed >= FIRST_STOPPED_SEED,
            batch=25,
        )
    )
    audits = [[one["answers"], one["rank"], one["accuracy"]] for one in records[:-1]]
    return {"selector": selector, "seed": seed, "audits": audits, "summary": records[-1]}


def accuracy_at(audits: list[list[float]], answers: int) -> float:
    """Accuracy interpolated between the audits around a number of answers."""
    counts, _, shares = np.array(audits, dtype=float).T
    if not counts[0] <= answers <= counts[-1] * 1.1:
        return float("nan")
    return float(np.interp(answers, counts, shares))


def report(page: Page, runs: list[dict[str, Any]]) -> None:
    rows = []
    ended = [one for one in runs if one["seed"] >= FIRST_STOPPED_SEED]
    runs = [one for one in runs if one["seed"] < FIRST_STOPPED_SEED]
    for selector in ("fisher", "random"):
        found = [one for one in runs if one["selector"] == selector]
        if found:
            shares = [[accuracy_at(one["audits"], n) for n in CHECKS] for one in found]
            means = np.mean(shares, axis=0)
            rows.append([selector, len(found), *(f"{share:.4f}" for share in means)])
    page.text(
        "Questions are picked among the logged ones and answered as the majority did; accuracy is "
        "agreement with the majority on the authors' held-out questions. Questions on which people "
        "were evenly divided have no majority and are left out."
    )
    page.table(["selector", "runs", *(f"{n:,}" for n in CHECKS)], rows)
    if ended:
        page.text(f"{len(ended)} other studies went on until the rule ended them: {stops(ended)}.")
    pool = as_triplets(majority(read_materials("train")), ITEMS)
    test = majority(read_materials("test"))
    full = {
        lam: triplet_accuracy(fit(as_pairs(pool), Settings(lam)).embedding, test)
        for lam in (0.01, 0.005, 0.0025)
    }
    words = ", ".join(f"λ = {lam}: {share:.4f}" for lam, share in full.items())
    learner = Learner(ITEMS, FIRST_SEED)
    learner.add(pool)
    learner.audit()
    estimate = learner.estimate
    share = triplet_accuracy(estimate.embedding, test)
    page.text(
        f"All answers at once: the learner {share:.4f} (rank {estimate.rank}, λ = {estimate.lam}); "
        f"fixed λ, for comparison, {words}."
    )


def stops(runs: list[dict[str, Any]]) -> str:
    """How the rule ended each study, in words."""
    words = []
    for one in sorted(runs, key=lambda one: int(one["seed"])):
        last = one["summary"]
        rank = f"rank {last['rank']}, {100 * last['accuracy']:.1f} % right"
        end = "not settled after" if last["stopped_at"] is None else "settled after"
        words.append(f"{end} {last['answers']:,} answers ({rank})")
    return "; ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--answers", type=int, default=CHECKS[-1])
    parser.add_argument("--report", action="store_true", help="only write the page")
    chosen = parser.parse_args()
    page = Page("materials", "Real answers: Materials", "make bench-materials")
    if not MATERIALS.exists():
        page.text("Not measured: the data file is not on this machine.")
        return
    STORE.parent.mkdir(exist_ok=True)
    wanted = [
        (selector, seed)
        for seed in range(FIRST_SEED, FIRST_SEED + chosen.seeds)
        for selector in ("fisher", "random")
    ]
    wanted += [
        ("fisher", FIRST_STOPPED_SEED + number)
        for number in range(round(STOPPED_SHARE * chosen.seeds))
    ]
    runs = [json.loads(line) for line in STORE.read_text().splitlines()] if STORE.exists() else []
    runs = [one for one in runs if (one["selector"], one["seed"]) in wanted]
    done = {(one["selector"], one["seed"]) for one in runs}
    tasks = [(*one, chosen.answers) for one in wanted if one not in done]
    if not chosen.report:
        with Pool(os.cpu_count()) as pool, STORE.open("a") as stream:
            for number, one in enumerate(pool.imap_unordered(run, tasks), 1):
                stream.write(json.dumps(one) + "\n")
                stream.flush()
                runs.append(one)
                print(f"{number} of {len(tasks)} runs", end="\r", flush=True)
    report(page, runs)
    page.write()


if __name__ == "__main__":
    main()
