"""The criteria of the stopping rule: what each is called, what it says, and what it waits for.

Known without a compiler, since pages speak of them as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

TITLES = {
    "items_seen": "Every item has been seen",
    "answers": "Enough answers to begin with",
    "better_than_chance": "Predictions are better than chance",
    "audits_unchanged": "The number of dimensions is stable",
    "preferred_to_fewer": "Fewer dimensions predict worse",
    "preferred_to_more": "More dimensions do not predict better",
    "likelier_than_fewer": "Fewer dimensions are not supported",
    "likelier_than_more": "More dimensions are not supported",
}
WAITS = {
    "items_seen": "some items have not been seen yet",
    "answers": "there are still few answers for each item",
    "better_than_chance": "predictions are not yet clearly better than chance",
    "audits_unchanged": "the number of dimensions must stay the same for longer",
    "preferred_to_fewer": "fewer dimensions still predict nearly as well",
    "preferred_to_more": "more dimensions may still predict better",
    "likelier_than_fewer": "fewer dimensions explain the answers nearly as well",
    "likelier_than_more": "a further, weakly identified dimension cannot be ruled out",
}
# Criteria that make sense before any dimension is reported; the others speak of a number of them.
WITHOUT_RANK = ("items_seen", "answers", "better_than_chance")
COMPARED = (
    "preferred_to_fewer",
    "preferred_to_more",
    "likelier_than_fewer",
    "likelier_than_more",
)


@dataclass(frozen=True)
class Criterion:
    """One thing that must hold: its value, what it must reach, and a sentence about it.

    `words` is stored and hashed with a study's decisions, so it stays as it was; what is shown to
    readers is `message`.
    """

    name: str
    value: float
    threshold: float
    passed: bool
    words: str


def number(rank: int) -> str:
    """`three`."""
    return NAMES[rank] if 0 <= rank < len(NAMES) else str(rank)


def dimensions(rank: int) -> str:
    """`three dimensions`."""
    return f"{number(rank)} dimension{'s' * (rank != 1)}"


def percent(share: float) -> str:
    """`81 %`; with a decimal where it would look like chance and is not."""
    close = round(100 * share) == 50 and round(share, 4) != 0.5
    return f"{100 * share:.1f} %" if close else f"{100 * share:.0f} %"


def message(criterion: Criterion, rank: int) -> str:
    """A criterion's value and threshold as a sentence; `rank` is the number of dimensions."""
    name, value, threshold = criterion.name, criterion.value, criterion.threshold
    if name == "items_seen":
        return f"{value:,.0f} of {threshold:,.0f} items have been in an answer."
    if name == "answers":
        return f"{value:,.0f} answers of at least {threshold:,.0f}."
    if name == "better_than_chance":
        return (
            "Questions not chosen by the model, predicted by fits without their answers: 95 % "
            f"confidence interval: at least {percent(value)} (chance: {percent(threshold)})."
        )
    if name == "audits_unchanged":
        audits = f"audit{'s' * (value != 1)}"
        return f"The same number in the last {value:.0f} {audits} ({threshold:.0f} needed)."
    if name in COMPARED:
        return _compared(criterion, rank)
    return criterion.words


def _compared(criterion: Criterion, rank: int) -> str:
    other = rank + (1 if criterion.name.endswith("_more") else -1)
    pair = f"{rank} vs {other} dimension{'s' * (other != 1)}"
    predicted = criterion.name.startswith("preferred")
    if not isfinite(criterion.value):
        how = "could not be fitted" if predicted else "was not tested"
        return f"{pair}: {dimensions(other)} {how}."
    if predicted:
        return (
            f"Held-out log-loss, {pair}: better by {criterion.value:.2f} standard errors on "
            f"average ({criterion.threshold:.2f} needed)."
        )
    return (
        f"Log Bayes factor, {pair}: {criterion.value:.1f} (at least {criterion.threshold:.1f} "
        "needed)."
    )


def not_met(names: list[str]) -> str:
    """What the stopping rule waits for; nothing, if every criterion is met."""
    waits = [WAITS.get(name, name) for name in names]
    if not waits:
        return ""
    listed = waits[0] if len(waits) == 1 else ", ".join(waits[:-1]) + ", and " + waits[-1]
    return f"Not met: {listed}."
