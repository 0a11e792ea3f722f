"""Response quality: sequential tests of honest answering for each participant.

Each flag is a test martingale (an e-process): the product over trials of the likelihood ratio of
careless to honest answering, with the largest probability under honest answering as denominator,
averaged over several kinds of carelessness and over the trials at which it may have started. Its
expectation under honest answering never exceeds 1, so by Ville's inequality the chance that it
*ever* reaches 1/α is at most α: the test is valid after every trial. The flags share `ALPHA`
(Bonferroni).

Ramdas, Grünwald, Vovk & Shafer (2023), Game-theoretic statistics and safe anytime-valid inference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.participants.honest_answering import (
    Reference,
    Trials,
    honest,
    reference,
    relative_order,
)
from lore_active.participants.patterns import Pattern, patterns
from lore_active.types import Flags, Floats

# The largest share of honest participants who are flagged at any time in a session.
ALPHA = 0.02
SHARES = {
    "side": 0.425,
    "catch": 0.325,
    "guessing": 0.125,
    "consistency": 0.025,
    "agreement": 0.025,
    "fast": 0.05,
    "implausible": 0.0125,
    "blurred": 0.0125,
}
# Carelessness may start at the first trial, or at any later multiple of this.
STARTS_EVERY = 10
# Odds are capped here; larger ones mean practically never.
MAX_ODDS = 1e9
# Maximum size of the matrices that are processed at a time.
MAX_CELLS = 2_000_000

# Catch trials are few but informative: in addition to the martingale, the errors are tested
# exactly after so many of them, each time with a share of the flag's α.
CATCH_LOOKS = {4: 0.06, 12: 0.72, 28: 0.08, 60: 0.04, 124: 0.02, 252: 0.01}


@dataclass(frozen=True)
class Evidence:
    """The evidence against honest answering.

    pattern: what was observed, from `patterns`; in `count` of `of` trials, from trial `first` to
    trial `last` of the session (from 1). expected: the largest expected count under honest
    answering. odds: under honest answering, the chance of such evidence at any time in a session is
    at most 1 in `odds`.
    """

    flag: str
    pattern: str
    count: int
    of: int
    expected: float
    first: int
    last: int
    odds: float


def assess(trials: Trials, reference: Reference) -> dict[int, tuple[Evidence, ...]]:
    """The flags of each participant; `trials` must contain all of their trials, in order.

    Participants without a flag have an empty tuple.
    """
    flags: dict[int, tuple[Evidence, ...]] = {}
    for part in _parts(trials):
        log_odds, sheet = _log_odds(part, reference)
        for flag, odds in log_odds.items():
            limit = -np.log(ALPHA * SHARES[flag])
            for row in np.flatnonzero(odds.max(axis=1, initial=-np.inf) >= limit).tolist():
                who = int(sheet.participants[row])
                flags[who] = (*flags.get(who, ()), sheet.evidence(flag, row, odds[row]))
        for who in sheet.participants.tolist():
            flags.setdefault(who, ())
    return flags


def usual(trials: Trials, counts: Flags) -> Reference:
    """The reference of honest answering: participants who count and are not flagged."""
    everybody = reference(trials, counts)
    mine = trials.take(counts[trials.participant])
    flagged_ones = [who for who, evidence in assess(mine, everybody).items() if evidence]
    kept = counts.copy()
    kept[flagged_ones] = False
    return reference(trials, kept)


def every_test(trials: Trials, reference: Reference) -> tuple[Evidence, ...]:
    """All tests of one participant, flagged or not, except those without any data."""
    log_odds, sheet = _log_odds(trials, reference)
    return tuple(
        sheet.evidence(flag, 0, odds[0])
        for flag, odds in log_odds.items()
        if len(odds) and sheet.looked(flag)
    )


def flagged(evidence: Evidence) -> bool:
    """Whether a test exceeds its threshold."""
    return evidence.odds >= 1.0 / (ALPHA * SHARES[evidence.flag])


def start_weights(count: int, first: float, later: float) -> Floats:
    """Log prior weights of starting at each trial; the weights add up to at most `first` + `later`
    in sessions of any length."""
    weights = np.zeros(count)
    begins = np.arange(STARTS_EVERY, count, STARTS_EVERY)
    block = begins // STARTS_EVERY
    weights[begins] = later / (block * (block + 1.0))
    weights[:1] = first
    with np.errstate(divide="ignore"):
        return np.log(weights)


def log_martingale(log_factors: Floats, log_weights: Floats) -> Floats:
    """Log of Σ_k weight_k · factor_k ⋯ factor_t for each trial t (last axis)."""
    after = np.cumsum(log_factors, axis=-1)
    before = after - log_factors
    return np.asarray(after + np.logaddexp.accumulate(log_weights - before, axis=-1))


@dataclass(frozen=True)
class _Sheet:
    """Trials as a matrix: a row for each participant, padded at the right."""

    participants: NDArray[Any]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    width: int
    patterns: tuple[Pattern, ...]

    def matrix(self, values: Floats) -> Floats:
        made = np.zeros((len(self.participants), self.width))
        made[self.row, self.column] = values
        return made

    def looked(self, flag: str) -> bool:
        return any(pattern.relevant.any() for pattern in self.patterns if pattern.flag == flag)

    def evidence(self, flag: str, row: int, log_odds: Floats) -> Evidence:
        """The best pattern and starting trial for a flag; without one, for the whole session."""
        rows = np.flatnonzero(self.row == row)
        rows = rows[np.argsort(self.column[rows])]
        highest = int(log_odds.argmax())
        raised = log_odds[highest] >= -np.log(ALPHA * SHARES[flag])
        last = highest if raised else len(rows) - 1
        best, first, chosen = -np.inf, 0, None
        for pattern in self.patterns:
            if pattern.flag != flag:
                continue
            factors = pattern.log_factors(rows[: last + 1])
            from_here = np.cumsum(factors[::-1])[::-1]
            weighted = start_weights(last + 1, pattern.first, pattern.later) + from_here
            if chosen is None or weighted.max() > best:
                best, first, chosen = float(weighted.max()), int(weighted.argmax()), pattern
        assert chosen is not None
        first = first if raised else 0
        span = rows[first : last + 1]
        span = span[chosen.relevant[span]]
        return Evidence(
            flag,
            chosen.name,
            int(chosen.event[span].sum()),
            len(span),
            float(chosen.honest[span].sum()),
            first + 1,
            last + 1,
            min(MAX_ODDS, float(np.exp(min(log_odds[highest], 100.0)))),
        )


def _log_odds(trials: Trials, reference: Reference) -> tuple[dict[str, Floats], _Sheet]:
    """Log odds for each flag (participants × trials), with the layout of that matrix."""
    who, row = np.unique(trials.participant, return_inverse=True)
    column = relative_order(row)
    width = int(column.max(initial=-1)) + 1
    made = tuple(patterns(trials, honest(trials, reference)))
    sheet = _Sheet(who, row, column, width, made)
    log_odds: dict[str, Floats] = {}
    for pattern in made:
        weights = start_weights(width, pattern.first, pattern.later)
        odds = log_martingale(sheet.matrix(pattern.log_factors()), weights)
        log_odds[pattern.flag] = (
            np.logaddexp(log_odds[pattern.flag], odds) if pattern.flag in log_odds else odds
        )
    log_odds["catch"] = np.maximum(log_odds["catch"], _catch_looks(sheet))
    padding = sheet.matrix(np.ones(len(trials))) == 0.0
    for odds in log_odds.values():
        odds[padding] = -np.inf
    return log_odds, sheet


def _catch_looks(sheet: _Sheet) -> Floats:
    """Log odds of the exact tests of catch errors, at the trials at which they are made."""
    pattern = next(candidate for candidate in sheet.patterns if candidate.flag == "catch")
    order = np.flatnonzero(pattern.relevant)
    order = order[np.lexsort((sheet.column[order], sheet.row[order]))]
    rows, columns = sheet.row[order], sheet.column[order]
    rates, wrong = pattern.honest[order], pattern.event[order]
    place = relative_order(rows)
    log_odds = np.full((len(sheet.participants), sheet.width), -np.inf)
    # The distribution of the number of errors so far, by participant.
    distribution = np.zeros((len(sheet.participants), max(CATCH_LOOKS) + 1))
    distribution[:, 0] = 1.0
    errors = np.zeros(len(sheet.participants), dtype=np.int64)
    for trial in range(min(int(place.max(initial=-1)) + 1, max(CATCH_LOOKS))):
        at = place == trial
        who, rate = rows[at], rates[at][:, None]
        distribution[who, 1:] = distribution[who, 1:] * (1.0 - rate) + distribution[who, :-1] * rate
        distribution[who, :1] *= 1.0 - rate
        errors[who] += wrong[at]
        share = CATCH_LOOKS.get(trial + 1)
        if share is not None:
            tail = np.cumsum(distribution[who, ::-1], axis=1)[:, ::-1]
            chance = np.maximum(tail[np.arange(len(who)), errors[who]], 1e-300)
            log_odds[who, columns[at]] = np.log(share / chance)
    return log_odds


def _parts(trials: Trials) -> Iterator[Trials]:
    """Groups of participants with sessions of similar length, so that matrices are dense."""
    who, row, counts = np.unique(trials.participant, return_inverse=True, return_counts=True)
    order = np.argsort(counts, kind="stable")
    begin = 0
    while begin < len(who):
        end = begin + 1
        while end < len(who) and (end - begin + 1) * counts[order[end]] <= MAX_CELLS:
            if counts[order[end]] > 2 * counts[order[begin]] + 50:
                break
            end += 1
        chosen = np.zeros(len(who), dtype=bool)
        chosen[order[begin:end]] = True
        yield trials.take(chosen[row])
        begin = end
