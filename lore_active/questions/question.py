"""A question and its answer, and the errors about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lore_active.errors import InvalidParameter, LoreError

Side = Literal["left", "right"]
Purpose = Literal["cover", "random", "active", "repeat", "catch"]


class UnknownQuestion(LoreError, KeyError):
    """An answer to a question that was never asked."""

    def __str__(self) -> str:
        return str(self.args[0])


class AlreadyAnswered(LoreError, ValueError):
    """A second answer to the same question."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and how it came to be asked.

    `score` is the selector's, `version` the model's that selected and predicts it (0: none yet),
    `seed` what the choice was drawn with, `margin` the prediction (positive: left nearer).
    """

    id: int
    anchor: int
    left: int
    right: int
    purpose: Purpose
    score: float
    version: int
    seed: tuple[int, int]
    margin: float
    repeats: int | None = None

    def side_of(self, item: int) -> Side:
        """On which side an option is."""
        if item not in (self.left, self.right):
            raise InvalidParameter(
                f"Item {item} is no option of query {self.id}: they are {self.left}, {self.right}."
            )
        return "left" if item == self.left else "right"


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said; `query` is None for answers brought from outside."""

    query: int | None
    anchor: int
    nearer: int
    farther: int
    participant: str | None


def as_rows(rows: Iterable[tuple[int, int, int]]) -> NDArray[np.int64]:
    """Rows of three items as an array, also where there are none."""
    return np.array(list(rows), dtype=np.int64).reshape(-1, 3)
