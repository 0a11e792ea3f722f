"""The monitor's figures as sentences, for people who have not read how the method works."""

from __future__ import annotations

from typing import Any

from lore_active.luck import BEYOND_LUCK
from server.monitoring.outlook import Outlook
from server.store.monitoring import DecisionRow

NAMES = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
CLEAR = 2.0

TITLES = {
    "items_seen": "Every item has been seen",
    "answers": "Enough answers to begin with",
    "better_than_chance": "Predictions beat guessing",
    "audits_unchanged": "The number has stayed the same",
    "preferred_to_fewer": "One dimension fewer is clearly worse",
    "preferred_to_more": "One dimension more does not help",
    "likelier_than_fewer": "One dimension fewer explains too little",
    "likelier_than_more": "One dimension more explains too little",
}
# Criteria that compare a number of dimensions with others.
COMPARED = (
    "preferred_to_fewer",
    "preferred_to_more",
    "likelier_than_fewer",
    "likelier_than_more",
)
WAITS = {
    "items_seen": "some items have not been seen yet",
    "answers": "there are still few answers for each item",
    "better_than_chance": "it is not yet certain that predictions beat guessing",
    "audits_unchanged": "the number must stay the same for longer",
    "preferred_to_fewer": "one dimension fewer still fits nearly as well",
    "preferred_to_more": "one dimension more cannot be ruled out yet",
    "likelier_than_fewer": "one dimension fewer explains the answers nearly as well",
    "likelier_than_more": "there may be a dimension more that is not well known yet",
}


def dimensions(rank: int) -> str:
    """`three dimensions`."""
    name = NAMES[rank] if rank < len(NAMES) else str(rank)
    return f"{name} dimension{'s' * (rank != 1)}"


def headline(
    decision: DecisionRow | None,
    status: str,
    collected: int,
    first_audit: int,
    spent: bool,
    by_rule: bool = False,
) -> str:
    """Where the study stands, in one sentence; `by_rule`: the stopping rule has ended it."""
    if collected == 0 and decision is None:
        return "Nobody has answered yet."
    if decision is None:
        left = max(1, first_audit - collected)
        return f"Too early to say: the first look comes in about {left} answers."
    what = dimensions(decision.rank).capitalize()
    ended = status == "stopped" or spent
    if decision.settled:
        return f"{what}, and that is settled."
    if decision.rank == 0:
        end = "The study ended, and" if ended else "So far"
        return f"{end} the answers cannot be told from guesses."
    if status == "stopped" and by_rule:
        return f"{what}, but what changed since the stop leaves that uncertain."
    if ended:
        return f"{what}, but the study ended before that was certain."
    return f"{what} so far, and more questions are needed to be sure."


def forecast(one: Outlook, status: str, per_minute: float, left_in_budget: int) -> str:
    """What is still to come."""
    if status == "stopped":
        return "Collection has ended; people in the middle may still finish."
    if one.answers == 0:
        return "Every criterion holds."
    if one.answers is None:
        because = WAITS.get(one.waits_for)
        return f"It cannot be told yet: {because}." if because else "Too early to tell."
    words = f"About {one.answers:,} more answers"
    if per_minute > 0:
        words += f", {duration(one.answers / per_minute)} at the present pace"
    if one.answers > left_in_budget:
        words += f"; the budget leaves only {max(0, left_in_budget):,}"
    because = WAITS.get(one.waits_for)
    return f"{words}. Mostly because {because}." if because else f"{words}."


def missing(criteria: list[str]) -> str:
    """What the stopping rule waits for."""
    if not criteria:
        return "Nothing is missing: every criterion holds."
    waits = [WAITS.get(name, name) for name in criteria]
    listed = waits[0] if len(waits) == 1 else ", ".join(waits[:-1]) + ", and " + waits[-1]
    return f"What is missing: {listed}."


def duration(minutes: float) -> str:
    """`about 3 hours`."""
    if minutes < 1.5:
        return "about a minute"
    if minutes < 90:
        return f"about {minutes:.0f} minutes"
    if minutes < 48 * 60:
        return f"about {minutes / 60:.0f} hours"
    return f"about {minutes / 1440:.0f} days"


def evidence(rank: int | None, ranks: list[dict[str, Any]]) -> str:
    """What held-out answers say about the number of dimensions."""
    if rank is None or not ranks:
        return "There is no evidence yet: it comes with the first audit."
    if rank == 0:
        return "No number of dimensions predicts held-out answers better than guessing does."
    by = {one["rank"]: one for one in ranks}
    if 0 in by and float(by[0]["worse"]) < BEYOND_LUCK * float(by[0]["error"]):
        return (
            "Answers to questions that no model picked are predicted better than by guessing, so "
            "there is something to find. How many dimensions it has cannot be told yet: one is the "
            "least."
        )
    words = f"Answers that were held out are predicted best with {dimensions(rank)}"
    best = min(ranks, key=lambda one: float(one["worse"]))["rank"]
    if best != rank:
        words = (
            f"{dimensions(rank).capitalize()} predict held-out answers as well as {best} do, "
            "and fewer is the simpler account"
        )
    parts = []
    for other in (rank - 1, rank + 1):
        if other not in by or other == best:
            continue
        worse, error = float(by[other]["worse"]), float(by[other]["error"])
        how = "clearly worse" if worse > CLEAR * error else "only a little worse"
        parts.append(f"{NAMES[other] if other < len(NAMES) else other} would be {how}")
    return words + ("; " + " and ".join(parts) if parts else "") + "."


def accuracy(share: dict[str, Any], ceiling: float | None) -> str:
    """How good predictions are, between guessing and what people's own wavering allows."""
    if not share or share["count"] == 0:
        return "No random question has been predicted yet."
    words = (
        f"Of the last {share['count']} random questions, {share['value']:.0%} were predicted right "
        f"before they were answered (95 % interval {share['low']:.0%} to {share['high']:.0%}). "
        "Guessing would give 50 %."
    )
    if ceiling is not None:
        words += (
            f" People answer a question the same way twice so often that a perfect model could "
            f"reach about {ceiling:.0%}."
        )
    return words


def spectrum(values: list[float]) -> str:
    """How the spread divides among the dimensions."""
    if not values:
        return "There is no model with dimensions yet."
    whole = sum(value * value for value in values) or 1.0
    shares = [f"{value * value / whole:.0%}" for value in values]
    listed = shares[0] if len(shares) == 1 else ", ".join(shares[:-1]) + " and " + shares[-1]
    return f"Of the differences between items, the dimensions carry {listed}, strongest first."
