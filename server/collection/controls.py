"""The experimenter's controls, each as one transaction that is also logged as an event."""

from __future__ import annotations

import re
from collections.abc import Callable

from lore_active.errors import InvalidParameter
from server.store import collection as store
from server.store.database import Connection, Database
from server.study.config import MAX_ANSWERS, MAX_PARTICIPANTS, MAX_TRIALS

# Minimum and maximum of the controls that take a number.
LIMITS = {
    "answers": (1, MAX_ANSWERS),
    "participants": (0, MAX_PARTICIPANTS),
    "trials": (1, MAX_TRIALS),
}
# Far more digits than the limits allow, so that a number too large is reported as such.
DIGITS = re.compile(r"[0-9]{1,100}")
PARTICIPLES = {
    "start": "started",
    "pause": "paused",
    "resume": "resumed",
    "stop": "stopped",
    "reopen": "reopened",
}


class Control:
    """The controls of one study; every change is committed when the call returns."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self.database = database
        self.clock = clock

    def pause(self, who: str) -> None:
        """Pause the study: no participant gets another question until `resume`."""
        self._status(who, "pause", "paused", {"running"})

    def start(self, who: str) -> None:
        """Open a study that was paused before the first participant arrived."""
        self._status(who, "start", "running", {"paused"})

    def resume(self, who: str) -> None:
        """Resume after a pause."""
        self._status(who, "resume", "running", {"paused"})

    def stop(self, who: str, reason: str = "Stopped by the experimenter.") -> None:
        """Stop the study: no new participants; those already under way can finish."""
        self._status(who, "stop", "stopped", {"running", "paused"}, reason)

    def reopen(self, who: str) -> None:
        """Admit participants again after a stop."""
        self._status(who, "reopen", "running", {"stopped"})

    def _status(
        self, who: str, kind: str, status: str, allowed: set[str], reason: str = ""
    ) -> None:
        def work(c: Connection) -> None:
            state = store.state(c)
            assert state is not None
            if state.status not in allowed:
                raise InvalidParameter(
                    f"The study is {state.status}: it cannot be {PARTICIPLES[kind]} now."
                )
            store.set_state(c, status=status, reason=reason)
            store.add_event(c, kind, who, self.clock(), reason=reason)

        self.database.write(work)

    def extend(self, who: str, answers: int, participants: int) -> None:
        """Set the budget: maximum numbers of answers and of participants (0: no limit)."""
        _within("answers", answers)
        _within("participants", participants)

        def work(c: Connection) -> None:
            store.set_state(c, budget_answers=answers, budget_participants=participants)
            store.add_event(
                c, "budget", who, self.clock(), answers=answers, participants=participants
            )

        self.database.write(work)

    def set_trials(self, who: str, trials: int) -> None:
        """Set the number of trials for participants who arrive from now on."""
        _within("trials", trials)

        def work(c: Connection) -> None:
            store.set_state(c, trials=trials)
            store.add_event(c, "trials", who, self.clock(), trials=trials)

        self.database.write(work)

    def exclude(self, who: str, participant: int, reason: str) -> None:
        """Exclude a participant's answers from the model, until they are restored."""
        self._exclusion(who, participant, reason, True)

    def restore(self, who: str, participant: int, reason: str) -> None:
        """Include a participant's answers in the model again."""
        self._exclusion(who, participant, reason, False)

    def _exclusion(self, who: str, participant: int, reason: str, excluded: bool) -> None:
        def work(c: Connection) -> None:
            row = store.participant_by_id(c, participant)
            if row is None:
                raise InvalidParameter(f"There is no participant P{participant}.")
            if bool(row.excluded) == excluded:
                return
            store.change_participant(c, participant, excluded=int(excluded))
            kind = "exclude" if excluded else "restore"
            store.add_event(c, kind, who, self.clock(), participant, reason=reason[:1000])

        self.database.write(work)


def whole(name: str, text: str) -> int:
    """Parse the number for the control `name`; InvalidParameter if it is not allowed."""
    # int() alone would also accept 1_000 and the digits of other scripts.
    if not DIGITS.fullmatch(text):
        shown = text if len(text) <= 20 else text[:19] + "…"
        raise InvalidParameter(f"{name} is {shown!r}, but {_rule(name)}")
    return _within(name, int(text))


def _within(name: str, value: int) -> int:
    low, high = LIMITS[name]
    if not low <= value <= high:
        raise InvalidParameter(f"{name} is {value}, but {_rule(name)}")
    return value


def _rule(name: str) -> str:
    low, high = LIMITS[name]
    return (
        f"must be a whole number from {low} to {high}, written with the digits 0 to 9 only. "
        "Nothing was changed."
    )
