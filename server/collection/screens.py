"""Data of the participant's pages, as the service returns them to the views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lore_active.questions.kinds import Kind

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
# Positions of the chosen options, in the order of choice.
Response = tuple[int, ...] | Literal["skip", "timeout"]
# Pages between questions, left by `Service.rest`.
CONTINUED = ("practice_feedback", "ready", "break", "slow_down")
# Name of the text that comments on the previous answer.
Note = Literal[
    "",
    "practice_right",
    "practice_wrong",
    "practice_skipped",
    "practice_timed_out",
    "timed_out",
    "not_taken",
    "incomplete",
]
# Notes on an answer that was not stored.
REFUSED: tuple[Note, ...] = ("not_taken", "incomplete")


@dataclass(frozen=True)
class TrialScreen:
    """A question on the page. Items are numbers; the form returns `token`.

    `options` are in the order in which they are shown. `chosen` and `expected` are positions among
    them, set only for feedback on a practice question; `chosen` is empty after a skip or time-out.
    """

    token: str
    kind: Kind
    anchor: int | None
    options: tuple[int, ...]
    purpose: str
    chosen: tuple[int, ...] | None = None
    expected: tuple[int, ...] | None = None

    @property
    def items(self) -> tuple[int, ...]:
        """All items shown."""
        return self.options if self.anchor is None else (self.anchor, *self.options)


@dataclass(frozen=True)
class Screen:
    """A participant's current page, with everything needed to render it.

    `visit` is part of every form; `upcoming` are the items to preload; `code` and `address` belong
    to the exit, if the study sets them. "ready" is the page between practice and trials. `minutes`
    is the estimated time left, None while unknown. `undecided`: a participant who declined can
    still change their mind; `held`: a code or link will be shown once they confirm.
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
    """A visitor who cannot take part now, and why."""

    kind: Literal["full", "paused", "already", "preview"]
    code: str = ""
    address: str = ""


@dataclass(frozen=True)
class Welcome:
    """A participant who is admitted: the next page is the one of this token."""

    token: str
