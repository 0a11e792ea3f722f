"""Assign questions to participants, and decide which answers the study's rules allow."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lore_active.questions.kinds import TRIPLET
from lore_active.questions.pool_of_kinds import count_possible
from server.collection.catches import own_question, passed, twin_question
from server.collection.screens import Note, Response
from server.store import collection, models, questions
from server.store.collection import Participant
from server.store.database import Connection
from server.store.questions import Issued, NewQuestion, ReadyQuestion
from server.store.sqlite.item_lists import Items
from server.study.config import LoadedStudy
from server.study.schedule import REPEAT_LAG, schedule

# The clocks of the browser and the server may run at slightly different speeds.
CLOCK_TOLERANCE = 0.9


class Issuer:
    """Issues the questions of one study, within the caller's transaction."""

    def __init__(self, study: LoadedStudy) -> None:
        self.study = study
        self.kind = study.kind
        self._known_seed: int | None = None

    def _seed(self, c: Connection) -> int:
        """The study's seed, which never changes."""
        if self._known_seed is None:
            state = collection.state(c)
            assert state is not None
            self._known_seed = state.seed
        return self._known_seed

    def lease(
        self, c: Connection, who: Participant, slots: Sequence[int], now: int
    ) -> list[Issued]:
        """Return the questions at positions of a participant's session; lease those that are new.

        This runs with every answer, so as few statements as possible are used.
        """
        expires = now + self.study.settings.session.lease_seconds * 1000
        known = {asked.slot: asked for asked in questions.issued_in(c, who.id, slots)}
        leased = []
        for slot in slots:
            asked = known.get(slot)
            if asked is None:
                asked = self._lease_new(c, who, slot, now, expires)
            elif asked.outcome is None and asked.expires_at <= now:
                questions.renew_lease(c, asked.id, expires)
                asked = replace(asked, expires_at=expires)
            leased.append(asked)
        return leased

    def _lease_new(
        self, c: Connection, who: Participant, slot: int, now: int, expires: int
    ) -> Issued:
        token = secrets.token_urlsafe(18)
        new, swap = self._scheduled(c, who, slot)
        if new is None:
            ready = questions.first_ready(c, who.id)
            if ready is not None:
                questions.lease_ready(c, ready.id, who.id, slot, token, now, expires)
                return _issued(ready, (), who, slot, token, expires, now)
            new = self._random(c, who, slot, swap, "fallback")
        version = models.latest_version(c)
        number = questions.lease_new(c, new, version, who.id, slot, token, now, expires)
        question = ReadyQuestion(number, new.purpose, new.anchor, new.options)
        return _issued(question, new.known, who, slot, token, expires, now)

    def refusal(self, asked: Issued, response: Response, now: int) -> Note:
        """Why the study does not allow this answer; empty if it does.

        A time-out must agree with the server's clock.
        """
        rules = self.study.settings.trial
        if response == "skip":
            return "" if rules.skip else "not_taken"
        if response == "timeout":
            waited = now - asked.served_at
            # A negative duration means that the clock was set back: it cannot refute the time-out.
            too_soon = 0 <= waited < CLOCK_TOLERANCE * rules.timeout_ms
            return "" if rules.timeout_ms > 0 and not too_soon else "not_taken"
        different = set(response) & set(range(len(asked.options)))
        return "" if len(response) == len(different) == self.kind.pick else "incomplete"

    def note(self, slot: int, outcome: str, known: Items, chosen: Items) -> Note:
        """Name of the text with which the next page comments on an accepted answer."""
        if slot >= 0:
            return "timed_out" if outcome == "timeout" else ""
        if outcome == "skip":
            return "practice_skipped"
        if outcome == "timeout":
            return "practice_timed_out"
        return "practice_right" if passed(known, chosen) else "practice_wrong"

    def _scheduled(
        self, c: Connection, who: Participant, slot: int
    ) -> tuple[NewQuestion | None, bool]:
        """The question that the schedule dictates (None: the learner's), and whether to swap."""
        settings = self.study.settings.session
        seed = self._seed(c)
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

    def _known(
        self, seed: int, who: Participant, slot: int, swap: bool, purpose: str
    ) -> NewQuestion:
        """A question with a known answer: the study's own, or one about an item and itself."""
        rng = _rng(seed, who.id, slot)
        catches = self.study.catches
        if catches:
            # Each participant cycles through all of them, in an individual order.
            order = np.random.default_rng([seed, who.id, 1]).permutation(len(catches))
            question = own_question(self.study, catches[int(order[slot % len(catches)])], rng)
        else:
            question = twin_question(self.study, rng)
        options = question.options
        if self.kind == TRIPLET and swap:
            options = options[::-1]
        return NewQuestion(
            *("schedule", purpose, question.anchor, options, question.known),
            *(None, None, f"{seed}/{who.id}/{slot}"),
        )

    def _repeat(self, c: Connection, seed: int, who: Participant, slot: int) -> NewQuestion | None:
        """One of the participant's earlier questions, in reverse order; None if there is none."""
        candidates = questions.repeatable(c, who.id, slot - REPEAT_LAG)
        if not candidates:
            return None
        old = candidates[int(_rng(seed, who.id, slot).integers(len(candidates)))]
        return NewQuestion(
            *("schedule", "repeat", old.anchor, old.options[::-1], ()),
            *(old.id, None, f"{seed}/{who.id}/{slot}"),
        )

    def _random(
        self, c: Connection, who: Participant, slot: int, swap: bool, origin: str
    ) -> NewQuestion:
        """Draw uniformly from the questions that this participant has not had."""
        seed, count = self._seed(c), len(self.study.items)
        rng = _rng(seed, who.id, slot)
        had, everything = questions.count_had(c, who.id), count_possible(count, self.kind)
        if had >= everything:
            # Every possible question has been asked.
            return self._known(seed, who, slot, swap, "catch")
        while True:
            items = tuple(rng.choice(count, self.kind.items, replace=False).tolist())
            anchor, options = (items[0], items[1:]) if self.kind.has_anchor else (None, items)
            if not questions.has_had(c, who.id, anchor, options):
                break
        if self.kind == TRIPLET:
            # Each side is as often on the left.
            options = tuple(sorted(options, reverse=swap))
        return NewQuestion(
            *(origin, "random", anchor, options, (), None, 1.0 / (everything - had)),
            f"{seed}/{who.id}/{slot}",
        )


def _issued(
    question: ReadyQuestion,
    known: Items,
    who: Participant,
    slot: int,
    token: str,
    expires: int,
    now: int,
) -> Issued:
    """A question that was leased just now."""
    shown = (question.id, question.purpose, question.anchor, question.options, known)
    return Issued(*shown, who.id, slot, token, expires, now, None, ())


def positions(asked: Issued, items: Sequence[int]) -> tuple[int, ...]:
    """Positions of items among the options of a question."""
    return tuple(asked.options.index(item) for item in items)


def _rng(seed: int, number: int, slot: int) -> np.random.Generator:
    return np.random.default_rng([seed, number, 2, slot + 1000])
