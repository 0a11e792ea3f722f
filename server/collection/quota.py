"""How many answers are reserved for whom, and who was away for too long to keep theirs."""

from __future__ import annotations

from server.status.counting import present
from server.store import collection as store
from server.store.collection import Participant, StudyState
from server.store.database import Connection
from server.store.sqlite.writer import MAX_TOGETHER
from server.study.config import LoadedStudy


class Quota:
    """One study's budget as far as participants draw on it; within the caller's transaction."""

    def __init__(self, study: LoadedStudy) -> None:
        self._idle_minutes = study.settings.session.idle_minutes
        # The most that may have been promised to participants up to a number.
        self._most, self._counted = 0, 0

    def room(self, c: Connection, state: StudyState, now: int, simulated: bool = False) -> int:
        """How many questions a new participant can be promised.

        Simulated participants share the budget with everybody; people do not share it with them.

        Counting what everybody was promised takes as long as there are people, and a crowd at the
        door would wait for it in turn. So first the most that it could be, which only grows with
        newcomers; the exact count only where that does not fit.
        """
        if simulated:
            return self._exact(c, state, now, simulated)
        newest = store.newest_participant(c)
        # A commit that fails takes its newest participants back: they are added up every time.
        sure = max(0, newest - MAX_TOGETHER)
        if sure > self._counted:
            self._most += store.most_promised(c, self._counted, sure)
            self._counted = sure
        most = self._most + store.most_promised(c, self._counted, newest)
        few = not state.budget_participants or newest < state.budget_participants
        if few and most + state.trials <= state.budget_answers:
            return state.trials
        return self._exact(c, state, now, simulated)

    def _exact(self, c: Connection, state: StudyState, now: int, simulated: bool) -> int:
        given, people = store.promised(c, *self._present_from_to(now), simulated)
        if state.budget_participants and people >= state.budget_participants:
            return 0
        return min(state.trials, state.budget_answers - given)

    def is_away(self, who: Participant, now: int) -> bool:
        """Whether they were not seen for so long that nothing is reserved for them any more."""
        since, until = self._present_from_to(now)
        return who.stage in store.UNDER_WAY and not since <= who.seen_at <= until

    def returned(self, c: Connection, who: Participant, state: StudyState, now: int) -> Participant:
        """After being away a participant goes on only if there is still room for the rest."""
        if who.stage not in store.UNDER_WAY:
            return who
        given, people = store.promised(c, *self._present_from_to(now), bool(who.simulated), who.id)
        full = state.budget_participants and not who.done and people >= state.budget_participants
        if state.status == "stopped" or given + who.trials > state.budget_answers or full:
            return store.change_participant(c, who.id, stage="expired", finished_at=now)
        return store.change_participant(c, who.id, seen_at=now)

    def _present_from_to(self, now: int) -> tuple[int, int]:
        """Who was seen between these is still here."""
        return present(now, self._idle_minutes)
