"""Assign questions to participants, and decide which answers the study's rules allow."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from server.collection.screens import Note, Side
from server.store import collection, models, questions
from server.store.collection import Participant
from server.store.database import Connection
from server.store.questions import Issued, NewQuery
from server.study.config import LoadedStudy
from server.study.schedule import REPEAT_LAG, schedule

# The clocks of the browser and the server may run at slightly different speeds.
CLOCK_TOLERANCE = 0.9


class Issuer:
    """Issues the questions of one study, within the caller's transaction."""

    def __init__(self, study: LoadedStudy) -> None:
        self.study = study

    def lease(self, c: Connection, who: Participant, slot: int, now: int) -> Issued:
        """Return the question at a position of a participant's session; lease it if it is new."""
        expires = now + self.study.settings.session.lease_seconds * 1000
        asked = questions.issued_in(c, who.id, slot)
        if asked is not None:
            if asked.side is None and asked.expires_at <= now:
                questions.renew_lease(c, asked.id, expires)
                asked = replace(asked, expires_at=expires)
            return asked
        token = secrets.token_urlsafe(18)
        new, swap = self._scheduled(c, who, slot)
        if new is None:
            ready = questions.first_ready(c, who.id)
            if ready is not None:
                query, _, first, second = ready
                left, right = sorted((first, second), reverse=swap)
                questions.lease_ready(c, query, left, right, who.id, slot, token, now, expires)
            else:
                new = self._random(c, who, slot, swap, "fallback")
        if new is not None:
            version = models.latest_version(c)
            questions.lease_new(c, new, version, who.id, slot, token, now, expires)
        leased = questions.issued_in(c, who.id, slot)
        assert leased is not None
        return leased

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
    ) -> tuple[NewQuery | None, bool]:
        """The question that the schedule dictates (None: the learner's), and whether to swap."""
        settings = self.study.settings.session
        seed = _seed(c)
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
        return NewQuery(
            "schedule", purpose, anchor, left, right, nearer, None, None, f"{seed}/{who.id}/{slot}"
        )

    def _repeat(self, c: Connection, seed: int, who: Participant, slot: int) -> NewQuery | None:
        """One of the participant's earlier questions, sides swapped; None if there is none."""
        own = questions.issued_to(c, who.id)
        repeated = {_triplet(asked) for asked in own if asked.purpose == "repeat"}
        candidates = [
            asked
            for asked in own
            if 0 <= asked.slot <= slot - REPEAT_LAG
            and asked.purpose in ("cover", "active", "random")
            and asked.side in ("left", "right")
            and _triplet(asked) not in repeated
        ]
        if not candidates:
            return None
        old = candidates[int(_rng(seed, who.id, slot).integers(len(candidates)))]
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
        """Draw uniformly from the questions that this participant has not had."""
        seed, count = _seed(c), len(self.study.items)
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


def expected(asked: Issued) -> Side | None:
    """The side of the known answer; None if the question has none."""
    if asked.nearer is None:
        return None
    return "left" if asked.nearer == asked.left else "right"


def _triplet(asked: Issued) -> tuple[int, int, int]:
    """A question regardless of the sides of its options."""
    return asked.anchor, min(asked.left, asked.right), max(asked.left, asked.right)


def _seed(c: Connection) -> int:
    state = collection.state(c)
    assert state is not None
    return state.seed


def _rng(seed: int, number: int, slot: int) -> np.random.Generator:
    return np.random.default_rng([seed, number, 2, slot + 1000])
