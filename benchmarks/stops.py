"""Where studies stop: right, too low or too high, in worlds that look like life.

The benchmark can be interrupted and resumed (see `benchmarks.runs`); the page is
written from the studies that are there.

One module, though long: a benchmark reads from its studies to its page.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.runs import Runs
from benchmarks.tables import Page
from lore_active.learner.learner import Learner
from lore_active.simulation import worlds
from lore_active.simulation.observers import (
    Distribution,
    ObserverNoise,
    crowd,
    simulated_answers,
)
from lore_active.simulation.run import SimulatedParticipants, simulate
from lore_active.stopping.criteria import Criterion
from lore_active.stopping.registry import stopping_rule
from lore_active.stopping.sensitivity import DEFAULT_SHARE

RUNS = Runs(
    "stops", lambda study: (study["condition"], study["seed"], study["rule"], study["share"])
)
RULE = "smallest_dimension"
# Seeds that nothing was chosen by; a study takes several.
FIRST_SEED, SEED_STEP = 67_000, 10
# Participants; with up to 12 items, as few as studies of sounds and smells have.
PARTICIPANTS, FEW_PARTICIPANTS, FEW_ITEMS = 30, 20, 12
# A study that is not settled ends after this many answers per item, within these limits.
PER_ITEM, MIN_LIMIT, MAX_LIMIT = 80, 2000, 8000
TEST_QUESTIONS = 3000

Study = dict[str, Any]


@dataclass(frozen=True)
class Condition:
    """A world, its items and its participants; rank 0: participants who guess."""

    world: str
    rank: int
    items: int = 50
    noise: float = 0.1
    lapse: float = 0.0
    noise_spread: float = 0.0
    distribution: Distribution = "gaussian"

    @property
    def name(self) -> str:
        """What identifies it in the store and for `--only`."""
        more = [f"{self.items} items", f"noise {self.noise:g}"]
        more += [f"lapses {self.lapse:g}"] if self.lapse else []
        more += [f"differing noise {self.noise_spread:g}"] if self.noise_spread else []
        more += [] if self.distribution == "gaussian" else [f"{self.distribution} noise"]
        return f"{self.world} {self.rank}, {', '.join(more)}"

    @property
    def limit(self) -> int:
        """Answers at which a study ends that is not settled."""
        return min(MAX_LIMIT, max(MIN_LIMIT, PER_ITEM * self.items))

    @property
    def participants(self) -> int:
        """Number of participants, who take turns."""
        return FEW_PARTICIPANTS if self.items <= FEW_ITEMS else PARTICIPANTS

    def space(self, seed: int) -> np.ndarray:
        """Coordinates of the items."""
        return worlds.space(self.world, self.items, max(self.rank, 1), seed)


SHAPES = (
    *(("equal", rank) for rank in (1, 2, 3, 5)),
    *(("falling-0.5", 2), ("falling-0.5", 3), ("falling-0.6", 3), ("falling-0.8", 4)),
    *(("weak", 2), ("weak", 3), ("circle", 2), ("clusters", 2), ("clusters", 3)),
)
CONDITIONS = (
    *(Condition(world, rank) for world, rank in SHAPES),
    *(
        Condition("equal", rank, items, noise)
        for items in (8, 10, 12)
        for rank in (1, 2)
        for noise in (0.1, 0.5)
    ),
    *(Condition("falling-0.6", 2, items) for items in (15, 20, 25, 100)),
    *(Condition("falling-0.6", 3, items) for items in (25, 100, 200)),
    *(
        Condition(world, rank, noise=noise)
        for noise in (0.05, 0.5, 1.0)
        for world, rank in (("equal", 2), ("falling-0.6", 3))
    ),
    *(Condition("falling-0.6", rank, lapse=0.05) for rank in (2, 3)),
    *(Condition("falling-0.6", rank, noise_spread=1.0) for rank in (2, 3)),
    # The model's own noise, and one with more large errors than any model has.
    Condition("falling-0.6", 3, distribution="logistic"),
    *(Condition("falling-0.6", rank, distribution="heavy") for rank in (2, 3)),
    Condition("equal", 0),
)


def correct(space: np.ndarray, share: float | None) -> tuple[int, int]:
    """Smallest and largest number of dimensions that is correct under a smallest share."""
    return worlds.correct_ranks(space, share or DEFAULT_SHARE)


def simulated(task: tuple[Condition, int, str, float | None]) -> Study:
    """One study until its rule stops it, with what was said about further dimensions on the way."""
    condition, seed, rule, share = task
    space = condition.space(seed)
    noise = ObserverNoise(
        condition.noise,
        condition.noise_spread,
        condition.lapse if condition.rank else 1.0,
        distribution=condition.distribution,
    )
    test = simulated_answers(space, TEST_QUESTIONS, seed + 1, ObserverNoise(noise=0.0))
    participants = SimulatedParticipants(crowd(space, condition.participants, noise, seed + 2))
    settings = stopping_rule(rule, smallest_dimension=share)
    learner = Learner(condition.items, seed, stopping=settings)
    begun = time.perf_counter()
    kept = ("answers", "rank", "accuracy", "ruled_out_share", "found_share", "possible_ranks")
    audits, criteria = [], []
    for record in simulate(learner, participants, condition.limit, test, time.perf_counter):
        if record.get("summary"):
            summary = record
            break
        audits.append([record[name] for name in kept])
        criteria.append([_plain(criterion) for criterion in learner.decision.criteria])
    return {
        "condition": condition.name,
        "seed": seed,
        "rule": rule,
        "share": share,
        "seconds": round(time.perf_counter() - begun, 1),
        "audit_seconds": round(summary["audit_seconds"], 1),
        "true_shares": np.round(worlds.shares(space), 5).tolist() if condition.rank else [],
        "correct": correct(space, share) if condition.rank else (0, 0),
        "audits": audits,
        "criteria": criteria,
        **{name: summary[name] for name in ("stopped_at", "stopped_rank", "answers", "accuracy")},
        "ruled_out_share": summary["ruled_out_share"],
    }


OUTCOMES = ("right", "finer", "too low", "too high", "unsettled")


def _plain(criterion: Criterion) -> list[Any]:
    value, threshold = float(criterion.value), float(criterion.threshold)
    return [criterion.name, value, threshold, bool(criterion.passed)]


def outcome(study: Study) -> str:
    """One of `OUTCOMES`; `finer` if there are more dimensions than asked for, all of them true."""
    low, high = study["correct"]
    if study["stopped_at"] is None:
        return "unsettled"
    rank = study["stopped_rank"]
    if rank > high:
        return "finer" if rank <= len(study["true_shares"]) else "too high"
    return "too low" if rank < low else "right"


def next_share(study: Study, rank: int) -> float:
    """Share of the strongest true dimension beyond `rank`, relative to itself and those before."""
    shares = study["true_shares"]
    return shares[rank] / sum(shares[: rank + 1]) if rank < len(shares) else 0.0


def statements(studies: Iterable[Study]) -> list[tuple[Study, float, float]]:
    """Every statement that a share is ruled out: its study, the share, and what was there.

    A statement is counted once as long as neither the share nor the rank changes.
    """
    found = []
    for study in studies:
        before = None
        for _, rank, _, ruled_out, *_ in study["audits"]:
            if ruled_out is not None and (rank, ruled_out) != before:
                found.append((study, ruled_out, next_share(study, rank)))
            before = (rank, ruled_out)
    return found


def report(page: Page, studies: list[Study], given: float | None) -> None:
    """Write the tables."""
    share = given or DEFAULT_SHARE

    def named(name: str) -> list[Study]:
        return [study for study in studies if study["condition"] == name]

    page.text(
        f"Simulated studies with {PARTICIPANTS} participants ({FEW_PARTICIPANTS} with up to "
        f"{FEW_ITEMS} items) who take turns, until the rule stops them or to {PER_ITEM} answers "
        f"per item (at least {MIN_LIMIT:,}, at most {MAX_LIMIT:,}). The true number of dimensions "
        f"is that of shares of at least {100 * share:g} % of the variance; those between "
        f"{50 * share:g} % and that share count either way. Answers: "
        "at the stop, median and quartiles; accuracy: mean there, on noiseless random triplets. "
        "Finer: more dimensions than that, all of them true. Weaker dimensions of the map, which "
        "the rule does not count, do not count here."
    )
    rows = [
        [condition.name, *_cells(found)]
        for condition in CONDITIONS
        if condition.rank and (found := named(condition.name))
    ]
    names = {condition.name for condition in CONDITIONS if condition.rank}
    real = [study for study in studies if study["condition"] in names]
    if real:
        rows.append(["**all**", *_cells(real)])
    titles = ["studies", *OUTCOMES, "answers", "accuracy"]
    page.table(["world, rank", *titles], rows)
    _totals(page, real, rows)
    _calibration(page, real)
    guessing = {condition.name for condition in CONDITIONS if not condition.rank}
    guesses = [study for study in studies if study["condition"] in guessing]
    if guesses:
        ranks = sorted({study["audits"][-1][1] for study in guesses if study["audits"]})
        stopped = sum(study["stopped_at"] is not None for study in guesses)
        page.text(
            f"## Nothing to find\n\nParticipants who guess: {stopped} of {len(guesses)} studies "
            f"settled; ranks at the end: {', '.join(map(str, ranks))}."
        )


def _cells(studies: Sequence[Study]) -> list[object]:
    counts = dict.fromkeys(OUTCOMES, 0)
    for study in studies:
        counts[outcome(study)] += 1
    stops = [study for study in studies if study["stopped_at"] is not None]
    answers, accuracy = "–", "–"
    if stops:
        low, middle, high = np.quantile([study["stopped_at"] for study in stops], (0.25, 0.5, 0.75))
        answers = f"{middle:,.0f} ({low:,.0f}–{high:,.0f})"
        accuracy = f"{np.mean([study['accuracy'] for study in stops]):.3f}"
    return [len(studies), *counts.values(), answers, accuracy]


def _totals(page: Page, studies: Sequence[Study], rows: Sequence[Sequence[Any]]) -> None:
    stops = [study for study in studies if study["stopped_at"] is not None]
    if not stops:
        return
    right = sum(outcome(study) == "right" for study in stops)
    finer = sum(outcome(study) == "finer" for study in stops)
    worst = min((row for row in rows[:-1] if sum(row[2:6])), key=lambda row: row[2] / sum(row[2:6]))
    share = np.sum([study["audit_seconds"] for study in studies]) / np.sum(
        [study["seconds"] for study in studies]
    )
    page.text(
        f"Of {len(stops):,} stops {right:,} ({100 * right / len(stops):.1f} %) were right, and "
        f"{finer:,} finer than asked: their last dimensions are there, but carry less than half of "
        f"the share. Lowest share of right stops: {worst[2]} of {sum(worst[2:6])} ({worst[0]}). "
        "Audits, with the tests for a "
        f"further dimension, took {100 * share:.0f} % of the computing time."
    )


def _calibration(page: Page, studies: Sequence[Study]) -> None:
    said = statements(studies)
    if not said:
        return
    edges = (0.0, 0.075, 0.15, 0.25, 0.4, 1.0)
    rows: list[list[object]] = []
    for low, high in itertools.pairwise(edges):
        part = [one for one in said if low < one[1] <= high]
        if part:
            wrong = sum(there >= ruled_out for _, ruled_out, there in part)
            share = f"{100 * wrong / len(part):.1f} %"
            rows.append([f"{100 * low:g}–{100 * high:g} %", len(part), wrong, share])
    wrong = sum(there >= ruled_out for _, ruled_out, there in said)
    rows.append(["**all**", len(said), wrong, f"{100 * wrong / len(said):.1f} %"])
    ever = {id(study) for study, ruled_out, there in said if there >= ruled_out}
    page.text(
        "## Calibration of what is ruled out\n\nStatements on the way to the stop that a further "
        "dimension of a certain share, or more, is ruled out (20 : 1), counted once while they do "
        "not change; wrong: the next true dimension carries at least that share."
    )
    page.table(["share said to be ruled out", "statements", "wrong", "share wrong"], rows)
    page.text(f"{len(ever)} of {len(studies):,} studies made a wrong statement at some time.")
    found = [
        next_share(study, rank)
        for study in studies
        for _, rank, _, _, found_share, *_ in study["audits"]
        if found_share is not None
    ]
    if found:
        none = sum(there == 0.0 for there in found)
        page.text(
            f"A further dimension was said to be found at {len(found):,} audits; at {none:,} of "
            f"them ({100 * none / len(found):.1f} %) there was none."
        )


def load(seeds: range, rule: str = RULE, share: float | None = None) -> list[Study]:
    """The studies that are there, of these seeds and this rule."""
    return [
        study
        for study in RUNS.load()
        if study["seed"] in seeds and (study["rule"], study["share"]) == (rule, share)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="studies per condition")
    parser.add_argument("--only", action="append", help="only conditions whose name has this text")
    parser.add_argument("--rule", default=RULE, help="stopping rule")
    parser.add_argument("--share", type=float, help="smallest dimension of interest")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="only write the page")
    parser.add_argument("--list", action="store_true", help="only print the conditions")
    chosen = parser.parse_args()
    conditions = [
        condition
        for condition in CONDITIONS
        if not chosen.only or any(text in condition.name for text in chosen.only)
    ]
    if chosen.list:
        print("\n".join(condition.name for condition in conditions))
        return
    seeds = reporting(chosen.seeds)
    known = load(seeds, chosen.rule, chosen.share)
    if not chosen.report:
        done = {(study["condition"], study["seed"]) for study in known}
        # A seed at a time: an early end leaves a table of all conditions.
        RUNS.collect(
            simulated,
            [
                (condition, seed, chosen.rule, chosen.share)
                for seed in seeds
                for condition in conditions
                if (condition.name, seed) not in done
            ],
            chosen.processes,
            _line,
        )
        known = load(seeds, chosen.rule, chosen.share)
    page = Page("stops", "Where studies stop", "make bench-stops")
    report(page, known, chosen.share)
    page.write()
    RUNS.pack()


def reporting(count: int) -> range:
    """The first so many reporting seeds."""
    return range(FIRST_SEED, FIRST_SEED + SEED_STEP * count, SEED_STEP)


def _line(study: Study) -> str:
    return (
        f"{study['condition']}, seed {study['seed']}: {outcome(study)}, "
        f"{study['answers']:,} answers, {study['seconds']:.0f} s"
    )


if __name__ == "__main__":
    main()
