"""Kinds of questions: their rules, labels and keys, and the comparisons that answers consist of."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

from lore_active.errors import InvalidParameter
from lore_active.questions.kinds import ODD_ONE_OUT, TRIPLET, Kind, kind, kind_of

KINDS = [
    TRIPLET,
    ODD_ONE_OUT,
    Kind("choose", 4, 1),
    Kind("choose", 4, 2),
    Kind("choose", 8, 3),
    Kind("rank", 8, 2),
    Kind("rank", 12, 11),
]
ids = [each.label for each in KINDS]


@pytest.mark.parametrize("each", KINDS, ids=ids)
def test_label_names_the_kind(each: Kind) -> None:
    assert kind(each.label) == each
    assert kind_of(each.name, each.options, each.pick) == each


def test_kinds_of_one_form_need_no_numbers() -> None:
    assert kind_of("triplet") == TRIPLET
    assert kind_of("odd-one-out") == ODD_ONE_OUT
    with pytest.raises(InvalidParameter, match="pick is not given"):
        kind_of("rank", 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rank", 13, 2), "options is 13, but must be from 2 to 12"),
        (("choose", 1, 1), "options is 1, but"),
        (("rank", 8, 8), "pick is 8, but must be from 1 to 7"),
        (("choose", 8, 0), "pick is 0, but"),
        (("triplet", 3, 1), "options is 3, but must be 2 .* 'triplet'"),
        (("odd-one-out", 3, 2), "pick is 2, but must be 1"),
        (("grid", 8, 2), "'grid', but must be one of triplet"),
        (("rank", 8.0, 2), "options is 8.0, but must be an integer"),
    ],
)
def test_rules(arguments: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Kind(*arguments)


@pytest.mark.parametrize(
    "label",
    ["", "rank", "rank-2-of-", "rank--2-of-8", "Rank-2-of-8", "rank-2-of-8\n", "rank-٢-of-8"],
)
def test_unknown_labels(label: str) -> None:
    with pytest.raises(InvalidParameter, match="must be like 'triplet'"):
        kind(label)


@pytest.mark.parametrize(
    "each", [some for some in KINDS if some.options < 9], ids=lambda k: k.label
)
def test_chance_counts_the_answers(each: Kind) -> None:
    ways = (permutations if each.ordered else combinations)(range(each.options), each.pick)
    assert each.chance == pytest.approx(1 / len(list(ways)))


@pytest.mark.parametrize("each", KINDS, ids=ids)
def test_comparisons_agree_with_distances(each: Kind) -> None:
    """The answer of a participant who sees the distances without noise holds throughout."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(20, 2))
    shown = [int(item) for item in rng.permutation(20)[: each.items]]
    anchor, options = (shown[0], shown[1:]) if each.has_anchor else (None, shown)

    def distance(a: int, b: int) -> float:
        return float(np.linalg.norm(z[a] - z[b]))

    if anchor is None:
        pairs = sorted(combinations(options, 2), key=lambda pair: distance(*pair))
        chosen = [item for item in options if item not in pairs[0]]
    else:
        chosen = sorted(options, key=lambda item: distance(anchor, item))[: each.pick]
    rows = each.comparisons(anchor, options, chosen)
    assert len(set(rows)) == len(rows) == each.n_comparisons
    for a, nearer, farther in rows:
        assert distance(a, nearer) < distance(a, farther)
        assert {a, nearer, farther} <= set(shown)


def test_order_matters_only_where_it_is_part_of_the_answer() -> None:
    options = (1, 2, 3, 4)
    ranked, chosen = Kind("rank", 4, 2), Kind("choose", 4, 2)
    assert set(ranked.comparisons(0, options, (2, 3))) - set(
        chosen.comparisons(0, options, (2, 3))
    ) == {(0, 2, 3)}
    assert set(chosen.comparisons(0, options, (2, 3))) == set(
        chosen.comparisons(0, options, (3, 2))
    )
    assert ranked.comparisons(0, options, (2, 3)) != ranked.comparisons(0, options, (3, 2))


def test_odd_one_out_tells_that_the_other_two_are_near() -> None:
    assert ODD_ONE_OUT.comparisons(None, (5, 6, 7), (6,)) == [(5, 7, 6), (7, 5, 6)]


def test_questions_are_validated() -> None:
    grid = Kind("rank", 4, 2)
    for anchor, options, message in (
        (0, (1, 2, 3), "has 4"),
        (0, (1, 2, 3, 3), "all be different"),
        (1, (1, 2, 3, 4), "all be different"),
        (None, (1, 2, 3, 4), "has an anchor"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            grid.check_question(anchor, options)
    with pytest.raises(InvalidParameter, match="has none"):
        ODD_ONE_OUT.check_question(0, (1, 2, 3))


def test_answers_are_validated() -> None:
    grid = Kind("rank", 4, 2)
    for chosen, message in (((1,), "must be 2 of"), ((1, 9), "contains 9"), ((1, 1), "different")):
        with pytest.raises(InvalidParameter, match=message):
            grid.check((1, 2, 3, 4), chosen)
    grid.check((1, 2, 3, 4), (4, 1))


@pytest.mark.parametrize("each", KINDS, ids=ids)
def test_key_ignores_the_order_of_options(each: Kind) -> None:
    anchor = 50 if each.has_anchor else None
    options = list(range(each.options))
    assert each.key(anchor, options) == each.key(anchor, options[::-1])
    assert each.key(anchor, options) != each.key(anchor, [*options[:-1], 40])
    if each.has_anchor:
        assert each.key(50, options) != each.key(51, options)


def test_overlap() -> None:
    grid = Kind("choose", 8, 2)
    assert grid.overlap((1, 2), (2, 1)) == 1.0
    assert grid.overlap((1, 2), (2, 3)) == 0.5
    assert grid.chance_overlap == 0.25


@pytest.mark.parametrize(
    "each", [some for some in KINDS if some.options < 9], ids=lambda k: k.label
)
def test_variance_of_guesses(each: Kind) -> None:
    """By all answers that can be given to a question that a model has predicted."""
    position = np.arange(each.options, dtype=float)[:, np.newaxis]
    shown = [each.options, *range(each.options)] if each.has_anchor else list(range(each.options))
    z = np.vstack([position + 1.0, [[0.0]]]) if each.has_anchor else position**2
    anchor, options = (shown[0], shown[1:]) if each.has_anchor else (None, shown)
    shares = []
    for chosen in (permutations if each.ordered else combinations)(options, each.pick):
        rows = np.array(each.comparisons(anchor, options, chosen))
        near, far = (np.abs(z[rows[:, 0]] - z[rows[:, k]])[:, 0] for k in (1, 2))
        shares.append(np.mean(near < far))
    assert np.mean(shares) == pytest.approx(0.5)
    assert np.var(shares) == pytest.approx(each.guess_variance)
