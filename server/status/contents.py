"""Summary of a study in one line: whether it is open, and how many answers it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from server.collection.quota import Quota
from server.status.counting import answer_counts, participant_counts, simulated_left_out
from server.store import collection, summaries
from server.store.database import Connection
from server.study.config import LoadedStudy
from server.study.workspace import DATABASE, reading

# As participants see it; full: the budget is used up, or reserved for participants under way.
Openness = Literal["open", "paused", "stopped", "full"]


@dataclass(frozen=True)
class StudyContents:
    """State and counts of a study, as defined in docs/counting.md."""

    state: Openness
    participants: int
    answers: int
    simulated: int
    simulated_left_out: int

    def __str__(self) -> str:
        if not self.answers and not self.simulated_left_out:
            return f"{self.state}; no answers yet"
        many = f"{self.answers:,} answer{'s' * (self.answers != 1)}"
        if self.answers and self.simulated == self.answers:
            return f"{self.state}; {self.answers:,} simulated {many.split()[1]}"
        who = f"{self.participants:,} participant{'s' * (self.participants != 1)}"
        parts = [self.state, f"{who}, {many}"]
        if self.simulated:
            parts[-1] += f", {self.simulated:,} of them simulated"
        if self.simulated_left_out:
            parts.append(f"{self.simulated_left_out:,} simulated ones left out")
        return "; ".join(parts)

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def openness(c: Connection, study: LoadedStudy, now: int) -> Openness:
    """Whether a new participant would be admitted now."""
    state = collection.state(c)
    assert state is not None
    if state.status != "running":
        return "paused" if state.status == "paused" else "stopped"
    return "open" if Quota(study).room(c, state, now) > 0 else "full"


def study_contents(c: Connection, study: LoadedStudy, now: int) -> StudyContents:
    """The summary of a study with an open database."""
    answers = answer_counts(c)
    idle = study.settings.session.idle_minutes
    participants = participant_counts(summaries.participants(c), now, idle, simulated_left_out(c))
    return StudyContents(
        openness(c, study, now),
        participants.answered,
        answers.answers,
        answers.simulated,
        answers.simulated_left_out,
    )


def of_folder(folder: Path, clock: Callable[[], int]) -> StudyContents | None:
    """The summary of the study in a folder; None if it has not started. Nothing is written."""
    if not (folder / DATABASE).exists():
        return None
    with reading(folder, clock) as (study, database):
        return database.read(lambda c: study_contents(c, study, clock()))
