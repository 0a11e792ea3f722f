"""How good the forecast of a study's end is: what it said at each audit, and what followed.

`--calibrate` writes what the forecast is computed with, from studies drawn at random; it can be
interrupted and resumed (see `benchmarks.runs`). The page is about other studies, those of `make
bench-stops`, in worlds and on seeds that the calibration has not seen, and about studies on real
answers.

One module, though long: a benchmark reads from its calibration to its page.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np

from benchmarks import stops
from benchmarks.materials import ITEMS, MATERIALS, majority, read_materials
from benchmarks.runs import Runs
from benchmarks.tables import Page
from lore_active.data.comparisons import as_triplets
from lore_active.learner.learner import Learner
from lore_active.questions.pool import PooledQuestions
from lore_active.simulation.observers import ObserverNoise, crowd, gaussian_space
from lore_active.simulation.run import (
    LoggedParticipants,
    Participants,
    SimulatedParticipants,
    simulate,
)
from lore_active.stopping.forecast import (
    COVERAGE,
    FILE,
    AuditStatus,
    CriterionStatus,
    Followed,
    calibrate,
    forecast,
)

RUNS = Runs("forecast", lambda one: one["condition"]["seed"])
DEVELOPMENT_SEED = 40_000
# Of studies with weak dimensions.
STEEP_DEVELOPMENT_SEED = 45_000
MATERIALS_SEED = 7_700
# For so many other studies there is one with weak dimensions.
STEEP_SHARE = 3
# A study takes several seeds.
SEED_STEP = 10
# A study that has not stopped by then is given up.
MAX_ANSWERS = 6_000
PARTICIPANTS = 10


@dataclass(frozen=True)
class Condition:
    """One simulated study; without strengths: the real Materials answers as a pool."""

    seed: int
    items: int = ITEMS
    strengths: tuple[float, ...] = ()
    noise: float = 0.0
    lapse: float = 0.0


def simulated(seed: int) -> Condition:
    """A study drawn at random from those that the forecast is for."""
    rng = np.random.default_rng([seed, 1])
    items = int(rng.choice([20, 30, 40, 50, 70, 100], p=[0.2, 0.2, 0.2, 0.2, 0.1, 0.1]))
    rank = int(rng.integers(1, 6))
    noise = float(np.exp(rng.uniform(np.log(0.05), np.log(0.5))))
    ratio = float(rng.choice([1.0, rng.uniform(0.6, 0.8)]))
    lapse = float(rng.choice([0.0, 0.05], p=[0.7, 0.3]))
    strengths = tuple(round(ratio**k, 3) for k in range(rank))
    return Condition(seed, items, strengths, round(noise, 3), lapse)


def steep(seed: int) -> Condition:
    """A study of a percept with one strong and several weak dimensions, as real ones have.

    Half of them fall off, the others have a tail of weak dimensions of about equal strength: some
    of these are found late, and each begins the wait for the stop again.
    """
    rng = np.random.default_rng([seed, 2])
    items = int(rng.choice([20, 30, 40, 50, 100]))
    noise = float(np.exp(rng.uniform(np.log(0.05), np.log(0.5))))
    if rng.random() < 0.5:
        rank, ratio = int(rng.integers(2, 6)), float(rng.uniform(0.3, 0.6))
        strengths = tuple(round(ratio**k, 3) for k in range(rank))
    else:
        weak = rng.uniform(0.25, 0.5, int(rng.integers(2, 6)))
        strengths = (1.0, *(round(float(one), 3) for one in sorted(weak, reverse=True)))
    return Condition(seed, items, strengths, round(noise, 3))


def seeds(first: int, count: int) -> range:
    """So many seeds for studies."""
    return range(first, first + SEED_STEP * count, SEED_STEP)


def drawn(first: int, first_steep: int, count: int) -> list[Condition]:
    """So many studies, and a third as many with weak dimensions."""
    usual = [simulated(seed) for seed in seeds(first, count)]
    return [*usual, *(steep(seed) for seed in seeds(first_steep, count // STEEP_SHARE))]


def run(condition: Condition) -> dict[str, Any]:
    """One study to its stop, with the criteria as they were at each audit."""
    learner, participants, batch = _study(condition)
    audits, stopped = [], False
    for record in simulate(learner, participants, MAX_ANSWERS, None, lambda: 0.0, batch=batch):
        if not record.get("summary"):
            decision = learner.decision
            audits.append(
                {
                    "answers": record["answers"],
                    "rank": decision.rank,
                    "criteria": [
                        [one.name, float(one.value), float(one.threshold), bool(one.passed)]
                        for one in decision.criteria
                    ],
                }
            )
            stopped = learner.decision.settled
    return {"condition": asdict(condition), "audits": audits, "stopped": stopped}


def _study(condition: Condition) -> tuple[Learner, Participants, int]:
    seed = condition.seed
    if not condition.strengths:
        pool = as_triplets(majority(read_materials("train")), ITEMS)
        logged = LoggedParticipants(pool, seed)
        source = PooledQuestions(logged.questions, ITEMS)
        return Learner(ITEMS, seed, source=source), logged, 25
    strengths = np.array(condition.strengths)
    # Unequal strengths, the same variance in all.
    strengths *= np.sqrt(len(strengths) / np.sum(strengths**2))
    space = gaussian_space(condition.items, len(strengths), seed) * strengths
    observer_noise = ObserverNoise(condition.noise, noise_spread=0.3, lapse=condition.lapse)
    observers = crowd(space, PARTICIPANTS, observer_noise, seed + 1)
    return Learner(condition.items, seed), SimulatedParticipants(observers), 10


def collect(conditions: Sequence[Condition], jobs: int) -> None:
    """Run what is not there yet."""
    done = {one["condition"]["seed"] for one in RUNS.load()}
    todo = [one for one in conditions if one.seed not in done]
    RUNS.collect(run, todo, jobs, lambda one: str(one["condition"]))
    RUNS.pack()


def kept(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """The studies of these conditions, as far as they are there."""
    wanted = {one.seed for one in conditions}
    return [one for one in RUNS.load() if one["condition"]["seed"] in wanted]


# ---- what was said, and what followed -----------------------------------------------------------


def followed(run: dict[str, Any]) -> Followed:
    """A kept study as the forecast sees it."""
    items = run["condition"]["items"]
    audits = [
        AuditStatus(
            items,
            one["answers"],
            one["rank"],
            tuple(CriterionStatus(*criterion) for criterion in one["criteria"]),
        )
        for one in run["audits"]
    ]
    return Followed(tuple(audits), run["stopped"])


@dataclass(frozen=True)
class Said:
    """A forecast at an audit: what it said (nan: nothing), and what followed.

    Where the study was given up, `more` is how far it was followed and `stopped` is false.
    """

    answers: int
    rank: int
    open_criteria: int
    low: float
    middle: float
    high: float
    more: float
    stopped: bool

    @property
    def told(self) -> bool:
        return isfinite(self.low)

    @property
    def right(self) -> bool:
        begun = self.low <= self.more + 1e-6 or not self.stopped
        return begun and self.more <= self.high + 1e-6


def said(study: Followed) -> list[Said]:
    """Every audit but the last, with which the study stopped."""
    last = study.audits[-1].answers
    rows = []
    for audit in study.audits[:-1]:
        found = forecast(audit)
        ends = (found.low, found.middle, found.high) if found else (np.nan,) * 3
        open_criteria = sum(not one.passed for one in audit.criteria)
        more = last - audit.answers
        told = (end - audit.answers for end in ends)
        rows.append(Said(audit.answers, audit.rank, open_criteria, *told, more, study.stopped))
    return rows


def of_stops() -> list[tuple[stops.Condition, Followed]]:
    """The studies of `make bench-stops`, as far as they are there."""
    conditions = {one.name: one for one in stops.CONDITIONS if one.rank}
    found = []
    for study in stops.RUNS.load():
        condition = conditions.get(study["condition"])
        if condition is None or study["rule"] != stops.RULE or study["share"] is not None:
            continue
        audits = [
            AuditStatus(
                condition.items,
                audit[0],
                audit[1],
                tuple(CriterionStatus(*criterion) for criterion in criteria),
            )
            for audit, criteria in zip(study["audits"], study["criteria"], strict=True)
        ]
        found.append((condition, Followed(tuple(audits), study["stopped_at"] is not None)))
    return found


def report(
    page: Page, fresh: list[tuple[stops.Condition, Followed]], real: list[dict[str, Any]]
) -> None:
    page.text(
        "The monitor's forecast at each audit that reported a dimension, before the study "
        f"stopped, and what followed. A range should be right {100 * COVERAGE:.0f} times in 100. "
        "The simulated studies are those of [where studies stop](stops.md): their worlds, seeds "
        "and numbers of participants are not those of the calibration. Width: upper end divided "
        "by lower end of the answers at the stop."
    )
    runs = [(condition, said(study)) for condition, study in fresh]
    everything = [row for _, rows in runs for row in rows if row.rank]
    table = [_row("all", everything)]

    def part(name: str, wanted: Callable[[stops.Condition], bool]) -> None:
        rows = [row for one, rows in runs if wanted(one) for row in rows if row.rank]
        table.append(_row(name, rows))

    for world in dict.fromkeys(one.world for one, _ in runs):
        part(f"world {world}", lambda one, world=world: one.world == world)  # type: ignore[misc]
    part("noise to 0.1", lambda one: one.noise <= 0.1)
    part("noise above 0.1", lambda one: one.noise > 0.1)
    part("up to 12 items", lambda one: one.items <= 12)
    part("15 to 25 items", lambda one: 12 < one.items <= 25)
    part("50 items", lambda one: one.items == 50)
    part("100 and 200 items", lambda one: one.items > 50)
    for name, minimum, most in (("1 open criterion", 1, 1), ("2", 2, 2), ("3 or more", 3, 99)):
        rows = [row for row in everything if minimum <= row.open_criteria <= most]
        table.append(_row(name if minimum == 1 else f"{name} open criteria", rows))
    page.table(HEADER, table)
    stopped = sum(study.stopped for _, study in fresh)
    page.text(
        f"{len(fresh)} studies, of which {stopped} stopped before their limit. For the others, a "
        "range that reaches beyond the limit counts as right."
    )
    if not real:
        page.text("Real answers (Materials) were not measured: the data file is not there.")
        return
    page.text(
        "## Real answers\n\nThe Materials data as a pool (100 items; questions selected from the "
        "logged ones, answered as the majority did), "
        f"to {MAX_ANSWERS:,} answers at most."
    )
    rows = []
    for one in real:
        end = one["audits"][-1]["answers"]
        name = f"stopped at {end:,}" if one["stopped"] else f"not stopped by {end:,}"
        rows.append(_row(name, [row for row in said(followed(one)) if row.rank]))
    page.table(HEADER, rows)


HEADER = (
    "studies",
    "audits",
    "forecast given",
    "right",
    "at most the middle",
    "median range (more answers)",
    "median that followed",
    "width",
)


def _row(name: str, rows: Iterable[Said]) -> list[object]:
    rows = list(rows)
    told = [row for row in rows if row.told]
    if not told:
        return [name, len(rows), "0 %", *["–"] * 5]
    low, high, more = (
        float(np.median([getattr(row, key) for row in told])) for key in ("low", "high", "more")
    )
    width = np.median([(row.answers + row.high) / (row.answers + row.low) for row in told])
    return [
        name,
        len(rows),
        f"{100 * len(told) / len(rows):.0f} %",
        f"**{100 * np.mean([row.right for row in told]):.0f} %**",
        f"{100 * np.mean([row.more <= row.middle + 1e-6 for row in told]):.0f} %",
        f"{low:,.0f} to {high:,.0f}",
        f"{more:,.0f}" if isfinite(more) else "–",
        f"{width:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--development", type=int, default=100, help="studies to calibrate with, steep ones aside"
    )
    parser.add_argument("--materials", type=int, default=3, help="studies on real answers")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--calibrate", action="store_true", help="only make a new calibration")
    parser.add_argument("--report", action="store_true", help="only write the page")
    chosen = parser.parse_args()

    if chosen.calibrate:
        development = drawn(DEVELOPMENT_SEED, STEEP_DEVELOPMENT_SEED, chosen.development)
        collect(development, chosen.jobs)
        made = calibrate([followed(one) for one in kept(development)])
        FILE.write_text(made.as_json(), encoding="utf-8")
        print(f"written: {FILE.name}; {len(made.outcomes):,} audits of {len(development)} studies")
        return
    real = [Condition(seed) for seed in seeds(MATERIALS_SEED, chosen.materials)]
    if not MATERIALS.exists():
        real = []
    if not chosen.report:
        collect(real, chosen.jobs)
    page = Page("forecast", "Forecasts of a study's end", "make bench-forecast")
    report(page, of_stops(), kept(real))
    page.write()


if __name__ == "__main__":
    main()
