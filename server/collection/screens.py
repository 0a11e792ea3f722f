"""What a participant can be shown: the answers that the service gives to the pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StageKind = Literal[
    "consent",
    "instructions",
    "practice",
    "practice_feedback",
    "ready",
    "trial",
    "break",
    "slow_down",
    "feedback",
    "finished",
    "declined",
    "full",
    "expired",
    "paused",
    "elsewhere",
]
Side = Literal["left", "right", "skip", "timeout"]
# Pages between questions, left by `Service.rest`.
CONTINUED = ("practice_feedback", "ready", "break", "slow_down")
# What became of the answer before: the name of the text that says so.
Note = Literal[
    "",
    "practice_right",
    "practice_wrong",
    "practice_skipped",
    "practice_timed_out",
    "timed_out",
    "not_taken",
]


@dataclass(frozen=True)
class TrialScreen:
    """A question on the page. Items are numbers; `token` is what the form sends back.

    `chosen` and `expected` are known only when the page says what became of a practice question.
    """

    token: str
    anchor: int
    left: int
    right: int
    purpose: str
    chosen: Side | None = None
    expected: Side | None = None


@dataclass(frozen=True)
class Screen:
    """Where a participant is, and all that the page needs to show it.

    `visit` goes into every form; `upcoming` names the items to preload; `code` and `address` are
    the exit's, if the study has set them. "ready" is the page between practice and trials.
    `minutes` is the time left by their own pace, None before that is known. `undecided`: who
    declined can still change their mind; `held`: there is a code or link, for when they are sure.
    """

    kind: StageKind
    participant: str
    visit: int
    trial: TrialScreen | None = None
    done: int = 0
    trials: int = 0
    note: Note = ""
    upcoming: tuple[int, ...] = ()
    code: str = ""
    address: str = ""
    minutes: float | None = None
    undecided: bool = False
    held: bool = False


@dataclass(frozen=True)
class Rejected:
    """Somebody who cannot take part now, and why."""

    kind: Literal["full", "paused", "already", "preview"]
    code: str = ""
    address: str = ""


@dataclass(frozen=True)
class Welcome:
    """Somebody who takes part: go to the page of this token."""

    token: str
