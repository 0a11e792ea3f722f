"""Patterns of careless answering: what is observed, and its probability under honest answering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.participants.honest_answering import Honest, Trials
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.types import Flags, Floats

# Honest participants choose one side, and switch sides, at most this often: sides are randomised,
# so the preferred option is as often on the left as on the right. In grids, where the eye begins
# somewhere, the odds of a place may be this much higher than those of guessing.
MAX_SIDE, MAX_SWITCH, MAX_PLACE_ODDS = 0.60, 0.58, 2.5
# Largest shares of honest answers that are too fast, have impossible times or a window switch.
MAX_FAST, MAX_IMPLAUSIBLE, MAX_BLURRED = 0.20, 0.10, 0.20
CERTAIN = 0.99


@dataclass(frozen=True)
class Pattern:
    """A kind of carelessness: the probability of each `event` under it and under honesty.

    `first` and `later` are the weights, within the flag, of starting at the first trial or later.
    """

    flag: str
    name: str
    relevant: Flags
    event: Flags
    honest: Floats
    careless: Floats | float
    first: float
    later: float

    def log_factors(self, rows: Any = slice(None)) -> Floats:
        """Log likelihood ratios of the trials; 0 where the pattern does not apply."""
        event, honest = self.event[rows], self.honest[rows]
        careless = np.broadcast_to(self.careless, self.honest.shape)[rows]
        seen = np.where(event, careless, 1.0 - careless)
        expected = np.where(event, honest, 1.0 - honest)
        return np.where(self.relevant[rows], np.log(seen / expected), 0.0)


def patterns(trials: Trials, expected: Honest) -> Iterator[Pattern]:
    """All kinds of carelessness that are tested."""
    decided, guess = trials.decided, 1.0 - trials.chance

    def rate(value: float) -> Floats:
        return np.full(len(trials), value)

    yield from _places(trials)
    yield from _sequences(trials)

    catch = decided & (trials.as_known >= 0)
    wrong = catch & (trials.as_known == 0)
    for share, first, later in ((guess, 0.02, 0.03), (0.5 * guess, 0.01, 0.01)):
        worse = np.maximum(share, expected.wrong)
        yield Pattern("catch", "wrong", catch, wrong, expected.wrong, worse, first, later)

    repeat = decided & (trials.as_before >= 0) & ~catch
    unlike = repeat & (trials.as_before == 0)
    unlike_by_guess = 1.0 - trials.kind.chance_alike
    for share in (unlike_by_guess, max(0.95, unlike_by_guess)):
        worse = np.maximum(share, expected.unlike)
        yield Pattern("consistency", "unlike", repeat, unlike, expected.unlike, worse, 0.35, 0.15)

    judged = decided & ~catch & ~np.isnan(trials.predicted)
    missed = judged & ~trials.agrees
    yield Pattern("agreement", "missed", judged, missed, expected.missed, guess, 0.65, 0.35)

    # Each answer is used once: repeats by the first answer, all others by the prediction.
    known = catch | repeat | judged
    off = np.where(catch, wrong, np.where(repeat, unlike, missed))
    rates = np.where(catch, expected.wrong, np.where(repeat, expected.unlike, expected.missed))
    guessed = np.maximum(np.where(repeat & ~catch, unlike_by_guess, guess), rates)
    yield Pattern("guessing", "guessing", known, off, rates, guessed, 0.65, 0.35)

    timed = ~np.isnan(trials.ms)
    fast = timed & (trials.ms < expected.floor_ms)
    for share, first, later in ((0.9, 0.6, 0.15), (0.5, 0.15, 0.1)):
        yield Pattern("fast", "fast", timed, fast, rate(MAX_FAST), share, first, later)
    everything = np.ones(len(trials), dtype=bool)
    for share in (0.8, 0.4):
        yield Pattern(
            *("implausible", "implausible", everything, trials.implausible),
            *(rate(MAX_IMPLAUSIBLE), share, 0.4, 0.1),
        )
        yield Pattern(
            *("blurred", "blurred", everything, trials.blurred),
            *(rate(MAX_BLURRED), share, 0.4, 0.1),
        )


def max_share(kind: Kind) -> float:
    """The largest share of trials in which honest participants pick the option in one place."""
    return MAX_SIDE if kind == TRIPLET else _at_odds(kind.chance_overlap)


def _at_odds(chance: float) -> float:
    """A probability whose odds are so much higher than those of guessing."""
    return MAX_PLACE_ODDS * chance / (1.0 - chance + MAX_PLACE_ODDS * chance)


def _places(trials: Trials) -> Iterator[Pattern]:
    """Always the option in the same place, or almost always."""
    count, honest = trials.kind.options, np.full(len(trials), max_share(trials.kind))
    names = ["left", "right"]
    if trials.kind != TRIPLET:
        names = [f"place {place + 1}" for place in range(count)]
    for place, name in enumerate(names):
        picked = trials.picked[:, place]
        for share, first, later in ((CERTAIN, 0.58, 0.07), (0.85, 0.004, 0.006)):
            # Where honest participants may pick nearly all options, a share of 85 % is none.
            careless = np.maximum(share, honest)
            yield Pattern(
                *("side", name, trials.decided, picked, honest),
                *(careless, first / count, later / count),
            )


def _sequences(trials: Trials) -> Iterator[Pattern]:
    """Sides in alternation; of more options, the first picks to and fro, or one place on."""
    first, before = trials.first, _previous(trials, 1)
    both = trials.decided & (before >= 0)
    if trials.kind == TRIPLET:
        switched, honest = both & (first != before), np.full(len(trials), MAX_SWITCH)
        yield Pattern("side", "alternating", both, switched, honest, CERTAIN, 0.33, 0.005)
        return
    count = trials.kind.options
    honest = np.full(len(trials), _at_odds(1.0 / count))
    earlier = _previous(trials, 2)
    moved = both & (earlier >= 0) & (earlier != before)
    returned = moved & (first == earlier)
    yield Pattern("side", "to and fro", moved, returned, honest, CERTAIN, 0.11, 0.002)
    for name, step in (("forwards", 1), ("backwards", -1)):
        event = both & (first == (before + step) % count)
        yield Pattern("side", name, both, event, honest, CERTAIN, 0.11, 0.0015)


def _previous(trials: Trials, lag: int) -> NDArray[np.int64]:
    """The place of the participant's first pick so many trials ago; -1 for none."""
    order = np.argsort(trials.participant, kind="stable")
    first, who = trials.first[order].astype(np.int64), trials.participant[order]
    before = np.full(len(order), -1, dtype=np.int64)
    same = who[lag:] == who[:-lag]
    before[lag:][same] = first[:-lag][same]
    places = np.empty_like(before)
    places[order] = before
    return places
