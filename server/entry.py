"""The parameters of the link that somebody came by: bounded, read, and filled into redirects."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

# Ways of saying who somebody is, most telling first; one of these makes a link a person's own.
IDENTITIES = ("PROLIFIC_PID", "workerId", "participant_label", "puid", "survey_code", "id")
MOST_PARAMETERS = 30
LONGEST_PARAMETER = 300


def tidy(entry: Mapping[str, str]) -> dict[str, str]:
    """A bounded copy: links come from outside."""
    kept = list(entry.items())[:MOST_PARAMETERS]
    return {str(name)[:100]: str(value)[:LONGEST_PARAMETER] for name, value in kept}


def external_name(entry: Mapping[str, str]) -> str | None:
    """Who somebody is to the recruiting service, if the link says so."""
    for name in IDENTITIES:
        if entry.get(name):
            return f"{name}={entry[name]}"
    return None


def session_of(entry: Mapping[str, str]) -> tuple[str | None, str | None]:
    """What tells a second session of the same person from a reload of the first."""
    return entry.get("SESSION_ID"), entry.get("assignmentId")


def filled(template: str, entry: Mapping[str, str]) -> str:
    """A redirect with [NAME] replaced by the entry parameter, safely quoted."""
    for name, value in entry.items():
        template = template.replace(f"[{name}]", quote(value, safe=""))
    return template
