"""Where a participant is in a study, and what the page for that holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from server.collection.assignment import Issuer, expected
from server.collection.entry import ExitKind, exit_of
from server.collection.pace import Pace
from server.collection.screens import Screen, Side, TrialScreen
from server.store import collection as store
from server.store import questions
from server.store.collection import Participant
from server.store.database import Connection
from server.study.config import LoadedStudy

# In `rested`, pages that they are to see before the next question: between practice and the
# questions that count, what became of a practice question, and "take your time".
NOT_READY, PRACTICE_FEEDBACK, SLOW_DOWN = -1, -2, -3


class Location:
    """One study's pages by participant; within the caller's transaction."""

    def __init__(
        self, study: LoadedStudy, issuer: Issuer, pace: Pace, clock: Callable[[], int]
    ) -> None:
        self.study = study
        self.clock = clock
        self._issuer = issuer
        self._pace = pace

    def stage(self, c: Connection, who: Participant) -> Screen:
        """The page that they are to see; questions for it are leased."""
        plain = Screen(
            who.stage,  # type: ignore[arg-type]
            who.token,
            who.visit,
            done=who.done,
            trials=who.trials,
        )
        if who.stage in ("finished", "declined", "expired"):
            # Who never consented is no better off than those who come when the study is full.
            absent = who.stage == "expired" and who.consented_at is None
            plain = replace(plain, kind="full") if absent else plain
            undecided = self.undecided(who)
            if undecided and self.declining_pays:
                # What they are given for declining comes when they are sure.
                return replace(plain, undecided=True, held=True)
            code, address = self.exit(plain.kind, json.loads(who.entry))  # type: ignore[arg-type]
            return replace(plain, code=code, address=address, undecided=undecided)
        if who.stage not in ("practice", "trials"):
            return plain
        now, state = self.clock(), _state(c)
        if state.status == "paused":
            return replace(plain, kind="paused")
        if who.stage == "trials":
            if who.rested == NOT_READY:
                return replace(plain, kind="ready")
            if who.rested == SLOW_DOWN:
                return replace(plain, kind="slow_down")
            plain = replace(plain, minutes=self._pace.minutes_left(c, who))
            every = self.study.settings.session.break_every
            if every and who.done and who.done % every == 0 and who.rested != who.done:
                return replace(plain, kind="break")
        elif who.rested == PRACTICE_FEEDBACK:
            return self._practice_feedback(c, who, plain)
        slot = self.current_slot(who)
        assert slot is not None
        asked = self._issuer.lease(c, who, slot, now)
        following = slot + 1
        upcoming: tuple[int, ...] = ()
        if following < who.trials:
            ahead = self._issuer.lease(c, who, following, now)
            upcoming = (ahead.anchor, ahead.left, ahead.right)
        return replace(
            plain,
            kind="practice" if slot < 0 else "trial",
            trial=TrialScreen(asked.token, asked.anchor, asked.left, asked.right, asked.purpose),
            upcoming=upcoming,
        )

    def _practice_feedback(self, c: Connection, who: Participant, plain: Screen) -> Screen:
        """The practice question that they have just answered, and what most people choose."""
        asked = questions.last_practice(c, who.id)
        assert asked is not None
        side: Side = asked.side  # type: ignore[assignment]
        return replace(
            plain,
            kind="practice_feedback",
            done=self.practice_slot(who) - 1,
            note=self._issuer.note(asked, side),
            trial=TrialScreen(
                asked.token,
                asked.anchor,
                asked.left,
                asked.right,
                asked.purpose,
                side,
                expected(asked),
            ),
        )

    def exit(self, kind: ExitKind, entry: Mapping[str, str]) -> tuple[str, str]:
        """The code and the address of an exit."""
        return exit_of(self.study.settings.completion, kind, entry)

    def practice_slot(self, who: Participant) -> int:
        """The place of the practice question that is next; 0 when there is none any more."""
        return min(0, who.practised - self.study.settings.session.practice)

    def current_slot(self, who: Participant) -> int | None:
        """The place of the question that they are to answer, if there is one."""
        if who.stage == "practice":
            return self.practice_slot(who)
        return who.done if who.stage == "trials" else None

    @property
    def declining_pays(self) -> bool:
        """Whether those who decline are given a code or a link."""
        return any(self.exit("declined", {}))

    def undecided(self, who: Participant) -> bool:
        """Whether somebody who declined has not yet been given anything for it."""
        return who.stage == "declined" and not (self.declining_pays and who.finished_at)


def _state(c: Connection) -> store.StudyState:
    state = store.state(c)
    assert state is not None
    return state
