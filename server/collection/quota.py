"""Reserve answers of the budget for participants, and release those of idle participants."""

from __future__ import annotations

from server.status.counting import present
from server.store import collection as store
from server.store.collection import Participant, StudyState
from server.store.database import Connection
from server.store.sqlite.writer import MAX_TOGETHER
from server.study.config import LoadedStudy


class Quota:
    """Reserved quota of one study's budget, within the caller's transaction."""

    def __init__(self, study: LoadedStudy) -> None:
        self._idle_minutes = study.settings.session.idle_minutes
        # Upper bound of what is reserved for participants up to the number `_counted`.
        self._upper_bound, self._counted = 0, 0

    def room(self, c: Connection, state: StudyState, now: int, simulated: bool = False) -> int:
        """Number of trials that can be reserved for a new participant.

        Simulated participants get only what all others leave of the budget; human participants
        are not limited by simulated ones.

        The exact count takes time proportional to the number of participants, and many who arrive
        at once would wait for each other. An upper bound, which only grows with new participants,
        is tried first; the exact count is needed only if the bound exceeds the budget.
        """
        if simulated:
            return self._exact(c, state, now, simulated)
        newest = store.newest_participant(c)
        # The newest participants may be rolled back by a failed commit: they are counted each time.
        committed = max(0, newest - MAX_TOGETHER)
        if committed > self._counted:
            self._upper_bound += store.max_reserved_trials(c, self._counted, committed)
            self._counted = committed
        reserved = self._upper_bound + store.max_reserved_trials(c, self._counted, newest)
        few = not state.budget_participants or newest < state.budget_participants
        if few and reserved + state.trials <= state.budget_answers:
            return state.trials
        return self._exact(c, state, now, simulated)

    def _exact(self, c: Connection, state: StudyState, now: int, simulated: bool) -> int:
        reserved, participants = store.reserved_trials(c, *self._present_from_to(now), simulated)
        if state.budget_participants and participants >= state.budget_participants:
            return 0
        return min(state.trials, state.budget_answers - reserved)

    def is_idle(self, who: Participant, now: int) -> bool:
        """Whether a participant has been idle for so long that their quota is released."""
        since, until = self._present_from_to(now)
        return who.stage in store.UNDER_WAY and not since <= who.seen_at <= until

    def returned(self, c: Connection, who: Participant, state: StudyState, now: int) -> Participant:
        """Readmit a participant who was idle, if the budget still has room for their trials."""
        if who.stage not in store.UNDER_WAY:
            return who
        window = self._present_from_to(now)
        reserved, others = store.reserved_trials(c, *window, bool(who.simulated), who.id)
        full = state.budget_participants and not who.done and others >= state.budget_participants
        if state.status == "stopped" or reserved + who.trials > state.budget_answers or full:
            return store.change_participant(c, who.id, stage="expired", finished_at=now)
        return store.change_participant(c, who.id, seen_at=now)

    def _present_from_to(self, now: int) -> tuple[int, int]:
        """Participants last seen between these times are not idle."""
        return present(now, self._idle_minutes)
