"""Running counts over the answers that count: prequential accuracy and repeat consistency."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from lore_active.data.row_table import NOTHING, RowTable
from lore_active.questions.question import Answer, Question
from lore_active.rank.significance import Proportion, wilson

# Number of recent random questions over which accuracy is computed.
WINDOW = 200
# Minimum number of repeated questions for a noise ceiling.
MIN_REPEATS = 10


class RunningCounts:
    """Counts that are updated answer by answer, and rebuilt when exclusions change.

    `items` is the set of items that occur in an answer.
    """

    def __init__(self) -> None:
        self.items: set[int] = set()
        # By question: the margin predicted when it was asked (NaN: there was no model), and whether
        # the left option was chosen.
        self._predictions = RowTable(np.float64)
        self._left = RowTable(np.int8)
        self._rows = RowTable((np.int64, 3))
        # Of each row: its trial, which is the question asked, and its participant.
        self._trials = RowTable(np.int64)
        self._participants = RowTable(np.int64)
        self._model_independent = RowTable(np.bool_)
        self._hits: deque[float] = deque(maxlen=WINDOW)
        self._predicted: deque[float] = deque(maxlen=WINDOW)
        self._agreed = 0
        self._repeated = 0

    def __len__(self) -> int:
        return len(self._rows)

    def predict(self, margin: float | None) -> None:
        """Record the margin that the current model, if any, predicts for the next question.

        Called for every question in the order in which they are asked.
        """
        self._predictions.append(np.nan if margin is None else margin)
        self._left.append(NOTHING)

    @property
    def predictions(self) -> NDArray[np.float64]:
        """Predicted margins of all questions; NaN where there was no model."""
        return self._predictions.rows

    @predictions.setter
    def predictions(self, margins: NDArray[np.float64]) -> None:
        self._predictions.extend(margins)
        self._left.extend(np.full(len(margins), NOTHING))

    def count(self, answer: Answer, query: Question | None, participant: int = NOTHING) -> None:
        """Count an answer for the fit, for the accuracy and for the consistency.

        `participant` is the number of the participant, if any.
        """
        if query is not None and query.purpose == "catch":
            return
        row = (answer.anchor, answer.nearer, answer.farther)
        self.items.update(row)
        # Imported answers, which have no question, are trials of their own.
        self._trials.append(-1 - len(self._rows) if query is None else query.id)
        self._participants.append(participant)
        self._rows.append(row)
        self._model_independent.append(query is None or query.purpose in ("cover", "random"))
        if query is None:
            return
        chose_left = answer.nearer == query.left
        self._left.rows[query.id] = chose_left
        margin = float(self.predictions[query.id])
        if query.purpose == "random" and not np.isnan(margin):
            right = 0.5 if margin == 0.0 else float((margin > 0.0) == chose_left)
            self._hits.append(right)
            if margin != 0.0:
                self._predicted.append(right)
        before = NOTHING if query.repeats is None else int(self._left.rows[query.repeats])
        if before != NOTHING:
            # Sides were swapped: agreeing means choosing the other side.
            self._agreed += bool(before) != chose_left
            self._repeated += 1

    @property
    def rows(self) -> NDArray[np.int64]:
        """The answers as rows (anchor, nearer, farther)."""
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
    def progressive(self) -> Proportion:
        """Share of recent random questions predicted correctly before their answers were used."""
        return wilson(float(sum(self._hits)), len(self._hits))

    @property
    def prequential(self) -> Proportion:
        """The same over the questions with a prediction: at least one dimension, and no tie."""
        return wilson(float(sum(self._predicted)), len(self._predicted))

    @property
    def ceiling(self) -> float | None:
        """Noise ceiling: accuracy of a perfect model, from the consistency of repeated answers."""
        if self._repeated < MIN_REPEATS:
            return None
        agreement = self._agreed / self._repeated
        return float(0.5 * (1.0 + np.sqrt(max(0.0, 2.0 * agreement - 1.0))))
