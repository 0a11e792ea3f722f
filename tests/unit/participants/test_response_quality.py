"""Flags are tests of honest answering: what they promise, counted out or simulated."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lore_active.participants.honest_answering import FAST_MS, Trials, honest, nobody, reference
from lore_active.participants.patterns import CERTAIN, MAX_SIDE, max_share, patterns
from lore_active.participants.response_quality import (
    ALPHA,
    SHARES,
    assess,
    every_test,
    flagged,
    log_martingale,
    start_weights,
)
from lore_active.questions.kinds import kind


def trials(side, participant=None, **more):
    """Answers of one participant, or of several, with nothing remarkable but what is given."""
    count = len(side)
    known = {
        "predicted": np.full(count, np.nan),
        "searched": np.zeros(count, dtype=bool),
        "order": np.full(count, 1000),
        "catch": np.full(count, -1),
        "as_known": np.full(count, -1),
        "as_before": np.full(count, -1),
        "ms": np.full(count, 1500.0),
        "implausible": np.zeros(count, dtype=bool),
        "blurred": np.zeros(count, dtype=bool),
    }
    known |= {name: np.array(value) for name, value in more.items()}
    who = np.zeros(count, dtype=np.int64) if participant is None else np.array(participant)
    return Trials.of_triplets(np.array(side), known.pop("predicted"), participant=who, **known)


def flags(found, size=1, usual=None):
    return {
        who: {entry.flag for entry in evidence}
        for who, evidence in assess(found, usual or nobody(size)).items()
    }


def turns(count):
    """Sides as an honest participant may choose them: neither one, nor in turns."""
    return ([1, 1, 0, 1, 0, 0, 0, 1, 1, 0] * count)[:count]


# ---- the promise --------------------------------------------------------------------------------


def test_the_flags_share_what_may_go_wrong():
    assert sum(SHARES.values()) == pytest.approx(1.0)
    some = trials(turns(30))
    weights = dict.fromkeys(SHARES, 0.0)
    for pattern in patterns(some, honest(some, nobody(1))):
        weights[pattern.flag] += pattern.first + pattern.later
    assert all(weight <= 1.0 + 1e-9 for weight in weights.values())
    for length in (1, 12, 5000):
        assert np.exp(start_weights(length, 0.7, 0.3)).sum() <= 1.0


@pytest.mark.parametrize("length", [1, 5, 11])
def test_under_honest_answering_the_evidence_is_expected_to_stay_one(length):
    """Counted out over all sequences: the mean of the martingale is the weight that has begun."""
    every = np.array(list(product((0, 1), repeat=length)), dtype=float)
    chance = np.where(every == 1, MAX_SIDE, 1 - MAX_SIDE).prod(axis=1)
    factors = np.log(np.where(every == 1, CERTAIN / MAX_SIDE, (1 - CERTAIN) / (1 - MAX_SIDE)))
    ends = np.exp(log_martingale(factors, start_weights(length, 0.7, 0.3))[:, -1])
    begun = np.exp(start_weights(length, 0.7, 0.3)).sum()
    assert float(ends @ chance) == pytest.approx(begun)


def test_of_participants_who_like_one_side_few_are_flagged_however_often_one_looks():
    """All sequences of twelve, weighted: the chance of ever being flagged is below the share."""
    every = np.array(list(product((0, 1), repeat=12)))
    who = np.repeat(np.arange(len(every)), 12)
    found = flags(trials(every.ravel(), who), len(every))
    chance = np.where(every == 1, MAX_SIDE, 1 - MAX_SIDE).prod(axis=1)
    hit = np.array([bool(found[number]) for number in range(len(every))])
    assert 0.0 < chance[hit].sum() <= ALPHA * SHARES["side"]


def test_flags_of_long_honest_sessions():
    """Noisy participants who lapse, with catch trials and repeats as usual: a large sample."""
    rng = np.random.default_rng(7)
    size, count = 400, 200
    who = np.repeat(np.arange(size), count)
    places = np.tile(np.arange(count), size)
    predicted = 1 / (1 + np.exp(-rng.normal(0, 1.5, len(who))))
    # Agrees less than predicted, and not all alike.
    share = np.repeat(rng.uniform(0.6, 1.0, size), count)
    side = rng.random(len(who)) < 0.5 + share * (predicted - 0.5)
    catch, repeat = places % 20 == 7, places % 20 == 13
    found = trials(
        side.astype(int),
        who,
        predicted=predicted,
        catch=np.where(catch, places % 5, -1),
        as_known=np.where(catch, rng.random(len(who)) < 0.95, -1),
        as_before=np.where(repeat, rng.random(len(who)) < 0.7, -1),
        ms=rng.lognormal(7.2, 0.5, len(who)),
    )
    got = flags(found, size, reference(found, np.ones(size, dtype=bool)))
    assert sum(map(bool, got.values())) <= ALPHA * size


# ---- what is found ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sides", "pattern"),
    [([1] * 12, "left"), ([0] * 12, "right"), ([0, 1] * 6, "alternating")],
)
def test_twelve_trials_of_one_side_or_in_turns_are_enough_and_eleven_are_not(sides, pattern):
    (one,) = assess(trials(sides), nobody(1))[0]
    assert (one.flag, one.pattern, one.first, one.last) == ("side", pattern, 1, 12)
    assert one.count == one.of == (11 if pattern == "alternating" else 12)
    assert one.odds >= 1 / (ALPHA * SHARES["side"]) and flagged(one)
    assert assess(trials(sides[:11]), nobody(1))[0] == ()


def test_a_dropout_is_found_and_the_trial_named():
    (one,) = assess(trials(turns(40) + [1] * 30), nobody(1))[0]
    assert one.pattern == "left" and one.first == 41 and one.count == one.of == 30


def test_answers_faster_than_anybody_can():
    found = trials(turns(12), ms=[150.0] * 5 + [900.0] * 7)
    assert flags(found)[0] == {"fast"}
    assert flags(trials(turns(12), ms=[150.0] * 2 + [900.0] * 10))[0] == set()


def test_a_study_in_which_all_take_long_has_a_limit_of_its_own():
    rng = np.random.default_rng(3)
    who = np.repeat(np.arange(12), 10)
    ms = rng.lognormal(np.log(6000.0), 0.3, len(who))
    usual = reference(trials(turns(120), who, ms=ms), np.ones(12, dtype=bool))
    assert 800 < usual.floor_ms < 2500
    hasty = trials(turns(12), ms=[700.0] * 12)
    assert flags(hasty, 12, usual)[0] == {"fast"} and flags(hasty, 12)[0] == set()
    few = reference(trials(turns(50), who[:50], ms=ms[:50]), np.ones(12, dtype=bool))
    assert few.floor_ms == FAST_MS, "five participants do not tell what is usual"


def test_catch_trials_that_all_miss_are_uninformative():
    who = np.repeat(np.arange(10), 8)
    missed = {"catch": np.tile(np.arange(8), 10), "as_known": [0] * 80}
    found = trials(turns(80), who, **missed)
    everybody = reference(found, np.ones(10, dtype=bool))
    assert not set().union(*flags(found, 10, everybody).values())
    # Their own errors do not excuse anybody.
    alone = reference(found, np.arange(10) == 0)
    assert "catch" in flags(found, 10, alone)[0]


def test_random_answers_are_detected_by_repeats_only_where_others_are_consistent():
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(20), 100)
    for consistent, expected in ((0.97, True), (0.6, False)):
        alike = rng.random(len(who)) < consistent
        alike[:100] = np.arange(100) % 2
        found = trials(turns(len(who)), who, as_before=alike.astype(int))
        usual = reference(found, np.ones(20, dtype=bool))
        got = flags(found, 20, usual)
        assert ("consistency" in got[0]) is expected
        assert not any(got[number] for number in range(1, 20))


def test_agreement_needs_others_whom_the_map_predicts():
    rng = np.random.default_rng(16)
    who = np.repeat(np.arange(20), 80)
    predicted = np.where(rng.random(len(who)) < 0.5, 0.95, 0.05)
    side = rng.random(len(who)) < predicted
    side[:80] = rng.random(80) < 0.5
    found = trials(side.astype(int), who, predicted=predicted)
    got = flags(found, 20, reference(found, np.ones(20, dtype=bool)))
    assert got[0] == {"agreement", "guessing"}
    assert not any(got[number] for number in range(1, 20))
    assert not any(flags(found, 20).values()), "a model that nobody has confirmed"


def test_every_quality_check_is_shown_passed_or_failed():
    found = trials(turns(12), as_known=[1] * 2 + [-1] * 10, catch=[0] * 2 + [-1] * 10)
    tests = {test.flag: test for test in every_test(found, nobody(1))}
    assert set(tests) == {"side", "catch", "guessing", "fast", "implausible", "blurred"}
    assert not any(flagged(test) for test in tests.values())
    assert (tests["catch"].count, tests["catch"].of) == (0, 2)


def test_parts_and_the_whole_say_the_same():
    rng = np.random.default_rng(8)
    counts = rng.integers(1, 300, 30)
    who = rng.permutation(np.repeat(np.arange(30), counts))
    side = (rng.random(len(who)) < np.where(who % 3 == 0, 0.95, 0.5)).astype(int)
    together = assess(trials(side, who), nobody(30))
    for number in range(30):
        alone = trials(side[who == number], who[who == number])
        (got,) = assess(alone, nobody(30)).values()
        assert [(one.flag, one.count, one.of, one.first) for one in got] == [
            (one.flag, one.count, one.of, one.first) for one in together[number]
        ]


# ---- other kinds of questions -------------------------------------------------------------------

KINDS = ("rank-2-of-8", "choose-1-of-4", "choose-3-of-12", "odd-one-out", "choose-4-of-5")


def grids(label, size, count, rng, pick, share=1.0, **more):
    """Trials of one kind; pick(predicted place, trial) gives the places in order."""
    asked = kind(label)
    who, trial = np.repeat(np.arange(size), count), np.tile(np.arange(count), size)
    chance = asked.chance_overlap
    predicted = chance + (1.0 - chance) * rng.beta(2, 2, len(who))
    likely = rng.integers(asked.options, size=len(who))
    picked = np.zeros((len(who), asked.options), dtype=bool)
    first = np.empty(len(who), dtype=np.int64)
    for row in range(len(who)):
        hit = rng.random() < chance + share * (predicted[row] - chance)
        places = pick(int(likely[row]), int(trial[row]), bool(hit))
        picked[row, places] = True
        first[row] = places[0]
    none = np.full(len(who), -1)
    known = {
        **{"order": np.full(len(who), 1000), "catch": none, "as_known": none, "as_before": none},
        "searched": np.zeros(len(who), dtype=bool),
        "ms": rng.lognormal(8.0, 0.4, len(who)),
        "implausible": np.zeros(len(who), dtype=bool),
        "blurred": np.zeros(len(who), dtype=bool),
        **more,
    }
    agrees = picked[np.arange(len(who)), likely]
    return Trials(*(who, picked, first, predicted, agrees), **known, kind=asked)


def honest_picks(label, rng, liked=0.0):
    """Places of honest answers: the likely option, and others; the first places are liked more."""
    asked = kind(label)

    def pick(likely, trial, hit):
        weights = np.where(np.arange(asked.options) < 2, 1.0 + liked, 1.0)
        weights[likely] = 0.0
        rest = rng.choice(
            asked.options, asked.options - 1, replace=False, p=weights / weights.sum()
        )[: asked.options - 1] if asked.options > 1 else []  # fmt: skip
        order = [likely, *rest.tolist()] if hit else rest.tolist()
        return order[: asked.pick]

    return pick


@pytest.mark.parametrize("label", KINDS)
def test_the_weights_of_all_kinds_add_up_to_at_most_one(label):
    rng = np.random.default_rng(1)
    some = grids(label, 1, 30, rng, honest_picks(label, rng))
    weights = dict.fromkeys(SHARES, 0.0)
    for pattern in patterns(some, honest(some, nobody(1, some.kind))):
        weights[pattern.flag] += pattern.first + pattern.later
        assert (
            np.broadcast_to(pattern.careless, pattern.honest.shape) >= pattern.honest
        ).all() or (pattern.flag not in ("side", "catch", "consistency", "guessing"))
    assert all(weight <= 1.0 + 1e-9 for weight in weights.values())


@pytest.mark.parametrize("label", KINDS)
def test_of_honest_participants_at_most_one_in_fifty_is_flagged_whatever_the_kind(label):
    """Noisy, lapsing, fond of the first places; with catch trials and repeats as usual."""
    rng = np.random.default_rng(11)
    asked, size, count = kind(label), 150, 120
    place = np.tile(np.arange(count), size)
    catch, repeat = place % 20 == 7, place % 20 == 13
    lapse_right = 1.0 - 0.1 * (1.0 - asked.chance_overlap)
    alike = asked.chance_alike + 0.4 * (1.0 - asked.chance_alike)
    found = grids(
        *(label, size, count, rng, honest_picks(label, rng, liked=0.5)),
        share=0.7,
        catch=np.where(catch, place % 5, -1),
        as_known=np.where(catch, rng.random(len(place)) < lapse_right, -1),
        as_before=np.where(repeat, rng.random(len(place)) < alike, -1),
    )
    got = flags(found, size, reference(found, np.ones(size, dtype=bool)))
    assert sum(map(bool, got.values())) <= ALPHA * size


@pytest.mark.parametrize(
    ("label", "pick", "pattern"),
    [
        ("rank-2-of-8", lambda likely, trial, hit: [0, 1], "place 1"),
        ("odd-one-out", lambda likely, trial, hit: [2], "place 3"),
        ("rank-2-of-8", lambda likely, trial, hit: [trial % 8, (trial + 1) % 8], "forwards"),
        ("choose-1-of-4", lambda likely, trial, hit: [3 - trial % 4], "backwards"),
        ("choose-1-of-4", lambda likely, trial, hit: [2 * (trial % 2)], "to and fro"),
    ],
)
def test_places_that_nobody_prefers_honestly_are_found(label, pick, pattern):
    rng = np.random.default_rng(2)
    found = grids(label, 1, 18, rng, pick)
    by_flag = {entry.flag: entry for entry in assess(found, nobody(1, found.kind))[0]}
    assert by_flag["side"].pattern == pattern


@pytest.mark.parametrize("label", ["rank-2-of-8", "odd-one-out"])
def test_guesses_are_found_by_the_map_and_by_repeats(label):
    rng = np.random.default_rng(5)
    asked, count = kind(label), 150
    pick = honest_picks(label, rng)
    others = grids(label, 20, count, rng, pick, share=0.95)
    repeat = np.tile(np.arange(count), 21) % 10 == 9
    consistent = np.repeat(np.where(np.arange(21) == 20, asked.chance_alike, 0.95), count)

    def guess(likely, trial, hit):
        return rng.permutation(asked.options)[: asked.pick].tolist()

    alone = grids(label, 1, count, rng, guess)
    together = {
        name: np.concatenate([getattr(others, name), getattr(alone, name)])
        for name in ("picked", "first", "predicted", "agrees", "searched", "order", "catch",
                     "as_known", "ms", "implausible", "blurred")
    }  # fmt: skip
    found = Trials(
        participant=np.concatenate([others.participant, alone.participant + 20]),
        as_before=np.where(repeat, rng.random(21 * count) < consistent, -1),
        **together,
        kind=asked,
    )
    got = flags(found, 21, reference(found, np.ones(21, dtype=bool)))
    assert {"agreement", "guessing"} <= got[20]
    assert not any(got[number] for number in range(20))


def test_alike_means_more_in_common_than_guesses_have():
    assert kind("triplet").chance_alike == 0.5
    assert kind("rank-2-of-8").min_alike == 1
    assert kind("rank-2-of-8").chance_alike == pytest.approx(13 / 28)
    assert kind("choose-3-of-4").min_alike == 3
    assert kind("choose-3-of-4").chance_alike == pytest.approx(1 / 4)
    assert max_share(kind("triplet")) == 0.6
    assert max_share(kind("rank-2-of-8")) == pytest.approx(5 / 11)
