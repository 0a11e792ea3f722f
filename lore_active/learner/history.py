"""History of a learner: all questions, answers and events, in order and append-only.

Stored as rows of numbers; `Question` and `Answer` objects are created on demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from lore_active.data.row_table import NOTHING, RowTable, item_type
from lore_active.errors import InvalidParameter
from lore_active.questions.pool import AskedSet, Questions, keys
from lore_active.questions.question import (
    AlreadyAnswered,
    Answer,
    Purpose,
    Question,
    Side,
    UnknownQuestion,
)

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
STATES = ("open", "answered", "skipped")
OPEN, ANSWERED, SKIPPED = range(3)
# Kinds of events; questions and answers are numbered from 0 in the order of their events.
KINDS = ("ask", "answer", "refit", "audit")


class History:
    """Questions with their states ("open", "answered", "skipped"), answers, and events.

    `seed` is the seed of the learner. `as_anchor` and `as_option` count how often each item was
    the anchor or an option of a question.
    """

    def __init__(self, n_objects: int, seed: int) -> None:
        self.n_objects = n_objects
        self.seed = seed
        item = item_type(n_objects)
        self.asked = RowTable(
            [
                *((name, item) for name in ("anchor", "left", "right")),
                *((name, np.int8) for name in ("purpose", "state")),
                *((name, np.int32) for name in ("version", "draw", "repeats")),
                *((name, np.float64) for name in ("score", "margin")),
            ]
        )
        self.given = RowTable(
            [
                *((name, item) for name in ("anchor", "nearer", "farther")),
                *((name, np.int32) for name in ("query", "participant")),
            ]
        )
        self.occurred = RowTable(np.int8)
        self.participants: list[str] = []
        self.as_anchor = np.zeros(n_objects, dtype=np.int64)
        self.as_option = np.zeros(n_objects, dtype=np.int64)
        self._numbers: dict[str, int] = {}
        self._taken = AskedSet()
        # Number of answers whose keys are in the asked set.
        self._merged = 0
        # Participants whose questions may be asked again.
        self.released: set[str] = set()

    # ---- questions ------------------------------------------------------------------------------

    def enter(self, query: Question, state: str = "open") -> int:
        """Append a question; it gets the next id, whatever its own id is."""
        if query.seed[0] != self.seed:
            raise InvalidParameter(f"The question's seed is {query.seed}, but must be {self.seed}.")
        self.as_anchor[query.anchor] += 1
        self.as_option[[query.left, query.right]] += 1
        return self.asked.append(
            (
                *(query.anchor, query.left, query.right),
                *(PURPOSES.index(query.purpose), STATES.index(state)),
                *(query.version, query.seed[1]),
                NOTHING if query.repeats is None else query.repeats,
                *(query.score, query.margin),
            )
        )

    def query(self, number: int) -> Question:
        """Look up a question by its id."""
        row = self.asked.rows[self._known(number)].item()
        anchor, left, right, purpose, _, version, draw, repeats, score, margin = row
        return Question(
            id=int(number),
            anchor=anchor,
            left=left,
            right=right,
            purpose=PURPOSES[purpose],
            score=score,
            version=version,
            seed=(self.seed, draw),
            margin=margin,
            repeats=None if repeats == NOTHING else repeats,
        )

    def answered(self, number: int) -> bool:
        """Whether a question has been answered."""
        return bool(self.asked.rows["state"][self._known(number)] == ANSWERED)

    def skip(self, number: int) -> None:
        """Mark a question as one that will not be answered."""
        if self.answered(number):
            raise AlreadyAnswered(
                f"Question {number} has been answered already and cannot be skipped."
            )
        self.asked.rows["state"][number] = SKIPPED

    def out(self) -> list[int]:
        """Ids of the pending questions."""
        pending: list[int] = np.flatnonzero(self.asked.rows["state"] == OPEN).tolist()
        return pending

    def rows(self, numbers: Sequence[int]) -> Questions:
        """Questions as rows (anchor, left, right)."""
        known = np.array([self._known(number) for number in numbers], dtype=np.int64)
        return _items(self.asked.rows[known], "anchor", "left", "right")

    def _known(self, number: int) -> int:
        if not 0 <= number < len(self.asked):
            raise UnknownQuestion(f"There is no question {number}; {len(self.asked)} were asked.")
        return number

    # ---- answers --------------------------------------------------------------------------------

    def tell(self, number: int, side: Side, participant: str | None) -> Answer:
        """Mark a question as answered, and return its answer."""
        asked = self.query(number)
        if side not in ("left", "right"):
            raise InvalidParameter(f"side is {side!r}, but must be 'left' or 'right'.")
        if self.answered(number):
            raise AlreadyAnswered(f"Question {number} has been answered already.")
        self.asked.rows["state"][number] = ANSWERED
        nearer, farther = asked.left, asked.right
        if side == "right":
            nearer, farther = farther, nearer
        return Answer(number, asked.anchor, nearer, farther, participant)

    def add(self, answer: Answer) -> int:
        """Append an answer, and return its index."""
        query = NOTHING if answer.query is None else answer.query
        items = (answer.anchor, answer.nearer, answer.farther)
        return self.given.append((*items, query, self.number_of(answer.participant)))

    def answer(self, place: int) -> Answer:
        """Look up an answer by its index."""
        anchor, nearer, farther, query, number = self.given.rows[place].item()
        return Answer(
            None if query == NOTHING else query,
            *(anchor, nearer, farther),
            None if number == NOTHING else self.participants[number],
        )

    def taken(self, out: Sequence[int]) -> AskedSet:
        """Keys of answered and pending questions; skipped and expired ones may be asked again."""
        rows = self.given.rows[self._merged :]
        if self.released:
            free = [self._numbers[name] for name in self.released if name in self._numbers]
            rows = rows[~np.isin(rows["participant"], free)]
        self._taken |= keys(_items(rows, "anchor", "nearer", "farther"), self.n_objects)
        self._merged = len(self.given)
        return self._taken | keys(self.rows(out), self.n_objects)

    def release(self, participants: Iterable[str]) -> None:
        """Allow the questions that these participants answered to be asked again."""
        self.released.update(participants)
        self._taken, self._merged = AskedSet(), 0

    def number_of(self, participant: str | None) -> int:
        """Number of a participant, by order of their first answers; -1 for none."""
        if participant is None:
            return NOTHING
        if participant not in self._numbers:
            self._numbers[participant] = len(self.participants)
            self.participants.append(participant)
        return self._numbers[participant]

    # ---- events ---------------------------------------------------------------------------------

    def note(self, kind: str) -> None:
        """Append an event: "ask", "answer", "refit" or "audit"."""
        self.occurred.append(KINDS.index(kind))

    def events(self) -> Iterator[tuple[str, int]]:
        """Iterate over events: ("ask", id), ("answer", index), ("refit", 0) or ("audit", 0)."""
        asked = answers = 0
        for code in self.occurred.rows:
            kind, which = KINDS[code], 0
            if kind == "ask":
                which, asked = asked, asked + 1
            elif kind == "answer":
                which, answers = answers, answers + 1
            yield kind, which

    # ---- snapshots ------------------------------------------------------------------------------

    def take(
        self,
        asked: NDArray[Any],
        given: NDArray[Any],
        occurred: NDArray[Any],
        participants: Sequence[str],
    ) -> None:
        """Load the rows of another history of the same items into this empty one."""
        self.asked.extend(asked)
        self.given.extend(given)
        self.occurred.extend(occurred)
        self.participants = list(participants)
        self._numbers = {name: number for number, name in enumerate(participants)}
        items = self.n_objects
        self.as_anchor += np.bincount(asked["anchor"], minlength=items)
        for side in ("left", "right"):
            self.as_option += np.bincount(asked[side], minlength=items)


def _items(rows: NDArray[Any], *names: str) -> Questions:
    return np.column_stack([rows[name] for name in names]).astype(np.int64)
