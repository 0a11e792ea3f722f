"""Assign questions to participants, and decide which answers the study's rules allow."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from server.collection.screens import Note
from server.store import collection, models, questions
from server.store.collection import Participant
from server.store.database import Connection
from server.store.questions import Issued, NewQuestion
from server.study.config import LoadedStudy
from server.study.schedule import REPEAT_LAG, schedule

Side = Literal["left", "right", "skip", "timeout"]
# The clocks of the browser and the server may run at slightly different speeds.
CLOCK_TOLERANCE = 0.9


class Issuer:
    """Issues the questions of one study, within the caller's transaction."""

    def __init__(self, study: LoadedStudy) -> None:
        self.study = study
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
            elif asked.side is None and asked.expires_at <= now:
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
                questions.lease_ready(c, ready[0], who.id, slot, token, now, expires)
                return Issued(*ready, None, who.id, slot, token, expires, now, None)
            new = self._random(c, who, slot, swap, "fallback")
        version = models.latest_version(c)
        question = questions.lease_new(c, new, version, who.id, slot, token, now, expires)
        return Issued(
            *(question, new.purpose, new.anchor, new.left, new.right, new.nearer),
            *(who.id, slot, token, expires, now, None),
        )

    def takes(self, asked: Issued, side: Side, now: int) -> bool:
        """Whether the study allows this answer; a time-out must agree with the server's clock."""
        rules = self.study.settings.trial
        if side == "skip":
            return rules.skip
        if side == "timeout":
            waited = now - asked.served_at
            # A negative duration means that the clock was set back: it cannot refute the time-out.
            too_soon = 0 <= waited < CLOCK_TOLERANCE * rules.timeout_ms
            return rules.timeout_ms > 0 and not too_soon
        return True

    def note(self, asked: Issued, side: Side) -> Note:
        """Name of the text with which the next page comments on an accepted answer."""
        if asked.slot >= 0:
            return "timed_out" if side == "timeout" else ""
        if side == "skip":
            return "practice_skipped"
        if side == "timeout":
            return "practice_timed_out"
        return "practice_right" if side == expected(asked) else "practice_wrong"

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
        """A question with a known answer: the study's own, or one with the anchor as an option."""
        rng = _rng(seed, who.id, slot)
        catches = self.study.catches
        if catches:
            # Each participant cycles through all of them, in an individual order.
            order = np.random.default_rng([seed, who.id, 1]).permutation(len(catches))
            catch = catches[int(order[slot % len(catches)])]
            anchor, nearer, farther = catch.anchor, catch.nearer, catch.farther
        else:
            anchor, farther = (int(item) for item in rng.choice(len(self.study.items), 2, False))
            nearer = anchor
        left, right = (farther, nearer) if swap else (nearer, farther)
        return NewQuestion(
            "schedule", purpose, anchor, left, right, nearer, None, None, f"{seed}/{who.id}/{slot}"
        )

    def _repeat(self, c: Connection, seed: int, who: Participant, slot: int) -> NewQuestion | None:
        """One of the participant's earlier questions, sides swapped; None if there is none."""
        candidates = questions.repeatable(c, who.id, slot - REPEAT_LAG)
        if not candidates:
            return None
        old = candidates[int(_rng(seed, who.id, slot).integers(len(candidates)))]
        return NewQuestion(
            "schedule",
            "repeat",
            old[1],
            old[3],
            old[2],
            None,
            old[0],
            None,
            f"{seed}/{who.id}/{slot}",
        )

    def _random(
        self, c: Connection, who: Participant, slot: int, swap: bool, origin: str
    ) -> NewQuestion:
        """Draw uniformly from the questions that this participant has not had."""
        seed, count = self._seed(c), len(self.study.items)
        rng = _rng(seed, who.id, slot)
        had = questions.count_had(c, who.id)
        everything = count * (count - 1) * (count - 2) // 2
        if had >= everything:
            # Every possible question has been asked.
            return self._known(seed, who, slot, swap, "catch")
        while True:
            anchor, first, second = (int(item) for item in rng.choice(count, 3, replace=False))
            if not questions.has_had(c, who.id, anchor, first, second):
                break
        left, right = sorted((first, second), reverse=swap)
        return NewQuestion(
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


def expected(asked: Issued) -> Side | None:
    """The side of the known answer; None if the question has none."""
    if asked.nearer is None:
        return None
    return "left" if asked.nearer == asked.left else "right"


def _rng(seed: int, number: int, slot: int) -> np.random.Generator:
    return np.random.default_rng([seed, number, 2, slot + 1000])
