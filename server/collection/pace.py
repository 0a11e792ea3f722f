"""How fast somebody answers, by the server's clock: the time left, and who is in a hurry."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from server.store import collection, questions
from server.store.collection import Participant
from server.store.database import Connection
from server.study.config import LoadedStudy

# Answers before which a pace is not known, and those that it is taken from.
MIN_ANSWERS = 5
RECENT_ANSWERS = 20
# Answers in a row that make a hurry, reminders a session, and trials between two of them.
HURRIED_ANSWERS = 8
MAX_REMINDERS = 2
REMINDER_GAP = 20
SLOW_DOWN = "slow_down"


class Pace:
    """One study's pace of answering; within the caller's transaction."""

    def __init__(self, study: LoadedStudy) -> None:
        self._session = study.settings.session
        self._timeout_ms = study.settings.trial.timeout_ms

    def minutes_left(self, c: Connection, who: Participant) -> float | None:
        """How long the rest will take them; None before that can be said."""
        if who.done < MIN_ANSWERS:
            return None
        gaps = _gaps(questions.times(c, who.id, RECENT_ANSWERS + 1))
        # Clocks are set back now and then, and a break between two answers is not their pace.
        return None if not gaps else (who.trials - who.done) * median(gaps) / 60_000

    def reminded(self, c: Connection, who: Participant, now: int) -> bool:
        """Whether to ask them now to take their time; it is written down that they were."""
        limit, done = self._session.rush_ms, who.done
        every = self._session.break_every
        at_break = every and done % every == 0
        if not limit or 0 < self._timeout_ms <= limit or at_break or done <= HURRIED_ANSWERS:
            return False
        gaps = _gaps(questions.times(c, who.id, HURRIED_ANSWERS + 1))
        if len(gaps) < HURRIED_ANSWERS or median(gaps) >= limit:
            return False
        earlier = [one["done"] for one in collection.events_about(c, who.id, SLOW_DOWN)]
        if len(earlier) >= MAX_REMINDERS or (earlier and done - earlier[-1] < REMINDER_GAP):
            return False
        collection.add_event(
            c, SLOW_DOWN, "participant", now, who.id, done=done, median_ms=round(median(gaps))
        )
        return True


def _gaps(times: list[int]) -> list[int]:
    """Milliseconds from answer to answer, where the clock went on; `times` come newest first."""
    return [later - earlier for later, earlier in pairwise(times) if later > earlier]
