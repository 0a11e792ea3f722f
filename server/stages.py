"""What a participant can be shown: the answers that the service gives to the pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StageKind = Literal[
    "consent",
    "instructions",
    "practice",
    "ready",
    "trial",
    "break",
    "feedback",
    "finished",
    "declined",
    "expired",
    "paused",
    "elsewhere",
]
Side = Literal["left", "right", "skip", "timeout"]


@dataclass(frozen=True)
class Trial:
    """A question on the page. Items are numbers; `token` is what the form sends back."""

    token: str
    anchor: int
    left: int
    right: int
    purpose: str


@dataclass(frozen=True)
class Verdict:
    """Feedback on a practice answer."""

    right: bool


@dataclass(frozen=True)
class Stage:
    """Where a participant is, and all that the page needs to show it.

    `visit` goes into every form; `upcoming` names the items to preload; `code` and `address` are
    the way out, if the study has set one. "ready" is the page between practice and trials.
    """

    kind: StageKind
    participant: str
    visit: int
    trial: Trial | None = None
    done: int = 0
    trials: int = 0
    verdict: Verdict | None = None
    upcoming: tuple[int, ...] = ()
    code: str = ""
    address: str = ""


@dataclass(frozen=True)
class Turned:
    """Somebody who cannot take part now, and why."""

    kind: Literal["full", "paused", "already", "preview"]
    code: str = ""
    address: str = ""


@dataclass(frozen=True)
class Welcome:
    """Somebody who takes part: go to the page of this token."""

    token: str
