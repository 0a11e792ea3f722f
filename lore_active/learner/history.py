"""History of a learner: all questions, answers and events, in order and append-only.

Stored as rows of numbers; `Question` and `Answer` objects are created on demand. Rows refer to each
other by index: ids are names that callers may choose, and no result depends on them.

One module, though long: what belongs to questions and what belongs to answers refer to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from lore_active.errors import InvalidParameter
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.questions.pool import AskedSet, Questions, keys
from lore_active.questions.pool import count_possible as count_triplets
from lore_active.questions.pool_of_kinds import count_possible, grid_keys
from lore_active.questions.question import (
    AlreadyAnswered,
    Answer,
    Purpose,
    Question,
    UnknownQuestion,
)
from lore_active.row_table import NOTHING, RowTable, item_type

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
STATES = ("open", "answered", "skipped")
OPEN, ANSWERED, SKIPPED = range(3)
# Kinds of events; questions and answers are in the order of their events.
KINDS = ("ask", "answer", "refit", "audit", "start")
# Those who gave the last answers are present: the next questions go to them, or to new ones.
RECENT_ANSWERS = 20
# Number of a participant without answers.
NO_ANSWERS_YET = -2


class History:
    """Questions with their states ("open", "answered", "skipped"), answers, and events.

    `seed` is the seed of the learner, `kind` that of its questions. `as_anchor` and `as_option`
    count how often each item was the anchor or an option of a question.
    """

    def __init__(self, n_objects: int, seed: int, kind: Kind = TRIPLET) -> None:
        self.n_objects = n_objects
        self.seed = seed
        self.kind = kind
        item = item_type(n_objects)
        # Triplets have two named options; answers to other kinds keep all that were chosen.
        options: list[Any] = [(name, item) for name in ("left", "right")]
        chosen: list[Any] = []
        if kind != TRIPLET:
            options = [("options", item, (kind.options,))]
            chosen = [("chosen", item, (kind.pick,))]
        self.asked = RowTable(
            [
                ("id", np.int64),
                ("anchor", item),
                *options,
                *((name, np.int8) for name in ("purpose", "state")),
                *((name, np.int32) for name in ("version", "draw", "repeats")),
                *((name, np.float64) for name in ("score", "margin")),
            ]
        )
        self.given = RowTable(
            [
                *((name, item) for name in ("anchor", "nearer", "farther")),
                *((name, np.int32) for name in ("question", "participant", "trial")),
                *chosen,
            ]
        )
        self.occurred = RowTable(np.int8)
        self.participants: list[str] = []
        self.as_anchor = np.zeros(n_objects, dtype=np.int64)
        self.as_option = np.zeros(n_objects, dtype=np.int64)
        # The smallest id that is greater than all others.
        self.next_id = 0
        # Index of each question whose id is not its index.
        self._indices: dict[int, int] = {}
        self._numbers: dict[str, int] = {}
        self._taken = AskedSet()
        # Number of answers whose keys are in the asked set.
        self._merged = 0
        # Participants whose questions may be asked again.
        self.released: set[str] = set()

    # ---- questions ------------------------------------------------------------------------------

    def enter(self, question: Question, state: str = "open") -> int:
        """Append a question, and return its index."""
        if question.id < 0 or self.knows(question.id):
            raise InvalidParameter(
                f"The question's id is {question.id}, but must be a new number from 0."
            )
        if question.seed[0] != self.seed:
            raise InvalidParameter(
                f"The question's seed is {question.seed}, but must be {self.seed}."
            )
        if question.kind != self.kind:
            raise InvalidParameter(
                f"The question's kind is {question.kind.label!r}, but must be {self.kind.label!r}."
            )
        if question.anchor is not None:
            self.as_anchor[question.anchor] += 1
        self.as_option[list(question.options)] += 1
        self._note_id(question.id, len(self.asked))
        options = question.options if self.kind == TRIPLET else (question.options,)
        return self.asked.append(
            (
                question.id,
                NOTHING if question.anchor is None else question.anchor,
                *options,
                *(PURPOSES.index(question.purpose), STATES.index(state)),
                *(question.version, question.seed[1]),
                NOTHING if question.repeats is None else self.index(question.repeats),
                *(question.score, question.margin),
            )
        )

    def _note_id(self, number: int, index: int) -> None:
        self.next_id = max(self.next_id, number + 1)
        if number != index:
            self._indices[number] = index

    def knows(self, number: int) -> bool:
        """Whether there is a question with this id."""
        index = self._indices.get(number, number)
        return 0 <= index < len(self.asked) and bool(self.asked.rows["id"][index] == number)

    def index(self, number: int) -> int:
        """Return the index of the question with this id."""
        if not self.knows(number):
            raise UnknownQuestion(f"There is no question {number}; {len(self.asked)} were asked.")
        return self._indices.get(number, number)

    def question(self, index: int) -> Question:
        """Look up a question by its index."""
        number, anchor, *shown, purpose, _, version, draw, repeats, score, margin = self.asked.rows[
            index
        ].item()
        return Question(
            id=number,
            anchor=None if anchor == NOTHING else anchor,
            options=tuple(shown if self.kind == TRIPLET else shown[0].tolist()),
            purpose=PURPOSES[purpose],
            score=score,
            version=version,
            seed=(self.seed, draw),
            margin=margin,
            repeats=None if repeats == NOTHING else int(self.asked.rows["id"][repeats]),
            kind=self.kind,
        )

    def answered(self, number: int) -> bool:
        """Whether a question has been answered."""
        return bool(self.asked.rows["state"][self.index(number)] == ANSWERED)

    def skip(self, number: int) -> None:
        """Mark a question as one that will not be answered."""
        if self.answered(number):
            raise AlreadyAnswered(
                f"Question {number} has been answered already and cannot be skipped."
            )
        self.asked.rows["state"][self.index(number)] = SKIPPED

    def out(self) -> list[int]:
        """Indices of the pending questions."""
        pending: list[int] = np.flatnonzero(self.asked.rows["state"] == OPEN).tolist()
        return pending

    def rows(self, indices: Sequence[int]) -> Questions:
        """Questions, by their indices, as rows (anchor, option, option, …)."""
        return self._shown(self.asked.rows[np.array(indices, dtype=np.int64)])

    def _shown(self, asked: NDArray[Any]) -> Questions:
        if self.kind == TRIPLET:
            return _items(asked, "anchor", "left", "right")
        return np.column_stack([asked["anchor"], asked["options"]]).astype(np.int64)

    def keys(self, rows: Questions) -> NDArray[np.int64]:
        """Keys of questions, the same whatever the order of their options."""
        return keys(rows, self.n_objects) if self.kind == TRIPLET else grid_keys(rows)

    # ---- answers --------------------------------------------------------------------------------

    def tell(self, number: int, chosen: Sequence[int], participant: str | None) -> Answer:
        """Mark a question as answered, and return its answer."""
        index = self.index(number)
        asked = self.question(index)
        self.kind.check(asked.options, chosen)
        if self.answered(number):
            raise AlreadyAnswered(f"Question {number} has been answered already.")
        self.asked.rows["state"][index] = ANSWERED
        picked = tuple(int(item) for item in chosen)
        return Answer(number, asked.anchor, asked.options, picked, participant, self.kind)

    def add(self, answer: Answer) -> int:
        """Append an answer, and return its index."""
        question = NOTHING if answer.question is None else self.index(answer.question)
        items, chosen = (NOTHING, NOTHING, NOTHING), answer.chosen
        if answer.kind == TRIPLET:
            assert answer.anchor is not None
            items, chosen = (answer.anchor, answer.nearer, answer.farther), ()
        return self.given.append(
            (
                *(*items, question, self.number_of(answer.participant)),
                NOTHING if answer.trial is None else answer.trial,
                *(() if self.kind == TRIPLET else (chosen or NOTHING,)),
            )
        )

    @property
    def n_answers(self) -> int:
        """Number of answers; the imported comparisons of one trial are one."""
        trial = self.given.rows["trial"]
        shared = trial[trial != NOTHING]
        return len(trial) - len(shared) + len(np.unique(shared))

    def answer(self, index: int) -> Answer:
        """Look up an answer by its index."""
        row = self.given.rows[index].item()
        anchor, nearer, farther, question, number, trial = row[:6]
        participant = None if number == NOTHING else self.participants[number]
        if question != NOTHING and self.kind != TRIPLET:
            asked, chosen = self.question(question), tuple(row[6].tolist())
            return Answer(asked.id, asked.anchor, asked.options, chosen, participant, self.kind)
        options = (nearer, farther)
        if question != NOTHING and self.asked.rows["left"][question] != nearer:
            options = (farther, nearer)
        return Answer(
            None if question == NOTHING else int(self.asked.rows["id"][question]),
            *(anchor, options, (nearer,), participant),
            trial=None if trial == NOTHING else trial,
        )

    def taken(
        self,
        out: Sequence[int],
        asks_again: Callable[[int], bool] = lambda answered: False,
        participant: str | None = None,
    ) -> AskedSet:
        """Keys of answered questions, and of the pending ones with the indices `out`.

        Skipped and expired ones may be asked again.

        Where `asks_again` allows it for the number of questions answered, answered ones may be
        asked of others: taken are those that the participant has had or, if who will be asked is
        not known, those that every participant present has had.
        """
        rows = self.given.rows[self._merged :]
        if self.released:
            free = [self._numbers[name] for name in self.released if name in self._numbers]
            rows = rows[~np.isin(rows["participant"], free)]
        self._taken |= self._answered(rows)
        self._merged = len(self.given)
        held = self._taken
        if asks_again(len(held)):
            held = (
                self._had_by_all_present()
                if participant is None
                else self._had_by([self._numbers.get(participant, NO_ANSWERS_YET)])
            )
        return held | self.keys(self.rows(out))

    def _answered(self, given: NDArray[Any]) -> NDArray[np.int64]:
        """Keys of the questions that were answered; imported triplets are questions, too."""
        if self.kind == TRIPLET:
            return keys(_items(given, "anchor", "nearer", "farther"), self.n_objects)
        numbers = given["question"]
        return grid_keys(self._shown(self.asked.rows[numbers[numbers != NOTHING]]))

    def _had_by(self, numbers: Sequence[int]) -> AskedSet:
        """Keys of the questions that all participants with these numbers have answered."""
        rows = self.given.rows[self.given.rows["question"] != NOTHING]
        key = self._answered(rows)
        had = [set(key[rows["participant"] == number].tolist()) for number in numbers]
        return AskedSet(set.intersection(*had)) if had else AskedSet()

    def _had_by_all_present(self) -> AskedSet:
        """Keys of the questions that all who gave one of the last answers have answered.

        Answers without a participant may be of one, who must not get a question twice.
        """
        asked = self.given.rows["participant"][self.given.rows["question"] != NOTHING]
        present = np.unique(asked[-RECENT_ANSWERS:])
        had = self._had_by(present[present != NOTHING].tolist())
        if len(had) == self._possible:
            # The next questions are for new participants.
            had = AskedSet()
        return had | self._had_by([NOTHING])

    @property
    def _possible(self) -> int:
        if self.kind == TRIPLET:
            return count_triplets(self.n_objects)
        return count_possible(self.n_objects, self.kind)

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
        """Append an event, one of KINDS; "start" is the start of an audit."""
        self.occurred.append(KINDS.index(kind))

    def events(self) -> Iterator[tuple[str, int]]:
        """Iterate over events: ("ask", index), ("answer", index), or another kind with 0."""
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
        """Load the rows of another history of the same items into this empty one.

        Without ids, questions are numbered from 0.
        """
        rows = np.zeros(len(asked), self.asked.rows.dtype)
        rows["id"] = np.arange(len(asked))
        for name in asked.dtype.names or ():
            rows[name] = asked[name]
        self.asked.extend(rows)
        self.renumber(rows["id"])
        if "trial" not in (given.dtype.names or ()):
            # Up to format 8 of snapshots, every imported answer was a trial of its own.
            given = _with_trials(given, self.given.rows.dtype)
        self.given.extend(given)
        self.occurred.extend(occurred)
        self.participants = list(participants)
        self._numbers = {name: number for number, name in enumerate(participants)}
        shown, items = self._shown(asked), self.n_objects
        if self.kind.has_anchor:
            self.as_anchor += np.bincount(shown[:, 0], minlength=items)
        self.as_option += np.bincount(shown[:, 1:].ravel(), minlength=items)

    def renumber(self, ids: NDArray[np.int64]) -> None:
        """Give all questions other ids."""
        self.asked.rows["id"] = ids
        self.next_id, self._indices = 0, {}
        for index, number in enumerate(ids.tolist()):
            self._note_id(number, index)


def _items(rows: NDArray[Any], *names: str) -> Questions:
    return np.column_stack([rows[name] for name in names]).astype(np.int64)


def _with_trials(given: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    out = np.zeros(len(given), dtype)
    out["trial"] = NOTHING
    # In the same order, though some names have changed.
    for former, name in zip(given.dtype.names or (), out.dtype.names or (), strict=False):
        out[name] = given[former]
    return out
