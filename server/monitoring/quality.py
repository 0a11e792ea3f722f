"""How well each participant answers, and whom to look at: figures, flags and their rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan

import numpy as np

from lore_active.growing import NOTHING
from lore_active.types import Flags, Floats
from server.monitoring.ledger import CATCH, PARTIAL, REPEAT, Columns, Numbers

FAST_MS = 300.0
# A page's clock and the server's need not run at the same speed, nor count the same millisecond.
CLOCK_DRIFT, CLOCK_MS = 1.05, 100.0

FEWEST_CATCHES, CATCH_SHARE = 3, 2 / 3
FEWEST_REPEATS, REPEAT_SHARE = 5, 0.5
FEWEST_SIDES, SIDE_SHARE = 20, 0.7
FEWEST_TIMES, FAST_SHARE = 10, 0.2
MIN_TIMINGS, IMPLAUSIBLE_SHARE = 5, 0.2
FEWEST_BLURS, BLUR_SHARE = 10, 0.2
FEWEST_AGREEMENTS, AGREEMENT_SHARE = 25, 0.6

RULES = {
    "catch": f"Fewer than two thirds right of {FEWEST_CATCHES} or more questions with a known "
    "answer.",
    "consistency": f"Of {FEWEST_REPEATS} or more questions asked twice, at most half were answered "
    "alike.",
    "side": f"The same side in more than {SIDE_SHARE:.0%} of {FEWEST_SIDES} or more answers.",
    "fast": f"More than {FAST_SHARE:.0%} of {FEWEST_TIMES} or more answers within "
    f"{FAST_MS:.0f} ms, by the page's clock or by the server's.",
    "implausible": f"More than {IMPLAUSIBLE_SHARE:.0%} of {MIN_TIMINGS} or more answers came with "
    "impossible times: longer than the server saw pass, negative or incomplete.",
    "blurred": f"In more than {BLUR_SHARE:.0%} of {FEWEST_BLURS} or more questions they looked at "
    "another window.",
    "agreement": f"Fewer than {AGREEMENT_SHARE:.0%} of {FEWEST_AGREEMENTS} or more answers agree "
    "with the map; half would by guessing.",
}

# What each flag is called where there is little room.
NAMES = {
    "catch": "catch",
    "consistency": "wavers",
    "side": "one side",
    "fast": "fast",
    "implausible": "implausible times",
    "blurred": "away",
    "agreement": "disagrees",
}


@dataclass(frozen=True)
class Quality:
    """One participant's figures; a share is None where there is nothing to take it of."""

    answers: int
    catches: int
    catch_right: int
    repeats: int
    repeats_alike: int
    left: float | None
    sides: int
    median_ms: float | None
    times: int
    fast: float | None
    implausible: float | None
    blurred: float | None
    agreement: float | None
    agreements: int
    flags: tuple[str, ...]


COUNTS = (
    "answers",
    "catches",
    "catch_right",
    "repeats",
    "repeats_alike",
    "sides",
    "lefts",
    "times",
    "fast",
    "implausible",
    "blurred",
    "judged",
)


class Qualities:
    """Everybody's figures, brought up to date by what is new: an answer touches one person."""

    def __init__(self) -> None:
        self.of: list[Quality] = []
        self._taken = 0
        self._version = -1
        self._counts = np.zeros((len(COUNTS), 0), dtype=np.int64)
        self._agrees = np.zeros(0, dtype=np.int64)
        self._medians = np.zeros(0)

    def update(self, columns: Columns, embedding: Floats, version: int, people: int) -> None:
        """Take in the answers since the last time; `version` is the embedding's.

        Participants are numbers up to `people`; place 0 of `of` belongs to nobody.
        """
        self._make_room(people + 1)
        new = columns.since(self._taken)
        self._taken += len(new.seq)
        touched = np.unique(new.participant)
        self._counts += np.array([self._counted(new, one) for one in _conditions(new)])
        _update_medians(self._medians, columns, touched)
        if version != self._version:
            # Another model agrees with other answers, old ones included.
            self._version = version
            self._agrees = self._counted(columns, _agreeing(columns, embedding))
            touched = np.arange(people + 1)
        else:
            self._agrees += self._counted(new, _agreeing(new, embedding))
        for who in touched.tolist():
            self.of[who] = self._quality(who, bool(embedding.shape[1]))

    def _make_room(self, size: int) -> None:
        missing = size - len(self.of)
        self._counts = np.pad(self._counts, ((0, 0), (0, missing)))
        self._agrees = np.pad(self._agrees, (0, missing))
        self._medians = np.pad(self._medians, (0, missing), constant_values=np.nan)
        self.of += [self._quality(who, False) for who in range(size - missing, size)]

    def _counted(self, columns: Columns, which: Flags) -> Numbers:
        return np.bincount(columns.participant[which], minlength=len(self.of)).astype(np.int64)

    def _quality(self, who: int, modelled: bool) -> Quality:
        counts = dict(zip(COUNTS, self._counts[:, who].tolist(), strict=True))
        if not modelled:
            counts["judged"] = 0
        return _quality({**counts, "agrees": int(self._agrees[who])}, float(self._medians[who]))


def response_ms(columns: Columns) -> Floats:
    """Response times as pages measured them, but no longer than the server saw pass; else nan."""
    return np.where(np.isnan(columns.rt_ms), np.nan, _at_most_ms(columns))


def _at_most_ms(columns: Columns) -> Floats:
    """How long each answer took at most, by the page's clock and by the server's; nan: unknown."""
    elapsed = np.where(columns.elapsed_ms < 0, np.nan, columns.elapsed_ms)
    return np.asarray(np.fmin(columns.rt_ms, elapsed), dtype=np.float64)


def _implausible(columns: Columns) -> Flags:
    """Answers whose page says what cannot be; one that measures nothing says nothing."""
    most = CLOCK_DRIFT * columns.elapsed_ms + CLOCK_MS
    too_long = (columns.elapsed_ms >= 0) & (columns.rt_ms > most)
    return np.asarray(too_long | (columns.timing == PARTIAL))


def _update_medians(medians: Floats, columns: Columns, touched: Numbers) -> None:
    """Median times of those who answered; from all their times, which are in the columns."""
    theirs = np.zeros(len(medians), dtype=bool)
    theirs[touched] = True
    measured = response_ms(columns)
    rows = np.flatnonzero(theirs[columns.participant] & ~np.isnan(measured))
    who, times = columns.participant[rows], measured[rows]
    times = times[np.lexsort((times, who))]
    found, counts = np.unique(who, return_counts=True)
    begins = np.cumsum(counts) - counts
    medians[found] = (times[begins + (counts - 1) // 2] + times[begins + counts // 2]) / 2


def _conditions(columns: Columns) -> list[Flags]:
    """Which answers each of COUNTS counts."""
    decided = columns.decided
    catch = decided & (columns.purpose == CATCH)
    repeat = decided & (columns.purpose == REPEAT) & (columns.as_before != NOTHING)
    at_most = _at_most_ms(columns)
    return [
        np.ones(len(columns.seq), dtype=bool),
        catch,
        catch & (columns.as_known == 1),
        repeat,
        repeat & (columns.as_before == 1),
        decided,
        decided & (columns.chosen == columns.left),
        ~np.isnan(at_most),
        at_most < FAST_MS,
        _implausible(columns),
        columns.blurred > 0,
        _judged(columns),
    ]


def _judged(columns: Columns) -> Flags:
    # In a catch question an option may be the anchor itself; the model has nothing to say there.
    return np.asarray(columns.decided & (columns.purpose != CATCH))


def _quality(of: dict[str, int], middle: float) -> Quality:
    def share(part: str, whole: str) -> float | None:
        return of[part] / of[whole] if of[whole] else None

    figures = Quality(
        answers=of["answers"],
        catches=of["catches"],
        catch_right=of["catch_right"],
        repeats=of["repeats"],
        repeats_alike=of["repeats_alike"],
        left=share("lefts", "sides"),
        sides=of["sides"],
        median_ms=None if isnan(middle) else middle,
        times=of["times"],
        fast=share("fast", "times"),
        implausible=share("implausible", "answers"),
        blurred=share("blurred", "answers"),
        agreement=share("agrees", "judged"),
        agreements=of["judged"],
        flags=(),
    )
    return replace(figures, flags=flags(figures))


def flags(one: Quality) -> tuple[str, ...]:
    """The rules that a participant's answers break."""
    broken = {
        "catch": one.catches >= FEWEST_CATCHES and one.catch_right < CATCH_SHARE * one.catches,
        "consistency": one.repeats >= FEWEST_REPEATS
        and one.repeats_alike <= REPEAT_SHARE * one.repeats,
        "side": one.sides >= FEWEST_SIDES
        and one.left is not None
        and max(one.left, 1 - one.left) > SIDE_SHARE,
        "fast": one.times >= FEWEST_TIMES and (one.fast or 0.0) > FAST_SHARE,
        "implausible": one.answers >= MIN_TIMINGS and (one.implausible or 0.0) > IMPLAUSIBLE_SHARE,
        "blurred": one.answers >= FEWEST_BLURS and (one.blurred or 0.0) > BLUR_SHARE,
        "agreement": one.agreements >= FEWEST_AGREEMENTS
        and one.agreement is not None
        and one.agreement < AGREEMENT_SHARE,
    }
    return tuple(name for name in RULES if broken[name])


def _agreeing(columns: Columns, z: Floats) -> Flags:
    """Whether the model, too, has the chosen option nearer."""
    judged = _judged(columns)
    if not z.shape[1]:
        return judged & False
    anchor = z[columns.anchor]
    chosen = np.square(anchor - z[columns.chosen]).sum(axis=1)
    other = np.square(anchor - z[columns.other]).sum(axis=1)
    return np.asarray(judged & (chosen < other))
