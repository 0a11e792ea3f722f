"""Entry parameters of a participant's link: bounded, interpreted, and inserted into exit URLs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote

from server.study.config import Completion

ExitKind = Literal["finished", "declined", "full", "expired", "already"]

# Parameters that identify a participant, most reliable first.
IDENTITIES = ("PROLIFIC_PID", "workerId", "participant_label", "puid", "survey_code", "id")
MAX_PARAMETERS = 30
MAX_PARAMETER = 300


def tidy(entry: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of bounded size, because links are untrusted input."""
    kept = list(entry.items())[:MAX_PARAMETERS]
    return {str(name)[:100]: str(value)[:MAX_PARAMETER] for name, value in kept}


def external_name(entry: Mapping[str, str], simulated: bool = False) -> str | None:
    """Identify a participant by the recruitment site's parameters; None if the link has none.

    Bots get names that no link can produce, so that no participant can return as a bot.
    """
    if simulated:
        return f"simulated={entry.get('participant_label', '')}"
    for name in IDENTITIES:
        if entry.get(name):
            return f"{name}={entry[name]}"
    return None


def session_of(entry: Mapping[str, str]) -> tuple[str | None, str | None]:
    """What distinguishes a second session of the same participant from a reload of the first."""
    return entry.get("SESSION_ID"), entry.get("assignmentId")


def exit_of(completion: Completion, kind: ExitKind, entry: Mapping[str, str]) -> tuple[str, str]:
    """Code and URL of one exit, each empty if the study sets none.

    No exit falls back on another: the code of participants who finished is worth money.
    """
    prefix = "" if kind == "finished" else f"{kind}_"
    code, redirect = (getattr(completion, prefix + name) for name in ("code", "redirect"))
    return code, filled(redirect, entry)


def filled(template: str, entry: Mapping[str, str]) -> str:
    """Replace each [NAME] of a redirect by the URL-quoted entry parameter."""
    for name, value in entry.items():
        template = template.replace(f"[{name}]", quote(value, safe=""))
    return template
