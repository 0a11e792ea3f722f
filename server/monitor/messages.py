"""The monitor's figures as sentences, and its banner about simulated data."""

from __future__ import annotations

from typing import Any

from lore_active.rank.significance import MIN_STANDARD_ERRORS
from lore_active.stopping.criteria import dimensions, not_met, percent
from lore_active.stopping.criteria import number as named
from lore_active.stopping.verdict import Verdict
from lore_active.stopping.verdict import accuracy as predicted_correctly
from server.status.counting import AnswerCounts, ParticipantCounts
from server.study.config import Bots

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
            f"{MIN_STANDARD_ERRORS:g} standard errors are needed."
        )
    by = {one["rank"]: one for one in ranks}
    if 0 in by and float(by[0]["worse"]) < MIN_STANDARD_ERRORS * float(by[0]["error"]):
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


TITLE = "Simulated data"


def banner(
    answers: AnswerCounts,
    participants: ParticipantCounts,
    stopped: bool = False,
    rehearsal: dict[str, Any] | None = None,
) -> list[str]:
    """Sentences, the first of them as a title; none where all data are people's.

    `stopped`: the stopping rule was met with simulated answers. `rehearsal` is the detail of the
    event that says what the study is a copy for.
    """
    said = []
    if answers.simulated:
        which = f"{answers.simulated:,} of {answers.answers:,}"
        if answers.simulated == answers.answers:
            which = "The only answer is" if answers.answers == 1 else f"All {answers.answers:,}"
        verb = "" if answers.answers == 1 else " answers are"
        bots = _many(participants.simulated, "simulated participant")
        said += [TITLE, f"{which}{verb} from {bots} (bots)."]
        if stopped:
            said.append(
                "The stopping rule is met: no more bots are let in; people can still take part."
            )
    elif answers.simulated_left_out:
        bots = _many(participants.simulated_left_out, "simulated participant")
        said += [
            "Simulated participants are left out",
            f"{bots} (bots) gave {_many(answers.simulated_left_out, 'answer')}. They are in no "
            "number and no picture here.",
        ]
    if rehearsal is not None:
        said += [] if said else ["Rehearsal"]
        said.append(_rehearsal(rehearsal))
    return said


def in_methods(answers: AnswerCounts, participants: ParticipantCounts, bots: Bots) -> str:
    """Which of the data are not people's, for a methods section; empty where all are."""
    if answers.simulated:
        which = f"{answers.simulated:,} of the {answers.answers:,} answers"
        which = "All of these answers" if answers.simulated == answers.answers else which
        return (
            f"{which} were simulated: {_many(participants.simulated, 'participant')} "
            f"{'was a program (bot)' if participants.simulated == 1 else 'were programs (bots)'} "
            "that answered from positions of the items, with Gaussian noise of variance "
            f"{bots.noise:g} on the difference of two distances and a lapse rate of "
            f"{bots.lapse:g}. These are not data about people."
        )
    if answers.simulated_left_out:
        return (
            f"{_many(participants.simulated_left_out, 'simulated participant')} (bots, "
            f"{_many(answers.simulated_left_out, 'answer')}) took part as well, to try the study "
            "out; they are in no model and no number reported here."
        )
    return ""


def _rehearsal(detail: dict[str, Any]) -> str:
    what = "Demonstration" if detail.get("demo") else "Rehearsal in a copy of the study"
    if detail.get("kept"):
        return f"{what}, kept in {detail['kept']}."
    return f"{what}, thrown away when the server ends."


def _many(count: int, one: str) -> str:
    return f"{count:,} {one}{'s' * (count != 1)}"
