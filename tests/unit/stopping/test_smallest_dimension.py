"""The rule about the smallest dimension of interest, on made-up histories and on a real study."""

from __future__ import annotations

from dataclasses import replace
from math import log
from types import SimpleNamespace

import numpy as np
import pytest

from lore_active import InvalidParameter, Learner
from lore_active.learner import snapshot
from lore_active.rank.audit import Audit
from lore_active.rank.bayes_factor import FurtherDimension
from lore_active.rank.significance import wilson
from lore_active.simulation.observers import Observer
from lore_active.simulation.run import SimulatedParticipants, simulate
from lore_active.simulation.worlds import space
from lore_active.stopping import criteria
from lore_active.stopping.registry import stopping_rule
from lore_active.stopping.rules import Progress, RankSettled, findings
from lore_active.stopping.smallest_dimension import FurtherDimensionRule, SmallestDimension
from lore_active.stopping.stages import Collection
from lore_active.stopping.verdict import verdict


def further_test(log_bayes_factor, share=0.1, agree=True):
    chains = (log_bayes_factor, log_bayes_factor)
    return FurtherDimension(share, log_bayes_factor, 0.1, chains, agree, log_bayes_factor)


def audit(answers, rank=2, tests=(), **changes):
    clear = {"below": (0.2, 0.01), "above": (0.0, 0.01), "log_bayes_below": 20.0}
    return Audit(answers, rank, 0.01, 1.0, (), None, **(clear | changes), further=tuple(tests))


RULE = SmallestDimension()
RULED_OUT = [
    audit(300, tests=[further_test(-4.5)]),
    audit(324, tests=[further_test(-4.0)]),
    audit(350, tests=[further_test(-3.5)]),
]
CLEAR = Progress(40, 350, 40, RULED_OUT, wilson(80, 100))


def further(progress, rule=RULE):
    return next(
        criterion
        for criterion in rule.decide(progress).criteria
        if criterion.name == "further_dimension"
    )


def test_stops_once_three_tests_together_rule_a_further_dimension_out():
    decision = RULE.decide(CLEAR)
    assert decision.settled
    assert decision.rank == 2
    assert further(CLEAR).value == pytest.approx(4.0)
    assert further(CLEAR).threshold == pytest.approx(log(20.0))
    assert "a further dimension that carries 10 % or more" in decision.message


@pytest.mark.parametrize(
    "last",
    [
        [audit(350)],
        [audit(350, tests=[further_test(-1.9)])],
        [audit(350, tests=[further_test(-1.4)])],
        [audit(350, tests=[further_test(1.0)])],
        [audit(350, tests=[further_test(4.0)])],
        [audit(350, tests=[further_test(-9.0, agree=False)])],
        [audit(350, tests=[further_test(-9.0, share=0.2)])],
        [audit(350, rank=3, tests=[further_test(-9.0)])],
    ],
    ids=[
        "not tested",
        "mean",
        "half of it",
        "to the contrary",
        "found",
        "chains disagree",
        "another share",
        "another rank",
    ],
)
def test_does_not_stop_before(last):
    # The first tests alone would do, and so would their mean with one that falls short of a half.
    first = -9.0 if last[0].further and last[0].further[0].log_bayes_factor == -1.4 else -3.2
    before = [audit(answers, tests=[further_test(first)]) for answers in (300, 324)]
    progress = replace(CLEAR, audits=[*before, *last])
    assert not further(progress).passed
    assert not RULE.decide(progress).settled


def test_a_smaller_share_that_is_ruled_out_rules_out_the_larger_one():
    tests = [further_test(-3.2, share=0.05), further_test(-9.0, agree=False)]
    progress = replace(CLEAR, audits=[*RULED_OUT[:2], audit(350, tests=tests)])
    assert further(progress).value == pytest.approx(3.9)
    assert RULE.decide(progress).settled


def test_a_weaker_dimension_that_is_there_does_not_hold_a_study_back():
    tests = [further_test(8.0, share=0.05), further_test(4.0)]
    progress = replace(CLEAR, audits=[audit(k, tests=tests) for k in (300, 324, 350)])
    assert further(progress).value == 4.0
    assert RULE.decide(progress).settled


def solution(*shares):
    return SimpleNamespace(singular_values=np.sqrt(np.array(shares)), rank=len(shares))


@pytest.mark.parametrize(
    ("shares", "share", "dimensions"),
    [
        ((0.6, 0.31, 0.09), None, 3),
        ((0.6, 0.33, 0.07), None, 2),
        ((0.6, 0.33, 0.07), 0.05, 3),
        ((0.86, 0.07, 0.07), None, 1),
        ((1.0,), 0.5, 1),
    ],
)
def test_dimensions_of_the_map_that_are_too_weak_to_matter_are_counted_apart(
    shares, share, dimensions
):
    audits = [replace(one, rank=len(shares), solution=solution(*shares)) for one in RULED_OUT]
    decision = SmallestDimension(smallest_dimension=share).decide(replace(CLEAR, audits=audits))
    assert decision.rank == len(shares)
    assert decision.dimensions == dimensions
    assert further(replace(CLEAR, audits=audits)).stored().keys() >= {"share", "weaker"}


def test_the_sentence_names_weaker_dimensions():
    audits = [replace(one, solution=solution(0.93, 0.07)) for one in RULED_OUT]
    decision = RULE.decide(replace(CLEAR, audits=audits))
    assert "settled at one dimension and a weaker one." in decision.message
    text = verdict(Collection(answers=350, counted=350), findings(decision, audits))
    assert text.headline == "One dimension and a weaker one, settled."
    assert "The weaker dimension of the map carries less than 10 %." in text.explanation
    assert "one dimension and a weaker one" in text.methods


@pytest.mark.parametrize(
    ("against", "passed"), [((4.0, 5.0), True), ((2.5, 9.0), False), ((-3.0, 9.0), False)]
)
def test_every_chain_must_rule_the_share_out(against, passed):
    test = replace(further_test(1.0), against=against)
    progress = replace(CLEAR, audits=[audit(k, tests=[test]) for k in (300, 324, 350)])
    assert further(progress).passed is passed
    assert test.ruled_out() is passed


@pytest.mark.parametrize("items", [8, 50])
def test_the_share_of_interest_does_not_depend_on_the_number_of_items(items):
    progress = replace(CLEAR, n_objects=items)
    assert further(progress).share == 0.1
    assert further(progress, SmallestDimension(smallest_dimension=0.07)).share == 0.07


def test_a_dimension_that_is_found_is_reported():
    progress = replace(CLEAR, audits=[audit(k, tests=[further_test(5.0)]) for k in (300, 324, 350)])
    message = criteria.message(further(progress), 2)
    assert message.startswith("There is evidence for a further dimension that carries 10 %")
    assert "5.0" in message


def test_weak_dimensions_that_predict_better_do_not_hold_a_study_back():
    better = [replace(one, above=(-0.1, 0.01)) for one in RULED_OUT]
    assert RULE.decide(replace(CLEAR, audits=better)).settled
    assert not RankSettled(audits=3).decide(replace(CLEAR, audits=better)).settled


@pytest.mark.parametrize(
    ("change", "tests"),
    [
        ({}, True),
        ({"audits": [audit(300), audit(324)]}, True),
        ({"audits": [audit(300)]}, True),
        ({"items_seen": 39}, False),
        ({"audits": [audit(k, below=(0.0, 0.01)) for k in (300, 324, 350)]}, False),
    ],
    ids=["all others met", "one audit before", "two audits before", "items", "fewer not refuted"],
)
def test_tests_only_when_that_can_change_the_decision(change, tests):
    assert RULE.can_change(replace(CLEAR, **change)) is tests


def test_tests_begin_as_many_audits_before_as_they_take():
    longer = SmallestDimension(audits=4)
    assert not longer.can_change(replace(CLEAR, audits=[audit(300)]))
    assert longer.can_change(replace(CLEAR, audits=[audit(300), audit(324)]))


def test_an_inconclusive_test_is_followed_by_another_once_there_are_many_more_answers():
    unclear = audit(324, tests=[further_test(-0.5)])
    for answers, tests in ((350, False), (500, True)):
        audits = [audit(300), unclear, audit(answers)]
        assert RULE.can_change(replace(CLEAR, audits=audits)) is tests


@pytest.mark.parametrize(("standard_errors", "needed"), [(5.0, True), (7.0, False)])
def test_a_dimension_that_is_clear_from_held_out_answers_needs_no_bayes_factor(
    standard_errors, needed
):
    audits = [replace(one, below=(0.01 * standard_errors, 0.01)) for one in RULED_OUT]
    progress = replace(CLEAR, audits=audits)
    assert RULE.needs_fewer(progress) is needed
    # Chains that disagree, or a factor that was computed earlier, then decide nothing.
    doubtful = replace(audits[-1], fewer=(further_test(-1.0),))
    decision = RULE.decide(replace(CLEAR, audits=[*audits[:2], doubtful]))
    assert decision.settled is not needed


def test_a_dimension_is_found_where_both_chains_find_it_however_clearly():
    apart = FurtherDimension(0.1, 14.0, 5.0, (19.0, 9.0), False, 14.0)
    assert apart.found() and not apart.ruled_out()
    assert not FurtherDimension(0.1, 6.0, 5.0, (11.0, 1.0), False, 6.0).found()


def test_only_rules_about_a_further_dimension_ask_for_the_test():
    assert isinstance(RULE, FurtherDimensionRule)
    assert not isinstance(RankSettled(), FurtherDimensionRule)


def test_settings_of_a_study_reach_the_rule():
    rule = stopping_rule("smallest_dimension", smallest_dimension=0.05, evidence=100.0, audits=4)
    assert rule == SmallestDimension(audits=4, smallest_dimension=0.05, evidence=100.0)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("smallest_dimension", 0.01), ("smallest_dimension", 0.6), ("evidence", 1.0)],
)
def test_impossible_settings_are_refused_by_name(setting, value):
    with pytest.raises(InvalidParameter, match=f"{setting} is {value}"):
        SmallestDimension(**{setting: value})


def test_criteria_are_stored_with_the_share_and_read_again():
    criterion = further(CLEAR)
    assert criteria.from_stored(criterion.stored()) == criterion
    assert "share" not in RULE.decide(CLEAR).criteria[0].stored()


def test_a_study_of_one_dimension_settles_and_continues_from_a_snapshot():
    rule = SmallestDimension(smallest_dimension=0.3, max_answers=600)
    learner = Learner(12, seed=3, stopping=rule)
    participants = SimulatedParticipants([Observer(space("equal", 12, 1, seed=1), seed=2)])
    *_, summary = simulate(learner, participants, 600, None, lambda: 0.0)
    assert summary["stopped_rank"] == 1
    assert learner.decision.settled
    last = learner.audits[-1].further
    assert 0.3 in {test.share for test in last}
    assert "carries 30 % or more" in learner.verdict.explanation
    again = snapshot.load(*snapshot.dump(learner))
    assert again.audits[-1].further == last
    assert again.decision == learner.decision
    asked = [[(q.anchor, q.left, q.right) for q in one.ask(5)] for one in (learner, again)]
    assert asked[0] == asked[1]
