"""What the experimenter can do, each as one transaction that is also written down."""

from __future__ import annotations

import re
from collections.abc import Callable

from lore_active.errors import InvalidParameter
from server.store import collection as store
from server.store.database import Connection, Database
from server.study.config import MAX_ANSWERS, MAX_PARTICIPANTS, MAX_TRIALS

# The least and the most that the controls with a number take.
LIMITS = {
    "answers": (1, MAX_ANSWERS),
    "participants": (0, MAX_PARTICIPANTS),
    "trials": (1, MAX_TRIALS),
}
# Far more digits than any number within the limits has: a number too large is named as such.
DIGITS = re.compile(r"[0-9]{1,100}")


class Control:
    """One study's use cases for the experimenter; effective when the call returns."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self.database = database
        self.clock = clock

    def pause(self, who: str) -> None:
        """Nobody gets a next question until `resume`."""
        self._status(who, "pause", "paused", {"running"})

    def start(self, who: str) -> None:
        """Open a study that was paused before anybody came."""
        self._status(who, "start", "running", {"paused"})

    def resume(self, who: str) -> None:
        """Go on after a pause."""
        self._status(who, "resume", "running", {"paused"})

    def stop(self, who: str, reason: str = "Stopped by the experimenter.") -> None:
        """No newcomers; people in the middle finish."""
        self._status(who, "stop", "stopped", {"running", "paused"}, reason)

    def reopen(self, who: str) -> None:
        """Let people in again after a stop."""
        self._status(who, "reopen", "running", {"stopped"})

    def _status(
        self, who: str, kind: str, status: str, allowed: set[str], reason: str = ""
    ) -> None:
        def work(c: Connection) -> None:
            state = store.state(c)
            assert state is not None
            if state.status not in allowed:
                raise InvalidParameter(f"The study is {state.status}; it cannot {kind} now.")
            store.set_state(c, status=status, reason=reason)
            store.add_event(c, kind, who, self.clock(), reason=reason)

        self.database.write(work)

    def extend(self, who: str, answers: int, participants: int) -> None:
        """Change the budget: answers in all, and participants in all (0: as many as come)."""
        _within("answers", answers)
        _within("participants", participants)

        def work(c: Connection) -> None:
            store.set_state(c, budget_answers=answers, budget_participants=participants)
            store.add_event(
                c, "budget", who, self.clock(), answers=answers, participants=participants
            )

        self.database.write(work)

    def set_trials(self, who: str, trials: int) -> None:
        """How many questions people who arrive from now on are given."""
        _within("trials", trials)

        def work(c: Connection) -> None:
            store.set_state(c, trials=trials)
            store.add_event(c, "trials", who, self.clock(), trials=trials)

        self.database.write(work)

    def exclude(self, who: str, participant: int, reason: str) -> None:
        """Leave a participant's answers out of the model, until restored."""
        self._exclusion(who, participant, reason, True)

    def restore(self, who: str, participant: int, reason: str) -> None:
        """Take a participant's answers back into the model."""
        self._exclusion(who, participant, reason, False)

    def _exclusion(self, who: str, participant: int, reason: str, excluded: bool) -> None:
        def work(c: Connection) -> None:
            found = store.participant_by_id(c, participant)
            if found is None:
                raise InvalidParameter(f"There is no participant {participant}.")
            if bool(found.excluded) == excluded:
                return
            store.change_participant(c, participant, excluded=int(excluded))
            kind = "exclude" if excluded else "restore"
            store.add_event(c, kind, who, self.clock(), participant, reason=reason[:1000])

        self.database.write(work)


def whole(name: str, text: str) -> int:
    """A number as it was typed, if the control `name` takes it."""
    # Python's own int() also takes 1_000 and the digits of other scripts.
    if not DIGITS.fullmatch(text):
        shown = text if len(text) <= 20 else text[:19] + "…"
        raise InvalidParameter(f"{name} is {shown!r}, but {_rule(name)}")
    return _within(name, int(text))


def _within(name: str, value: int) -> int:
    least, most = LIMITS[name]
    if not least <= value <= most:
        raise InvalidParameter(f"{name} is {value}, but {_rule(name)}")
    return value


def _rule(name: str) -> str:
    least, most = LIMITS[name]
    return (
        f"must be a whole number from {least} to {most}, written in the digits 0 to 9 alone. "
        "Nothing was changed."
    )
