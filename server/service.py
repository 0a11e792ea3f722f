"""What participants can do, each as one transaction: arrive, consent, answer, finish. No Flask."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np

from lore_active.errors import LoreError
from lore_active.schedule import REPEAT_LAG, schedule
from lore_active.study import LoadedStudy
from server.stages import Side, Stage, Trial, Turned, Verdict, Welcome
from server.store import collection as store
from server.store.collection import Issued, NewQuery, Participant
from server.store.database import Connection, Database

# Ways of saying who somebody is, most telling first; one of these makes a link a person's own.
IDENTITIES = ("PROLIFIC_PID", "workerId", "participant_label", "puid", "survey_code", "id")
MOST_PARAMETERS = 30
LONGEST_PARAMETER = 300
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

    # ---- coming and going -----------------------------------------------------------------------

    def arrive(
        self, entry: Mapping[str, str], token: str | None = None, agent: str = ""
    ) -> Welcome | Turned:
        """Somebody opens the study's link: a newcomer, or one who comes back.

        `entry` holds the link's parameters, `token` what their browser remembers of an earlier
        visit. People whom the recruiter names are known by that name, whatever the browser says.
        """
        entry = _tidy(entry)
        if entry.get("assignmentId") == PREVIEW:
            return Turned("preview")
        return self.database.write(lambda c: self._arrive(c, entry, token, agent[:500]))

    def _arrive(
        self, c: Connection, entry: dict[str, str], token: str | None, agent: str
    ) -> Welcome | Turned:
        now = self.clock()
        external = _external(entry)
        known = None
        if external is not None:
            known = store.participant_known_as(c, external)
        elif token:
            known = store.participant(c, token)
        if known is not None:
            before = json.loads(known.entry)
            if known.stage == "finished" and _session(entry) != _session(before):
                # A second session of the same person, not a reload of the first.
                out = self.study.settings.completion
                return Turned("already", out.already_code, _filled(out.already_redirect, entry))
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
        given, people = store.promised(c, self._active_since(now))
        trials = min(state.trials, state.budget_answers - given)
        full = state.budget_participants and people >= state.budget_participants
        if state.status == "stopped" or trials <= 0 or full:
            return self._turned_full(entry)
        new = store.add_participant(
            c, secrets.token_urlsafe(18), external, entry, agent, trials, now
        )
        return Welcome(new.token)

    def _turned_full(self, entry: Mapping[str, str]) -> Turned:
        out = self.study.settings.completion
        return Turned("full", out.full_code, _filled(out.full_redirect, entry))

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
        asked = store.issued(c, question)
        if asked is None or asked.participant != who.id:
            raise UnknownQuestion("This question is not one of this participant's.")
        verdict = None
        if asked.side is None and asked.slot == self._current_slot(who):
            late = away or now > asked.expires_at
            store.add_answer(c, asked.id, side, late, now, rt_ms, timings)
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
        return who.stage in store.UNDER_WAY and who.seen_at < self._active_since(now)

    def _welcomed_back(self, c: Connection, who: Participant, now: int) -> Participant:
        """People who were away lost what was set aside for them: is there room for the rest?"""
        if who.stage not in store.UNDER_WAY:
            return who
        state = self._state(c)
        given, people = store.promised(c, self._active_since(now), but=who.id)
        full = state.budget_participants and not who.done and people >= state.budget_participants
        if state.status == "stopped" or given + who.trials > state.budget_answers or full:
            return store.change_participant(c, who.id, stage="expired", finished_at=now)
        return store.change_participant(c, who.id, seen_at=now)

    def _state(self, c: Connection) -> store.State:
        state = store.state(c)
        assert state is not None
        return state

    def _active_since(self, now: int) -> int:
        return now - self.study.settings.session.idle_minutes * 60_000

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
        asked = self._lease(c, who, slot, now)
        following = slot + 1
        upcoming: tuple[int, ...] = ()
        if following < who.trials:
            ahead = self._lease(c, who, following, now)
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
        return replace(stage, code=code, address=_filled(address, entry))

    # ---- choosing the next question -------------------------------------------------------------

    def _lease(self, c: Connection, who: Participant, slot: int, now: int) -> Issued:
        expires = now + self.study.settings.session.lease_seconds * 1000
        asked = store.issued_in(c, who.id, slot)
        if asked is not None:
            if asked.side is None and asked.expires_at <= now:
                store.renew_lease(c, asked.id, expires)
                asked = replace(asked, expires_at=expires)
            return asked
        token = secrets.token_urlsafe(18)
        new, swap = self._wanted(c, who, slot)
        if new is None:
            ready = store.first_ready(c, who.id)
            if ready is not None:
                query, _, one, other = ready
                left, right = sorted((one, other), reverse=swap)
                store.lease_ready(c, query, left, right, who.id, slot, token, now, expires)
            else:
                new = self._random(c, who, slot, swap, "fallback")
        if new is not None:
            version = store.model_version(c)
            store.lease_new(c, new, version, who.id, slot, token, now, expires)
        leased = store.issued_in(c, who.id, slot)
        assert leased is not None
        return leased

    def _wanted(self, c: Connection, who: Participant, slot: int) -> tuple[NewQuery | None, bool]:
        """The question that the schedule itself decides (None: the learner's best), and sides."""
        settings = self.study.settings.session
        seed = self._state(c).seed
        if slot < 0:
            return self._known(seed, who, slot, bool(slot % 2), "practice"), False
        plan = schedule(seed, who.id, who.trials, settings.random, settings.catch, settings.repeat)
        kind, swap = plan.kinds[slot], plan.swapped[slot]
        if kind == "catch":
            return self._known(seed, who, slot, swap, "catch"), swap
        if kind == "repeat":
            return self._repeat(c, seed, who, slot), swap
        if kind == "random":
            return self._random(c, who, slot, swap, "schedule"), swap
        return None, swap

    def _known(self, seed: int, who: Participant, slot: int, swap: bool, purpose: str) -> NewQuery:
        """A question whose answer is known: the study's own, or an item beside itself."""
        rng = _rng(seed, who.id, slot)
        catches = self.study.catches
        if catches:
            # Everybody goes through all of them, in an order of their own.
            order = np.random.default_rng([seed, who.id, 1]).permutation(len(catches))
            catch = catches[int(order[slot % len(catches)])]
            anchor, nearer, farther = catch.anchor, catch.nearer, catch.farther
        else:
            anchor, farther = (int(one) for one in rng.choice(len(self.study.items), 2, False))
            nearer = anchor
        left, right = (farther, nearer) if swap else (nearer, farther)
        return NewQuery(
            "schedule", purpose, anchor, left, right, nearer, None, None, f"{seed}/{who.id}/{slot}"
        )

    def _repeat(self, c: Connection, seed: int, who: Participant, slot: int) -> NewQuery | None:
        """One of their own earlier questions, sides swapped; None if there is none to repeat."""
        own = store.issued_to(c, who.id)
        early = [
            one
            for one in own
            if 0 <= one.slot <= slot - REPEAT_LAG
            and one.purpose in ("cover", "active", "random")
            and one.side in ("left", "right")
        ]
        again = {
            (one.anchor, *sorted((one.left, one.right))) for one in own if one.purpose == "repeat"
        }
        early = [one for one in early if (one.anchor, *sorted((one.left, one.right))) not in again]
        if not early:
            return None
        old = early[int(_rng(seed, who.id, slot).integers(len(early)))]
        return NewQuery(
            "schedule",
            "repeat",
            old.anchor,
            old.right,
            old.left,
            None,
            old.id,
            None,
            f"{seed}/{who.id}/{slot}",
        )

    def _random(
        self, c: Connection, who: Participant, slot: int, swap: bool, origin: str
    ) -> NewQuery:
        """Uniform among the questions that this person has not had."""
        seed, count = self._state(c).seed, len(self.study.items)
        rng = _rng(seed, who.id, slot)
        had = store.count_had(c, who.id)
        everything = count * (count - 1) * (count - 2) // 2
        if had >= everything:
            # There is nothing left that would be new to them.
            return self._known(seed, who, slot, swap, "catch")
        while True:
            anchor, one, other = (int(item) for item in rng.choice(count, 3, replace=False))
            if not store.has_had(c, who.id, anchor, one, other):
                break
        left, right = sorted((one, other), reverse=swap)
        return NewQuery(
            origin,
            "random",
            anchor,
            left,
            right,
            None,
            None,
            1.0 / (everything - had),
            f"{seed}/{who.id}/{slot}",
        )


def _rng(seed: int, number: int, slot: int) -> np.random.Generator:
    return np.random.default_rng([seed, number, 2, slot + 1000])


def _tidy(entry: Mapping[str, str]) -> dict[str, str]:
    """A bounded copy: links come from outside."""
    kept = list(entry.items())[:MOST_PARAMETERS]
    return {str(name)[:100]: str(value)[:LONGEST_PARAMETER] for name, value in kept}


def _external(entry: Mapping[str, str]) -> str | None:
    for name in IDENTITIES:
        if entry.get(name):
            return f"{name}={entry[name]}"
    return None


def _session(entry: Mapping[str, str]) -> tuple[str | None, str | None]:
    return entry.get("SESSION_ID"), entry.get("assignmentId")


def _filled(template: str, entry: Mapping[str, str]) -> str:
    """A redirect with [NAME] replaced by the entry parameter, safely quoted."""
    for name, value in entry.items():
        template = template.replace(f"[{name}]", quote(value, safe=""))
    return template
