"""What the columns of exported files mean, and the data dictionary that goes with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from server.status.counting import AnswerCounts

_ROLES = {
    "head": "the anchor",
    "left": "shown on the left",
    "right": "shown on the right",
    "winner": "the option chosen",
    "loser": "the other option",
}
MEANINGS = {
    "seq": "place in the order in which answers were stored, from 1",
    "participant": "number of the participant, from 1, in order of arrival",
    "excluded": "1 if the participant is excluded from the model now",
    "simulated": "1 if the participant is a program of lore-active (a bot), not a person",
    "slot": "place in the participant's session, from 0; practice is below 0",
    "purpose": "cover, active (chosen by the model), random, catch, repeat or practice",
    "origin": "learner, schedule, or fallback (the queue was empty)",
    "anchor": "key of the item that the two options were compared with",
    "left": "key of the option shown on the left",
    "right": "key of the option shown on the right",
    "side": "left, right, skip or timeout",
    "chosen": "key of the option chosen; empty if skipped or timed out",
    "known_answer": "key of the right option of catch and practice questions",
    "repeats_question": "the question that this one repeats with sides swapped",
    "rt_ms": "milliseconds from the painted stimuli to the answer, measured by the page",
    "late": "1 if the answer came after the question's lease had run out",
    "received_at_utc": "when the server received the answer (ISO 8601)",
    "asked_at_utc": "when the question was given to the participant (ISO 8601)",
    "model_version": "version of the model when the question was made; 0: none yet",
    "question": "number of the question",
    "background": "colour of the page around the stimuli, as the page measured it; empty without "
    "JavaScript (`trial.background` is then the colour)",
    "fitted": "1 if the newest model was fitted to the answer",
    "day_utc": "the day (UTC) on which the participant came, or the answer was received",
    "session_ms": "milliseconds from the participant's arrival to the answer",
    "duration_ms": "milliseconds from the participant's arrival to finishing or declining; empty: "
    "neither",
    "arrived_at_utc": "when the participant came (ISO 8601)",
    "finished_at_utc": "when the participant finished or declined (ISO 8601)",
    "stage": "how far the participant got",
    "external": "the recruiting service's name for the participant",
    "entry": "JSON of the parameters of the link",
    "user_agent": "what the browser said that it is",
    "trials": "questions promised to the participant",
    "done": "questions answered, skipped ones included",
    "feedback": "what the participant wrote at the end",
    "item": "key of the item",
    "kind": "text, image, audio or video",
    "label": "name for the experimenter",
    "alt": "text alternative",
    "text": "the text of a text item",
    "file": "name of the stimulus file",
    "worker_id": "number of the participant, from 1; `group` in an embedding of everybody",
    "rt": "response time in milliseconds, measured by the page; where it measured none (without "
    "JavaScript), the time since the participant's answer before, by the server's clock",
    "Center": "anchor",
    "Left": "option shown on the left",
    "Right": "option shown on the right",
    "Answer": "option chosen",
    "sampleAlg": "how the question was chosen: random, adaptive, repeat, check (a catch trial with "
    "the anchor among its options) or catch (another one)",
    "sampleSet": "test for random questions and their repeats, train for all others; NA where the "
    "answer does not count for the model (catch trials, excluded participants, and simulated "
    "ones where people have answered)",
    "head": "number of the anchor, from 0",
    "winner": "number of the option chosen (nearer)",
    "loser": "number of the other option (farther)",
    "number": "number of the item, from 0",
    "path": "name of the stimulus file",
    "dim_0 …": "coordinates on principal axes, strongest first; one column for each dimension",
    "puid": "number of the participant, from 1",
    "sampler": "how the question was chosen: cover, active, random or repeat",
    "score": "0; not known here",
    "response_time": "seconds from the painted stimuli to the answer; -1 where not known",
    "network_latency": "-1; not known here",
    "time_received": "when the server received the answer, in seconds since 1970 (UTC)",
    "time_received_since_start": "the same, in seconds since start_time",
    "datetime_received": "the same, as ISO 8601 (UTC)",
    "start_time": "when the first participant came, in seconds since 1970 (UTC)",
    "puid_num_responses": "answers of the participant so far, in this file",
    "num_responses": "answers so far, in this file",
    **{f"{role}_html": f"key of the item that is {what}" for role, what in _ROLES.items()},
    **{f"{role}_filename": f"key of the item that is {what}" for role, what in _ROLES.items()},
}


def dictionary(
    path: Path,
    columns: Mapping[str, Sequence[str]],
    counts: AnswerCounts,
    notes: Sequence[str] = (),
) -> Path:
    """Write the meaning of every column of these files, and how the answers add up."""
    lines = ["# Data dictionary", "", *simulated_lines(counts)]
    for file, names in columns.items():
        lines += [f"## {file}", "", "| column | meaning |", "|---|---|"]
        lines += [f"| {name} | {MEANINGS[name]} |" for name in names] + [""]
    lines += [*notes, ""] if notes else []
    lines += ["Texts that a spreadsheet would run as a formula begin with an apostrophe.", ""]
    lines += adding_up(counts)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def simulated_note(counts: AnswerCounts) -> str:
    """Whether data are simulated, in a sentence for those who get the files; empty if none are."""
    if counts.simulated_left_out:
        return (
            f"{counts.simulated_left_out:,} answers of simulated participants (bots) are not "
            "counted, and are left out unless the export was made with --simulated."
        )
    if counts.simulated:
        which = "All" if counts.simulated == counts.answers else f"{counts.simulated:,} of the"
        return f"Simulated data: {which} {counts.answers:,} answers are from bots, not from people."
    return ""


def simulated_lines(counts: AnswerCounts) -> list[str]:
    """The same as a paragraph of Markdown."""
    note = simulated_note(counts)
    return [f"**{note}**", ""] if note else []


def adding_up(counts: AnswerCounts) -> list[str]:
    """How the answers collected become the answers in the model."""
    rows = [
        (counts.answers, "answers collected, practice not counted"),
        (-counts.excluded, "of excluded participants"),
        (-counts.quarantined, "that could not be used"),
        (-counts.catches, "to catch trials"),
        (-counts.skipped, "skipped"),
        (-counts.timed_out, "timed out"),
        (counts.imported, "imported"),
        (-counts.waiting, "not fitted yet"),
        (counts.fitted, "answers in the model"),
    ]
    lines = ["## How many answers", "", "| | |", "|---|---|"]
    kept = [row for row in rows if row[0] or row in (rows[0], rows[-1])]
    return [*lines, *(f"| {count} | {what} |" for count, what in kept), ""]
