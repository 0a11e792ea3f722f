"""Pace of answering, by the server's clock: estimated time left, and reminders to slow down."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from server.store import collection, questions
from server.store.collection import Participant
from server.store.database import Connection
from server.study.config import LoadedStudy

# Minimum number of answers for an estimate, and the window of recent answers it is based on.
MIN_ANSWERS = 5
RECENT_ANSWERS = 20
# Window of answers that are tested for speed, reminders per session, and trials between reminders.
HURRIED_ANSWERS = 8
MAX_REMINDERS = 2
REMINDER_GAP = 20
SLOW_DOWN = "slow_down"


class Pace:
    """Pace of one study's participants, within the caller's transaction."""

    def __init__(self, study: LoadedStudy) -> None:
        self._session = study.settings.session
        self._timeout_ms = study.settings.trial.timeout_ms

    def minutes_left(self, c: Connection, who: Participant) -> float | None:
        """Estimated minutes for the remaining trials; None while there are too few answers."""
        if who.done < MIN_ANSWERS:
            return None
        gaps = _gaps(questions.times(c, who.id, RECENT_ANSWERS + 1))
        # The median is robust against breaks between two answers.
        return None if not gaps else (who.trials - who.done) * median(gaps) / 60_000

    def reminded(self, c: Connection, who: Participant, now: int) -> bool:
        """Whether to show a reminder to slow down now; if so, it is logged as an event."""
        limit, done = self._session.rush_ms, who.done
        every = self._session.break_every
        at_break = every and done % every == 0
        if not limit or 0 < self._timeout_ms <= limit or at_break or done <= HURRIED_ANSWERS:
            return False
        gaps = _gaps(questions.times(c, who.id, HURRIED_ANSWERS + 1))
        if len(gaps) < HURRIED_ANSWERS or median(gaps) >= limit:
            return False
        earlier = [event["done"] for event in collection.events_about(c, who.id, SLOW_DOWN)]
        if len(earlier) >= MAX_REMINDERS or (earlier and done - earlier[-1] < REMINDER_GAP):
            return False
        collection.add_event(
            c, SLOW_DOWN, "participant", now, who.id, done=done, median_ms=round(median(gaps))
        )
        return True


def _gaps(times: list[int]) -> list[int]:
    """Milliseconds between answers, omitting steps of the clock backwards; `times` newest first."""
    return [later - earlier for later, earlier in pairwise(times) if later > earlier]
