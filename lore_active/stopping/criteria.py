"""The criteria of stopping rules, with the texts that pages and reports show for each.

A registry: a rule with a criterion of its own registers it here, and the monitor, the report, its
methods text and the reference include it. Does not import numba, because pages use it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import exp, isfinite
from typing import Any

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Criterion:
    """A condition for stopping: its value, and the threshold that the value must reach.

    `share` is that of the dimension that the criterion is about, where it is about one of a certain
    size; `weaker` is then how many dimensions of the map carry less than dimensions of interest.
    """

    name: str
    value: float
    threshold: float
    passed: bool
    share: float | None = None
    weaker: int | None = None

    def stored(self) -> dict[str, Any]:
        """As it is kept in databases and logs, without what is not known."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class CriterionText:
    """The texts of a criterion.

    title: for tables. waiting: what is missing while it is not met. message: its value and
    threshold as a sentence, given the number of dimensions. needs_rank: it applies only once a
    dimension is reported. evidence: the methods text of a report quotes it.
    """

    name: str
    title: str
    waiting: str
    message: Callable[[Criterion, int], str]
    needs_rank: bool = True
    evidence: bool = False


CRITERIA: dict[str, CriterionText] = {}
# Names of criteria in earlier versions.
FORMER_NAMES = {
    "likelier_than_fewer": "bayes_factor_fewer",
    "likelier_than_more": "bayes_factor_more",
}


def register(text: CriterionText) -> None:
    """Add a criterion to the registry; its name must be new."""
    if text.name in CRITERIA:
        raise ValueError(f"A criterion called {text.name!r} already exists.")
    CRITERIA[text.name] = text


def from_stored(row: dict[str, Any]) -> Criterion:
    """A criterion from a database or a log, possibly of an earlier version."""
    name = str(row["name"])
    return Criterion(
        *(FORMER_NAMES.get(name, name), row["value"], row["threshold"], bool(row["passed"])),
        share=row.get("share"),
        weaker=row.get("weaker"),
    )


def number(rank: int) -> str:
    """A number in words: `three`."""
    return NAMES[rank] if 0 <= rank < len(NAMES) else str(rank)


def dimensions(rank: int) -> str:
    """A number of dimensions in words: `three dimensions`."""
    return f"{number(rank)} dimension{'s' * (rank != 1)}"


def of_interest(rank: int, criteria: Sequence[Criterion]) -> tuple[int, int]:
    """How many of the map's dimensions are of interest, and how many are weaker.

    Examples
    --------
    >>> from lore_active.stopping.criteria import Criterion, of_interest
    >>> of_interest(4, [Criterion("further_dimension", 5.2, 3.0, True, 0.1, weaker=1)])
    (3, 1)
    """
    weaker = max((criterion.weaker or 0 for criterion in criteria), default=0)
    return rank - weaker, weaker


def with_weaker(rank: int, weaker: int) -> str:
    """A number of dimensions in words: `three dimensions and a weaker one`."""
    if not weaker:
        return dimensions(rank)
    return dimensions(rank) + (
        " and a weaker one" if weaker == 1 else f" and {number(weaker)} weaker ones"
    )


def percent(share: float) -> str:
    """A percentage: `81 %`; with a decimal where rounding would make it look like chance."""
    close = round(100 * share) == 50 and round(share, 4) != 0.5
    return f"{100 * share:.1f} %" if close else f"{100 * share:.0f} %"


def title(name: str) -> str:
    """The title of a criterion, for tables."""
    return CRITERIA[name].title if name in CRITERIA else name


def message(criterion: Criterion, rank: int) -> str:
    """A criterion's value and threshold as a sentence; `rank` is the number of dimensions."""
    if criterion.name in CRITERIA:
        return CRITERIA[criterion.name].message(criterion, rank)
    return f"{criterion.name}: {criterion.value:g} ({criterion.threshold:g} needed)."


def not_met(names: list[str]) -> str:
    """What the stopping rule is waiting for; empty if every criterion is met."""
    waits = [CRITERIA[name].waiting if name in CRITERIA else name for name in names]
    if not waits:
        return ""
    listed = waits[0] if len(waits) == 1 else ", ".join(waits[:-1]) + ", and " + waits[-1]
    return f"Not met: {listed}."


def without_rank() -> tuple[str, ...]:
    """Criteria that apply before any dimension is reported."""
    return tuple(name for name, text in CRITERIA.items() if not text.needs_rank)


def _pair(criterion: Criterion, rank: int) -> tuple[str, int]:
    other = rank + (1 if criterion.name.endswith("_more") else -1)
    return f"{rank} vs {other} dimension{'s' * (other != 1)}", other


def _predicted(criterion: Criterion, rank: int) -> str:
    pair, other = _pair(criterion, rank)
    if not isfinite(criterion.value):
        return f"{pair}: {dimensions(other)} could not be fitted."
    return (
        f"Held-out log-loss, {pair}: mean advantage of {criterion.value:.2f} standard errors "
        f"(at least {criterion.threshold:.2f} needed)."
    )


def _bayes_factor(criterion: Criterion, rank: int) -> str:
    pair, other = _pair(criterion, rank)
    if not isfinite(criterion.value):
        return f"{pair}: {dimensions(other)} {'was' if other == 1 else 'were'} not tested."
    return (
        f"Log Bayes factor, {pair}: {criterion.value:.1f} (at least {criterion.threshold:.1f} "
        "needed)."
    )


def of_size(criterion: Criterion) -> str:
    """The dimension that a criterion is about."""
    share = percent(criterion.share or 0.0)
    return f"a further dimension that carries {share} or more of the differences between items"


def odds(criterion: Criterion) -> str:
    """The Bayes factor that a criterion needs, as odds: `20 : 1`."""
    return f"{exp(criterion.threshold):.3g} : 1"


def _further(criterion: Criterion, _: int) -> str:
    about = of_size(criterion)
    if criterion.value <= -criterion.threshold:
        return f"There is evidence for {about}: log Bayes factor {-criterion.value:.1f}."
    return (
        f"Log Bayes factor against {about}: {criterion.value:.1f} (at least "
        f"{criterion.threshold:.1f} needed, mean of three audits in a row)."
    )


def _unchanged(criterion: Criterion, _: int) -> str:
    last = "audit" if criterion.value == 1 else f"{criterion.value:.0f} audits"
    return f"Same number of dimensions in the last {last} ({criterion.threshold:.0f} needed)."


for _text in (
    CriterionText(
        "items_seen",
        "Every item has been seen",
        "some items have not been seen yet",
        lambda criterion, _: (
            f"Items in answered questions: {criterion.value:,.0f} of {criterion.threshold:,.0f}."
        ),
        needs_rank=False,
    ),
    CriterionText(
        "answers",
        "There are enough answers to start with",
        "the minimum number of answers has not been reached",
        lambda criterion, _: (
            f"Answers: {criterion.value:,.0f} (at least {criterion.threshold:,.0f} needed)."
        ),
        needs_rank=False,
    ),
    CriterionText(
        "better_than_chance",
        "Predictions are better than chance",
        "predictions are not yet clearly better than chance",
        lambda criterion, _: (
            "Held-out accuracy on questions not selected by the model, 95 % confidence interval: "
            f"at least {percent(criterion.value)} (chance: {percent(criterion.threshold)})."
        ),
        needs_rank=False,
    ),
    CriterionText(
        "audits_unchanged",
        "The number of dimensions is stable",
        "the number of dimensions has not been stable for long enough",
        _unchanged,
        evidence=True,
    ),
    CriterionText(
        "preferred_to_fewer",
        "Fewer dimensions predict worse",
        "fewer dimensions still predict nearly as well",
        _predicted,
        evidence=True,
    ),
    CriterionText(
        "preferred_to_more",
        "More dimensions do not predict better",
        "more dimensions may still predict better",
        _predicted,
        evidence=True,
    ),
    CriterionText(
        "bayes_factor_fewer",
        "Fewer dimensions are not supported",
        "fewer dimensions cannot be ruled out",
        _bayes_factor,
        evidence=True,
    ),
    CriterionText(
        "bayes_factor_more",
        "More dimensions are not supported",
        "a further, weakly identified dimension cannot be ruled out",
        _bayes_factor,
        evidence=True,
    ),
    CriterionText(
        "further_dimension",
        "A further dimension is ruled out",
        "a further dimension of the smallest size of interest has not been ruled out",
        _further,
        evidence=True,
    ),
):
    register(_text)
