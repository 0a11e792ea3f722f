"""What participants can do, each as one transaction: arrive, consent, answer, finish. No Flask."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lore_active.errors import LoreError
from lore_active.study import LoadedStudy
from server.entry import ExitKind, exit_of, external_name, session_of, tidy
from server.issuing import Issuer
from server.quota import Quota
from server.stages import Note, Side, Stage, Trial, Turned, Welcome
from server.store import collection as store
from server.store import questions
from server.store.collection import Participant
from server.store.database import Connection, Database

LONGEST_FEEDBACK = 5000
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
# In `rested`: practice is over, and they have not yet said that they are ready.
NOT_READY = -1


class UnknownParticipant(LoreError):
    """A link with a token that nobody holds."""


class UnknownQuestion(LoreError):
    """An answer to a question that this participant was never given."""


class Service:
    """One study's use cases for participants.

    `clock` gives milliseconds since 1970. Every method returns only after what it did is on disk.
    """

    def __init__(self, database: Database, study: LoadedStudy, clock: Callable[[], int]) -> None:
        self.database = database
        self.study = study
        self.clock = clock
        self._issuer = Issuer(study)
        self._quota = Quota(study)

    # ---- coming and going -----------------------------------------------------------------------

    def arrive(
        self, entry: Mapping[str, str], token: str | None = None, agent: str = ""
    ) -> Welcome | Turned:
        """Somebody opens the study's link: a newcomer, or one who comes back.

        `entry` holds the link's parameters, `token` what their browser remembers of an earlier
        visit. People whom the recruiter names are known by that name, whatever the browser says.
        """
        entry = tidy(entry)
        if entry.get("assignmentId") == PREVIEW:
            return Turned("preview")
        return self.database.write(lambda c: self._arrive(c, entry, token, agent[:500]))

    def _arrive(
        self, c: Connection, entry: dict[str, str], token: str | None, agent: str
    ) -> Welcome | Turned:
        now = self.clock()
        external = external_name(entry)
        known = None
        if external is not None:
            known = store.participant_known_as(c, external)
        elif token:
            known = store.participant(c, token)
        if known is not None:
            before = json.loads(known.entry)
            if known.stage == "finished" and session_of(entry) != session_of(before):
                # A second session of the same person, not a reload of the first.
                return Turned("already", *self._exit("already", entry))
            if external is not None and entry != before and known.stage in store.STILL_HERE:
                # The way out must name the assignment that they hold now, not one given back.
                store.change_participant(
                    c, known.id, entry=json.dumps({**before, **entry}, ensure_ascii=False)
                )
                store.add_event(c, "entry", "participant", now, known.id, before=before)
            return Welcome(known.token)
        state = self._state(c)
        if state.status == "paused":
            return Turned("paused")
        trials = self._quota.room(c, state, now)
        if state.status == "stopped" or trials <= 0:
            return Turned("full", *self._exit("full", entry))
        new = store.add_participant(
            c, secrets.token_urlsafe(18), external, entry, agent, trials, now
        )
        return Welcome(new.token)

    # ---- from page to page ----------------------------------------------------------------------

    def visit(self, token: str) -> Stage:
        """The page is loaded: where they are, and this is now their newest window."""

        def work(c: Connection) -> Stage:
            who = self._present(c, token)
            return self._stage(c, store.change_participant(c, who.id, visit=who.visit + 1))

        return self.database.write(work)

    def look(self, token: str, visit: int | None) -> Stage:
        """Where they are, for a window that asks by itself whether the study goes on."""
        return self._act(token, visit, lambda who: False, lambda now: {})

    def consent(self, token: str, agreed: bool, visit: int | None = None) -> Stage:
        """They agree, or do not."""
        stage = "instructions" if agreed else "declined"
        at = "consented_at" if agreed else "finished_at"
        return self._act(
            token, visit, lambda who: who.stage == "consent", lambda now: {"stage": stage, at: now}
        )

    def begin(self, token: str, visit: int | None = None) -> Stage:
        """They have read the instructions."""
        stage = "practice" if self.study.settings.session.practice else "trials"
        return self._act(
            token, visit, lambda who: who.stage == "instructions", lambda now: {"stage": stage}
        )

    def rest(self, token: str, done: int, visit: int | None = None) -> Stage:
        """They come back from the break after `done` questions, or from practice (0)."""

        def due(who: Participant) -> bool:
            return who.stage == "trials" and who.done == done != who.rested

        return self._act(token, visit, due, lambda now: {"rested": done})

    def feedback(self, token: str, text: str) -> Stage:
        """They have written a comment, perhaps an empty one, and are done."""
        kept = {"stage": "finished", "feedback": text[:LONGEST_FEEDBACK]}
        return self._act(
            token,
            None,
            lambda who: who.stage == "feedback",
            lambda now: {**kept, "finished_at": now},
        )

    def _act(
        self,
        token: str,
        visit: int | None,
        due: Callable[[Participant], bool],
        changes: Callable[[int], dict[str, Any]],
    ) -> Stage:
        """One step of a participant, if it is due; an older window takes none."""

        def work(c: Connection) -> Stage:
            who, now = self._present(c, token), self.clock()
            if self._older(who, visit):
                return _elsewhere(who, due(who))
            if due(who):
                who = store.change_participant(c, who.id, seen_at=now, **changes(now))
            return self._stage(c, who)

        return self.database.write(work)

    def _older(self, who: Participant, visit: int | None) -> bool:
        """Whether a window was replaced by a newer one.

        Only one window at a time may go on; what comes after the last question belongs to all.
        """
        return visit is not None and visit < who.visit and who.stage in store.UNDER_WAY

    # ---- answering ------------------------------------------------------------------------------

    def answer(
        self,
        token: str,
        question: str,
        side: Side,
        visit: int | None = None,
        rt_ms: float | None = None,
        timings: Mapping[str, Any] | None = None,
    ) -> Stage:
        """Store an answer and give the next question; again and again, the same.

        The first answer to a question is kept; who sends another, or the same once more, is told
        where they are now. What comes from an older window, or breaks the study's rules, is not
        stored.
        """
        return self.database.write(
            lambda c: self._answer(c, token, question, side, visit, rt_ms, timings)
        )

    def _answer(
        self,
        c: Connection,
        token: str,
        question: str,
        side: Side,
        visit: int | None,
        rt_ms: float | None,
        timings: Mapping[str, Any] | None,
    ) -> Stage:
        who, now = self._participant(c, token), self.clock()
        away = self._quota.is_away(who, now)
        asked = questions.issued(c, question)
        if asked is None or asked.participant != who.id:
            raise UnknownQuestion("This question is not one of this participant's.")
        note: Note = ""
        current = asked.side is None and asked.slot == self._current_slot(who)
        if current and not self._older(who, visit):
            if self._issuer.takes(asked, side, now):
                late = away or now > asked.expires_at
                questions.add_answer(c, asked.id, side, late, now, rt_ms, timings)
                note = self._issuer.note(asked, side)
                who = (self._practised if asked.slot < 0 else self._done)(c, who, now)
            else:
                note = "not_taken"
        if away:
            who = self._quota.returned(c, who, self._state(c), now)
        if self._older(who, visit):
            return _elsewhere(who, current)
        return replace(self._stage(c, who), note=note)

    def _practised(self, c: Connection, who: Participant, now: int) -> Participant:
        practised = who.practised + 1
        over = practised >= self.study.settings.session.practice
        changes = {"stage": "trials", "rested": NOT_READY} if over else {}
        return store.change_participant(c, who.id, practised=practised, seen_at=now, **changes)

    def _done(self, c: Connection, who: Participant, now: int) -> Participant:
        changes: dict[str, Any] = {"done": who.done + 1, "seen_at": now}
        if who.done + 1 >= who.trials:
            wants_words = self.study.settings.session.feedback
            changes["stage"] = "feedback" if wants_words else "finished"
            changes["finished_at"] = None if wants_words else now
        return store.change_participant(c, who.id, **changes)

    def _current_slot(self, who: Participant) -> int | None:
        if who.stage == "practice":
            return who.practised - self.study.settings.session.practice
        return who.done if who.stage == "trials" else None

    # ---- where somebody is ----------------------------------------------------------------------

    def _participant(self, c: Connection, token: str) -> Participant:
        who = store.participant(c, token)
        if who is None:
            raise UnknownParticipant("No participant holds this link.")
        return who

    def _present(self, c: Connection, token: str) -> Participant:
        """Who holds this token; if they were away too long, only if there is still room."""
        who, now = self._participant(c, token), self.clock()
        if not self._quota.is_away(who, now):
            return who
        return self._quota.returned(c, who, self._state(c), now)

    def _state(self, c: Connection) -> store.State:
        state = store.state(c)
        assert state is not None
        return state

    def _stage(self, c: Connection, who: Participant) -> Stage:
        plain = Stage(
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
            code, address = self._exit(plain.kind, json.loads(who.entry))  # type: ignore[arg-type]
            return replace(plain, code=code, address=address)
        if who.stage not in ("practice", "trials"):
            return plain
        now, state = self.clock(), self._state(c)
        if state.status == "paused":
            return replace(plain, kind="paused")
        if who.stage == "trials":
            if who.rested == NOT_READY:
                return replace(plain, kind="ready")
            every = self.study.settings.session.break_every
            if every and who.done and who.done % every == 0 and who.rested != who.done:
                return replace(plain, kind="break")
        slot = self._current_slot(who)
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
            trial=Trial(asked.token, asked.anchor, asked.left, asked.right, asked.purpose),
            upcoming=upcoming,
        )

    def _exit(self, kind: ExitKind, entry: Mapping[str, str]) -> tuple[str, str]:
        return exit_of(self.study.settings.completion, kind, entry)


def _elsewhere(who: Participant, refused: bool) -> Stage:
    return Stage("elsewhere", who.token, who.visit, note="not_taken" if refused else "")
