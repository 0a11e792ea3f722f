"""What participants can do, each as one transaction: arrive, consent, answer, finish. No Flask."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lore_active.errors import LoreError
from lore_active.study import LoadedStudy
from server.entry import external_name, filled, session_of, tidy
from server.issuing import Issuer
from server.stages import Side, Stage, Trial, Turned, Verdict, Welcome
from server.store import collection as store
from server.store import questions
from server.store.collection import Participant
from server.store.database import Connection, Database
from server.store.writer import MOST_TOGETHER

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
        # The most that may have been promised to participants up to a number.
        self._most, self._counted = 0, 0

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
                out = self.study.settings.completion
                return Turned("already", out.already_code, filled(out.already_redirect, entry))
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
        trials = self._room(c, state, now)
        if state.status == "stopped" or trials <= 0:
            return self._turned_full(entry)
        new = store.add_participant(
            c, secrets.token_urlsafe(18), external, entry, agent, trials, now
        )
        return Welcome(new.token)

    def _room(self, c: Connection, state: store.State, now: int) -> int:
        """How many questions a newcomer can be promised.

        Counting what everybody was promised takes as long as there are people, and a crowd at the
        door would wait for it in turn. So first the most that it could be, which only grows with
        newcomers; the exact count only where that does not fit.
        """
        newest = store.newest_participant(c)
        # A commit that fails takes its newest participants back: they are added up every time.
        sure = max(0, newest - MOST_TOGETHER)
        if sure > self._counted:
            self._most += store.most_promised(c, self._counted, sure)
            self._counted = sure
        most = self._most + store.most_promised(c, self._counted, newest)
        few = not state.budget_participants or newest < state.budget_participants
        if few and most + state.trials <= state.budget_answers:
            return state.trials
        given, people = store.promised(c, *self._present_from_to(now))
        if state.budget_participants and people >= state.budget_participants:
            return 0
        return min(state.trials, state.budget_answers - given)

    def _turned_full(self, entry: Mapping[str, str]) -> Turned:
        out = self.study.settings.completion
        return Turned("full", out.full_code, filled(out.full_redirect, entry))

    def visit(self, token: str) -> Stage:
        """The page is loaded anew: where they are, and this is now their newest tab."""

        def work(c: Connection) -> Stage:
            who = self._present(c, token)
            who = store.change_participant(c, who.id, visit=who.visit + 1)
            return self._stage(c, who)

        return self.database.write(work)

    def consent(self, token: str, agreed: bool) -> Stage:
        """They agree, or do not."""

        def work(c: Connection) -> Stage:
            who, now = self._present(c, token), self.clock()
            if who.stage == "consent":
                stage = "instructions" if agreed else "declined"
                who = store.change_participant(
                    c,
                    who.id,
                    stage=stage,
                    seen_at=now,
                    consented_at=now if agreed else None,
                    finished_at=None if agreed else now,
                )
            return self._stage(c, who)

        return self.database.write(work)

    def begin(self, token: str) -> Stage:
        """They have read the instructions."""

        def work(c: Connection) -> Stage:
            who = self._present(c, token)
            if who.stage == "instructions":
                stage = "practice" if self.study.settings.session.practice else "trials"
                who = store.change_participant(c, who.id, stage=stage, seen_at=self.clock())
            return self._stage(c, who)

        return self.database.write(work)

    def rest(self, token: str, done: int) -> Stage:
        """They come back from the break after `done` questions, or from practice (0)."""

        def work(c: Connection) -> Stage:
            who = self._present(c, token)
            if who.stage == "trials" and done == who.done:
                who = store.change_participant(c, who.id, rested=done, seen_at=self.clock())
            return self._stage(c, who)

        return self.database.write(work)

    def feedback(self, token: str, text: str) -> Stage:
        """They have said what they wanted to say, perhaps nothing, and are done."""

        def work(c: Connection) -> Stage:
            who, now = self._present(c, token), self.clock()
            if who.stage == "feedback":
                who = store.change_participant(
                    c,
                    who.id,
                    stage="finished",
                    feedback=text[:LONGEST_FEEDBACK],
                    seen_at=now,
                    finished_at=now,
                )
            return self._stage(c, who)

        return self.database.write(work)

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

        The first answer to a question stands; whoever sends another, or the same once more, is
        told where they are now.
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
        away = self._away(who, now)
        asked = questions.issued(c, question)
        if asked is None or asked.participant != who.id:
            raise UnknownQuestion("This question is not one of this participant's.")
        verdict = None
        if asked.side is None and asked.slot == self._current_slot(who):
            late = away or now > asked.expires_at
            questions.add_answer(c, asked.id, side, late, now, rt_ms, timings)
            if asked.slot < 0:
                who = self._practised(c, who, now)
                if asked.nearer is not None and side in ("left", "right"):
                    chosen = asked.left if side == "left" else asked.right
                    verdict = Verdict(chosen == asked.nearer)
            else:
                who = self._done(c, who, now)
        if away:
            who = self._welcomed_back(c, who, now)
        if visit is not None and visit < who.visit:
            return Stage("elsewhere", who.token, who.visit)
        return replace(self._stage(c, who), verdict=verdict)

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
        return self._welcomed_back(c, who, now) if self._away(who, now) else who

    def _away(self, who: Participant, now: int) -> bool:
        since, until = self._present_from_to(now)
        return who.stage in store.UNDER_WAY and not since <= who.seen_at <= until

    def _welcomed_back(self, c: Connection, who: Participant, now: int) -> Participant:
        """People who were away lost what was set aside for them: is there room for the rest?"""
        if who.stage not in store.UNDER_WAY:
            return who
        state = self._state(c)
        given, people = store.promised(c, *self._present_from_to(now), but=who.id)
        full = state.budget_participants and not who.done and people >= state.budget_participants
        if state.status == "stopped" or given + who.trials > state.budget_answers or full:
            return store.change_participant(c, who.id, stage="expired", finished_at=now)
        return store.change_participant(c, who.id, seen_at=now)

    def _state(self, c: Connection) -> store.State:
        state = store.state(c)
        assert state is not None
        return state

    def _present_from_to(self, now: int) -> tuple[int, int]:
        """Who was seen between these is still here.

        A clock that was set back leaves people who seem to have been seen in the future. If they
        are still there, they will be seen again; if not, nothing is kept for them until then.
        """
        idle = self.study.settings.session.idle_minutes * 60_000
        return now - idle, now + idle

    def _stage(self, c: Connection, who: Participant) -> Stage:
        plain = Stage(
            who.stage,  # type: ignore[arg-type]
            who.token,
            who.visit,
            done=who.done,
            trials=who.trials,
        )
        if who.stage in ("finished", "declined", "expired"):
            return self._with_way_out(plain, json.loads(who.entry))
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

    def _with_way_out(self, stage: Stage, entry: Mapping[str, str]) -> Stage:
        out = self.study.settings.completion
        code, address = {
            "finished": (out.code, out.redirect),
            "declined": (out.declined_code, out.declined_redirect),
            "expired": (out.expired_code or out.code, out.expired_redirect or out.redirect),
        }[stage.kind]
        return replace(stage, code=code, address=filled(address, entry))
