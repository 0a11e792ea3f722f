"""How well each participant answers, and whom to look at: figures, flags and their rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lore_active.types import Flags, Floats
from server.monitoring.ledger import CATCH, NOTHING, REPEAT, Columns, Numbers

FAST_MS = 300.0

FEWEST_CATCHES, CATCH_SHARE = 3, 2 / 3
FEWEST_REPEATS, REPEAT_SHARE = 5, 0.5
FEWEST_SIDES, SIDE_SHARE = 20, 0.7
FEWEST_TIMES, FAST_SHARE = 10, 0.2
FEWEST_BLURS, BLUR_SHARE = 10, 0.2
FEWEST_AGREEMENTS, AGREEMENT_SHARE = 25, 0.6

RULES = {
    "catch": f"Fewer than two thirds right of {FEWEST_CATCHES} or more questions with a known "
    "answer.",
    "consistency": f"Of {FEWEST_REPEATS} or more questions asked twice, at most half were answered "
    "alike.",
    "side": f"The same side in more than {SIDE_SHARE:.0%} of {FEWEST_SIDES} or more answers.",
    "fast": f"More than {FAST_SHARE:.0%} of {FEWEST_TIMES} or more answers within "
    f"{FAST_MS:.0f} ms.",
    "blurred": f"In more than {BLUR_SHARE:.0%} of {FEWEST_BLURS} or more questions they looked at "
    "another window.",
    "agreement": f"Fewer than {AGREEMENT_SHARE:.0%} of {FEWEST_AGREEMENTS} or more answers agree "
    "with the map; half would by guessing.",
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
    blurred: float | None
    agreement: float | None
    agreements: int
    flags: tuple[str, ...]


def qualities(columns: Columns, embedding: Floats, people: int) -> list[Quality]:
    """Figures of participants 0 to `people`, in one pass over all answers."""
    size = people + 1
    who = columns.participant

    def counted(which: Flags) -> Numbers:
        return np.bincount(who[which], minlength=size).astype(np.int64)

    decided = columns.decided
    catch = decided & (columns.purpose == CATCH)
    repeat = decided & (columns.purpose == REPEAT) & (columns.before != NOTHING)
    timed = ~np.isnan(columns.rt_ms)
    # In a catch question an option may be the anchor itself; the model has nothing to say there.
    judged = decided & (columns.purpose != CATCH)
    agrees = judged & _agreeing(columns, embedding) if embedding.shape[1] else judged & False
    table = {
        "answers": counted(np.ones(len(who), dtype=bool)),
        "catches": counted(catch),
        "catch_right": counted(catch & (columns.chosen == columns.nearer)),
        "repeats": counted(repeat),
        "repeats_alike": counted(repeat & (columns.chosen == columns.before)),
        "sides": counted(decided),
        "lefts": counted(decided & (columns.chosen == columns.left)),
        "times": counted(timed),
        "fast": counted(timed & (columns.rt_ms < FAST_MS)),
        "blurred": counted(columns.blurred > 0),
        "judged": counted(judged) if embedding.shape[1] else np.zeros(size, dtype=np.int64),
        "agrees": counted(agrees),
    }
    medians = _medians(who[timed], columns.rt_ms[timed], size)
    return [
        _quality({name: int(column[one]) for name, column in table.items()}, float(medians[one]))
        for one in range(size)
    ]


def _quality(of: dict[str, int], median: float) -> Quality:
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
        median_ms=None if np.isnan(median) else median,
        times=of["times"],
        fast=share("fast", "times"),
        blurred=share("blurred", "answers"),
        agreement=share("agrees", "judged"),
        agreements=of["judged"],
        flags=(),
    )
    return Quality(**{**figures.__dict__, "flags": flags(figures)})


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
        "blurred": one.answers >= FEWEST_BLURS and (one.blurred or 0.0) > BLUR_SHARE,
        "agreement": one.agreements >= FEWEST_AGREEMENTS
        and one.agreement is not None
        and one.agreement < AGREEMENT_SHARE,
    }
    return tuple(name for name in RULES if broken[name])


def _agreeing(columns: Columns, z: Floats) -> Flags:
    """Whether the model, too, has the chosen option nearer."""
    anchor = z[columns.anchor]
    chosen = np.linalg.norm(anchor - z[columns.chosen], axis=1)
    other = np.linalg.norm(anchor - z[columns.other], axis=1)
    return np.asarray(chosen < other)


def _medians(who: Numbers, values: Floats, size: int) -> Floats:
    """The median of each participant's values; NaN where there are none."""
    order = np.lexsort((values, who))
    ordered = values[order]
    counts = np.bincount(who, minlength=size)
    starts = np.cumsum(counts) - counts
    found = np.full(size, np.nan)
    some = counts > 0
    low = starts[some] + (counts[some] - 1) // 2
    high = starts[some] + counts[some] // 2
    found[some] = 0.5 * (ordered[low] + ordered[high])
    return found
