"""What the methods section says about each kind of question."""

from __future__ import annotations

from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.trials.stages import MAX_UNORDERED
from lore_active.wording import many
from server.study.config import Trial

# Selectors that compose questions with an anchor; others choose among random ones.
COMPOSING = ("fisher", "local")
COMPOSED = (
    " Questions were composed option by option, each time adding the option with which the "
    "question was expected to be most informative; options could then be exchanged once."
)


def task(trial: Trial, kind: Kind) -> str:
    """What participants saw and did on a trial."""
    asked = f"and answered the question “{trial.question.strip()}”"
    if kind == TRIPLET:
        where = "with two others below it" if trial.layout == "above" else "between two others"
        return (
            f"saw one item {where} {asked} by choosing one of the other two; their left–right "
            "positions were balanced."
        )
    balanced = "the places of the options were random."
    if not kind.has_anchor:
        return f"saw three items {asked} by choosing one of them (the odd one out); {balanced}"
    how = f"choosing {kind.pick} of the {kind.options}"
    if kind.ordered:
        how += ", the most similar one first" if kind.pick > 1 else ""
        also = " (rankings; Canal, Fenu & Rozell, 2020; Roads & Mozer, 2019)"
    else:
        also = ", in any order" if kind.pick > 1 else ""
        also += " (Wilber, Kwak & Belongie, 2014)"
    return f"saw one item with {kind.options} others {asked} by {how}{also}; {balanced}"


def composed(kind: Kind, selector: str) -> str:
    """How options were put together, as a sentence; empty where questions were not composed."""
    applies = kind != TRIPLET and kind.has_anchor and selector in COMPOSING
    return COMPOSED if applies else ""


def likelihood(kind: Kind) -> str:
    """The likelihood of answers to questions with several options, as a noun phrase."""
    what = "an option is picked with a probability proportional to exp(−distance)"
    if not kind.has_anchor:
        what = "two items remain with a probability proportional to exp(−distance)"
    elif kind.pick > MAX_UNORDERED and not kind.ordered:
        what += ", each compared with the options that were not picked (a composite likelihood)"
    elif kind.pick > 1 and not kind.ordered:
        what += ", summed over the orders in which options may have been picked"
    return f"the likelihood of Plackett (1975) and Luce (1959), in which {what}"


def comparisons(kind: Kind) -> str:
    """How an answer of several comparisons enters the fits."""
    if not kind.has_anchor:
        what = (
            "Each answer was entered as two comparisons: each of the two items that were not "
            "chosen is nearer to the other than to the odd one"
        )
    else:
        what = (
            f"Each answer was entered as {many(kind.n_comparisons, 'comparison')} (nearer and "
            "farther option): every chosen option is nearer to the anchor than every one that was "
            "not chosen" + (" and than those chosen after it" * (kind.ordered and kind.pick > 1))
        )
    return (
        f"{what}. All comparisons of an answer were in the same fold, and standard errors are "
        "those of the means of answers. The acquisition model and the Bayes factors used "
        f"{likelihood(kind)}."
    )
