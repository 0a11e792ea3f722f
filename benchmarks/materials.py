"""Real people's answers as a pool: Fisher against random selection on the Materials data."""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.runs import Runs
from benchmarks.tables import Page
from lore_active.acquisition.registry import SELECTORS
from lore_active.data.comparisons import as_triplets
from lore_active.data.triplets import Triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.fit import fit
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import SolverSettings
from lore_active.learner.learner import Learner
from lore_active.questions.pool import PooledQuestions
from lore_active.rank.bayes_factor import BAYES_FACTOR
from lore_active.rank.further_dimension import further_dimensions
from lore_active.rank.significance import GUARD
from lore_active.simulation.run import LoggedParticipants, simulate

MATERIALS = Path(__file__).parent.parent.parent / "shared" / "data" / "materials.csv.gz"
ITEMS = 100
# Prior precision of the MAP embeddings of all answers, and what they are tested for.
PRECISION, MAX_RANK, FULL_SHARES = (
    0.06,
    6,
    (0.025, 0.05, 0.075, 0.10, 0.125, 0.15, 0.20, 0.35, 0.50),
)
CHECKS = (400, 600, 1000, 1500, 2000, 3000, 4000, 5000, 6000)
# Noisier people: this share of the logged answers turned around, and how far such studies go.
NOISY = 0.2
NOISY_CHECKS = CHECKS[:6]
# Reporting seeds; development and earlier learners had 7,000 to 7,699.
FIRST_SEED = 7700


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


@dataclass(frozen=True)
class Study:
    """One study on the pool, with a share of its answers turned around."""

    selector: str
    seed: int
    turned: float

    @property
    def checks(self) -> tuple[int, ...]:
        return NOISY_CHECKS if self.turned else CHECKS


def run(study: Study) -> dict[str, Any]:
    """Accuracy on the authors' test questions at each audit."""
    selector, seed = study.selector, study.seed
    rows = majority(read_materials("train"))
    wrong = np.random.default_rng(seed).random(len(rows)) < study.turned
    rows[wrong] = rows[wrong][:, [0, 2, 1]]
    pool = as_triplets(rows, ITEMS)
    test = majority(read_materials("test"))
    participants = LoggedParticipants(pool, seed)
    source = PooledQuestions(participants.questions, ITEMS)
    learner = Learner(ITEMS, seed, SELECTORS.make(selector), source=source)
    if selector == "random":
        learner.exploration_share = 0.0
    clock = time.perf_counter
    audits, statements, summary = [], [], {}
    for record in simulate(
        learner, participants, study.checks[-1], test, clock, stop=False, batch=25
    ):
        if record.get("summary"):
            summary = record
            break
        audits.append([record["answers"], record["rank"], record["accuracy"]])
        known = learner.sensitivity
        if known is not None and known.ruled_out is not None:
            statements.append([record["answers"], known.rank, known.ruled_out])
    return {**asdict(study), "audits": audits, "statements": statements, "summary": summary}


def study_of(run: dict[str, Any]) -> Study:
    """Which study a kept run is of."""
    return Study(run["selector"], run["seed"], run.get("turned", 0.0))


RUNS = Runs("materials", study_of)


def accuracy_at(audits: list[list[float]], answers: int) -> float:
    """Accuracy interpolated between the audits around a number of answers."""
    counts, _, shares = np.array(audits, dtype=float).T
    if not counts[0] <= answers <= counts[-1] * 1.1:
        return float("nan")
    return float(np.interp(answers, counts, shares))


def report(page: Page, runs: list[dict[str, Any]]) -> None:
    page.text(
        "Questions are selected from the logged ones and answered as the majority did; accuracy "
        "is agreement with the majority on the authors' held-out questions. Questions with a tie "
        "have no majority and are left out."
    )
    plain = [one for one in runs if not one["turned"]]
    compared(page, plain, CHECKS)
    page.text(
        "Where the stopping rule would have ended the studies with Fisher selection: "
        + stops(plain)
        + "."
    )
    contradicted(page, plain)
    pool = as_triplets(majority(read_materials("train")), ITEMS)
    test = majority(read_materials("test"))
    full = {
        lam: triplet_accuracy(fit(as_pairs(pool), SolverSettings(lam)).embedding, test)
        for lam in (0.01, 0.005, 0.0025)
    }
    fixed = ", ".join(f"λ = {lam}: {share:.4f}" for lam, share in full.items())
    learner = Learner(ITEMS, FIRST_SEED)
    learner.add(pool)
    learner.audit()
    estimate = learner.estimate
    share = triplet_accuracy(estimate.embedding, test)
    page.text(
        f"All answers at once: the learner {share:.4f} (rank {estimate.rank}, λ = {estimate.lam}); "
        f"fixed λ, for comparison, {fixed}."
    )
    noisy = [one for one in runs if one["turned"]]
    if noisy:
        page.text(
            f"## Noisier people\n\nThe same with {100 * NOISY:.0f} % of the logged answers "
            "reversed at random; the test questions are unchanged. An embedding without "
            "dimensions, as published while no rank is reported, predicts at chance level: 0.5."
        )
        compared(page, noisy, NOISY_CHECKS)


def further_by_all() -> dict[int, float]:
    """Largest share of a further dimension that all majority answers find, by rank of the map."""
    parts = [majority(read_materials(split)) for split in ("train", "test")]
    everything = as_triplets(np.vstack(parts), ITEMS)
    pairs, found = as_pairs(everything), {}
    fits = map_embedding.fits_by_rank(pairs, len(everything), PRECISION, MAX_RANK + 1, final=True)
    for rank in range(1, MAX_RANK + 1):
        tests = further_dimensions(everything, fits[rank][0], FULL_SHARES, wider=fits[rank + 1][0])
        # As far as any chain speaks for it. A test asks about a part of its share, for safety.
        there = [test.share for test in tests if min(test.against) <= -log(BAYES_FACTOR)]
        found[rank] = GUARD * max(there, default=0.0)
        print(f"all answers, rank {rank}: a further dimension of {found[rank]:g}", flush=True)
    return found


def contradicted(page: Page, runs: list[dict[str, Any]]) -> None:
    """Compare what studies said to be ruled out with what all answers find."""
    said = [
        (rank, share)
        for one in runs
        if one["selector"] == "fisher"
        for _, rank, share in one.get("statements", ())
    ]
    if not said:
        return
    found = further_by_all()
    wrong = sum(found.get(rank, 0.0) >= share for rank, share in said)
    by_all = "; ".join(
        f"beyond {rank}: {100 * share:g} %" if share else f"beyond {rank}: none"
        for rank, share in found.items()
    )
    page.text(
        "Largest share of which all answers together say (20 : 1) that a further dimension carries "
        f"it or more, by the number of dimensions of the map: {by_all}. Of {len(said)} audits at "
        f"which a study said that a share was ruled out, {wrong} are contradicted by that."
    )


def compared(page: Page, runs: list[dict[str, Any]], checks: tuple[int, ...]) -> None:
    """A table of mean accuracies by number of answers, a row for each selector."""
    rows = []
    for selector in ("fisher", "random"):
        found = [one for one in runs if one["selector"] == selector]
        if found:
            means = np.mean([[accuracy_at(one["audits"], n) for n in checks] for one in found], 0)
            rows.append([selector, len(found), *(f"{share:.4f}" for share in means)])
    page.table(["selector", "runs", *(f"{n:,}" for n in checks)], rows)


def stops(runs: list[dict[str, Any]]) -> str:
    """Where the rule would have ended each study, as text."""
    parts = []
    for one in sorted(runs, key=lambda one: int(one["seed"])):
        last = one["summary"]
        if one["selector"] == "fisher" and last["stopped_at"] is None:
            parts.append(f"not by {last['answers']:,} answers (rank {last['rank']})")
        elif one["selector"] == "fisher":
            at = last["stopped_at"]
            shares = [share for count, _, share in one.get("statements", ()) if count == at]
            ruled_out = f" ({100 * shares[0]:.0f} % or more ruled out)" if shares else ""
            parts.append(f"rank {last['stopped_rank']} at {at:,}{ruled_out}")
    return "; ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=("fisher", "random"), help="only studies with it")
    parser.add_argument("--report", action="store_true", help="only write the page")
    chosen = parser.parse_args()
    page = Page("materials", "Active selection on human answers: Materials", "make bench-materials")
    if not MATERIALS.exists():
        page.text("Not measured: the data file is not on this machine.")
        return
    wanted = [
        Study(selector, seed, turned)
        for turned in (0.0, NOISY)
        for seed in range(FIRST_SEED, FIRST_SEED + chosen.seeds)
        for selector in ("fisher", "random")
        if chosen.only in (None, selector)
    ]
    done = set(map(study_of, RUNS.load()))
    tasks = [one for one in wanted if one not in done]
    if not chosen.report:
        RUNS.collect(run, tasks, chosen.processes, lambda one: str(study_of(one)))
    report(page, [one for one in RUNS.load() if study_of(one) in wanted])
    page.write()
    RUNS.pack()


if __name__ == "__main__":
    main()
