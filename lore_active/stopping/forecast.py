"""Forecast of the answers until the stopping rule is met, as a range with 90 % coverage.

The forecast is a nearest-neighbour regression. It compares the criteria of a study at an audit
with those of simulated studies that were run to their end, takes the most similar audits, and
gives the shortest range that contains a share of their outcomes. That share was chosen so that
ranges for studies left out of the comparison contain the outcome 9 times in 10. Criteria are
matched by name only: for another stopping rule, `calibrate` makes a new table from studies
simulated under it (`make calibrate-forecast`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, inf, isfinite, log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.learner.cadence import AUDIT_GROWTH
from lore_active.types import Floats

FILE = Path(__file__).with_name("forecast.json")
# For studies that began when `rank_settled` was the default.
FORMER_FILE = FILE.with_name("forecast_rank_settled.json")
COVERAGE = 0.90
NEIGHBOURS = 100
# Progress is clipped here: beyond that it carries no further information.
FARTHEST = 2.0
# No forecast is given for studies farther from the table than this share of its own audits are.
NEAR_ENOUGH = 0.99
DIGITS = 3
ROUNDING = 0.5 * 10**-DIGITS
# A criterion that takes the place of another one, with the same meaning for what is to come.
ALIASES = {"bayes_factor_fewer": "preferred_to_fewer"}
# Candidate shares of the neighbours' outcomes that a range contains.
SHARES = np.arange(0.80, 1.0, 0.01)


@dataclass(frozen=True)
class CriterionStatus:
    """A criterion of the stopping rule at an audit: its value, and the threshold it must reach."""

    name: str
    value: float
    threshold: float
    passed: bool

    @property
    def progress(self) -> float:
        """Value as a share of the threshold; negative where the evidence points the other way."""
        if not isfinite(self.value):
            return FARTHEST if self.passed else 0.0
        if self.threshold <= 0.0:
            return 1.0 if self.passed else 0.0
        return float(np.clip(self.value / self.threshold, -FARTHEST, FARTHEST))


@dataclass(frozen=True)
class AuditStatus:
    """A study at an audit; answers are those in the model."""

    items: int
    answers: int
    rank: int
    criteria: tuple[CriterionStatus, ...]

    @property
    def met(self) -> bool:
        """Whether the stopping rule is met."""
        return bool(self.criteria) and all(criterion.passed for criterion in self.criteria)

    @property
    def soonest(self) -> float:
        """The number of answers at which the rule can be met at the earliest."""
        known = {criterion.name: criterion for criterion in self.criteria if not criterion.passed}
        minimum = float(self.answers)
        if "answers" in known:
            minimum = max(minimum, known["answers"].threshold)
        if "audits_unchanged" in known:
            audits = known["audits_unchanged"].threshold - known["audits_unchanged"].value
            minimum = max(minimum, self.answers * AUDIT_GROWTH**audits)
        return minimum


@dataclass(frozen=True)
class Followed:
    """A simulated study from its first audit to its last; `stopped`: the stopping rule was met."""

    audits: tuple[AuditStatus, ...]
    stopped: bool


@dataclass(frozen=True)
class Forecast:
    """Answers in the model at which the study will stop: with 90 % coverage `low` to `high`.

    `middle` is the median over similar studies.
    """

    low: float
    middle: float
    high: float


def forecast(status: AuditStatus, calibration: Calibration | None = None) -> Forecast | None:
    """When a study will stop; None where no forecast is possible.

    There is none while no dimension is reported (there may be none to find), where the calibration
    lacks a criterion, and where the study is unlike all studies in the calibration.
    """
    if status.met:
        return Forecast(*3 * (status.answers,))
    candidates = shipped() if calibration is None else (calibration,)
    matched = ((made, made.features(status)) for made in candidates)
    known, row = next((pair for pair in matched if pair[1] is not None), (candidates[0], None))
    if row is None or status.rank == 0 or status.answers == 0:
        return None
    outcomes, farthest = known.alike(known.distances(row[None, :]))
    if farthest[0] > known.reach:
        return None
    ends = _shortest(outcomes, known.share)
    # Outcomes are rounded; the true one may lie just outside the end of the range.
    low, high = ends[0][0] - ROUNDING, ends[1][0] + ROUNDING
    middle = float(np.median(outcomes))
    soonest = log(status.soonest / status.answers)
    if soonest > high:
        # The settings require more audits or answers than any simulated study had.
        low, middle, high = soonest, soonest + middle - low, soonest + high - low
    low = max(low, soonest)
    return Forecast(*(status.answers * exp(end) for end in (low, max(low, middle), high)))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Audits of simulated studies, and how to compare a study with them.

    table: a row of features for each audit. outcomes: log of the answers at the stop over those at
    the audit. scale: what features are divided by. share: of the neighbours' outcomes that a range
    contains. reach: the largest distance allowed of the farthest neighbour.
    """

    criteria: tuple[str, ...]
    table: Floats
    outcomes: Floats
    scale: Floats
    share: float
    reach: float

    def features(self, status: AuditStatus) -> Floats | None:
        """The features of a study; None if its criteria differ from those of the table."""
        return _features(self.criteria, status)

    def distances(self, rows: Floats) -> Floats:
        """Distances of each row to each audit of the table."""
        ours, theirs = rows / self.scale, self.table / self.scale
        squares = (ours**2).sum(axis=1)[:, None] + (theirs**2).sum(axis=1) - 2.0 * ours @ theirs.T
        return np.asarray(np.sqrt(np.maximum(0.0, squares)))

    def alike(self, distances: Floats) -> tuple[Floats, Floats]:
        """For each row, the sorted outcomes of its neighbours, and the distance of the farthest."""
        many = min(NEIGHBOURS, distances.shape[1])
        nearest = np.argpartition(distances, many - 1, axis=1)[:, :many]
        farthest = np.take_along_axis(distances, nearest, axis=1).max(axis=1)
        return np.sort(self.outcomes[nearest], axis=1), farthest

    def as_json(self) -> str:
        """The contents of the file that is shipped, one row per line."""
        head = {
            "criteria": self.criteria,
            "scale": _rounded(self.scale),
            "share": self.share,
            "reach": self.reach,
        }
        rows = np.column_stack([self.table, self.outcomes])
        lines = ",\n".join(json.dumps(_rounded(row)) for row in rows)
        return json.dumps(head)[:-1] + ', "rows": [\n' + lines + "\n]}\n"


def _rounded(row: Floats) -> list[float]:
    return [round(float(value), DIGITS) for value in row]


def from_json(text: str) -> Calibration:
    """Read what `as_json` wrote."""
    held: dict[str, Any] = json.loads(text)
    rows = np.array(held["rows"], dtype=np.float64)
    scale = np.array(held["scale"], dtype=np.float64)
    return Calibration(
        tuple(held["criteria"]), rows[:, :-1], rows[:, -1], scale, held["share"], held["reach"]
    )


@cache
def shipped() -> tuple[Calibration, ...]:
    """The calibrations for the default stopping rule and for that of earlier versions."""
    return tuple(from_json(file.read_text(encoding="utf-8")) for file in (FILE, FORMER_FILE))


def calibrate(studies: Sequence[Followed]) -> Calibration:
    """A calibration from studies that were simulated to their end.

    A study that was cut off counts as if it had stopped there.
    """
    names = tuple(criterion.name for criterion in studies[0].audits[0].criteria)
    table, outcomes, study = [], [], []
    for number, followed in enumerate(studies):
        # At its last audit a study is over; without a dimension there is no forecast.
        for audit in followed.audits[:-1]:
            row = _features(names, audit)
            if row is not None and audit.rank and not audit.met:
                table.append(row)
                outcomes.append(log(followed.audits[-1].answers / audit.answers))
                study.append(number)
    # Rounded to the precision of the file.
    features = np.round(table, DIGITS)
    deviation = np.round(features.std(axis=0), DIGITS)
    scale = np.where(deviation > 0, deviation, 1.0)
    made = Calibration(names, features, np.round(outcomes, DIGITS), scale, 1.0, inf)
    return _tuned(made, np.array(study))


def _tuned(made: Calibration, study: NDArray[np.int64]) -> Calibration:
    """Choose the smallest share whose ranges have the coverage wanted, leaving studies out.

    The coverage must exceed the target by one standard error, clustered by study: the studies are
    finitely many, and audits of the same study are correlated.
    """
    distances = made.distances(made.table)
    distances[study[:, None] == study[None, :]] = inf
    outcomes, farthest = made.alike(distances)
    reach = float(np.round(np.quantile(farthest, NEAR_ENOUGH), DIGITS))
    for share in SHARES:
        low, high = _shortest(outcomes, share)
        right = (low <= made.outcomes) & (made.outcomes <= high)
        coverage = float(np.mean(right))
        error = np.sqrt(np.sum(np.bincount(study, right - coverage) ** 2)) / len(right)
        if coverage - error >= COVERAGE:
            return replace(made, share=round(float(share), 2), reach=reach)
    return replace(made, reach=reach)


def _features(names: Sequence[str], status: AuditStatus) -> Floats | None:
    known = {criterion.name: criterion for criterion in status.criteria}
    for name, meaning in ALIASES.items():
        if name in known and meaning not in known:
            known[meaning] = known.pop(name)
    if set(known) != set(names):
        return None
    open_share = sum(not criterion.passed for criterion in status.criteria) / len(names)
    per_item = log(max(1, status.answers) / status.items)
    return np.array([*(known[name].progress for name in names), open_share, per_item])


def _shortest(outcomes: Floats, share: float) -> tuple[Floats, Floats]:
    """The ends of the shortest range that contains a share of each row's sorted outcomes."""
    many = outcomes.shape[1]
    inside = min(many, max(1, int(np.ceil(share * many))))
    low, high = outcomes[:, : many - inside + 1], outcomes[:, inside - 1 :]
    at = np.argmin(high - low, axis=1)[:, None]
    return np.take_along_axis(low, at, 1)[:, 0], np.take_along_axis(high, at, 1)[:, 0]
