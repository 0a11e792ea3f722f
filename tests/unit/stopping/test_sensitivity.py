"""The smallest share of a further dimension that is ruled out, and the ranks that are not."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from lore_active.stopping.sensitivity import Sensitivity, from_stored, sensitivity
from lore_active.stopping.sensitivity import smallest_ruled_out as smallest

SHARES = (0.05, 0.1, 0.2, 0.5)


def profile(*values, agree=True):
    """Tests by share; where chains disagree, they differ by 4."""
    return tuple(
        SimpleNamespace(
            share=share,
            log_bayes_factor=value,
            agree=agree,
            chains=(value,) if agree else (value - 2, value + 2),
            against=(),
            there=(),
        )
        for share, value in zip(SHARES, values, strict=False)
    )


def audit(rank=2, answers=100, further=(), losses=((0, 0.5, 0.01), (1, 0.1, 0.01), (2, 0.0, 0.0))):
    evidence = [
        SimpleNamespace(rank=k, difference=difference, error=error)
        for k, difference, error in losses
    ]
    return SimpleNamespace(rank=rank, answers=answers, further=further, evidence=evidence)


def test_a_tested_share_is_named_exactly_and_the_rest_interpolated_upwards():
    # log 20 = 3.0: the curve crosses it between 10 % and 20 %.
    assert smallest(profile(-1.0, -2.0, -4.0, -9.0), bayes_factor=20) == pytest.approx(0.15)
    assert smallest(profile(-4.0, -5.0, -6.0, -9.0), bayes_factor=20) == 0.05
    assert smallest(profile(0.0, -1.0, -2.0, -2.9), bayes_factor=20) is None
    # What is not ruled out at larger shares does not matter: they would show at smaller ones.
    assert smallest(profile(-1.0, -4.0, 0.0, 7.0), bayes_factor=20) == smallest(
        profile(-1.0, -4.0, -9, -9), bayes_factor=20
    )


def test_where_chains_disagree_each_of_them_must_rule_it_out():
    assert smallest(profile(-4.0, -4.5, -4.7, -4.9, agree=False), bayes_factor=20) is None
    assert smallest(profile(-4.0, -4.5, -6.0, -9.0, agree=False), bayes_factor=20) == 0.2


def test_a_share_must_be_ruled_out_by_the_last_tests_together():
    weak, strong = profile(-1.0, -2.0, -4.0, -9.0), profile(-2.0, -4.0, -6.0, -9.0)
    known = sensitivity([audit(further=weak), audit(answers=200, further=strong)], 20, 0.1, 2)
    # The mean of the two tests crosses log 20 at 10 %, where the first falls short of half of it
    # by less than the mean exceeds it.
    assert known.ruled_out == 0.1
    assert (known.rank, known.answers, known.ranks) == (2, 200, (2, 2))
    # One test that is much clearer does not make up for one that is not.
    clear = profile(-9.0, -20.0, -30.0, -40.0)
    known = sensitivity(
        [audit(further=profile(-0.5, -1.4, -4.0, -9.0)), audit(further=clear)], 20, 0.1, 2
    )
    assert 0.1 < known.ruled_out < 0.2 and known.ranks == (2, None)


def test_a_test_that_ended_early_has_ruled_out_what_it_did_not_test():
    short = profile(-3.5)
    long = profile(-2.0, -4.0)
    known = sensitivity([audit(further=short), audit(further=long)], 20, 0.1, 2)
    assert known.ruled_out is not None and 0.05 < known.ruled_out <= 0.1


def test_tests_of_another_rank_do_not_count():
    strong = profile(-2.0, -4.0, -6.0, -9.0)
    assert sensitivity([audit(further=strong)], 20, 0.1, 2).ruled_out is None
    # Audits in between that were not tested do not matter; those of another rank do.
    between = [audit(further=strong), audit(), audit(further=strong), audit(answers=300)]
    known = sensitivity(between, 20, 0.1, 2)
    assert known.ruled_out <= 0.1 and known.ranks == (2, 2)
    assert sensitivity([audit(1, further=strong), audit(2)], 20, 0.1, 2) is None
    assert sensitivity([], 20) is None


def test_ranks_that_predict_nearly_as_well_remain_possible():
    close = ((0, 0.5, 0.01), (1, 0.01, 0.01), (2, 0.0, 0.0))
    strong = profile(-4.0, -5.0, -6.0, -9.0)
    known = sensitivity([audit(further=strong, losses=close)], 20, 0.1)
    assert known.ranks == (1, 2)
    assert known.message.endswith("one to two dimensions are possible.")


def test_a_dimension_that_was_found_raises_the_smallest_rank():
    known = sensitivity([audit(further=profile(2.0, 5.0, -4.0, -9.0))], 20, 0.1)
    # One of half of the differences may only have taken the place of a dimension of the map.
    assert sensitivity([audit(further=profile(-1.0, -1.0, 0.0, 9.0))], 20, 0.1).found is None
    assert (known.found, known.ruled_out, known.ranks) == (0.1, 0.15, (3, None))
    assert known.message.startswith("There is a further dimension, which carries about 10 %")


def test_a_weaker_dimension_may_be_there_while_one_of_interest_is_ruled_out():
    known = sensitivity([audit(further=profile(8.0, 3.0, -4.0, -9.0))], 20, 0.1)
    assert (known.found, known.ruled_out, known.ranks) == (0.05, 0.1, (2, 2))
    assert "carries about 5 %" in known.message and "10 % or more is ruled out" in known.message


def test_it_is_stored_as_numbers_and_read_again():
    known = Sensitivity(2, 480, 20.0, 0.1, 0.1, None, (2, 2))
    assert from_stored(json.loads(json.dumps(known.stored()))) == known
    assert from_stored(None) is None
    assert known.message.endswith("(20 : 1); two dimensions are left.")
