"""The activity log in plain words: what happened, who did it, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lore_active.wording import many
from server.store.summaries import EventRow

# By whom events are that no experimenter caused; the programs are not worth a mention.
AUTOMATIC = {
    "stopping rule": "the stopping rule",
    "participant": "",
    "worker": "",
    "backup": "",
    "import": "",
}
PROGRAM = "lore-active"
Detail = dict[str, Any]
# The details of an event that explain it.
REASONS = ("reason", "problem", "label")


@dataclass(frozen=True)
class Activity:
    """An event: what happened as a phrase, who caused it (empty: a program), and the reason."""

    what: str
    by: str
    reason: str


def is_automatic(who: str) -> bool:
    """Whether an event has this origin because no experimenter caused it."""
    return who in AUTOMATIC or who.split()[0:1] == [PROGRAM]


def described(event: EventRow) -> Activity:
    """An event in plain words; one of an unknown kind by the name of its kind."""
    whom = "A participant" if event.participant is None else f"P{event.participant}"
    phrase = PHRASES.get(event.kind) or _always(event.kind.replace("_", " ").capitalize())
    by = AUTOMATIC.get(event.who, "" if is_automatic(event.who) else event.who)
    reason = next((str(event.detail[key]) for key in REASONS if event.detail.get(key)), "")
    return Activity(phrase(whom, event.detail), by, reason)


def _budget(_: str, detail: Detail) -> str:
    participants = detail.get("participants")
    limit = many(participants, "participant") if participants else "any number of participants"
    return f"Budget set to {many(detail.get('answers', 0), 'answer')} and {limit}"


def _rehearsal(_: str, detail: Detail) -> str:
    what = "Demonstration" if detail.get("demo") else "Rehearsal in a copy of the study"
    fate = f"kept in {detail['kept']}" if detail.get("kept") else "deleted when the server ends"
    return f"{what}, {fate}"


def _slow_down(whom: str, detail: Detail) -> str:
    done, median = detail.get("done"), detail.get("median_ms")
    if done is None or median is None:
        return f"{whom} was asked to take their time"
    return (
        f"{whom} was asked to take their time after {many(done, 'trial')} (median of the last "
        f"ones: {median / 1000:.1f} s)"
    )


def _imported(verb: str) -> Callable[[str, Detail], str]:
    def phrase(_: str, detail: Detail) -> str:
        text = f"{many(detail.get('answers', 0), 'imported answer')} {verb}"
        return f"{text} ({detail['file']})" if detail.get("file") else text

    return phrase


def _forget(whom: str, detail: Detail) -> str:
    if detail.get("answers") == "erased":
        return f"{whom} was erased, with all answers"
    return f"The identity of {whom} was erased; the answers were kept"


def _always(text: str) -> Callable[[str, Detail], str]:
    return lambda whom, _: text.format(whom=whom)


# By kind of event; docs/reference/meanings.py has what each kind is in files.
PHRASES: dict[str, Callable[[str, Detail], str]] = {
    "start": _always("Study started"),
    "pause": _always("Study paused"),
    "resume": _always("Study resumed"),
    "stop": _always("Study stopped"),
    "reopen": _always("Study reopened"),
    "budget": _budget,
    "trials": lambda _, detail: f"Trials per participant set to {detail.get('trials', '?')}",
    "exclude": _always("{whom} excluded"),
    "restore": _always("{whom} restored"),
    "rehearsal": _rehearsal,
    "simulated_out": _always("Simulated participants left out from here on"),
    "simulated_stop": _always("Stopping rule met with simulated answers"),
    "link": _always("View-only link created"),
    "revoke link": _always("View-only link revoked"),
    "slow_down": _slow_down,
    "reconsider": _always("{whom} declined and then changed their mind"),
    "entry": _always("{whom} came back by a link with other parameters"),
    "import": _imported("added"),
    "import_removed": _imported("removed"),
    "import_lost": _always("Imported answers could not be recovered"),
    "import_removed_lost": _always("Imported answers that had been removed could not be recovered"),
    "forget": _forget,
    "backup": lambda _, detail: "Backups fail" if detail.get("problem") else "Backups work again",
    "recover": _always("Database recovered"),
    "quarantine": _always("A row that cannot be used was quarantined"),
    "rebuilt": _always("Model computed again from the answers"),
}
