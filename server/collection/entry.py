"""The parameters of the link a participant came by: bounded, read, and filled into exits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote

from server.study.config import Completion

ExitKind = Literal["finished", "declined", "full", "expired", "already"]

# Ways of saying who somebody is, most telling first; one of these makes a link a person's own.
IDENTITIES = ("PROLIFIC_PID", "workerId", "participant_label", "puid", "survey_code", "id")
MAX_PARAMETERS = 30
MAX_PARAMETER = 300


def tidy(entry: Mapping[str, str]) -> dict[str, str]:
    """A bounded copy: links come from outside."""
    kept = list(entry.items())[:MAX_PARAMETERS]
    return {str(name)[:100]: str(value)[:MAX_PARAMETER] for name, value in kept}


def external_name(entry: Mapping[str, str], simulated: bool = False) -> str | None:
    """Who somebody is to the recruiting service, if the link says so.

    Bots have names that no link can give: nobody can come back as one of them.
    """
    if simulated:
        return f"simulated={entry.get('participant_label', '')}"
    for name in IDENTITIES:
        if entry.get(name):
            return f"{name}={entry[name]}"
    return None


def session_of(entry: Mapping[str, str]) -> tuple[str | None, str | None]:
    """What tells a second session of the same person from a reload of the first."""
    return entry.get("SESSION_ID"), entry.get("assignmentId")


def exit_of(completion: Completion, kind: ExitKind, entry: Mapping[str, str]) -> tuple[str, str]:
    """The code and the address of one exit, each empty if the study sets none.

    No exit borrows from another: the code of those who finished is worth money.
    """
    prefix = "" if kind == "finished" else f"{kind}_"
    code, redirect = (getattr(completion, prefix + name) for name in ("code", "redirect"))
    return code, filled(redirect, entry)


def filled(template: str, entry: Mapping[str, str]) -> str:
    """A redirect with [NAME] replaced by the entry parameter, safely quoted."""
    for name, value in entry.items():
        template = template.replace(f"[{name}]", quote(value, safe=""))
    return template
