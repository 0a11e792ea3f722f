"""Every question asked and every answer given, in order; nothing in it is ever taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lore_active.errors import InvalidParameter
from lore_active.questions import Questions, key, keys
from lore_active.records import AlreadyTold, Answer, Query, Side, UnknownQuery, as_rows


class Ledger:
    """Questions with their states ("open", "told", "skipped"), and answers.

    `as_anchor` and `as_option` count how often each item was asked about.
    """

    def __init__(self, n_objects: int) -> None:
        self.n_objects = n_objects
        self.queries: list[Query] = []
        self.states: list[str] = []
        self.answers: list[Answer] = []
        self.as_anchor = np.zeros(n_objects, dtype=np.int64)
        self.as_option = np.zeros(n_objects, dtype=np.int64)
        self._answered: set[int] = set()

    def enter(self, query: Query, state: str = "open") -> Query:
        """Take note of a question; it gets the next number."""
        numbered = replace(query, id=len(self.queries))
        self.queries.append(numbered)
        self.states.append(state)
        self.as_anchor[query.anchor] += 1
        self.as_option[[query.left, query.right]] += 1
        return numbered

    def query(self, number: int) -> Query:
        """A question by its number."""
        if not 0 <= number < len(self.queries):
            raise UnknownQuery(f"There is no query {number}; {len(self.queries)} were asked.")
        return self.queries[number]

    def tell(self, number: int, side: Side, participant: str | None) -> Answer:
        """What an answer to a question says; the question is then closed."""
        asked = self.query(number)
        if side not in ("left", "right"):
            raise InvalidParameter(f"side is {side!r}, but must be 'left' or 'right'.")
        if self.states[number] == "told":
            raise AlreadyTold(f"Query {number} has been answered already.")
        self.states[number] = "told"
        nearer, farther = asked.left, asked.right
        if side == "right":
            nearer, farther = farther, nearer
        return Answer(number, asked.anchor, nearer, farther, participant)

    def skip(self, number: int) -> None:
        """Nobody will answer this question."""
        self.query(number)
        if self.states[number] == "told":
            raise AlreadyTold(f"Query {number} has been answered already and cannot be skipped.")
        self.states[number] = "skipped"

    def add(self, answer: Answer) -> int:
        """Keep an answer; its place among all of them."""
        self.answers.append(answer)
        self._answered.add(key(answer.anchor, answer.nearer, answer.farther, self.n_objects))
        return len(self.answers) - 1

    def out(self) -> list[int]:
        """The questions that are with somebody."""
        return [number for number, state in enumerate(self.states) if state == "open"]

    def rows(self, numbers: Sequence[int]) -> Questions:
        """Questions as rows (anchor, left, right)."""
        asked = (self.query(number) for number in numbers)
        return as_rows((one.anchor, one.left, one.right) for one in asked)

    def taken(self, out: Sequence[int]) -> set[int]:
        """Keys of questions that have an answer or are out; skipped and lapsed ones are free."""
        return self._answered | {int(one) for one in keys(self.rows(out), self.n_objects)}
