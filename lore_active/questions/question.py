"""A question, its answer, and the errors that concern them."""

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
    """A triplet question, with the record of how it was selected.

    Attributes
    ----------
    id : int
        Number of the question within its learner, from 0.
    anchor, left, right : int
        The items: is the anchor more like the left or the right option?
    purpose : {"cover", "random", "active", "repeat", "catch"}
        Why it is asked: coverage design, uniformly random, selected by the acquisition function,
        an earlier question again, or a question with a known answer.
    score : float
        Value of the acquisition function; 0 for questions that it did not select.
    version : int
        Version of the model that predicted the answer; 0 if there was none.
    seed : tuple of int
        Seed of the learner, and number of the call to `ask`.
    margin : float
        Predicted margin d(anchor, right) − d(anchor, left); positive if left is predicted to be
        nearer.
    repeats : int or None
        Id of the question that it repeats.

    Examples
    --------
    >>> from lore_active import Learner
    >>> [question] = Learner(n_objects=4, seed=1).ask()
    >>> question.id, question.purpose, question.version
    (0, 'cover', 0)
    >>> question.side_of(question.right)
    'right'
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
        """Return the side on which an option is shown.

        Parameters
        ----------
        item : int
            One of the two options.

        Returns
        -------
        {"left", "right"}

        Raises
        ------
        InvalidParameter
            If the item is not an option of this question.
        """
        if item not in (self.left, self.right):
            raise InvalidParameter(
                f"Item {item} is not an option of question {self.id}; the options are {self.left} "
                f"and {self.right}."
            )
        return "left" if item == self.left else "right"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: the anchor is nearer to one item than to another.

    Attributes
    ----------
    query : int or None
        Id of the question; None for imported answers.
    anchor, nearer, farther : int
        The items, as the participant ordered them.
    participant : str or None
        Who answered, if known.

    Examples
    --------
    >>> from lore_active import Learner
    >>> learner = Learner(n_objects=4)
    >>> learner.add([[0, 1, 2]], participant="P1")
    >>> learner.answers
    (Answer(query=None, anchor=0, nearer=1, farther=2, participant='P1'),)
    """

    query: int | None
    anchor: int
    nearer: int
    farther: int
    participant: str | None


def as_rows(rows: Iterable[tuple[int, int, int]]) -> NDArray[np.int64]:
    """Convert rows of three items to an array of shape (n, 3), also for n = 0."""
    return np.array(list(rows), dtype=np.int64).reshape(-1, 3)
