"""Comparison with Salmon's ARR sampler, given the true rank: same observers, same LORE fit."""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any

import numpy as np

from benchmarks.tables import Page
from lore_active.data.comparisons import as_triplets
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.learner.learner import Learner
from lore_active.rank.cross_validation import audit
from lore_active.simulation.observers import (
    Observer,
    ObserverNoise,
    gaussian_space,
    simulated_answers,
)
from lore_active.simulation.run import SimulatedParticipants, simulate

ITEMS, RANK, BATCH = 50, 2, 25
LEVEL = 0.95
# Reporting seeds; earlier learners had 6,000 to 6,990 and 9,500 to 9,590.
FIRST_SEED = 9600


def crossing(curve: list[tuple[int, float]]) -> float:
    """First answers from which accuracy stays at the level or above."""
    reached = float("inf")
    for answers, accuracy in reversed(curve):
        if accuracy < LEVEL:
            break
        reached = answers
    return reached


def ours(seed: int, answers: int, space: Any, test: Any) -> list[tuple[int, float]]:
    participants = SimulatedParticipants([Observer(space, ObserverNoise(), seed + 2)])
    learner = Learner(ITEMS, seed)
    records = simulate(learner, participants, answers, test, time.perf_counter, stop=False)
    return [(one["answers"], one["accuracy"]) for one in records if not one.get("summary")]


def salmon(seed: int, answers: int, space: Any, test: Any) -> list[tuple[int, float]]:
    """Salmon chooses; its answers are fitted by the same cross-validated LORE."""
    from salmon.triplets.samplers import ARR

    logging.disable(logging.CRITICAL)
    np.random.seed(seed % 2**32)  # noqa: NPY002 — Salmon draws from NumPy's global state
    sampler = ARR(n=ITEMS, d=RANK, random_state=seed)
    participant = Observer(space, ObserverNoise(), seed + 2)
    rows: list[tuple[int, int, int]] = []
    curve = []
    next_audit = 2.0 * ITEMS
    while len(rows) < answers:
        batch = []
        for query in next_queries(sampler):
            side = participant.answer(query["head"], query["left"], query["right"])
            winner, loser = (
                (query["left"], query["right"])
                if side == "left"
                else (query["right"], query["left"])
            )
            batch.append({**query, "winner": winner})
            rows.append((query["head"], winner, loser))
        sampler.process_answers(batch)
        if len(rows) >= next_audit:
            next_audit = 1.08 * len(rows)
            found = audit(as_triplets(np.array(rows), ITEMS), seed, expected=RANK)
            share = 0.5
            if found.solution is not None:
                share = triplet_accuracy(found.solution.embedding, test)
            curve.append((len(rows), share))
    return curve


def next_queries(sampler: Any) -> list[dict[str, int]]:
    """A batch as Salmon's server would hand it out: random at first, then by score."""
    queries = []
    while len(queries) < BATCH:
        query, _ = sampler.get_query()
        if query is None:
            break
        queries.append(query)
    if len(queries) < BATCH:
        found, scores, _ = sampler.get_queries(num=5000)
        for row in np.asarray(found)[np.argsort(-np.asarray(scores))]:
            queries.append({"head": int(row[0]), "left": int(row[1]), "right": int(row[2])})
            if len(queries) == BATCH:
                break
    return queries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--answers", type=int, default=3300)
    chosen = parser.parse_args()
    page = Page("salmon", "Comparison with Salmon's ARR sampler", "make bench-salmon")
    rows, own, other = [], [], []
    for seed in range(FIRST_SEED, FIRST_SEED + 10 * chosen.seeds, 10):
        space = gaussian_space(ITEMS, RANK, seed)
        test = simulated_answers(space, 3000, seed + 1, ObserverNoise(noise=0.0))
        mine = ours(seed, min(chosen.answers, 1400), space, test)
        theirs = salmon(seed, chosen.answers, space, test)
        own.append(crossing(mine))
        other.append(crossing(theirs))
        rows.append([seed, own[-1], other[-1], f"{theirs[-1][1]:.4f} at {theirs[-1][0]}"])
        print(rows[-1], flush=True)
    page.text(
        f"{ITEMS} items, {RANK} dimensions, noise variance 0.1. Number of answers after which "
        f"accuracy on 3,000 noiseless test triplets stays at {LEVEL:.0%} or above. Salmon 1.0.3's "
        f"ARR (default settings, given the true dimensionality, batches of {BATCH}) selects the "
        "questions; its answers are fitted by the same cross-validated LORE as ours."
    )
    page.table(["seed", "lore-active", "Salmon ARR", "Salmon's last accuracy"], rows)
    if np.isfinite(np.median(own)):
        ratio = np.median(other) / np.median(own)
        page.text(f"Ratio of medians: {ratio:.2f} (inf: Salmon did not reach the level).")
    page.write()


if __name__ == "__main__":
    main()
