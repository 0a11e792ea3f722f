"""Stopping rules on made-up histories: each criterion can hold a study back by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lore_active import InvalidParameter
from lore_active.rank.audit import Audit
from lore_active.rank.significance import wilson
from lore_active.stopping import criteria
from lore_active.stopping.rules import Progress, RankSettled, Unchanged


def audit(answers, rank=3, bayes=(20.0, 6.0), **gaps):
    clear = {"below": (0.2, 0.01), "above": (0.04, 0.01), "map_above": (0.05, 0.01)}
    below, above = bayes
    return Audit(
        answers,
        rank,
        0.01,
        1.0,
        (),
        None,
        **(clear | gaps),
        log_bayes_below=below,
        log_bayes_above=above,
    )


def said(decision, name):
    return next(criterion for criterion in decision.criteria if criterion.name == name)


RULE = RankSettled(confidence=0.995)
CLEAR = Progress(20, 500, 20, [audit(100 * k) for k in range(1, 6)], wilson(80, 100))


def test_a_clear_case_stops_and_says_why():
    decision = RULE.decide(CLEAR)
    assert decision.stop
    assert decision.settled
    assert decision.rank == 3
    assert "settled at three dimensions" in decision.message
    assert "in the last 5 audits" in decision.message
    assert "Answers: 500 (at least 80 needed)" in decision.message
    assert "3 vs 2 dimensions: mean advantage of 20.00 standard errors" in decision.message
    assert all(criterion.passed for criterion in decision.criteria)


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"items_seen": 19}, "items_seen"),
        ({"answers": 79}, "answers"),
        ({"held_out": wilson(55, 100)}, "better_than_chance"),
        ({"held_out": wilson(0, 0)}, "better_than_chance"),
        ({"audits": CLEAR.audits[:4]}, "audits_unchanged"),
        ({"audits": [*CLEAR.audits[:3], audit(400, 2), audit(500)]}, "audits_unchanged"),
        ({"audits": [audit(k, below=(0.01, 0.01)) for k in range(5)]}, "preferred_to_fewer"),
        ({"audits": [audit(k, below=None) for k in range(5)]}, "preferred_to_fewer"),
        ({"audits": [audit(k, above=(0.01, 0.01)) for k in range(5)]}, "preferred_to_more"),
        ({"audits": [audit(k, above=(-0.1, 0.01)) for k in range(5)]}, "preferred_to_more"),
        ({"audits": [audit(k, map_above=(0.01, 0.01)) for k in range(5)]}, "preferred_to_more"),
        ({"audits": [*CLEAR.audits, audit(600, bayes=(5.2, 6.0))]}, "bayes_factor_fewer"),
        ({"audits": [*CLEAR.audits, audit(600, bayes=(20.0, 2.6))]}, "bayes_factor_more"),
        ({"n_objects": 60, "items_seen": 60}, "bayes_factor_more"),
        ({"audits": [audit(k, rank=1, bayes=(20.0, 7.9)) for k in range(5)]}, "bayes_factor_more"),
        ({"audits": [audit(k, rank=0) for k in range(5)]}, "preferred_to_fewer"),
        ({"audits": [audit(k, rank=0) for k in range(5)]}, "bayes_factor_fewer"),
        ({"audits": []}, "audits_unchanged"),
    ],
)
def test_each_criterion_alone_prevents_stopping(change, missing):
    decision = RULE.decide(replace(CLEAR, **change))
    assert not decision.stop
    failed = {criterion.name: criterion for criterion in decision.criteria if not criterion.passed}
    assert missing in failed
    assert criteria.message(failed[missing], decision.rank) in decision.message


def test_evidence_is_pooled_over_audits():
    wavering = [audit(k, above=(z * 0.01, 0.01)) for k, z in enumerate((0, 1, 5, 1, -1))]
    decision = RULE.decide(replace(CLEAR, audits=wavering))
    last = said(decision, "preferred_to_more")
    assert last.value == pytest.approx(2 * 1.2)
    assert not last.passed


@pytest.mark.parametrize(
    ("published", "asking", "value"),
    [(2.0, 3.0, 2.5), (3.0, 2.0, 2.5), (2.0, 3.5, 2.75), (1.2, 9.0, 2.4), (9.0, 1.2, 2.4)],
)
def test_estimators_count_by_their_mean_but_the_weaker_must_reach_half(published, asking, value):
    audits = [audit(k, above=(published, 1.0), map_above=(asking, 1.0)) for k in range(5)]
    last = said(RULE.decide(replace(CLEAR, audits=audits)), "preferred_to_more")
    assert last.value == pytest.approx(value)
    assert last.passed == (value > 2.576)


def test_a_rank_may_be_clear_before_there_are_enough_answers():
    assert replace(RULE, min_answers=10_000).clear(CLEAR.audits)
    assert not RULE.clear(CLEAR.audits[1:])
    assert not RULE.clear([])
    assert not RULE.clear([audit(k, above=(0.01, 0.01)) for k in range(5)])


def test_more_dimensions_that_cannot_be_fitted_are_no_obstacle():
    nothing = [audit(k, above=None, map_above=None) for k in range(5)]
    assert RULE.decide(replace(CLEAR, audits=nothing)).settled


def test_one_estimator_against_more_dimensions_is_enough_where_the_other_is_missing():
    decision = RULE.decide(replace(CLEAR, audits=[audit(k, above=None) for k in range(5)]))
    assert said(decision, "preferred_to_more").value == pytest.approx(5.0)
    assert decision.settled


def test_the_latest_log_bayes_factor_counts_and_is_reported():
    """Later answers may reveal a dimension; an earlier Bayes factor against it is no proof."""
    audits = [*CLEAR.audits[:-1], audit(500, bayes=(30.0, -3.0))]
    decision = RULE.decide(replace(CLEAR, audits=audits))
    assert not decision.settled
    assert "3 vs 4 dimensions: -3.0 (at least 2.7 needed)" in decision.message
    earlier = [audit(50, bayes=(1.0, -3.0)), *CLEAR.audits]
    assert RULE.decide(replace(CLEAR, audits=earlier)).settled


def test_evidence_that_was_not_computed_does_not_prevent_stopping():
    """Audits of earlier versions, and studies with too many coordinates, have no Bayes factors."""
    untested = [audit(k, bayes=(None, None)) for k in range(5)]
    decision = RULE.decide(replace(CLEAR, audits=untested))
    assert decision.settled
    assert "four dimensions were not tested" in decision.message


def test_the_budget_ends_a_study_without_settling_it():
    decision = replace(RULE, max_answers=500).decide(replace(CLEAR, audits=CLEAR.audits[:1]))
    assert decision.stop
    assert not decision.settled
    assert "budget" in decision.message


def test_the_naive_rule_looks_at_nothing_else():
    assert Unchanged().decide(replace(CLEAR, items_seen=1)).settled
    assert not Unchanged(audits=6).decide(CLEAR).stop


def test_wilson_interval():
    share = wilson(8, 10)
    assert share.value == 0.8
    assert share.low == pytest.approx(0.4902, abs=1e-3)
    assert share.high == pytest.approx(0.9433, abs=1e-3)


@pytest.mark.parametrize("bad", [{"confidence": 1.0}, {"confidence": 0.2}, {"audits": 0}])
def test_bad_rules(bad):
    with pytest.raises(InvalidParameter, match=next(iter(bad))):
        RankSettled(**bad)
