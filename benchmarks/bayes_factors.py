"""Calibration of the Bayes factor of a further dimension, on studies drawn from its own priors.

Half of the studies have a further dimension of the share that is tested, half have none. If the
factors are right, of all studies with a factor of 20 there are 20 with the dimension for each
without it (simulation-based calibration); and at most one in twenty statements at 20 : 1 is wrong,
also where participants' noise is not the model's.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import asdict, dataclass
from math import exp, log
from typing import Any

import numpy as np

from benchmarks.runs import Runs
from benchmarks.tables import Page
from lore_active.data.comparisons import as_triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.pairs import as_pairs
from lore_active.rank.bayes_factor import BAYES_FACTOR
from lore_active.rank.further_dimension import further_dimensions
from lore_active.rank.significance import wilson
from lore_active.simulation.observers import Distribution, ObserverNoise, simulated_answers
from lore_active.types import Floats

FIRST_SEED = 110_000
RANKS, ITEMS, PER_ITEM, SHARES = (1, 2, 3), (12, 20, 30), (10, 30, 60), (0.1, 0.2)
# Prior precision of the strongest axis in units of the response function; the others are weaker.
PRECISION, WEAKEST = 0.06, 0.4
EDGES = (-np.inf, -log(BAYES_FACTOR), -1.0, 0.0, 1.0, log(BAYES_FACTOR), np.inf)


@dataclass(frozen=True)
class Noise:
    """How simulated participants err."""

    name: str
    distribution: Distribution = "logistic"
    lapse: float = 0.0


NOISES = (
    Noise("logistic (the model's)"),
    Noise("Gaussian", "gaussian"),
    Noise("heavy-tailed", "heavy"),
    Noise("logistic, 5 % lapses", lapse=0.05),
)
# Variance of logistic noise whose slope is 1.
VARIANCE = np.pi**2 / 3.0


@dataclass(frozen=True)
class Study:
    """One study: which noise, and a number that everything else is drawn from."""

    noise: str
    seed: int


def drawn(rng: np.random.Generator) -> tuple[Floats, Floats, float, bool, int]:
    """A map, further coordinates, their share, whether they count, and a number of answers."""
    rank, items, per_item = (int(rng.choice(values)) for values in (RANKS, ITEMS, PER_ITEM))
    share, there = float(rng.choice(SHARES)), bool(rng.random() < 0.5)
    precisions = PRECISION / np.append(1.0, rng.uniform(WEAKEST, 1.0, rank - 1)) ** 2
    z = rng.normal(size=(items, rank)) / np.sqrt(precisions)
    scale = np.sqrt(share / (1.0 - share) * (1.0 / precisions).sum())
    return z, scale * rng.normal(size=items), share, there, items * per_item


def simulated(study: Study) -> dict[str, Any]:
    """The log Bayes factor of one study, and whether the dimension was there."""
    z, further, share, there, count = drawn(np.random.default_rng(study.seed))
    noise = next(noise for noise in NOISES if noise.name == study.noise)
    space = np.column_stack([z, further]) if there else z
    observed = ObserverNoise(VARIANCE, lapse=noise.lapse, distribution=noise.distribution)
    rows = simulated_answers(space, count, study.seed + 1, observed)
    triplets = as_triplets(rows, len(z))
    rank = z.shape[1]
    fits = map_embedding.fits_by_rank(
        as_pairs(triplets), count, PRECISION, rank + 1, final=True, min_rank=rank
    )
    [test] = further_dimensions(
        triplets, fits[rank][0], (share,), study.seed, wider=fits[rank + 1][0]
    )
    return {
        **asdict(study),
        "rank": rank,
        "items": len(z),
        "answers": count,
        "share": share,
        "there": there,
        "log_bayes_factor": test.log_bayes_factor,
        "standard_error": test.standard_error,
        "agree": test.agree,
    }


RUNS = Runs("bayes_factors", lambda run: Study(run["noise"], run["seed"]))


def report(page: Page, runs: list[dict[str, Any]]) -> None:
    """Write the tables."""
    page.text(
        "Simulated studies of 1 to 3 dimensions, 12 to 30 items and 10 to 60 random questions per "
        "item. Coordinates are drawn from the priors of the model, and in half of the studies a "
        "further dimension of the share that is tested (10 or 20 %) as well. The test gets the "
        "answers only: precisions of the axes are those of the map, as in a study. *Expected*: "
        "mean probability of the further dimension by its Bayes factor, at even prior odds; "
        "*there*: share of studies that had it, with a 95 % interval. Tests whose two directions "
        "disagree say nothing and are left out."
    )
    for noise in NOISES:
        decided = [run for run in runs if run["noise"] == noise.name and run["agree"]]
        if not decided:
            continue
        rows: list[list[object]] = []
        for low, high in itertools.pairwise(EDGES):
            part = [run for run in decided if low < run["log_bayes_factor"] <= high]
            if part:
                expected = np.mean([1.0 / (1.0 + exp(-_bounded(run))) for run in part])
                rows.append([_range(low, high), len(part), f"{expected:.3f}", _share(part, True)])
        page.text(f"## Noise: {noise.name}")
        page.table(["log Bayes factor", "studies", "expected", "there"], rows)
        page.text(_statements(decided))
    left = sum(not run["agree"] for run in runs)
    page.text(f"## Disagreement\n\n{left} of {len(runs):,} tests were left out.")


def _bounded(run: dict[str, Any]) -> float:
    return float(np.clip(run["log_bayes_factor"], -50.0, 50.0))


def _range(low: float, high: float) -> str:
    if np.isinf(low):
        return f"to {high:.1f}"
    return f"above {low:.1f}" if np.isinf(high) else f"{low:.1f} to {high:.1f}"


def _share(runs: list[dict[str, Any]], there: bool) -> str:
    found = wilson(sum(run["there"] == there for run in runs), len(runs))
    return f"{found.value:.3f} ({found.low:.3f}–{found.high:.3f})"


def _statements(runs: list[dict[str, Any]]) -> str:
    """How many statements at 20 : 1 are wrong."""
    threshold = log(BAYES_FACTOR)
    against = [run for run in runs if run["log_bayes_factor"] <= -threshold]
    found = [run for run in runs if run["log_bayes_factor"] >= threshold]
    parts = []
    for name, part, wrong in (("ruled out", against, True), ("found", found, False)):
        if part:
            count = sum(run["there"] == wrong for run in part)
            parts.append(
                f"{name} in {len(part)} studies, wrongly in {count} ({_share(part, wrong)})"
            )
    return "At 20 : 1 the dimension is " + "; ".join(parts) + "." if parts else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400, help="studies for each kind of noise")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="only write the page")
    chosen = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + 2 * chosen.studies, 2)
    wanted = [Study(noise.name, seed) for seed in seeds for noise in NOISES]
    done = {Study(run["noise"], run["seed"]) for run in RUNS.load()}
    if not chosen.report:
        tasks = [study for study in wanted if study not in done]
        RUNS.collect(simulated, tasks, chosen.processes, _line)
    page = Page("bayes-factors", "Calibration of the Bayes factor", "make bench-bayes-factors")
    kept = {Study(run["noise"], run["seed"]): run for run in RUNS.load()}
    report(page, [kept[study] for study in wanted if study in kept])
    page.write()
    RUNS.pack()


def _line(run: dict[str, Any]) -> str:
    truth = "there" if run["there"] else "not there"
    return f"{run['noise']}: {run['log_bayes_factor']:.1f} ± {run['standard_error']:.1f}, {truth}"


if __name__ == "__main__":
    main()
