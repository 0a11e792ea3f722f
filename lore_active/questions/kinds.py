"""Kinds of questions: how many options a trial shows, how many are picked, and what that tells.

A triplet asks which of two options is more like the anchor. Of more options, participants can
choose some (`choose`), rank the nearest ones (`rank`; Canal, Fenu & Rozell, 2020), or find the odd
one out of three without any anchor. Every answer is a set of comparisons (anchor, nearer, farther)
of one trial.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, log2, perm
from typing import Literal, get_args

from lore_active.errors import InvalidParameter

KindName = Literal["triplet", "choose", "rank", "odd-one-out"]
KIND_NAMES: tuple[KindName, ...] = get_args(KindName)
Comparison = tuple[int, int, int]
MIN_OPTIONS, MAX_OPTIONS = 2, 12
# Options and picks of the kinds that have only one form.
FIXED: dict[str, tuple[int, int]] = {"triplet": (2, 1), "odd-one-out": (3, 1)}
LABEL = re.compile(r"(choose|rank)-(\d+)-of-(\d+)", re.ASCII)
LABELS = "'triplet', 'odd-one-out', 'choose-1-of-4' or 'rank-2-of-8'"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of question.

    Parameters
    ----------
    name : {"triplet", "choose", "rank", "odd-one-out"}
        What is asked: which of two options is nearer to the anchor, which are the nearest, which
        are the nearest in order, or which of three items is the odd one out.
    options : int
        Number of options shown, at most 12.
    pick : int
        Number of options picked.

    Raises
    ------
    InvalidParameter
        If there is no such kind.

    Examples
    --------
    >>> from lore_active.questions.kinds import Kind
    >>> grid = Kind("rank", options=8, pick=2)
    >>> grid.label, grid.chance == 1 / 56, grid.n_comparisons
    ('rank-2-of-8', True, 13)
    >>> Kind("rank", 3, 2).comparisons(9, (4, 5, 6), (6, 4))
    [(9, 6, 4), (9, 6, 5), (9, 4, 5)]
    """

    name: KindName
    options: int
    pick: int

    def __post_init__(self) -> None:
        if self.name not in KIND_NAMES:
            raise InvalidParameter(
                f"The kind is {self.name!r}, but must be one of {', '.join(KIND_NAMES)}."
            )
        for field, value in (("options", self.options), ("pick", self.pick)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidParameter(f"{field} is {value!r}, but must be an integer.")
        if self.name in FIXED:
            options, pick = FIXED[self.name]
            for field, value, must in (
                ("options", self.options, options),
                ("pick", self.pick, pick),
            ):
                if value != must:
                    raise InvalidParameter(
                        f"{field} is {value}, but must be {must} for questions of the kind "
                        f"{self.name!r}."
                    )
            return
        if not MIN_OPTIONS <= self.options <= MAX_OPTIONS:
            raise InvalidParameter(
                f"options is {self.options}, but must be from {MIN_OPTIONS} to {MAX_OPTIONS}."
            )
        if not 1 <= self.pick < self.options:
            raise InvalidParameter(
                f"pick is {self.pick}, but must be from 1 to {self.options - 1}, below the "
                f"number of options."
            )

    # ---- what it is -----------------------------------------------------------------------------

    @property
    def label(self) -> str:
        """Name with numbers, as in "rank-2-of-8"; `kind` reads it."""
        return self.name if self.name in FIXED else f"{self.name}-{self.pick}-of-{self.options}"

    @property
    def has_anchor(self) -> bool:
        """Whether the options are compared with an anchor; the odd one out has none."""
        return self.name != "odd-one-out"

    @property
    def ordered(self) -> bool:
        """Whether the order of the picked options is part of the answer."""
        return self.name == "rank"

    @property
    def items(self) -> int:
        """Number of different items that a question shows."""
        return self.options + self.has_anchor

    @property
    def answers(self) -> int:
        """Number of possible answers to a question."""
        return (perm if self.ordered else comb)(self.options, self.pick)

    @property
    def chance(self) -> float:
        """Probability that a guess gives the same answer."""
        return 1.0 / self.answers

    @property
    def bits(self) -> float:
        """Information of an answer if all were equally probable: 1 for a triplet.

        Answers to other kinds count as so many triplets where a number of answers is required.
        """
        return log2(self.answers)

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons that an answer consists of."""
        if not self.has_anchor:
            return 2
        unpicked = self.options - self.pick
        return self.pick * unpicked + (comb(self.pick, 2) if self.ordered else 0)

    @property
    def guess_variance(self) -> float:
        """Variance under guessing of the share of an answer's comparisons that agree with a model.

        A quarter for a triplet. The comparisons of an answer are not independent, but together they
        tell more than one of them.
        """
        if not self.has_anchor:
            # Of the three answers that can be given, both, one or no comparisons are right.
            return 1.0 / 6.0
        return _guess_variance(self.options, self.pick, self.ordered)

    # ---- questions ------------------------------------------------------------------------------

    def check_question(self, anchor: int | None, options: Sequence[int]) -> None:
        """Validate a question.

        Raises
        ------
        InvalidParameter
            If the number of options is wrong, or the items are not all different.
        """
        if len(options) != self.options:
            raise InvalidParameter(
                f"The options are {tuple(options)}, but a question of the kind {self.label!r} has "
                f"{self.options}."
            )
        if self.has_anchor == (anchor is None):
            rule = "has an anchor" if self.has_anchor else "has none"
            raise InvalidParameter(
                f"The anchor is {anchor}, but a question of the kind {self.label!r} {rule}."
            )
        shown = [*options] if anchor is None else [anchor, *options]
        if len(set(shown)) != len(shown):
            raise InvalidParameter(
                f"The question shows the items {tuple(shown)}, but they must all be different."
            )

    def key(self, anchor: int | None, options: Sequence[int]) -> Hashable:
        """Key of a question: the same whatever the order of its options."""
        return (anchor, *sorted(options))

    # ---- answers --------------------------------------------------------------------------------

    def check(self, options: Sequence[int], chosen: Sequence[int]) -> None:
        """Validate an answer.

        Parameters
        ----------
        options : sequence of int
            Items shown as options.
        chosen : sequence of int
            Items picked; the nearest first, where the order is part of the answer.

        Raises
        ------
        InvalidParameter
            If the number of picks is wrong, or one is no option or is given twice.
        """
        if len(chosen) != self.pick:
            raise InvalidParameter(
                f"The answer is {tuple(chosen)}, but must be {self.pick} of the options "
                f"{tuple(options)}."
            )
        for item in chosen:
            if item not in options:
                raise InvalidParameter(
                    f"The answer contains {item!r}, but the options are {tuple(options)}."
                )
        if len(set(chosen)) != len(chosen):
            raise InvalidParameter(
                f"The answer is {tuple(chosen)}, but must be {self.pick} different options."
            )

    def comparisons(
        self, anchor: int | None, options: Sequence[int], chosen: Sequence[int]
    ) -> list[Comparison]:
        """Comparisons (anchor, nearer, farther) that an answer consists of.

        Every picked option is nearer to the anchor than every unpicked one and, where the order is
        part of the answer, than those picked after it. In an odd-one-out question, `chosen` is the
        odd one; each of the other two is nearer to the other than to the odd one.

        Raises
        ------
        InvalidParameter
            If the question or the answer is not valid.
        """
        self.check_question(anchor, options)
        self.check(options, chosen)
        unpicked = [item for item in options if item not in chosen]
        if anchor is None:
            first, second = unpicked
            return [(first, second, chosen[0]), (second, first, chosen[0])]
        rows = []
        for place, nearer in enumerate(chosen):
            after = [*chosen[place + 1 :]] if self.ordered else []
            rows += [(anchor, nearer, farther) for farther in (*after, *unpicked)]
        return rows

    def overlap(self, chosen: Sequence[int], again: Sequence[int]) -> float:
        """Share of the picked options that two answers to the same question have in common."""
        return len(set(chosen) & set(again)) / self.pick

    @property
    def chance_overlap(self) -> float:
        """Expected overlap of two guesses; also the probability that one picks a given option."""
        return self.pick / self.options

    @property
    def min_alike(self) -> int:
        """Number of picks that two answers must share to be alike: more than guesses do on average.

        1 for one pick, and for 2 of 8.
        """
        return self.pick**2 // self.options + 1

    @property
    def chance_alike(self) -> float:
        """Probability that two guesses are alike: ½ for triplets."""
        return sum(
            comb(self.pick, shared) * comb(self.options - self.pick, self.pick - shared)
            for shared in range(self.min_alike, self.pick + 1)
        ) / comb(self.options, self.pick)


@cache
def _guess_variance(options: int, pick: int, ordered: bool) -> float:
    """By the sums of ranks: a comparison is right if the pick has the lower predicted rank.

    The number of right comparisons with unpicked options is that of Mann and Whitney; among the
    picks themselves it is Kendall's, independent of it.
    """
    unpicked = options - pick
    variance = pick * unpicked * (options + 1) / 12.0
    count = pick * unpicked
    if ordered:
        variance += pick * (pick - 1) * (2 * pick + 5) / 72.0
        count += comb(pick, 2)
    return variance / count**2


TRIPLET = Kind("triplet", 2, 1)
ODD_ONE_OUT = Kind("odd-one-out", 3, 1)


def kind(label: str) -> Kind:
    """Kind of question by its label.

    Raises
    ------
    InvalidParameter
        If there is no such kind.

    Examples
    --------
    >>> from lore_active.questions.kinds import kind
    >>> kind("choose-1-of-4")
    Kind(name='choose', options=4, pick=1)
    """
    if label == "triplet":
        return TRIPLET
    if label == "odd-one-out":
        return ODD_ONE_OUT
    matched = LABEL.fullmatch(label) if isinstance(label, str) else None
    if matched is None:
        raise InvalidParameter(f"The kind is {label!r}, but must be like {LABELS}.")
    name: KindName = "rank" if matched[1] == "rank" else "choose"
    return Kind(name, options=int(matched[3]), pick=int(matched[2]))


def kind_of(name: str, options: int | None = None, pick: int | None = None) -> Kind:
    """Kind of question by name and numbers, which kinds of only one form need not give.

    Raises
    ------
    InvalidParameter
        If there is no such kind, or its numbers are missing.

    Examples
    --------
    >>> from lore_active.questions.kinds import kind_of
    >>> kind_of("odd-one-out").options
    3
    """
    fixed = FIXED.get(name, (None, None))
    options = fixed[0] if options is None else options
    pick = fixed[1] if pick is None else pick
    for known in KIND_NAMES:
        if name == known:
            if options is None or pick is None:
                missing = "options" if options is None else "pick"
                raise InvalidParameter(
                    f"{missing} is not given, but questions of the kind {name!r} need it."
                )
            return Kind(known, options, pick)
    raise InvalidParameter(f"The kind is {name!r}, but must be one of {', '.join(KIND_NAMES)}.")
