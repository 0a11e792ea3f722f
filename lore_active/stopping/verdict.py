"""The verdict of a study: the texts of its stage, filled in with its figures."""

from __future__ import annotations

from dataclasses import dataclass

from lore_active.rank.significance import MIN_STANDARD_ERRORS
from lore_active.stopping.criteria import (
    Criterion,
    dimensions,
    number,
    odds,
    of_interest,
    of_size,
    percent,
    with_weaker,
)
from lore_active.stopping.stages import STAGES, Collection, Findings
from lore_active.wording import listed, many


@dataclass(frozen=True)
class Verdict:
    """The texts that every page and command shows for a study.

    stage: its name in the table of stages. criteria: those that apply at this stage. has_rank:
    whether a number of dimensions is reported; without one there is no map and no accuracy.
    """

    stage: str
    headline: str
    explanation: str
    methods: str
    criteria: tuple[Criterion, ...]
    has_rank: bool


def verdict(collection: Collection, findings: Findings | None) -> Verdict:
    """The verdict of a study; `findings` is None before the first audit."""
    stage = next(row for row in STAGES if row.applies(collection, findings))
    criteria = () if findings is None else findings.criteria
    figures = _figures(collection, findings)
    explanation = stage.explanation.format(**figures)
    about = _about(collection)
    if collection.status != "running" or collection.budget:
        about += "" if stage.ending else _why_closed(collection)
    return Verdict(
        stage=stage.name,
        headline=stage.headline.format(**figures),
        explanation=f"{explanation}{about}",
        methods=stage.methods.format(**figures),
        criteria=tuple(criterion for criterion in criteria if stage.shows(criterion.name)),
        has_rank=stage.has_rank,
    )


def accuracy(count: int, value: float, low: float, high: float, chance: float = 0.5) -> str:
    """Prequential accuracy as a sentence; empty where nothing was predicted."""
    if not count:
        return ""
    which = "random question, {} was" if count == 1 else "random questions, {} were"
    return (
        f"Of the last {count:,} {which.format(percent(value))} predicted correctly before being "
        f"answered (95 % confidence interval: {100 * low:.0f} to {percent(high)}; chance: "
        f"{share_by_guessing(chance)})."
    )


def share_by_guessing(chance: float) -> str:
    """The share of answers that guesses predict: `50 %`, `1.8 %`."""
    return percent(chance) if chance >= 0.1 else f"{100 * chance:.2g} %"


def only_a_bound(rank: int, guessing: tuple[float, float] | None) -> bool:
    """Whether one dimension is only a lower bound: held-out answers do not determine the number.

    `guessing` is the excess held-out log-loss of guessing, with its standard error.
    """
    return rank == 1 and guessing is not None and guessing[0] < MIN_STANDARD_ERRORS * guessing[1]


def _figures(collection: Collection, findings: Findings | None) -> dict[str, str]:
    """The values of the placeholders in a stage's texts."""
    until_first = max(1, collection.until_first)
    figures = {
        "until_first": f"{until_first:,}",
        "more_answers": many(until_first, "more answer"),
        "answers": many(collection.answers, "answer"),
        "not_counted": listed([f"{count:,} {why}" for count, why in collection.not_counted]),
        "so_far": "" if collection.ended else " so far",
        "yet": "" if collection.ended else " yet",
        "budget": collection.budget,
        "Budget": collection.budget[:1].upper() + collection.budget[1:],
    }
    if findings is None:
        return figures
    chance, needed = findings.criterion("better_than_chance"), findings.criterion("answers")
    unchanged = findings.criterion("audits_unchanged")
    stable = 0 if unchanged is None else int(unchanged.value)
    estimate = _estimate(findings)
    further = findings.criterion("further_dimension")
    ruled_out = "" if further is None else f"{of_size(further)} is ruled out ({odds(further)})"
    return figures | {
        "not_supported": f"Fewer dimensions are not supported, {ruled_out}"
        if ruled_out
        else "Neither fewer nor more dimensions are supported",
        "weaker": _weaker(findings),
        "ruled_out": f" {ruled_out[:1].upper()}{ruled_out[1:]}." if ruled_out else "",
        "dimensions": estimate,
        "Dimensions": estimate[:1].upper() + estimate[1:],
        "accuracy": percent(chance.value) if chance else "",
        "fitted": f"{needed.value:,.0f}" if needed else "",
        "needed": f"{needed.threshold:,.0f}" if needed else "",
        "stable_audits": "audit" if stable == 1 else f"{stable} audits",
        "met": str(sum(criterion.passed for criterion in findings.criteria)),
        "all": str(len(findings.criteria)),
    }


def _estimate(findings: Findings) -> str:
    """`three dimensions`, `at least one …`, `two or three …`; `up to …` if none is possible."""
    ranks = () if findings.settled else findings.alternating
    if ranks and ranks[0] == 0:
        return f"up to {dimensions(ranks[-1])}"
    if ranks:
        names = [*map(number, ranks[:-1]), dimensions(ranks[-1])]
        return ", ".join(names[:-1]) + " or " + names[-1]
    if findings.settled:
        return with_weaker(*of_interest(findings.rank, findings.criteria))
    return "at least " * findings.only_a_bound + dimensions(findings.rank)


def _weaker(findings: Findings) -> str:
    """What weaker dimensions of the map are; empty where there are none."""
    further = findings.criterion("further_dimension")
    if further is None or not further.weaker or not findings.settled:
        return ""
    which = "dimension of the map carries"
    if further.weaker > 1:
        which = "dimensions of the map each carry"
    return f" The weaker {which} less than {percent(further.share or 0.0)}."


def _about(collection: Collection) -> str:
    """A note on the answers behind the verdict, where some are simulated or all are imported."""
    if collection.simulated and collection.simulated == collection.answers:
        return " All of these answers are simulated: they say nothing about people."
    if collection.simulated:
        return f" {collection.simulated:,} of these answers are simulated."
    if collection.simulated_left_out:
        verb = "is" if collection.simulated_left_out == 1 else "are"
        return f" {many(collection.simulated_left_out, 'simulated answer')} {verb} left out."
    if collection.imported and not collection.answers:
        return f" All {collection.imported:,} answers in the model are imported."
    return ""


def _why_closed(collection: Collection) -> str:
    """Why no answers are being collected, for now or for good."""
    if collection.status == "paused":
        return " Collection is paused." if collection.started else " Collection has not started."
    if collection.status == "stopped":
        by = "stopping rule ended" if collection.by_rule else "experimenter stopped"
        return f" The {by} the study."
    return f" {collection.budget[:1].upper()}{collection.budget[1:]}."
