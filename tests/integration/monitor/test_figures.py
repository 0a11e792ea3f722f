"""The monitor's figures: each from rows that were made to show it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tracemalloc
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from lore_active.participants.response_quality import SHARES
from lore_active.questions.kinds import TRIPLET, kind
from lore_active.rank.significance import wilson
from lore_active.simulation.observers import gaussian_space
from lore_active.stopping.rules import Progress
from lore_active.stopping.smallest_dimension import SmallestDimension
from lore_active.stopping.stages import Collection, Findings
from lore_active.stopping.verdict import verdict
from server.exports import log
from server.exports.downloads import DOWNLOADS
from server.exports.tables import csv_text
from server.monitor import figures, flags, messages
from server.monitor.answers import AnswerColumns
from server.monitor.feed import REST_MS, UNWATCHED_MS, Feed
from server.monitor.flags import chance, statement
from server.monitor.history import MAX_POINTS, History
from server.monitor.map import placed, rotation
from server.monitor.quality import Qualities
from server.status.counting import participant_counts
from server.store.models import ModelRow
from server.store.summaries import AnswerRow, Milestone, ParticipantSummary
from tests.support.open_study import Desk
from tests.support.simulated_participants import SimulatedParticipant, take_turns


def row(seq, participant=1, purpose="active", items=(0, 1, 2), side="left", **more):
    known = {"nearer": None, "before": None, "rt_ms": 1000.0, "received_at": seq, "blurred": 0}
    # How long the server saw it take is not known unless it is said.
    received = more.get("received_at", seq)
    known |= {"served_at": received - more.pop("elapsed", -1), "measured": 1, "onset": 1}
    known |= {"version": 1}
    known |= more
    anchor, *options = items
    chosen = {"left": (options[0],), "right": (options[1],)}.get(side, ())
    lists = [() if one is None else (one,) for one in (known.pop("nearer"), known.pop("before"))]
    return AnswerRow(seq, participant, purpose, anchor, tuple(options), chosen, *lists, **known)


def append(made, rows, left):
    """Append answers that were predicted with these probabilities of the left option."""
    made.append(rows, (left <= 0.5).astype(int), np.maximum(left, 1.0 - left))
    made.read_up_to(rows[-1].seq if rows else 0)


def answer_columns(rows, predicted=None):
    made = AnswerColumns(10, TRIPLET)
    append(made, rows, np.full(len(rows), np.nan) if predicted is None else np.array(predicted))
    return made.columns()


def people_of(count, excluded=(), simulated=()):
    return [
        ParticipantSummary(
            who, None, "trials", 80, 1, int(who in excluded), "", 0, 0, int(who in simulated)
        )
        for who in range(1, count + 1)
    ]


def quality(rows, predicted=None, participants=1, excluded=(), simulated=()):
    found = Qualities(10, TRIPLET)
    found.update(answer_columns(rows, predicted), people_of(participants, excluded, simulated))
    return found.of


# ---- the answers ---------------------------------------------------------------------------------


def test_the_history_grows_without_losing_anything():
    made = AnswerColumns(10, TRIPLET)
    for start in range(0, 3000, 700):
        rows = [row(seq + 1, items=(seq % 7, 8, 9)) for seq in range(start, start + 700)]
        append(made, rows, np.full(len(rows), 0.5))
    assert len(made) == made.last == 3500
    assert (made.columns().seq == np.arange(1, 3501)).all()
    assert (made.columns().anchor == np.arange(3500) % 7).all()


def test_an_answer_costs_an_open_monitor_few_bytes():
    # Python keeps 300 kB of tuples for later: many answers, so that these do not count.
    rows = [row(seq + 1, participant=seq // 600 + 1) for seq in range(60_000)]
    tracemalloc.start()
    made, found = AnswerColumns(100, TRIPLET), Qualities(100, TRIPLET)
    append(made, rows, np.full(len(rows), 0.5))
    found.update(made.columns(), people_of(100))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / len(rows) < 60
    assert found.of[100].answers == 600


def test_times_that_cannot_be_are_left_out():
    times = [float("inf"), float("nan"), -5.0, None, 700.0]
    columns = answer_columns([row(seq, rt_ms=ms) for seq, ms in enumerate(times, 1)])
    assert np.isnan(columns.rt_ms[:4]).all() and columns.rt_ms[4] == 700.0


# ---- quality and flags --------------------------------------------------------------------------


def test_shares_are_of_the_right_answers():
    rows = [
        row(1, purpose="catch", side="left", nearer=1),
        row(2, purpose="catch", side="right", nearer=1),
        row(3, purpose="repeat", side="left", before=1),
        row(4, purpose="repeat", side="left", before=2),
        row(5, side="skip", rt_ms=None),
        row(6, side="right", rt_ms=200.0, blurred=1),
        row(7, participant=2),
    ]
    _, one, other = quality(rows, [0.9] * 7, participants=2)
    assert (one.catches, one.catch_right) == (2, 1)
    assert (one.repeats, one.repeats_alike) == (2, 1)
    assert one.places == pytest.approx((3 / 5, 2 / 5)) and one.sides == 5
    assert one.median_ms == 1000.0 and one.fast == pytest.approx(1 / 5)
    assert one.blurred == pytest.approx(1 / 6)
    # Left was predicted; two of the three answers that count say left.
    assert (one.agreements, one.agreement) == (3, pytest.approx(2 / 3))
    assert other.answers == 1 and other.catches == 0


def test_medians_of_even_and_odd_counts():
    rows = [row(seq, seq % 2 + 1, rt_ms=float(seq)) for seq in range(1, 8)]
    _, one, two = quality(rows, participants=2)
    assert one.median_ms == 4.0  # 2, 4, 6
    assert two.median_ms == 4.0  # 1, 3, 5, 7


def test_the_servers_clock_bounds_what_a_page_says():
    rows = [
        row(1, rt_ms=1500.0, elapsed=12),
        row(2, rt_ms=700.0, elapsed=900),
        row(3, rt_ms=None, elapsed=15, measured=0, onset=0),
        row(4, rt_ms=None, elapsed=4000, measured=0, onset=0),
        row(5, rt_ms=2000.0, elapsed=-1),
        row(6, rt_ms=40.0, elapsed=5000),
    ]
    (_, one) = quality(rows)
    assert one.times == 6
    assert one.fast == pytest.approx(3 / 6), "the first, the third and the last"
    # 12, 40, 700 and 2000: what was measured, as far as it can be.
    assert one.median_ms == 370.0


def test_times_that_cannot_be_are_counted():
    rows = [
        # The clocks may differ a little, and nothing is known where the server's was set back.
        row(1, rt_ms=1000.0, elapsed=900),
        row(2, rt_ms=1_000_000.0, elapsed=970_000),
        row(3, rt_ms=1000.0, elapsed=-1),
        # Without scripts there are no times, and nothing is wrong with that.
        row(4, rt_ms=None, elapsed=3000, measured=0, onset=0),
    ]
    assert quality(rows)[1].implausible == 0.0
    rows += [
        row(5, rt_ms=1000.0, elapsed=700),
        row(6, rt_ms=None, elapsed=2000),
        row(7, rt_ms=-1000.0, elapsed=2000),
        row(8, rt_ms=1000.0, elapsed=2000, onset=0),
    ]
    found = quality(rows)[1]
    assert found.implausible == 0.5 and not found.flags, "eight trials are few"
    rows += [row(seq, rt_ms=1000.0, elapsed=700) for seq in range(9, 16)]
    assert "implausible" in quality(rows)[1].flags


def test_without_a_model_no_participant_disagrees():
    (_, one) = quality([row(seq) for seq in range(1, 60)])
    assert one.agreement is None and "agreement" not in one.flags


def test_every_flag_has_a_name_a_rule_with_its_threshold_and_a_sentence():
    for asked in (TRIPLET, kind("rank-2-of-8"), kind("odd-one-out")):
        sentences = flags.rules(asked)
        assert set(flags.names(asked)) == set(sentences) == set(SHARES)
        assert all("Threshold: 1 in " in sentence for sentence in sentences.values())
        assert ("side" in sentences["side"]) == (asked == TRIPLET)
    everything = [row(seq, rt_ms=50.0, elapsed=60, blurred=1) for seq in range(1, 40)]
    (_, one) = quality(everything)
    sentences = [statement(evidence) for evidence in one.evidence]
    assert {"side", "fast", "blurred"} <= set(one.flags)
    assert sentences[0] == (
        "Chose the left option in 39 of 39 trials; the chance of that under honest answering is at "
        "most 1 in 87,000,000."
    )


@pytest.mark.parametrize(
    ("odds", "expected"),
    [
        (1.4, "nothing unusual"),
        (99.9, "1 in 99"),
        (118.9, "1 in 118"),
        (1299, "1 in 1,200"),
        (1e9, "a billion"),
    ],
)
def test_log_bayes_factors_are_rounded_down(odds, expected):
    assert expected in chance(odds)


def test_simulated_and_excluded_participants_are_not_part_of_the_reference():
    """If others miss a catch trial, one who misses it is excused, unless these do not count."""
    rows = [
        row(9 * who + trial, who, "catch", (trial % 3, 3, 4), "left", nearer=4)
        for who in range(1, 9)
        for trial in range(9)
    ]
    assert not any("catch" in one.flags for one in quality(rows, participants=8)[1:])
    alone = quality(rows, participants=8, excluded=range(2, 9))
    assert "catch" in alone[1].flags
    beside_bots = quality(rows, participants=8, simulated=range(2, 9))
    assert "catch" in beside_bots[1].flags
    assert not any("catch" in bot.flags for bot in beside_bots[2:])


# ---- where we are -------------------------------------------------------------------------------


NOW = 10_000_000_000


def times(first_seconds_ago, last_seconds_ago, every):
    seconds = range(last_seconds_ago, first_seconds_ago + 1, every)
    return sorted(NOW - second * 1000 for second in seconds)


def test_pace_is_what_came_in_five_minutes_divided_by_five():
    old = [NOW - 3_600_000 * 5] * 50
    rate, minutes, spark = figures.pace(np.array(old + times(300, 1, 3)), NOW)
    assert (rate, minutes) == (20.0, 5)
    assert len(spark) == 60 and sum(spark) == 100 and sum(spark[-5:]) == 100
    # Twenty in the last minute, after a night: four a minute, not twenty.
    assert figures.pace(np.array(old + times(60, 3, 3)), NOW)[:2] == (4.0, 5)
    # Anyone who had one good minute and then left has not answered at that pace ever since.
    assert figures.pace(np.array(old + times(290, 233, 3)), NOW)[:2] == (4.0, 5)


def test_a_slow_pace_is_that_of_the_last_hour():
    old = [NOW - 3_600_000 * 5] * 50
    assert figures.pace(np.array(old + times(3500, 100, 600)), NOW)[:2] == (0.1, 60)
    assert figures.pace(np.array(old), NOW) == (0.0, 60, [])


def test_the_pace_of_a_study_that_has_just_begun_is_since_then():
    begun = times(120, 0, 4)
    assert figures.pace(np.array(begun), NOW)[:2] == (pytest.approx(15.5), 5)
    assert figures.pace(np.array(times(59, 0, 4)), NOW)[0] is None
    assert figures.pace(np.array([], dtype=np.int64), NOW) == (None, 5, [])
    # Resumed two minutes ago.
    paused = [NOW - 200_000] * 90 + times(118, 0, 2)
    assert figures.pace(np.array(paused), NOW, NOW - 120_000)[:2] == (30.0, 5)


def test_participants_under_way_are_distinguished_from_dropouts():
    def participant(number, stage, ago):
        return ParticipantSummary(number, None, stage, 10, 3, 0, "", 0, 1_000_000_000 - ago)

    participants = [
        participant(1, "trials", 600_000),
        participant(2, "trials", 600_001),
        participant(3, "finished", 5),
        participant(4, "declined", 5),
        participant(5, "expired", 5),
        participant(6, "feedback", 900_000),
    ]
    found = participant_counts(participants, 1_000_000_000, idle_minutes=10)
    assert asdict(found) == {
        "simulated": 0,
        "simulated_left_out": 0,
        "arrived": 6,
        "under_way": 1,
        "finished": 2,
        "left": 2,
        "declined": 1,
        "answered": 6,
        "excluded": 0,
    }


def criterion(name, value, threshold, passed=False):
    return {"name": name, "value": value, "threshold": threshold, "passed": passed, "words": ""}


# ---- words --------------------------------------------------------------------------------------


def test_evidence_as_text_names_the_neighbouring_ranks():
    ranks = [
        {"rank": rank, "difference": worse, "error": 0.01}
        for rank, worse in [(0, 0.3), (1, 0.2), (2, 0.1), (3, 0.0), (4, 0.005)]
    ]
    said = messages.evidence(3, ranks)
    assert "predicted best with three dimensions" in said
    assert "two would be clearly worse" in said and "four would be only a little worse" in said


def test_a_dimension_found_by_its_bayes_factor_is_not_said_to_predict_best():
    rows = [(0, 0.3), (1, 0.2), (2, 0.0), (3, 0.002), (4, 0.2)]
    ranks = [{"rank": rank, "difference": worse, "error": 0.01} for rank, worse in rows]
    said = messages.evidence(3, ranks)
    assert said.startswith(
        "Three dimensions do not predict held-out answers clearly worse than two, and a Bayes "
        "factor shows a further dimension beyond two, so the larger number is reported"
    )
    assert "smaller number" not in said and "four would be clearly worse" in said
    assert "so the smaller number is reported" in messages.evidence(1, ranks)


@pytest.mark.parametrize("guessing", [-0.01, 0.0, 0.029])
def test_evidence_of_the_acquisition_model_alone_is_described_as_such(guessing):
    """Held-out losses may then speak for guessing, and for other ranks: they cannot tell."""
    ranks = [
        {"rank": rank, "difference": worse, "error": 0.01}
        for rank, worse in [(0, guessing), (1, 0.0), (2, -0.02), (3, 0.1)]
    ]
    said = messages.evidence(1, ranks)
    assert "at least one dimension" in said
    assert "do not show yet how many" in said
    ranks[0]["difference"] = 0.03
    assert "at least one dimension" not in messages.evidence(1, ranks)


def test_the_chart_says_what_ranks_are_compared_with():
    """Where no rank is reported that is guessing, and lower losses are not called the best."""
    rows = [(0, 0.0, 0.0), (1, -0.02, 0.01), (2, 0.03, 0.02)]
    ranks = [{"rank": rank, "difference": worse, "error": error} for rank, worse, error in rows]
    assert messages.reference(ranks) == 0
    assert "compared with guessing; below 0: predicts better" in messages.compared(0, ranks)
    best = [{**rank, "difference": abs(rank["difference"])} for rank in ranks[1:]]
    best.append({"rank": 3, "difference": 0.0, "error": 0.0})
    assert messages.reference(best) == 3
    assert messages.compared(3, best) == (
        "(held-out log-loss compared with three dimensions; bars: ± 1 standard error)"
    )


# ---- the map ------------------------------------------------------------------------------------


def test_ellipses_rotate_with_the_map():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(9, 3))
    roots = rng.normal(size=(9, 3, 3))
    covariances = roots @ roots.transpose(0, 2, 1)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    picture = z @ turn
    model = ModelRow(
        5, 1, 1, 1, 1, 3, 0.1, 1.0, 1.0, 1, picture.tobytes(), z.tobytes(), covariances.tobytes(),
        "{}", "", ""
    )  # fmt: skip
    found = placed(model, 9)
    assert np.allclose(found["positions"], picture, atol=2e-3)
    triangle = np.array(found["covariance"])
    expected = np.array([turn.T @ one @ turn for one in covariances])
    assert np.allclose(triangle, expected[:, *np.triu_indices(3)], atol=2e-2)
    assert np.allclose(np.array(found["positions"]) @ np.array(found["turn"]), z, atol=3e-3)


def test_rotation_is_exact_for_rotated_and_mirrored_points():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(20, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert np.allclose(rotation(z, z @ turn), turn)


def test_shares_of_dimensions_do_not_depend_on_the_scale_of_a_fit():
    def shares(*spectrum):
        history = History()
        prequential = {"count": 0, "value": 0.5, "low": 0.0, "high": 1.0}
        summary = {"prequential": prequential, "ceiling": None, "spectrum": spectrum}
        history.append([Milestone(1, 10, 9, 1, 2, json.dumps(summary))], np.arange(1, 11))
        return history.points[0].shares

    assert shares(3.0, 1.0) == shares(300.0, 100.0) == (0.9, 0.1)
    assert shares() == ()


def test_without_an_accuracy_of_the_answers_that_count_no_earlier_one_is_shown():
    """After exclusions, that of the last point would be taken for the current one."""

    def shown(*counts):
        history = History()
        for version, count in enumerate(counts, 1):
            predicted = asdict(wilson(0.75 * count, count))
            summary = {"prequential": predicted, "ceiling": None, "spectrum": [1.0]}
            milestone = Milestone(version, 10, 9, 1, 1, json.dumps(summary))
            history.append([milestone], np.arange(1, 11))
        found = verdict(Collection(answers=10, counted=10), Findings(1, False))
        return figures.accuracy(history, found, TRIPLET)

    now = shown(20, 8)
    assert (now["count"], now["history"]["value"]) == (8, [0.75, 0.75])
    after = shown(20, 0)
    assert (after["value"], after["history"]["value"]) == (None, [])
    assert after["message"].startswith("No answer that counts is to a random question")


def test_a_long_history_is_thinned_and_keeps_its_audits_and_its_end():
    history = History()
    summary = json.dumps(
        {
            "prequential": {"count": 10, "value": 0.7, "low": 0.5, "high": 0.8},
            "ceiling": None,
            "spectrum": [3.0, 1.0],
            "evidence": [],
        }
    )
    history.append(
        [
            Milestone(number, 10 * number, 9 * number, int(number % 10 == 0), 2, summary)
            for number in range(1, 701)
        ],
        np.arange(1, 7001),
    )
    drawn = history.drawn()
    assert len(drawn) <= MAX_POINTS
    assert drawn[-1] == history.points[-1] and drawn[-1].answers == 7000
    assert sum(one.audit for one in drawn) >= 70


# ---- all of it ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """Four people have finished, one of them pressed one key; the worker has followed."""
    desk = Desk(
        tmp_path_factory.mktemp("monitoring") / "words",
        "[session]\ntrials = 60\npractice = 1\nbreak_every = 0\n[trial]\nskip = true\n",
    )
    worker, space = desk.worker(), gaussian_space(12, 2, 5)

    def tick():
        desk.now += 4000
        worker.turn()

    participants = [
        SimulatedParticipant(desk.service, space, seed, wait=desk.wait) for seed in (1, 2, 3)
    ]
    participants.append(
        SimulatedParticipant(desk.service, space, 4, always="left", rt_ms=100.0, name="=cmd()")
    )
    for _ in take_turns(participants, tick):
        pass
    while worker.turn():
        pass
    yield desk, worker
    desk.close()


def seen(desk, with_names=True):
    return json.loads(Feed(desk.database, desk.study, desk.clock).update(with_names).plain)


def test_an_update_has_everything(collected):
    found = seen(collected[0])
    assert found["where"]["answers"] == 240
    assert found["where"]["participants"]["finished"] == 4
    assert found["map"]["rank"] == len(found["map"]["positions"][0]) > 0
    assert sum(anchor for anchor, _ in found["map"]["asked"]) == sum(
        finding["done"] - finding["catch"][1] for finding in found["participants"]["rows"]
    )
    # Everybody has left, so the last answers are in the model, too.
    assert found["dimensions"]["history"]["answers"][-1] == 240
    assert found["where"]["waiting"] == 0
    assert found["machine"]["lag_answers"] == 0
    names = {finding["name"] for finding in found["stopping"]["criteria"]}
    early = SmallestDimension().decide(Progress(9, 0, 0, [], wilson(0, 0)))
    # The last dimension may have been found by its Bayes factor before predictions showed it.
    alike = {"bayes_factor_fewer": "preferred_to_fewer"}
    assert {alike.get(name, name) for name in names} == {one.name for one in early.criteria}


def test_a_participant_who_pressed_one_key_is_flagged_first(collected):
    rows = seen(collected[0])["participants"]["rows"]
    assert rows[0]["id"] == 4 and {"side", "fast"} <= set(rows[0]["flags"])
    assert all(not {"side", "fast", "implausible"} & set(one["flags"]) for one in rows[1:])


def test_an_update_is_made_once_and_changes_with_the_study(collected):
    desk, _ = collected
    watch = Feed(desk.database, desk.study, desk.clock)
    first = watch.update(True)
    assert watch.update(True) is first
    desk.service.arrive({})
    # Many monitors while many people answer: what was made a moment ago will do.
    assert watch.update(True) is first
    desk.now += REST_MS
    second = watch.update(True)
    assert second.version != first.version
    assert json.loads(second.plain)["where"]["participants"]["arrived"] == 5
    desk.now += 120_000
    third = watch.update(True)
    assert third.version != second.version
    desk.control.set_trials("Ada", 50)
    assert json.loads(watch.update(True).plain)["where"]["trials"] == 50


def test_cached_data_is_released_without_viewers(collected):
    desk, _ = collected
    watch = Feed(desk.database, desk.study, desk.clock)
    first, reader = watch.update(True), watch._reader
    desk.now += UNWATCHED_MS - 1
    watch.rest()
    assert watch._reader is reader
    desk.now += 1
    watch.rest()
    assert watch._reader is not reader and len(watch._reader._answers) == 0
    again = json.loads(watch.update(True).plain)
    assert again["participants"]["rules"] == json.loads(first.plain)["participants"]["rules"]
    assert again["map"] == json.loads(first.plain)["map"]


def test_incremental_updates_equal_a_fresh_start(tmp_path):
    desk = Desk(tmp_path / "words", "[session]\ntrials = 40\npractice = 2\n")
    worker, watch = desk.worker(), Feed(desk.database, desk.study, desk.clock)
    participants = [
        SimulatedParticipant(desk.service, gaussian_space(12, 2, 5), seed) for seed in (1, 2)
    ]
    for done in take_turns(participants):
        if done % 7 == 0:
            desk.now += REST_MS
            worker.turn()
            watch.update(True)
    desk.now += REST_MS
    grown = json.loads(watch.update(True).plain)
    reread = seen(desk)
    for one in (grown, reread):
        # When it was made is no part of what it shows.
        assert one.pop("at") and one.pop("version")
    assert grown == reread
    desk.close()


def test_exclusion_changes_the_model_and_can_be_undone(collected):
    desk, worker = collected
    before = seen(desk)
    desk.control.exclude("Ada", 4, "one key")
    while worker.turn():
        pass
    without = seen(desk)
    assert without["where"]["fitted"] < before["where"]["fitted"]
    assert without["map"]["positions"] != before["map"]["positions"]
    desk.control.restore("Ada", 4, "was a test")
    while worker.turn():
        pass
    after = seen(desk)
    assert after["where"]["fitted"] >= before["where"]["fitted"] > without["where"]["fitted"]
    assert [one["kind"] for one in after["log"][:2]] == ["restore", "exclude"]


def test_timings_that_sqlite_cannot_read_do_not_stop_the_monitor(tmp_path):
    desk = Desk(tmp_path / "words")
    stage = desk.new_participant()
    while stage.kind == "practice":
        stage = desk.answer(stage)
    desk.service.answer(
        stage.participant, stage.trial.token, (0,), None, None, {"rt_ms": float("nan")}
    )
    assert seen(desk)["where"]["answers"] == 1
    desk.close()


# ---- exports ------------------------------------------------------------------------------------


def text(desk, name):
    return "".join(DOWNLOADS[name].write(desk.database, desk.study))


def test_answers_are_all_there_with_units(collected):
    desk, _ = collected
    rows = list(csv.DictReader(io.StringIO(text(desk, "answers.csv"))))
    stored = desk.rows("SELECT count(*) FROM answers")[0][0]
    assert len(rows) == stored
    assert float(rows[0]["rt_ms"]) > 0 and rows[0]["received_at_utc"].endswith("+00:00")
    assert {one["chosen"] for one in rows} <= {item.key for item in desk.study.items}


def test_the_embedding_is_the_newest_model(collected):
    desk, _ = collected
    rows = list(csv.reader(io.StringIO(text(desk, "embedding.csv"))))
    assert rows[0][:2] == ["item", "dim_0"] and len(rows) == 13
    blob = desk.rows("SELECT embedding FROM models ORDER BY version DESC LIMIT 1")[0][0]
    assert float(rows[1][1]) == np.frombuffer(blob)[0]


def test_the_log_is_whole(collected):
    desk, _ = collected
    written = b"".join(DOWNLOADS["log.jsonl"].write(desk.database, desk.study))
    kinds = [kind for _, kind, _ in log.read(io.BytesIO(written))]
    stored = desk.rows("SELECT count(*) FROM answers")[0][0]
    assert kinds[0] == "study" and kinds.count("answers") == stored


def test_events_are_one_object_a_line(collected):
    lines = [json.loads(line) for line in text(collected[0], "events.jsonl").splitlines()]
    assert all({"event", "at_utc", "who", "kind"} <= set(line) for line in lines)


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@sum", "\tx", "\rx"])
def test_no_text_becomes_a_formula(cell):
    written = csv_text([[cell, "a" + cell, -1.5]])
    assert next(csv.reader(io.StringIO(written, newline=""))) == ["'" + cell, "a" + cell, "-1.5"]


# ---- promises -----------------------------------------------------------------------------------


def names(found, deep=3):
    """The names of fields in the data; numbers and rules are no names."""
    if isinstance(found, list):
        return names(found[0], deep) if found and deep else set()
    if not isinstance(found, dict) or not deep:
        return set()
    inner = [names(value, deep - 1) for key, value in found.items() if key != "rules"]
    return {key for key in found if key not in SHARES}.union(*inner)


def test_every_field_is_described(collected):
    described = (Path(__file__).parents[3] / "docs/monitor-api.md").read_text()
    found = names({key: one for key, one in seen(collected[0]).items() if key != "log"})
    assert {name for name in found if f"`{name}`" not in described} == set()
    assert len(found) > 60


def test_the_web_process_needs_no_compiler():
    code = "import server.processes.web_process, sys; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
