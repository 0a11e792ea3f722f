"""Questions with a known answer, for catch and practice trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lore_active.questions.kinds import TRIPLET
from server.store.sqlite.item_lists import Items
from server.study.config import Catch, LoadedStudy


class KnownQuestion(NamedTuple):
    """A question, and the option that its answer must contain."""

    anchor: int | None
    options: Items
    known: Items


def passed(known: Sequence[int], chosen: Sequence[int]) -> bool:
    """Return whether an answer to a question with a known answer is right.

    Where several options are picked, the known one must be among them, in any place: what else is
    picked is not known. By guessing, this is passed with probability `pick / options`.
    """
    return set(known) <= set(chosen)


def own_question(study: LoadedStudy, catch: Catch, rng: np.random.Generator) -> KnownQuestion:
    """Ask one of the study's own catch questions.

    Options that it does not name are random items, but none that another catch question of the same
    anchor calls near: its nearer item is the one that is most like the anchor.
    """
    kind = study.kind
    if not kind.has_anchor:
        three = (catch.anchor, catch.nearer, catch.farther)
        return KnownQuestion(None, _shuffled(three, rng), (catch.farther,))
    options: Items = (catch.nearer, catch.farther, *catch.others)
    if kind != TRIPLET:
        near = {known.nearer for known in study.catches if known.anchor == catch.anchor}
        items = rng.permutation(len(study.items)).tolist()
        # Near items come last: they are used only if there are no others.
        free = [item for item in items if item not in (catch.anchor, *options)]
        free.sort(key=near.__contains__)
        options = _shuffled((*options, *free[: kind.options - len(options)]), rng)
    return KnownQuestion(catch.anchor, options, (catch.nearer,))


def twin_question(study: LoadedStudy, rng: np.random.Generator) -> KnownQuestion:
    """Ask about an item and itself: the anchor is among the options, or two of three are the same.

    In an odd-one-out question the odd one is then the third item.
    """
    kind, count = study.kind, len(study.items)
    if not kind.has_anchor:
        same, other = rng.choice(count, 2, replace=False).tolist()
        return KnownQuestion(None, _shuffled((same, same, other), rng), (other,))
    anchor, *others = rng.choice(count, kind.options, replace=False).tolist()
    options = (anchor, *others)
    if kind != TRIPLET:
        options = _shuffled(options, rng)
    return KnownQuestion(anchor, options, (anchor,))


def _shuffled(items: Items, rng: np.random.Generator) -> Items:
    return tuple(rng.permutation(np.array(items)).tolist())
