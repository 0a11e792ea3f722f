"""Meanings of the columns of exported files, and the data dictionary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from lore_active.wording import many
from server.status.counting import AnswerCounts

_ROLES = {
    "head": "the anchor",
    "left": "shown on the left",
    "right": "shown on the right",
    "winner": "the option chosen",
    "loser": "the other option",
}
MEANINGS = {
    "seq": "sequence number of the answer, in the order of storage, from 1",
    "participant": "number of the participant, from 1, in order of arrival",
    "excluded": "1 if the participant is currently excluded from the model",
    "simulated": "1 if the participant is simulated (a bot)",
    "slot": "position in the participant's session, from 0; negative for practice",
    "purpose": "cover, active (selected by the model), random, catch, repeat or practice",
    "origin": "learner, schedule, or fallback (the queue was empty)",
    "anchor": "key of the item that the options were compared with; empty for the odd one out",
    "left": "key of the option shown on the left",
    "right": "key of the option shown on the right",
    "side": "left, right, skip or timeout",
    "chosen": "key of the option chosen; empty if skipped or timed out",
    "known_answer": "key of the correct option of catch and practice questions",
    "outcome": "chosen, skip or timeout",
    "trial": "number of the answer that the comparison belongs to: `seq` in the file of answers",
    "nearer": "key of the item that the answer says is nearer to the anchor",
    "farther": "key of the item that it says is farther",
    "repeats_question": "number of the question that this one repeats, with options reversed",
    "rt_ms": "response time in milliseconds from stimulus onset, measured by the page",
    "late": "1 if the answer arrived after the question's lease had expired",
    "received_at_utc": "when the server received the answer (ISO 8601)",
    "asked_at_utc": "when the question was leased to the participant (ISO 8601)",
    "model_version": "version of the model when the question was selected; 0 if there was none",
    "question": "number of the question",
    "background": "background colour, as measured by the page; empty without JavaScript "
    "(`trial.background` applies then)",
    "fitted": "1 if the newest model uses the answer",
    "day_utc": "day (UTC) of the participant's arrival, or of the answer",
    "session_ms": "milliseconds from the participant's arrival to the answer",
    "duration_ms": "milliseconds from the participant's arrival to finishing or declining; empty "
    "if neither",
    "arrived_at_utc": "when the participant arrived (ISO 8601)",
    "finished_at_utc": "when the participant finished or declined (ISO 8601)",
    "stage": "how far the participant got",
    "external": "id of the participant at the recruitment site",
    "entry": "parameters of the participant's link, as JSON",
    "user_agent": "user agent string of the browser",
    "trials": "trials planned for the participant",
    "done": "trials completed, including skipped ones",
    "feedback": "comment of the participant at the end",
    "item": "key of the item",
    "kind": "of an item: text, image, audio or video; of an answer: what was asked, as rank-2-of-8",
    "label": "name shown to the experimenter",
    "alt": "text alternative",
    "text": "the text of a text item",
    "file": "name of the stimulus file",
    "version": "version of the model, from 1",
    "answers": "answers that the model was fitted to",
    "audit": "1 if the number of dimensions was estimated by cross-validation; 0 after a refit",
    "rank": "number of dimensions",
    "settled": "1 if every criterion of the stopping rule was met",
    "lambda": "weight of the rank penalty",
    "prequential_accuracy": "share of the last random questions predicted correctly before they "
    "were answered; empty if there were none",
    "accuracy_low": "lower end of its 95 % confidence interval",
    "accuracy_high": "upper end of its 95 % confidence interval",
    "noise_ceiling": "accuracy of a perfect model, from repeated questions; empty if unknown",
    "stopping_rule": "name of the stopping rule; empty for models of earlier versions",
    "ruled_out_share": "smallest share of the differences between items from which on a further "
    "dimension was ruled out; empty if none was",
    "found_share": "share at which the evidence for a further dimension was strongest; empty "
    "unless one was found",
    "ranks_from": "smallest number of dimensions that could not be excluded",
    "ranks_to": "largest number of dimensions of interest that could not be excluded; empty if "
    "there was no upper limit",
    "worker_id": "number of the participant, from 1; `group` in an embedding of all participants",
    "rt": "response time in milliseconds, measured by the page; without JavaScript, the time "
    "since the participant's previous answer, by the server's clock",
    "Center": "anchor",
    "Left": "option shown on the left",
    "Right": "option shown on the right",
    "Answer": "option chosen",
    "sampleAlg": "how the question was selected: random, adaptive, repeat, check (a catch trial "
    "with the anchor among its options) or catch (any other catch trial)",
    "sampleSet": "test for random questions and their repeats, train for all others; NA if the "
    "model does not use the answer (catch trials, excluded participants, and simulated ones if "
    "real participants have answered)",
    "head": "number of the anchor, from 0",
    "winner": "number of the option chosen (nearer)",
    "loser": "number of the other option (farther)",
    "number": "number of the item, from 0",
    "path": "name of the stimulus file",
    "dim_0 …": "coordinates on principal axes, strongest first; one column per dimension",
    "puid": "number of the participant, from 1",
    "sampler": "how the question was selected: cover, active, random or repeat",
    "score": "always 0 (not available)",
    "response_time": "response time in seconds from stimulus onset; -1 if unknown",
    "network_latency": "always -1 (not available)",
    "time_received": "when the server received the answer, in seconds since 1970 (UTC)",
    "time_received_since_start": "the same, in seconds since start_time",
    "datetime_received": "the same, as ISO 8601 (UTC)",
    "start_time": "when the first participant arrived, in seconds since 1970 (UTC)",
    "puid_num_responses": "rows of the participant so far, in this file",
    "num_responses": "rows so far, in this file",
    **{f"{role}_html": f"key of the item that is {what}" for role, what in _ROLES.items()},
    **{f"{role}_filename": f"key of the item that is {what}" for role, what in _ROLES.items()},
}


PLACE = re.compile(r"(option|chosen)_([0-9]+)")


def meaning(column: str) -> str:
    """The meaning of a column."""
    matched = PLACE.fullmatch(column)
    if matched is None:
        return MEANINGS[column]
    if matched[1] == "option":
        return f"key of the option shown in place {matched[2]}"
    return f"key of choice {matched[2]}, in the order of choice; empty if skipped or timed out"


def dictionary(
    path: Path,
    columns: Mapping[str, Sequence[str]],
    counts: AnswerCounts,
    notes: Sequence[str] = (),
) -> Path:
    """Write the meaning of every column of these files, and how the counts of answers add up."""
    lines = ["# Data dictionary", "", *simulated_lines(counts)]
    for file, names in columns.items():
        lines += [f"## {file}", "", "| column | meaning |", "|---|---|"]
        lines += [f"| {name} | {meaning(name)} |" for name in names] + [""]
    lines += [*notes, ""] if notes else []
    lines += ["Cells that a spreadsheet would interpret as a formula start with an apostrophe.", ""]
    lines += adding_up(counts)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def simulated_note(counts: AnswerCounts) -> str:
    """Say whether data are simulated, for readers of the files; empty if none are."""
    if counts.simulated_left_out:
        return (
            f"{many(counts.simulated_left_out, 'answer')} of simulated participants (bots) do not "
            "count, and are left out unless the export was made with --simulated."
        )
    if counts.simulated:
        which = "All" if counts.simulated == counts.answers else f"{counts.simulated:,} of the"
        return (
            f"Simulated data: {which} {counts.answers:,} answers are from simulated "
            "participants (bots)."
        )
    return ""


def simulated_lines(counts: AnswerCounts) -> list[str]:
    """Return the same as a paragraph of Markdown."""
    note = simulated_note(counts)
    return [f"**{note}**", ""] if note else []


def adding_up(counts: AnswerCounts) -> list[str]:
    """Tabulate how the collected answers become the answers in the model."""
    rows = [
        (counts.answers, "answers collected, without practice"),
        (-counts.excluded, "of excluded participants"),
        (-counts.quarantined, "quarantined"),
        (-counts.catches, "to catch trials"),
        (-counts.skipped, "skipped"),
        (-counts.timed_out, "timed out"),
        (counts.imported, "imported"),
        (-counts.waiting, "not yet in the model"),
        (counts.fitted, "answers in the model"),
    ]
    lines = ["## Number of answers", "", "| | |", "|---|---|"]
    kept = [row for row in rows if row[0] or row in (rows[0], rows[-1])]
    return [*lines, *(f"| {count} | {what} |" for count, what in kept), ""]
