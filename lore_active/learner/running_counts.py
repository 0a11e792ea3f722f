"""Running counts over the answers that count: prequential accuracy and repeat consistency."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.questions.question import Answer, Question
from lore_active.rank.significance import Proportion, wilson
from lore_active.row_table import NOTHING, RowTable

# Number of recent random questions over which accuracy is computed.
WINDOW = 200
# Minimum number of repeated questions for a noise ceiling.
MIN_REPEATS = 10
# Imported trials are numbered downwards from here: below the numbers of single comparisons.
IMPORTED_TRIALS = -(2**40)


class RunningCounts:
    """Counts that are updated answer by answer, and rebuilt when exclusions change.

    `index` gives the index of a question, in the order in which they were asked, by its id. `items`
    is the set of items that occur in an answer. The length is the number of answers, or trials;
    `rows` are their comparisons, of which a triplet is one.
    """

    def __init__(self, index: Callable[[int], int], kind: Kind = TRIPLET) -> None:
        self._index = index
        self.kind = kind
        self.items: set[int] = set()
        self._answers = 0
        # By question: the margin predicted when it was asked (NaN: there was no model), and the
        # positions of the options that were chosen. Of kinds other than triplets, whose margin does
        # not say it, also the positions of those that were predicted.
        self._predictions = RowTable(np.float64)
        self._positions = RowTable((np.int8, (kind.pick,)))
        self._predicted = RowTable((np.int8, (kind.pick,)))
        self._rows = RowTable((np.int64, 3))
        # Of each row: its trial, which is the index of the question, and its participant.
        self._trials = RowTable(np.int64)
        self._participants = RowTable(np.int64)
        self._model_independent = RowTable(np.bool_)
        # Whether the latest random questions with a prediction were predicted correctly.
        self._correct: deque[bool] = deque(maxlen=WINDOW)
        self._agreed = 0
        self._repeated = 0

    def __len__(self) -> int:
        return self._answers

    def predict(self, margin: float | None, positions: Sequence[int] | None = None) -> None:
        """Record what the current model, if any, predicts for the next question.

        `positions` are those of the options that it predicts to be chosen; of triplets, the margin
        says it. Called for every question in the order in which they are asked.
        """
        self._predictions.append(np.nan if margin is None else margin)
        self._positions.append(NOTHING)
        if self.kind != TRIPLET:
            self._predicted.append(tuple(positions) if positions else NOTHING)

    @property
    def predictions(self) -> NDArray[np.float64]:
        """Predicted margins of all questions; NaN where there was no model."""
        return self._predictions.rows

    @predictions.setter
    def predictions(self, margins: NDArray[np.float64]) -> None:
        self._predictions.extend(margins)
        self._positions.extend(np.full((len(margins), self.kind.pick), NOTHING))

    @property
    def predicted(self) -> NDArray[np.int8]:
        """Places of the options predicted to be chosen, of kinds other than triplets."""
        return self._predicted.rows

    @predicted.setter
    def predicted(self, positions: NDArray[np.int8]) -> None:
        self._predicted.extend(positions)

    def count(self, answer: Answer, question: Question | None, participant: int = NOTHING) -> None:
        """Count an answer for the fit, for the accuracy and for the consistency.

        `participant` is the number of the participant, if any.
        """
        if question is not None and question.purpose == "catch":
            return
        rows = answer.comparisons
        # Imported comparisons, which have no question, are trials of their own or share one.
        trial, before = -1 - len(self._rows), None
        if question is not None:
            trial = self._index(question.id)
        elif answer.trial is not None:
            trial = IMPORTED_TRIALS - answer.trial
            before = int(self._trials.rows[-1]) if len(self._trials) else None
        self._answers += trial != before
        free = question is None or question.purpose in ("cover", "random")
        for row in rows:
            self.items.update(row)
            self._trials.append(trial)
            self._participants.append(participant)
            self._rows.append(row)
            self._model_independent.append(free)
        if question is not None:
            self._compare(answer, question)

    def _compare(self, answer: Answer, question: Question) -> None:
        """Count whether the answer was predicted, and whether it agrees with an earlier one."""
        positions = [question.options.index(item) for item in answer.chosen]
        index = self._index(question.id)
        self._positions.rows[index] = positions
        if question.purpose == "random" and (expected := self._expected(index)) is not None:
            self._correct.append(self._same(expected, positions))
        if question.repeats is not None:
            before = self._positions.rows[self._index(question.repeats)].tolist()
            if before[0] != NOTHING:
                # The options are shown in the reverse order.
                self._agreed += self._same(
                    [self.kind.options - 1 - position for position in before], positions
                )
                self._repeated += 1

    def _expected(self, index: int) -> list[int] | None:
        """Places of the options predicted to be chosen; None without a prediction."""
        margin = float(self.predictions[index])
        if margin == 0.0 or np.isnan(margin):
            return None
        if self.kind == TRIPLET:
            return [0 if margin > 0.0 else 1]
        positions: list[int] = self._predicted.rows[index].tolist()
        return positions if positions[0] != NOTHING else None

    def _same(self, first: list[int], other: list[int]) -> bool:
        """Whether two answers to the same question are the same."""
        return first == other if self.kind.ordered else sorted(first) == sorted(other)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The answers as comparisons (anchor, nearer, farther)."""
        return self._rows.rows

    @property
    def trials(self) -> NDArray[np.int64]:
        """The trial of each row."""
        return self._trials.rows

    @property
    def participants(self) -> NDArray[np.int64]:
        """The participant of each row; -1 where there is none."""
        return self._participants.rows

    @property
    def model_independent(self) -> NDArray[np.bool_]:
        """Which rows answer questions that no model selected: an unbiased test set."""
        return self._model_independent.rows

    @property
    def prequential(self) -> Proportion:
        """Share of recent random questions predicted correctly before their answers were used.

        Of those with a prediction: at least one dimension was reported, and it is not a tie.
        """
        return wilson(float(sum(self._correct)), len(self._correct))

    @property
    def ceiling(self) -> float | None:
        """Noise ceiling: accuracy of a perfect model, from the consistency of repeated answers.

        With m possible answers, of which one is the most probable (p) and the others equally
        probable, two answers agree with probability p² + (1 − p)² / (m − 1).
        """
        if self._repeated < MIN_REPEATS:
            return None
        agreement, ways = self._agreed / self._repeated, self.kind.answers
        beyond = max(0.0, (ways - 1.0) * (ways * agreement - 1.0))
        return float((1.0 + np.sqrt(beyond)) / ways)
