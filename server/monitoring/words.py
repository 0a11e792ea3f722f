"""The monitor's figures as sentences, for people who have not read how the method works."""

from __future__ import annotations

from typing import Any

from lore_active.criteria import dimensions, not_met, percent
from lore_active.criteria import number as named
from lore_active.luck import BEYOND_LUCK
from lore_active.verdict import Verdict
from lore_active.verdict import accuracy as predicted_correctly

CLEAR = 2.0


def missing(found: Verdict) -> str:
    """What the stopping rule waits for."""
    if not found.criteria:
        return "The criteria are evaluated with the first estimate."
    text = not_met([one.name for one in found.criteria if not one.passed])
    if not found.has_rank:
        rest = "The other criteria apply once a number of dimensions is reported."
        return f"{text} {rest}".strip()
    return text or "All criteria are met."


def duration(minutes: float) -> str:
    """`about 3 hours`."""
    if minutes < 1.5:
        return "about a minute"
    if minutes < 90:
        return f"about {minutes:.0f} minutes"
    if minutes < 48 * 60:
        return f"about {minutes / 60:.0f} hours"
    return f"about {minutes / 1440:.0f} days"


def reference(ranks: list[dict[str, Any]]) -> int | None:
    """The rank that the others are compared with: its own difference is exactly nothing."""
    same = (one["rank"] for one in ranks if one["worse"] == 0.0 and one["error"] == 0.0)
    return next(same, None)


def compared(rank: int | None, ranks: list[dict[str, Any]]) -> str:
    """What the differences of held-out log-loss are to, for the chart's caption."""
    if rank is None:
        return "(bars: ± 1 standard error)"
    other = "guessing" if rank == 0 else dimensions(rank)
    below = any(float(one["worse"]) < 0.0 for one in ranks)
    sense = "below 0: predicts better; " * below
    return f"(held-out log-loss compared with {other}; {sense}bars: ± 1 standard error)"


def evidence(rank: int | None, ranks: list[dict[str, Any]]) -> str:
    """What held-out answers say about the number of dimensions."""
    if rank is None or not ranks:
        return "There is no evidence yet: it comes with the first estimate."
    if rank == 0:
        return (
            "No number of dimensions predicts held-out answers clearly better than guessing: "
            f"{BEYOND_LUCK:g} standard errors are needed."
        )
    by = {one["rank"]: one for one in ranks}
    if 0 in by and float(by[0]["worse"]) < BEYOND_LUCK * float(by[0]["error"]):
        return (
            "Answers to questions not chosen by the model are predicted clearly better than by "
            "guessing, so there is at least one dimension. How many there are, held-out answers "
            "cannot tell yet."
        )
    text = f"Held-out answers are predicted best with {dimensions(rank)}"
    best = min(ranks, key=lambda one: float(one["worse"]))["rank"]
    if best != rank:
        text = (
            f"{dimensions(rank).capitalize()} predict{'s' * (rank == 1)} held-out answers as well "
            f"as {named(best)} do, within one standard error, and fewer is the simpler account"
        )
    parts = []
    for other in (rank - 1, rank + 1):
        if other not in by or other == best:
            continue
        worse, error = float(by[other]["worse"]), float(by[other]["error"])
        how = "clearly worse" if worse > CLEAR * error else "only a little worse"
        parts.append(f"{named(other)} would be {how}")
    return text + ("; " + " and ".join(parts) if parts else "") + "."


def predicted(share: dict[str, Any]) -> str:
    """The accuracy beside the headline."""
    return predicted_correctly(share["count"], share["value"], share["low"], share["high"])


def accuracy(share: dict[str, Any], ceiling: float | None, found: Verdict) -> str:
    """How good predictions are, between chance and what people's own inconsistency allows."""
    if not found.has_rank:
        return "No accuracy yet: without a number of dimensions there is no map to predict with."
    if share["count"] == 0:
        return "No random question has been predicted yet."
    text = predicted(share)
    if ceiling is not None:
        text += (
            f" Noise ceiling: {percent(ceiling)}, from how consistently people answer the same "
            "question twice."
        )
    return text


def spectrum(shares: list[float]) -> str:
    """How the variance divides among the dimensions."""
    if not shares:
        return "No dimensions yet."
    if len(shares) == 1:
        return "There is one dimension, so it carries all of the variance."
    parts = [f"{share:.0%}" for share in shares]
    listed = ", ".join(parts[:-1]) + " and " + parts[-1]
    return f"Share of the variance in the map, strongest dimension first: {listed}."
