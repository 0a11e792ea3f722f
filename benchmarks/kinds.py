"""Kinds of questions: trials and seconds of participants to 95 % accuracy and to the settled rank.

The benchmark can be interrupted and resumed (see `benchmarks.runs`); the page is
written from the studies that are there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.runs import Runs
from benchmarks.tables import Page
from lore_active.acquisition.registry import SELECTORS
from lore_active.learner.learner import Learner
from lore_active.questions.kinds import kind
from lore_active.simulation import worlds
from lore_active.simulation.cost import published_seconds
from lore_active.simulation.observers import (
    Distribution,
    ObserverNoise,
    crowd,
    simulated_answers,
)
from lore_active.simulation.run import SimulatedParticipants, simulate
from lore_active.stopping.registry import stopping_rule

SHARE, ACCURATE = 0.10, 0.95
ITEMS, PARTICIPANTS, TEST_QUESTIONS = 50, 30, 3000
# Seeds that nothing was chosen by; a study takes several.
FIRST_SEED, SEED_STEP = 90_000, 10
# A study ends after as many answers as carry so many bits per item, at most.
BITS_PER_ITEM = 90
KINDS = ("triplet", "choose-1-of-4", "choose-2-of-4", "rank-2-of-8", "odd-one-out")
RUNS = Runs("kinds", lambda study: (study["condition"], study["seed"]), KINDS)
# Durations of grids relative to the published ones, in case people differ.
FACTORS = (0.7, 1.0, 1.5)
# Trials at which selectors are compared.
POINTS = (50, 100, 150, 200, 300, 450, 700, 1000)

Study = dict[str, Any]


@dataclass(frozen=True)
class Condition:
    """A kind of question, a world, the participants' noise and a selector."""

    kind: str
    world: str
    rank: int
    selector: str = "fisher"
    distribution: Distribution = "gaussian"
    lapse: float = 0.0

    @property
    def setting(self) -> str:
        """What all kinds have in common."""
        more = [] if self.distribution == "gaussian" else [f"{self.distribution} noise"]
        more += [f"lapses {self.lapse:g}"] if self.lapse else []
        return ", ".join([f"{self.world} {self.rank}", *more]) if self.rank else "guessing"

    @property
    def name(self) -> str:
        """What identifies it in the store and for `--only`."""
        return f"{self.kind}, {self.setting}, {self.selector}"


SHAPES = (*(("equal", rank) for rank in (1, 2, 3, 5)), ("falling-0.6", 2), ("falling-0.6", 3))
NOISES: tuple[tuple[Distribution, float], ...] = (
    ("logistic", 0.0),
    ("heavy", 0.0),
    ("gaussian", 0.05),
)
CONDITIONS = (
    *(Condition(label, *shape) for label in KINDS for shape in SHAPES),
    *(Condition(label, "falling-0.6", 3, "fisher", *noise) for label in KINDS for noise in NOISES),
    *(Condition(label, "equal", 0) for label in KINDS),
    *(
        Condition(label, "equal", 2, selector)
        for label in KINDS[1:]
        for selector in ("infotuple", "random")
    ),
)


def simulated(task: tuple[Condition, int]) -> Study:
    """One study until its rank is settled and it is accurate, or to the limit."""
    condition, seed = task
    asked = kind(condition.kind)
    limit = int(BITS_PER_ITEM * ITEMS / asked.bits)
    space = worlds.space(condition.world, ITEMS, max(condition.rank, 1), seed)
    noise = ObserverNoise(
        lapse=condition.lapse if condition.rank else 1.0, distribution=condition.distribution
    )
    test = simulated_answers(space, TEST_QUESTIONS, seed + 1, ObserverNoise(noise=0.0))
    participants = SimulatedParticipants(crowd(space, PARTICIPANTS, noise, seed + 2))
    learner = Learner(
        *(ITEMS, seed, SELECTORS.make(condition.selector)),
        stopping=stopping_rule("smallest_dimension", smallest_dimension=SHARE),
        kind=asked,
    )
    begun = time.perf_counter()
    audits, settled = [], None
    for record in simulate(learner, participants, limit, test, time.perf_counter, stop=False):
        if record.get("summary"):
            settled = (record["stopped_at"], record["stopped_rank"])
            break
        audits.append((record["answers"], record["rank"], round(record["accuracy"], 4)))
        if learner.decision.settled and settled is None:
            settled = (record["answers"], learner.decision.dimensions)
        if settled is not None and record["accuracy"] >= ACCURATE:
            break
    first = next((at for at, *_ in audits if settled and at == settled[0]), None)
    return {
        "condition": condition.name,
        "seed": seed,
        "seconds": round(time.perf_counter() - begun, 1),
        "correct": worlds.correct_ranks(space, SHARE) if condition.rank else (0, 0),
        "audits": audits,
        "settled_at": first,
        "settled_rank": None if first is None or settled is None else settled[1],
    }


def accurate_at(study: Study) -> float | None:
    """Trials to 95 % accuracy, interpolated between audits."""
    before: tuple[float, float] | None = None
    for at, _, accuracy in study["audits"]:
        if accuracy >= ACCURATE:
            if before is None or accuracy == before[1]:
                return float(at)
            share = (ACCURATE - before[1]) / (accuracy - before[1])
            return before[0] + share * (at - before[0])
        before = (at, accuracy)
    return None


def median(values: Sequence[float | None]) -> float | None:
    """Median where studies that did not get there count as infinite; None if that is infinite."""
    middle = float(np.median([np.inf if value is None else value for value in values]))
    return middle if np.isfinite(middle) else None


def report(page: Page, studies: list[Study]) -> None:
    """Write the tables."""
    by_name: dict[str, list[Study]] = {}
    for study in studies:
        by_name.setdefault(study["condition"], []).append(study)
    page.text(
        f"{ITEMS} items, independent noise of variance .05 on each distance, {PARTICIPANTS} "
        f"participants; a dimension of interest carries {100 * SHARE:g} %. Medians; – where most "
        "studies did not get there. Seconds of participants: 3.06 for a triplet and 8.98 for "
        "ranking 2 of 8 (constants in the code of Roads & Mozer), interpolated for the others; the "
        f"last columns give the ratio to triplets' seconds, if grids take {FACTORS} times as long."
    )
    for title, value in (("95 % accuracy", accurate_at), ("the settled rank", settled_at)):
        page.text(f"## To {title}")
        page.table(
            ["kind", "world, rank", "studies", "trials", "seconds", "ratio", "right stops"],
            [
                _row(condition, by_name, value)
                for condition in CONDITIONS
                if condition.selector == "fisher" and condition.rank and condition.name in by_name
            ],
        )
    _guesses(page, by_name)
    _selectors(page, by_name)


def settled_at(study: Study) -> float | None:
    """Trials to the settled rank."""
    value: float | None = study["settled_at"]
    return value


def _row(condition: Condition, by_name: dict[str, list[Study]], value: Any) -> list[object]:
    studies = by_name[condition.name]
    trials = median([value(study) for study in studies])
    stops = [study for study in studies if study["settled_at"] is not None]
    right = sum(
        study["correct"][0] <= study["settled_rank"] <= study["correct"][1] for study in stops
    )
    cells: list[object] = [condition.kind, condition.setting, len(studies)]
    reference = by_name.get(
        Condition(
            *("triplet", condition.world, condition.rank, "fisher"),
            *(condition.distribution, condition.lapse),
        ).name,
        [],
    )
    base = median([value(study) for study in reference]) if reference else None
    if trials is None:
        cells += ["–", "–", "–"]
    else:
        seconds = trials * published_seconds(kind(condition.kind))
        ratios = "–"
        if base is not None:
            share = seconds / (base * published_seconds(kind("triplet")))
            factors = (1.0,) if condition.kind == "triplet" else FACTORS
            ratios = " / ".join(f"{share * factor:.2f}" for factor in factors)
        cells += [f"{trials:,.0f}", f"{seconds:,.0f}", ratios]
    return [*cells, f"{right} of {len(stops)}"]


def _guesses(page: Page, by_name: dict[str, list[Study]]) -> None:
    rows = []
    for condition in CONDITIONS:
        studies = by_name.get(condition.name, []) if not condition.rank else []
        if studies:
            highest = max((rank for study in studies for _, rank, _ in study["audits"]), default=0)
            settled = sum(study["settled_at"] is not None for study in studies)
            rows.append([condition.kind, len(studies), settled, highest])
    if rows:
        page.text("## Participants who guess")
        page.table(["kind", "studies", "settled", "highest rank at any audit"], rows)


def _selectors(page: Page, by_name: dict[str, list[Study]]) -> None:
    rows = []
    for condition in CONDITIONS:
        studies = by_name.get(condition.name, [])
        same = (condition.world, condition.rank, condition.setting) == ("equal", 2, "equal 2")
        if not same or not studies:
            continue
        cells = []
        for point in POINTS:
            known = [
                float(
                    np.interp(point, *np.array([(at, share) for at, _, share in one["audits"]]).T)
                )
                for one in studies
                if one["audits"] and one["audits"][0][0] <= point <= one["audits"][-1][0]
            ]
            cells.append(f"{np.mean(known):.3f}" if len(known) == len(studies) else "–")
        rows.append([condition.kind, condition.selector, *cells])
    if rows:
        page.text(
            "## Selectors\n\nAccuracy by number of trials, rank 2 (– before the first audit "
            "of a study, or after the end of one)."
        )
        page.table(["kind", "selector", *map(str, POINTS)], rows)


def load(seeds: range) -> list[Study]:
    """The studies that are there, of these seeds."""
    return [study for study in RUNS.load() if study["seed"] in seeds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="studies per condition")
    parser.add_argument("--only", action="append", help="only conditions whose name has this text")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="only write the page")
    chosen = parser.parse_args()
    conditions = [
        condition
        for condition in CONDITIONS
        if not chosen.only or any(text in condition.name for text in chosen.only)
    ]
    seeds = range(FIRST_SEED, FIRST_SEED + SEED_STEP * chosen.seeds, SEED_STEP)
    done = {(study["condition"], study["seed"]) for study in load(seeds)}
    # A seed at a time: an early end leaves a table of all conditions.
    tasks = [
        (condition, seed)
        for seed in seeds
        for condition in conditions
        if (condition.name, seed) not in done
    ]
    if not chosen.report:
        RUNS.collect(simulated, tasks, chosen.processes, _line)
    page = Page("kinds", "Kinds of questions", "make bench-kinds")
    report(page, load(seeds))
    page.write()
    RUNS.pack()


def _line(study: Study) -> str:
    settled = f"settled at {study['settled_at']}" if study["settled_at"] else "not settled"
    return f"{study['condition']}, seed {study['seed']}: {settled}, {study['seconds']:.0f} s"


if __name__ == "__main__":
    main()
