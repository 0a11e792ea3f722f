"""What monitor and report say about simulated data, and about studies that are a rehearsal."""

from __future__ import annotations

from typing import Any

from lore_active.study import Bots
from server.counting import AnswerCounts, ParticipantCounts

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
