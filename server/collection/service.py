"""The actions of participants (arrive, consent, answer, finish), each as one transaction."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lore_active.errors import LoreError
from server.collection.assignment import Issuer
from server.collection.entry import external_name, session_of, tidy
from server.collection.location import NOT_READY, PRACTICE_FEEDBACK, SLOW_DOWN, Location
from server.collection.pace import Pace
from server.collection.quota import Quota
from server.collection.screens import REFUSED, Note, Rejected, Response, Screen, Welcome
from server.store import collection as store
from server.store import questions
from server.store.collection import Participant
from server.store.database import Connection, Database
from server.study.config import LoadedStudy

MAX_FEEDBACK = 5000
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"


class UnknownParticipant(LoreError):
    """A link whose token belongs to no participant."""


class QuestionNotFound(LoreError):
    """An answer to a question that this participant was never given."""


class Service:
    """The actions of one study's participants; independent of Flask.

    `clock` returns milliseconds since 1970. Every method returns only after its changes are on
    disk.
    """

    def __init__(self, database: Database, study: LoadedStudy, clock: Callable[[], int]) -> None:
        self.database = database
        self.study = study
        self.clock = clock
        self._issuer = Issuer(study)
        self._quota = Quota(study)
        self._pace = Pace(study)
        self._location = Location(study, self._issuer, self._pace, clock)

    # ---- arrival --------------------------------------------------------------------------------

    def arrive(
        self,
        entry: Mapping[str, str],
        token: str | None = None,
        agent: str = "",
        simulated: bool = False,
    ) -> Welcome | Rejected:
        """Admit a visitor who opens the study's link, as a new or a returning participant.

        `entry` holds the link's parameters, `token` the browser's cookie of an earlier visit. The
        recruitment site's identifier takes precedence over the cookie. `simulated` marks one of
        this server's own bots, permanently.
        """
        entry = tidy(entry)
        if entry.get("assignmentId") == PREVIEW:
            return Rejected("preview")
        return self.database.write(lambda c: self._arrive(c, entry, token, agent[:500], simulated))

    def _arrive(
        self, c: Connection, entry: dict[str, str], token: str | None, agent: str, simulated: bool
    ) -> Welcome | Rejected:
        now = self.clock()
        external = external_name(entry, simulated)
        known = None
        if external is not None:
            known = store.participant_known_as(c, external)
        elif token:
            known = store.participant(c, token)
        if known is not None:
            before = json.loads(known.entry)
            if known.stage == "finished" and session_of(entry) != session_of(before):
                # A second session of the same participant, not a reload of the first.
                return Rejected("already", *self._location.exit("already", entry))
            if external is not None and entry != before and known.stage in store.STILL_HERE:
                # The exit must name the current assignment, not one that was returned.
                store.change_participant(
                    c, known.id, entry=json.dumps({**before, **entry}, ensure_ascii=False)
                )
                store.add_event(c, "entry", "participant", now, known.id, before=before)
            return Welcome(known.token)
        state = self._state(c)
        if state.status == "paused":
            return Rejected("paused")
        trials = self._quota.room(c, state, now, simulated)
        enough = simulated and store.simulated_stopped(c)
        if state.status == "stopped" or trials <= 0 or enough:
            return Rejected("full", *self._location.exit("full", entry))
        new = store.add_participant(
            c, secrets.token_urlsafe(18), external, entry, agent, trials, now, simulated
        )
        if simulated:
            self._leave_simulated_out(c, now)
        return Welcome(new.token)

    # ---- pages ----------------------------------------------------------------------------------

    def visit(self, token: str) -> Screen:
        """Load the current page; the window that asks becomes the participant's newest."""

        def work(c: Connection) -> Screen:
            who = self._present(c, token)
            return self._location.stage(c, store.change_participant(c, who.id, visit=who.visit + 1))

        return self.database.write(work)

    def look(self, token: str, visit: int | None) -> Screen:
        """The current page, for a paused window that polls whether the study has resumed."""
        return self._act(token, visit, lambda who: False, lambda who, now: {})

    def consent(self, token: str, agreed: bool, visit: int | None = None) -> Screen:
        """Give or decline consent; declining can be undone until a code or link was shown."""

        def changes(who: Participant, now: int) -> dict[str, Any]:
            if agreed:
                return {"stage": "instructions", "consented_at": now}
            return {
                "stage": "declined",
                "finished_at": None if self._location.declining_pays else now,
            }

        return self._act(token, visit, lambda who: who.stage == "consent", changes)

    def leave(self, token: str) -> Screen:
        """Confirm declining; the page then shows the code or link of that exit."""
        return self._act(
            token,
            None,
            lambda who: who.stage == "declined" and who.finished_at is None,
            lambda who, now: {"finished_at": now},
        )

    def reconsider(self, token: str) -> Screen:
        """Undo declining: back to the consent page, if the budget still has room."""

        def work(c: Connection) -> Screen:
            who, now, state = self._participant(c, token), self.clock(), self._state(c)
            if self._location.undecided(who):
                trials = self._quota.room(c, state, now, bool(who.simulated))
                changes: dict[str, Any] = {"stage": "expired", "finished_at": now}
                if trials > 0 and state.status != "stopped":
                    changes = {"stage": "consent", "finished_at": None, "trials": trials}
                    store.add_event(c, "reconsider", "participant", now, who.id)
                who = store.change_participant(c, who.id, seen_at=now, **changes)
            return self._location.stage(c, who)

        return self.database.write(work)

    def begin(self, token: str, visit: int | None = None) -> Screen:
        """Leave the instructions and start with practice or trials."""
        stage = "practice" if self.study.settings.session.practice else "trials"
        return self._act(
            token, visit, lambda who: who.stage == "instructions", lambda who, now: {"stage": stage}
        )

    def rest(self, token: str, done: int, visit: int | None = None) -> Screen:
        """Continue from a page between questions; `done` is the count that the page was sent."""

        def due(who: Participant) -> bool:
            if who.stage == "practice":
                return (
                    who.break_done == PRACTICE_FEEDBACK
                    and done == self._location.practice_slot(who) - 1
                )
            return who.stage == "trials" and who.done == done != who.break_done

        def changes(who: Participant, now: int) -> dict[str, Any]:
            if who.stage == "practice" and self._location.practice_slot(who) >= 0:
                return {"stage": "trials", "break_done": NOT_READY}
            return {"break_done": 0 if who.stage == "practice" else done}

        return self._act(token, visit, due, changes)

    def feedback(self, token: str, text: str) -> Screen:
        """Store the comment, which may be empty, and finish."""
        kept = {"stage": "finished", "feedback": text[:MAX_FEEDBACK]}
        return self._act(
            token,
            None,
            lambda who: who.stage == "feedback",
            lambda who, now: {**kept, "finished_at": now},
        )

    def _act(
        self,
        token: str,
        visit: int | None,
        due: Callable[[Participant], bool],
        changes: Callable[[Participant, int], dict[str, Any]],
    ) -> Screen:
        """Apply changes if they are due; an older window cannot change anything."""

        def work(c: Connection) -> Screen:
            who, now = self._present(c, token), self.clock()
            if self._older(who, visit):
                return _elsewhere(who, due(who))
            if due(who):
                who = store.change_participant(c, who.id, seen_at=now, **changes(who, now))
            return self._location.stage(c, who)

        return self.database.write(work)

    def _older(self, who: Participant, visit: int | None) -> bool:
        """Whether a window was replaced by a newer one.

        Only one window at a time can continue; the pages after the last question are open to all.
        """
        return visit is not None and visit < who.visit and who.stage in store.UNDER_WAY

    # ---- answering ------------------------------------------------------------------------------

    def answer(
        self,
        token: str,
        question: str,
        response: Response,
        visit: int | None = None,
        rt_ms: float | None = None,
        timings: Mapping[str, Any] | None = None,
    ) -> Screen:
        """Store an answer and return the next page; idempotent.

        Only the first answer to a question is stored; any further one just returns the current
        page. Answers from an older window, against the study's rules, or with another number of
        options than are to be picked, are not stored.
        """
        return self.database.write(
            lambda c: self._answer(c, token, question, response, visit, rt_ms, timings)
        )

    def _answer(
        self,
        c: Connection,
        token: str,
        question: str,
        response: Response,
        visit: int | None,
        rt_ms: float | None,
        timings: Mapping[str, Any] | None,
    ) -> Screen:
        who, now = self._participant(c, token), self.clock()
        idle = self._quota.is_idle(who, now)
        asked = questions.issued(c, question)
        if asked is None or asked.participant != who.id:
            raise QuestionNotFound("This question was not given to this participant.")
        note: Note = ""
        current = asked.outcome is None and asked.slot == self._location.current_slot(who)
        if current and not self._older(who, visit):
            note = self._issuer.refusal(asked, response, now)
            if not note:
                late = idle or now > asked.expires_at
                picked = () if isinstance(response, str) else response
                outcome = response if isinstance(response, str) else "chosen"
                chosen = tuple(asked.options[position] for position in picked)
                questions.add_answer(c, asked.id, outcome, chosen, late, now, rt_ms, timings)
                note = self._issuer.note(asked.slot, outcome, asked.known, chosen)
                who = (self._practice_answered if asked.slot < 0 else self._done)(c, who, now)
        if idle:
            who = self._quota.returned(c, who, self._state(c), now)
        if self._older(who, visit):
            return _elsewhere(who, current)
        stage = self._location.stage(c, who)
        noted = note and (stage.kind == "trial" or note in REFUSED)
        return replace(stage, note=note) if noted else stage

    def _practice_answered(self, c: Connection, who: Participant, now: int) -> Participant:
        return store.change_participant(
            c,
            who.id,
            practice_done=who.practice_done + 1,
            break_done=PRACTICE_FEEDBACK,
            seen_at=now,
        )

    def _done(self, c: Connection, who: Participant, now: int) -> Participant:
        changes: dict[str, Any] = {"done": who.done + 1, "seen_at": now}
        if who.done + 1 >= who.trials:
            comment_page = self.study.settings.session.feedback
            changes["stage"] = "feedback" if comment_page else "finished"
            changes["finished_at"] = None if comment_page else now
        who = store.change_participant(c, who.id, **changes)
        if not who.simulated:
            self._leave_simulated_out(c, now)
            if who.stage == "trials" and self._pace.reminded(c, who, now):
                who = store.change_participant(c, who.id, break_done=SLOW_DOWN)
        return who

    def _leave_simulated_out(self, c: Connection, now: int) -> None:
        if not self.study.settings.learning.simulated:
            store.leave_simulated_out(c, now)

    # ---- state ----------------------------------------------------------------------------------

    def _participant(self, c: Connection, token: str) -> Participant:
        who = store.participant(c, token)
        if who is None:
            raise UnknownParticipant("This link belongs to no participant.")
        return who

    def _present(self, c: Connection, token: str) -> Participant:
        """The participant of this token; one who was idle is readmitted if there is room."""
        who, now = self._participant(c, token), self.clock()
        if not self._quota.is_idle(who, now):
            return who
        return self._quota.returned(c, who, self._state(c), now)

    def _state(self, c: Connection) -> store.StudyState:
        state = store.state(c)
        assert state is not None
        return state


def _elsewhere(who: Participant, refused: bool) -> Screen:
    return Screen("elsewhere", who.token, who.visit, note="not_taken" if refused else "")
