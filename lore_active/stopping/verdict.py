"""The verdict of a study: the stage it is in, in sentences with its own figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lore_active.rank.significance import MIN_STANDARD_ERRORS
from lore_active.stopping.criteria import Criterion, dimensions, number, percent
from lore_active.stopping.stages import STAGES, Collection, Findings


@dataclass(frozen=True)
class Verdict:
    """What is said of a study, everywhere.

    stage: the name of the table's row. criteria: those that make sense at this stage. has_rank:
    whether a number of dimensions is reported; without one there is no map and no accuracy.
    """

    stage: str
    headline: str
    explanation: str
    methods: str
    criteria: tuple[Criterion, ...]
    has_rank: bool


def verdict(collection: Collection, findings: Findings | None) -> Verdict:
    """What is to be said of a study; `findings` is None before the first audit."""
    stage = next(one for one in STAGES if one.applies(collection, findings))
    shown = () if findings is None else findings.criteria
    said = _figures(collection, findings)
    explanation = stage.explanation.format(**said)
    about = _about(collection)
    if collection.status != "running" or collection.budget:
        about += "" if stage.ending else _standing(collection)
    return Verdict(
        stage=stage.name,
        headline=stage.headline.format(**said),
        explanation=f"{explanation}{about}",
        methods=stage.methods.format(**said),
        criteria=tuple(one for one in shown if stage.shows(one.name)),
        has_rank=stage.has_rank,
    )


def accuracy(count: int, value: float, low: float, high: float) -> str:
    """Prequential accuracy as a sentence; empty where nothing was predicted."""
    if not count:
        return ""
    which = "random question, {} was" if count == 1 else "random questions, {} were"
    return (
        f"Of the last {count:,} {which.format(percent(value))} predicted correctly before being "
        f"answered (95 % confidence interval: {100 * low:.0f} to {percent(high)}; chance: 50 %)."
    )


def only_a_bound(rank: int, guessing: tuple[float, float] | None) -> bool:
    """Whether held-out answers cannot tell how many dimensions there are, only that there are some.

    `guessing` is how much higher its held-out log-loss is, with the standard error of that.
    """
    return rank == 1 and guessing is not None and guessing[0] < MIN_STANDARD_ERRORS * guessing[1]


def _figures(collection: Collection, found: Findings | None) -> dict[str, str]:
    """What stands in a stage's sentences in place of the braces."""
    said = {
        "until_first": f"{max(1, collection.until_first):,}",
        "answers": _many(collection.answers),
        "not_counted": _listed([f"{count:,} {why}" for count, why in collection.not_counted]),
        "so_far": "" if collection.ended else " so far",
        "yet": "" if collection.ended else " yet",
        "budget": collection.budget,
        "Budget": collection.budget[:1].upper() + collection.budget[1:],
    }
    if found is None:
        return said
    chance, needed = found.criterion("better_than_chance"), found.criterion("answers")
    held = found.criterion("audits_unchanged")
    estimate = _estimate(found)
    return said | {
        "dimensions": estimate,
        "Dimensions": estimate[:1].upper() + estimate[1:],
        "accuracy": percent(chance.value) if chance else "",
        "fitted": f"{needed.value:,.0f}" if needed else "",
        "needed": f"{needed.threshold:,.0f}" if needed else "",
        "held": f"{held.value:.0f}" if held else "",
        "met": str(sum(one.passed for one in found.criteria)),
        "all": str(len(found.criteria)),
    }


def _estimate(found: Findings) -> str:
    """`three dimensions`, `at least one …`, `two or three …`; `up to …` where also none was."""
    ranks = () if found.settled else found.alternating
    if ranks and ranks[0] == 0:
        return f"up to {dimensions(ranks[-1])}"
    if ranks:
        names = [*map(number, ranks[:-1]), dimensions(ranks[-1])]
        return ", ".join(names[:-1]) + " or " + names[-1]
    bound = "at least " * (found.only_a_bound and not found.settled)
    return bound + dimensions(found.rank)


def _about(collection: Collection) -> str:
    """Which answers the verdict rests on, where that is not what one would expect."""
    if collection.simulated and collection.simulated == collection.answers:
        return " All of these answers are simulated: they say nothing about people."
    if collection.simulated:
        return f" {collection.simulated:,} of these answers are simulated."
    if collection.simulated_left_out:
        return f" {_many(collection.simulated_left_out, 'simulated ')} left out."
    if collection.imported and not collection.answers:
        return f" All {collection.imported:,} answers in the model are imported."
    return ""


def _standing(collection: Collection) -> str:
    """Why nothing more is collected, now or for good."""
    if collection.status == "paused":
        return " Collection is paused." if collection.started else " Collection has not started."
    if collection.status == "stopped":
        by = "stopping rule ended" if collection.by_rule else "experimenter stopped"
        return f" The {by} the study."
    return f" {collection.budget[:1].upper()}{collection.budget[1:]}."


def _many(answers: int, kind: str = "") -> str:
    return f"{answers:,} {kind}answer{'s' * (answers != 1)}"


def _listed(parts: Sequence[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + " and " + parts[-1]
