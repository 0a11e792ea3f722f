"""Which question a participant is given, and which answers to it the study's rules allow."""

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

# A page's clock and the server's need not run at the same speed.
CLOCK_TOLERANCE = 0.9


class Issuer:
    """Gives out one study's questions; everything within the caller's transaction."""

    def __init__(self, study: LoadedStudy) -> None:
        self.study = study

    def lease(self, c: Connection, who: Participant, slot: int, now: int) -> Issued:
        """The question in a place of somebody's session; given to them now if it is new."""
        expires = now + self.study.settings.session.lease_seconds * 1000
        asked = questions.issued_in(c, who.id, slot)
        if asked is not None:
            if asked.side is None and asked.expires_at <= now:
                questions.renew_lease(c, asked.id, expires)
                asked = replace(asked, expires_at=expires)
            return asked
        token = secrets.token_urlsafe(18)
        new, swap = self._wanted(c, who, slot)
        if new is None:
            ready = questions.first_ready(c, who.id)
            if ready is not None:
                query, _, one, other = ready
                left, right = sorted((one, other), reverse=swap)
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
        """Whether the study allows this answer; time is up only if it can be by our own clock."""
        rules = self.study.settings.trial
        if side == "skip":
            return rules.skip
        if side == "timeout":
            waited = now - asked.served_at
            # A clock that was set back says nothing about how long it was.
            too_soon = 0 <= waited < CLOCK_TOLERANCE * rules.timeout_ms
            return rules.timeout_ms > 0 and not too_soon
        return True

    def note(self, asked: Issued, side: Side) -> Note:
        """What the next page says about an answer that was taken."""
        if asked.slot >= 0:
            return "timed_out" if side == "timeout" else ""
        if side == "skip":
            return "practice_skipped"
        if side == "timeout":
            return "practice_timed_out"
        return "practice_right" if side == expected(asked) else "practice_wrong"

    def _wanted(self, c: Connection, who: Participant, slot: int) -> tuple[NewQuery | None, bool]:
        """The question that the schedule itself decides (None: the learner's best), and sides."""
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
        own = questions.issued_to(c, who.id)
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
        seed, count = _seed(c), len(self.study.items)
        rng = _rng(seed, who.id, slot)
        had = questions.count_had(c, who.id)
        everything = count * (count - 1) * (count - 2) // 2
        if had >= everything:
            # There is nothing left that would be new to them.
            return self._known(seed, who, slot, swap, "catch")
        while True:
            anchor, one, other = (int(item) for item in rng.choice(count, 3, replace=False))
            if not questions.has_had(c, who.id, anchor, one, other):
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


def expected(asked: Issued) -> Side | None:
    """The side of the known answer, if there is one."""
    if asked.nearer is None:
        return None
    return "left" if asked.nearer == asked.left else "right"


def _seed(c: Connection) -> int:
    state = collection.state(c)
    assert state is not None
    return state.seed


def _rng(seed: int, number: int, slot: int) -> np.random.Generator:
    return np.random.default_rng([seed, number, 2, slot + 1000])
