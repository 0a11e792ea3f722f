"""Texts about the figures of the monitor, and its banner about simulated data."""

from __future__ import annotations

from math import ceil
from typing import Any

from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.rank.significance import MIN_STANDARD_ERRORS
from lore_active.stopping.criteria import dimensions, not_met, percent
from lore_active.stopping.criteria import number as named
from lore_active.stopping.sensitivity import Sensitivity
from lore_active.stopping.verdict import Verdict
from lore_active.stopping.verdict import accuracy as predicted_correctly
from lore_active.wording import listed, many
from server.status.counting import AnswerCounts, ParticipantCounts
from server.study.config import Bots

CLEAR = 2.0


def missing(verdict: Verdict) -> str:
    """What the stopping rule is waiting for."""
    if not verdict.criteria:
        return "The criteria are evaluated with the first estimate."
    text = not_met([criterion.name for criterion in verdict.criteria if not criterion.passed])
    if not verdict.has_rank:
        rest = "The other criteria apply once a number of dimensions is reported."
        return f"{text} {rest}".strip()
    return text or "All criteria are met."


def duration(minutes: float) -> str:
    """A duration in words: `about 3 hours`."""
    if minutes < 1.5:
        return "about a minute"
    if minutes < 90:
        return f"about {minutes:.0f} minutes"
    if minutes < 48 * 60:
        return f"about {minutes / 60:.0f} hours"
    return f"about {minutes / 1440:.0f} days"


def reference(ranks: list[dict[str, Any]]) -> int | None:
    """The rank that the others are compared with: its own difference is exactly zero."""
    same = (row["rank"] for row in ranks if row["difference"] == 0.0 and row["error"] == 0.0)
    return next(same, None)


def compared(rank: int | None, ranks: list[dict[str, Any]]) -> str:
    """The caption of the evidence chart: what held-out log-losses are compared with."""
    if rank is None:
        return "(bars: ± 1 standard error)"
    other = "guessing" if rank == 0 else dimensions(rank)
    below = any(float(row["difference"]) < 0.0 for row in ranks)
    direction = "below 0: predicts better; " * below
    return f"(held-out log-loss compared with {other}; {direction}bars: ± 1 standard error)"


def evidence(rank: int | None, ranks: list[dict[str, Any]]) -> str:
    """What held-out answers say about the number of dimensions."""
    if rank is None or not ranks:
        return "No evidence yet; it comes with the first estimate."
    if rank == 0:
        return (
            "No number of dimensions predicts held-out answers clearly better than guessing (at "
            f"least {MIN_STANDARD_ERRORS:g} standard errors needed)."
        )
    by = {rank_row["rank"]: rank_row for rank_row in ranks}
    if 0 in by and float(by[0]["difference"]) < MIN_STANDARD_ERRORS * float(by[0]["error"]):
        return (
            "Answers to questions not selected by the model are predicted clearly better than by "
            "guessing, so there is at least one dimension. Held-out answers do not show yet how "
            "many there are."
        )
    text = f"Held-out answers are predicted best with {dimensions(rank)}"
    best = min(ranks, key=lambda row: float(row["difference"]))["rank"]
    if best < rank:
        text = (
            f"{dimensions(rank).capitalize()} do not predict held-out answers clearly worse than "
            f"{named(best)}, and a Bayes factor shows a further dimension beyond "
            f"{named(rank - 1)}, so the larger number is reported"
        )
    elif best > rank:
        text = (
            f"{dimensions(rank).capitalize()} predict{'s' * (rank == 1)} held-out answers as well "
            f"as {named(best)}, within one standard error, so the smaller number is reported"
        )
    parts = []
    for other in (rank - 1, rank + 1):
        if other not in by or other == best:
            continue
        difference, error = float(by[other]["difference"]), float(by[other]["error"])
        how = "clearly worse" if difference > CLEAR * error else "only a little worse"
        which = dimensions(other) if other == 0 else named(other)
        parts.append(f"{which} would be {how}")
    return text + ("; " + " and ".join(parts) if parts else "") + "."


def predicted(share: dict[str, Any], kind: Kind = TRIPLET) -> str:
    """The accuracy shown beside the headline."""
    figures = (share["count"], share["value"], share["low"], share["high"])
    return predicted_correctly(*figures, kind.chance)


def accuracy(
    share: dict[str, Any], ceiling: float | None, verdict: Verdict, kind: Kind = TRIPLET
) -> str:
    """The prequential accuracy, with the noise ceiling where it is known."""
    if not verdict.has_rank:
        return "No accuracy yet: no number of dimensions is reported, so there is no map."
    if share["count"] == 0:
        return "No answer that counts is to a random question that a map had predicted."
    text = predicted(share, kind)
    if kind.pick > 1:
        text += f" An answer counts as predicted correctly only if {exactly(kind)}."
    if ceiling is not None:
        text += (
            f" Noise ceiling: {percent(ceiling)}, estimated from how consistently participants "
            "answer repeated questions, random or selected. Selected ones are harder, so the "
            "ceiling of random questions alone may be higher."
        )
    return text


def exactly(kind: Kind) -> str:
    """What a correct prediction of several choices is, as a clause."""
    order = " in this order" if kind.ordered else ""
    return f"all {kind.pick} choices were the predicted ones{order}"


def spectrum(shares: list[float], known: Sensitivity | None = None) -> str:
    """The share of the variance along each dimension, and of one that may be unnoticed."""
    if not shares:
        return "No dimensions yet."
    parts = [f"{100 * share:.0f} %" for share in shares]
    text = f"Share of the variance in the map, strongest dimension first: {listed(parts)}."
    if len(shares) == 1:
        text = "There is only one dimension, so it has all of the variance."
    if known is None or known.ruled_out is None:
        return text
    return (
        f"{text} Grey: shares that a further dimension may have without having been noticed, now "
        f"below {percent(known.ruled_out)}."
    )


def sensitivity(known: Sensitivity | None, tested: bool) -> dict[str, Any] | None:
    """The figure of confidence beside the headline; None where the rule does not test for it."""
    if known is None and not tested:
        return None
    goal = "" if known is None or known.smallest is None else f"goal: {percent(known.smallest)}"
    shown = {"figure": "–", "unit": "nothing ruled out yet", "note": goal, "message": ""}
    if known is None:
        return shown | {"note": "tested once the number of dimensions is stable"}
    shown["message"] = known.message
    if known.found is not None:
        return shown | {
            "figure": f"about {percent(known.found)}",
            "unit": "found",
            "note": f"at least {dimensions(known.ranks[0])}",
        }
    if known.ruled_out is None:
        return shown
    odds = f"{known.odds:.3g} : 1"
    # What is ruled out is rounded up to whole per cent.
    met = known.ruled_out <= ceil(100.0 * (known.smallest or 0.0)) / 100.0
    note = f"{odds}, goal met" if met else f"{odds}, {goal}"
    return shown | {"figure": f"≥ {percent(known.ruled_out)}", "unit": "ruled out", "note": note}


TITLE = "Simulated data"


def banner(
    answers: AnswerCounts,
    participants: ParticipantCounts,
    stopped: bool = False,
    rehearsal: dict[str, Any] | None = None,
) -> list[str]:
    """A title and sentences; empty where all data are from people.

    `stopped`: the stopping rule was met with simulated answers. `rehearsal` is the detail of the
    event that marks the study as a rehearsal or a demonstration.
    """
    lines = []
    if answers.simulated:
        which = f"{answers.simulated:,} of {answers.answers:,}"
        if answers.simulated == answers.answers:
            which = "The only answer is" if answers.answers == 1 else f"All {answers.answers:,}"
        verb = "" if answers.answers == 1 else " answers are"
        bots = many(participants.simulated, "simulated participant")
        lines += [TITLE, f"{which}{verb} from {bots} (bots)."]
        if stopped:
            lines.append(
                "The stopping rule is met: no more bots are let in; people can still take part."
            )
    elif answers.simulated_left_out:
        bots = many(participants.simulated_left_out, "simulated participant")
        lines += [
            "Simulated participants are left out",
            f"{bots} (bots) gave {many(answers.simulated_left_out, 'answer')}. They are not "
            "included in any number or chart here.",
        ]
    if rehearsal is not None:
        lines += [] if lines else ["Rehearsal"]
        lines.append(_rehearsal(rehearsal))
    return lines


def in_methods(answers: AnswerCounts, participants: ParticipantCounts, bots: Bots) -> str:
    """Which data are simulated, for the methods section; empty where none are."""
    if answers.simulated:
        which = f"{answers.simulated:,} of the {answers.answers:,} answers"
        which = "All of these answers" if answers.simulated == answers.answers else which
        return (
            f"{which} were simulated: {many(participants.simulated, 'participant')} "
            f"{'was a program (bot)' if participants.simulated == 1 else 'were programs (bots)'} "
            "that answered from given positions of the items, with Gaussian noise of variance "
            f"{bots.noise:g} on the difference of two distances and a lapse rate of "
            f"{bots.lapse:g}. These are not data from people."
        )
    if answers.simulated_left_out:
        return (
            f"{many(participants.simulated_left_out, 'simulated participant')} (bots, "
            f"{many(answers.simulated_left_out, 'answer')}) took part as well, to test the "
            "study; they are not included in any model or number reported here."
        )
    return ""


def _rehearsal(detail: dict[str, Any]) -> str:
    what = "Demonstration" if detail.get("demo") else "Rehearsal in a copy of the study"
    if detail.get("kept"):
        return f"{what}, kept in {detail['kept']}."
    return f"{what}, deleted when the server ends."
