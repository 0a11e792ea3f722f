"""A question of any kind, its answer, and the errors that concern them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lore_active.errors import LoreError
from lore_active.questions.kinds import TRIPLET, Comparison, Kind

Side = Literal["left", "right"]
Purpose = Literal["cover", "random", "active", "repeat", "catch"]


class UnknownQuestion(LoreError, KeyError):
    """An answer to a question that was never asked."""

    def __str__(self) -> str:
        return str(self.args[0])


class AlreadyAnswered(LoreError, ValueError):
    """A second answer to the same question."""


class NotATriplet(LoreError, AttributeError):
    """An attribute that only triplet questions and their answers have."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, with the record of how it was selected.

    Attributes
    ----------
    id : int
        Number of the question: within its learner, from 0, unless the caller chose another.
    anchor : int or None
        The item that the options are compared with; None for the odd one out.
    options : tuple of int
        Items shown as options, in the order in which they are shown.
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
        Predicted margin. Of a triplet d(anchor, right) − d(anchor, left), positive if left is
        predicted to be nearer; of other kinds, by how much the nearest option that would not be
        picked is predicted to be farther than the last one that would be.
    repeats : int or None
        Id of the question that it repeats.
    kind : Kind
        What is asked.

    Triplet questions also have `left` and `right`, their two options.

    Examples
    --------
    >>> from lore_active import Learner
    >>> [question] = Learner(n_objects=4, seed=1).ask()
    >>> question.id, question.purpose, question.version
    (0, 'cover', 0)
    >>> question.options == (question.left, question.right), question.kind.label
    (True, 'triplet')
    """

    id: int
    anchor: int | None
    options: tuple[int, ...]
    purpose: Purpose
    score: float
    version: int
    seed: tuple[int, int]
    margin: float
    repeats: int | None = None
    kind: Kind = TRIPLET

    @property
    def left(self) -> int:
        """The option on the left of a triplet."""
        return _of_triplet(self.kind, self.options, 0)

    @property
    def right(self) -> int:
        """The option on the right of a triplet."""
        return _of_triplet(self.kind, self.options, 1)


def _of_triplet(kind: Kind, items: tuple[int, ...], place: int) -> int:
    if kind != TRIPLET:
        raise NotATriplet(
            f"A question of the kind {kind.label!r} has options and chosen items; only triplets "
            "have left and right, nearer and farther."
        )
    return items[place]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: which of the options were chosen.

    Attributes
    ----------
    question : int or None
        Id of the question; None for imported answers.
    anchor : int or None
        The item that the options were compared with; None for the odd one out.
    options : tuple of int
        Items shown as options; the chosen one first if the answer is imported.
    chosen : tuple of int
        Items that were chosen, in the order in which they were.
    participant : str or None
        Who answered, if known.
    kind : Kind
        What was asked. Imported answers are comparisons of three items, like triplets.
    trial : int or None
        Number of the imported trial that the comparison belongs to; None if it is the only one.

    Answers to triplets also have `nearer` and `farther`.

    Examples
    --------
    >>> from lore_active import Learner
    >>> learner = Learner(n_objects=4)
    >>> learner.add([[0, 1, 2]], participant="P1")
    >>> [answer] = learner.answers
    >>> answer.anchor, answer.nearer, answer.farther, answer.participant
    (0, 1, 2, 'P1')
    """

    question: int | None
    anchor: int | None
    options: tuple[int, ...]
    chosen: tuple[int, ...]
    participant: str | None
    kind: Kind = TRIPLET
    trial: int | None = None

    @property
    def nearer(self) -> int:
        """The option of a triplet that was chosen."""
        return _of_triplet(self.kind, self.chosen, 0)

    @property
    def farther(self) -> int:
        """The option of a triplet that was not chosen."""
        return _of_triplet(self.kind, self.options, int(self.options[0] == self.chosen[0]))

    @property
    def comparisons(self) -> list[Comparison]:
        """The answer as comparisons (anchor, nearer, farther)."""
        return self.kind.comparisons(self.anchor, self.options, self.chosen)
