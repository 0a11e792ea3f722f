"""Determine a participant's current page and its contents."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from server.collection.assignment import Issuer, positions
from server.collection.entry import ExitKind, exit_of
from server.collection.pace import Pace
from server.collection.screens import Screen, TrialScreen
from server.store import collection as store
from server.store import questions
from server.store.collection import Participant
from server.store.database import Connection
from server.store.questions import Issued
from server.study.config import LoadedStudy

# Values of `break_done` that mean a page before the next question: the one between practice and the
# actual trials, feedback on a practice question, and "take your time".
NOT_READY, PRACTICE_FEEDBACK, SLOW_DOWN = -1, -2, -3


class Location:
    """Pages of one study's participants, within the caller's transaction."""

    def __init__(
        self, study: LoadedStudy, issuer: Issuer, pace: Pace, clock: Callable[[], int]
    ) -> None:
        self.study = study
        self.clock = clock
        self._issuer = issuer
        self._pace = pace

    def stage(self, c: Connection, who: Participant) -> Screen:
        """The participant's current page; leases the questions that it needs."""
        plain = Screen(
            who.stage,  # type: ignore[arg-type]
            who.token,
            who.visit,
            done=who.done,
            trials=who.trials,
        )
        if who.stage in ("finished", "declined", "expired"):
            # Participants who never consented get what those get who arrive at a full study.
            absent = who.stage == "expired" and who.consented_at is None
            plain = replace(plain, kind="full") if absent else plain
            undecided = self.undecided(who)
            if undecided and self.declining_pays:
                # The code or link for declining is shown once they have confirmed.
                return replace(plain, undecided=True, held=True)
            code, address = self.exit(plain.kind, json.loads(who.entry))  # type: ignore[arg-type]
            return replace(plain, code=code, address=address, undecided=undecided)
        if who.stage not in ("practice", "trials"):
            return plain
        now, state, minutes = self.clock(), _state(c), None
        if state.status == "paused":
            return replace(plain, kind="paused")
        if who.stage == "trials":
            if who.break_done == NOT_READY:
                return replace(plain, kind="ready")
            if who.break_done == SLOW_DOWN:
                return replace(plain, kind="slow_down")
            minutes = self._pace.minutes_left(c, who)
            every = self.study.settings.session.break_every
            if every and who.done and who.done % every == 0 and who.break_done != who.done:
                return replace(plain, kind="break", minutes=minutes)
        elif who.break_done == PRACTICE_FEEDBACK:
            return self._practice_feedback(c, who, plain)
        slot = self.current_slot(who)
        assert slot is not None
        # The next one as well, so that its stimuli can be loaded ahead.
        slots = (slot, slot + 1) if slot + 1 < who.trials else (slot,)
        asked, *following = self._issuer.lease(c, who, slots, now)
        return Screen(
            "practice" if slot < 0 else "trial",
            who.token,
            who.visit,
            self._trial(asked),
            who.done,
            who.trials,
            upcoming=tuple(item for ahead in following for item in self._trial(ahead).items),
            minutes=minutes,
        )

    def _practice_feedback(self, c: Connection, who: Participant, plain: Screen) -> Screen:
        """The practice question just answered, with the choice that most people make."""
        asked = questions.last_practice(c, who.id)
        assert asked is not None
        assert asked.outcome is not None
        return replace(
            plain,
            kind="practice_feedback",
            done=self.practice_slot(who) - 1,
            note=self._issuer.note(asked.slot, asked.outcome, asked.known, asked.chosen),
            trial=replace(
                self._trial(asked),
                chosen=positions(asked, asked.chosen),
                expected=positions(asked, asked.known),
            ),
        )

    def _trial(self, asked: Issued) -> TrialScreen:
        return TrialScreen(
            asked.token, self._issuer.kind, asked.anchor, asked.options, asked.purpose
        )

    def exit(self, kind: ExitKind, entry: Mapping[str, str]) -> tuple[str, str]:
        """Code and URL of an exit."""
        return exit_of(self.study.settings.completion, kind, entry)

    def practice_slot(self, who: Participant) -> int:
        """Slot of the next practice question (negative); 0 when practice is done."""
        return min(0, who.practice_done - self.study.settings.session.practice)

    def current_slot(self, who: Participant) -> int | None:
        """Slot of the question to be answered now; None if there is none."""
        if who.stage == "practice":
            return self.practice_slot(who)
        return who.done if who.stage == "trials" else None

    @property
    def declining_pays(self) -> bool:
        """Whether participants who decline get a code or a link."""
        return any(self.exit("declined", {}))

    def undecided(self, who: Participant) -> bool:
        """Whether a participant who declined can still change their mind."""
        return who.stage == "declined" and not (self.declining_pays and who.finished_at)


def _state(c: Connection) -> store.StudyState:
    state = store.state(c)
    assert state is not None
    return state
