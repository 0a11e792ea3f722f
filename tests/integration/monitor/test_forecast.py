"""How many more answers until the stop, with whom, for how long, and for how much."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from lore_active.learner.learner import Learner
from lore_active.rank.significance import wilson
from lore_active.simulation.observers import Observer, ObserverNoise, gaussian_space
from lore_active.simulation.run import SimulatedParticipants, simulate
from lore_active.stopping.forecast import (
    COVERAGE,
    FILE,
    AuditStatus,
    CriterionStatus,
    Followed,
    calibrate,
    forecast,
    from_json,
    shipped,
)
from lore_active.stopping.rules import Progress, RankSettled
from lore_active.stopping.smallest_dimension import SmallestDimension
from server.monitor.forecast import (
    HINT,
    NO_DIMENSION,
    UNLIKE,
    Ahead,
    Crowd,
    ahead,
    costs,
    message,
)
from server.monitor.reader import Reader
from server.report.report import report as make_report
from server.status.counting import AnswerCounts
from server.store.collection import StudyState
from server.store.summaries import DecisionRow
from server.study.config import Pay
from tests.support.open_study import Desk
from tests.support.simulated_participants import SimulatedParticipant, take_turns

GROWTH = 1.08


def a_study(seed: int) -> Followed:
    """Evidence that grows with the answers, up and down; it stops when all of it is met."""
    rng = np.random.default_rng(seed)
    needed = int(rng.uniform(300, 3000))
    audits, answers = [], 60
    while True:
        share = answers / needed
        criteria = tuple(
            CriterionStatus(name, value, threshold, value >= threshold)
            for name, value, threshold in (
                ("answers", float(answers), 200.0),
                ("evidence", 5 * share * float(np.exp(rng.normal(0, 0.3))), 5.0),
            )
        )
        audits.append(AuditStatus(50, answers, 2, criteria))
        if audits[-1].met:
            return Followed(tuple(audits), True)
        answers = int(answers * GROWTH) + 1


def right(study: Followed, calibration) -> list[bool]:
    end = study.audits[-1].answers
    found = [forecast(audit, calibration) for audit in study.audits[:-1]]
    return [
        finding.low <= end + 1e-6 and end <= finding.high + 1e-6
        for finding in found
        if finding is not None
    ]


def test_a_calibration_is_right_nine_times_in_ten_in_studies_that_it_has_not_seen():
    made = calibrate([a_study(seed) for seed in range(10_000, 10_080)])
    hits = [one for seed in range(1000, 1060) for one in right(a_study(seed), made)]
    assert len(hits) > 1500
    assert COVERAGE - 0.02 <= np.mean(hits) <= 0.97


def test_a_calibration_is_the_same_after_it_was_written_and_read():
    made = calibrate([a_study(seed) for seed in range(20)])
    again = from_json(made.as_json())
    study = a_study(3000)
    assert [forecast(audit, made) for audit in study.audits] == [
        forecast(audit, again) for audit in study.audits
    ]


def test_a_rule_that_asks_for_more_is_met_no_sooner():
    """As `stopping.audits` and `stopping.min_answers` may say."""
    rule = {
        criterion: CriterionStatus(criterion, 3.0, 2.0, True) for criterion in shipped()[0].criteria
    }
    held = replace(rule["audits_unchanged"], value=4.0, threshold=5.0, passed=False)

    def forecast_of(**changed):
        return forecast(AuditStatus(40, 600, 2, tuple({**rule, **changed}.values())))

    usual, longer = (
        forecast_of(audits_unchanged=held),
        forecast_of(audits_unchanged=replace(held, threshold=25)),
    )
    assert usual.low >= 600 * GROWTH * 0.999
    assert longer.low >= 600 * GROWTH**21 * 0.999 and longer.high > longer.low
    least = CriterionStatus("answers", 600.0, 5000.0, False)
    assert forecast_of(answers=least) is None or forecast_of(answers=least).low >= 5000 * 0.999


def test_nothing_is_said_where_nothing_can_be():
    made = calibrate([a_study(seed) for seed in range(20)])
    audit = a_study(3000).audits[5]
    assert forecast(audit, made) is not None
    assert forecast(replace(audit, rank=0), made) is None  # there may be nothing to find
    assert forecast(replace(audit, answers=10**6), made) is None  # like no study that was seen
    other = replace(audit.criteria[0], name="another")
    assert forecast(replace(audit, criteria=(other, audit.criteria[1])), made) is None
    met = tuple(replace(criterion, passed=True) for criterion in audit.criteria)
    assert forecast(replace(audit, criteria=met), made).high == audit.answers


def test_what_is_shipped_is_for_the_stopping_rule_as_it_is():
    """After a change of the criteria: `make calibrate-forecast`."""
    for rule, made in zip((SmallestDimension(), RankSettled()), shipped(), strict=True):
        decision = rule.decide(Progress(9, 0, 0, [], wilson(0, 0)))
        assert made.criteria == tuple(criterion.name for criterion in decision.criteria)
    assert json.loads(FILE.read_text())["rows"]


def test_a_simulated_study_is_forecast_from_its_criteria():
    """One study on a seed of its own: ranges come, and most of them hold its end."""
    learner = Learner(20, 6)
    participants = SimulatedParticipants(
        [Observer(gaussian_space(20, 1, 6), ObserverNoise(0.1), 7)]
    )
    audits = []
    for record in simulate(learner, participants, 1200, None, lambda: 0.0):
        if not record.get("summary"):
            criteria = tuple(
                CriterionStatus(
                    criterion.name, criterion.value, criterion.threshold, criterion.passed
                )
                for criterion in learner.decision.criteria
            )
            audits.append(AuditStatus(20, record["answers"], record["rank"], criteria))
    study = Followed(tuple(audits), learner.decision.settled)
    assert study.stopped
    hits = right(study, None)
    assert len(hits) >= 3
    assert np.mean(hits) >= 0.5


# ---- on the monitor -----------------------------------------------------------------------------

RUNNING = StudyState("running", "", 4000, 0, 80, 1, "triplet")
COUNTS = AnswerCounts(0, 440, 0, 0, 40, 0, 0, 400, 0, 400)
CROWD = Crowd(finished=5, hours=0.5, under_way=2, trials_left=60, trial_hours=0.001)
EUROS = Pay(per_participant=1.0, per_hour=6.0, fee=0.5, currency="EUR")


def a_decision(**values) -> DecisionRow:
    known = {
        "items_seen": (40, 40),
        "answers": (400, 160),
        "better_than_chance": (0.7, 0.5),
        "audits_unchanged": (2, 3),
        "preferred_to_fewer": (2.5, 1.96),
        "further_dimension": (0.5, 3.0),
    }
    known |= values
    reasons = [
        {"name": name, "value": value, "threshold": most, "passed": value >= most, "words": ""}
        for name, (value, most) in known.items()
    ]
    return DecisionRow(False, False, 2, "", reasons)


def test_answers_of_the_model_become_answers_participants_and_hours():
    found = ahead(a_decision(), RUNNING, COUNTS, 400, 40, CROWD)
    low, high = found.answers
    status = AuditStatus(
        40,
        400,
        2,
        tuple(
            CriterionStatus(reason["name"], reason["value"], reason["threshold"], reason["passed"])
            for reason in a_decision().reasons
        ),
    )
    expected = forecast(status)
    # Of 440 answers collected 400 are in the model; both ends are rounded outwards.
    assert low <= (expected.low - 400) * 1.1 <= 1.2 * low
    assert high / 1.2 <= (expected.high - 400) * 1.1 <= high
    assert low <= found.middle <= high
    # Those under way give 60 of them; others 80 each.
    assert found.participants[1] == -(-(high - 60) // 80)
    assert found.hours == pytest.approx((low * 0.001, high * 0.001))


def test_a_range_is_narrow_where_only_one_more_audit_is_missing():
    met = {"further_dimension": (2.8, 3.0), "audits_unchanged": (5, 3)}
    nearly = ahead(a_decision(**met), RUNNING, COUNTS, 400, 40, CROWD)
    some = ahead(a_decision(), RUNNING, COUNTS, 400, 40, CROWD)
    assert nearly.answers[0] >= 1
    assert nearly.answers[1] < some.answers[1]


def test_why_there_is_no_forecast():
    nothing = replace(a_decision(), rank=0)
    assert ahead(nothing, RUNNING, COUNTS, 400, 40, CROWD).reason == NO_DIMENSION
    assert ahead(a_decision(), RUNNING, COUNTS, 10**6, 40, CROWD).reason == UNLIKE
    assert ahead(None, RUNNING, COUNTS, 0, 40, CROWD) == Ahead()


def test_between_audits_the_forecast_goes_down_with_the_answers():
    later = replace(COUNTS, answers=462, counted=420, fitted=420)
    at_once = ahead(a_decision(), RUNNING, COUNTS, 400, 40, CROWD)
    then = ahead(a_decision(), RUNNING, later, 400, 40, CROWD)
    assert then.answers[0] <= at_once.answers[0] and then.answers[1] <= at_once.answers[1]
    assert then.answers != at_once.answers


def test_the_sentence_says_what_is_known():
    def said(found, state=RUNNING, collected=440):
        return message(found, state, collected)

    some = Ahead((400, 1100), (5, 14), (0.5, 1.25))
    assert "stopping (90 % range; median: 600; 5 to 14" in said(replace(some, middle=600))
    assert said(some) == (
        "About 400 to 1,100 more answers until stopping (90 % range; 5 to 14 further participants, "
        "0.5 to 1.2 hours of participants' time)."
    )
    assert said(Ahead((10, 1100), (0, 14), (0.01, 12.2))) == (
        "Up to 1,100 more answers until stopping (90 % range; up to 14 further participants, "
        "up to 12 hours of participants' time)."
    )
    assert "The budget may run out first: 500 answers left." in said(some, collected=3500)
    assert "The budget will run out first: 100 answers left." in said(some, collected=3900)
    assert said(some, collected=4000).endswith(" The budget is used up.")
    assert said(Ahead(reason=UNLIKE)) == f"No forecast yet: {UNLIKE}."
    assert said(Ahead()) == "No forecast yet."
    assert said(Ahead((0, 0), (0, 0), (0, 0), met=True)) == "Until stopping: criteria met."
    assert "ended" in said(Ahead(), replace(RUNNING, status="stopped"))
    one = Ahead((1, 1), (0, 0), (0.0, 0.0))
    assert "About 1 more answer until" in said(one)
    assert "no further participants, 1 minute of participants' time" in said(one)
    short = Ahead((100, 300), (1, 4), (0.05, 0.14))
    assert "1 to 4 further participants, 3 to 8 minutes of participants' time" in said(short)


def test_money_follows_from_participants_and_hours():
    found = costs(EUROS, CROWD, 80, Ahead((400, 1100), (5, 14), (0.5, 1.25)))
    # (5 × 1 + 0.5 h × 6) × 1.5 for those who finished, so 2.40 for each further one.
    assert (found["spent"], found["per_participant"]) == (12.0, 2.4)
    assert found["under_way"] == pytest.approx(4.8)
    assert found["to_stop"] == pytest.approx([4.8 + 5 * 2.4, 4.8 + 14 * 2.4])
    assert found["total"] == pytest.approx([28.8, 50.4])
    assert found["shown"] == "12.00 EUR"
    assert found["message"] == (
        "for 5 participants who finished; about 16.80 to 38.40 EUR more until stopping"
    )


def test_without_a_forecast_money_is_only_what_is_spent_and_owed():
    found = costs(EUROS, CROWD, 80, Ahead())
    assert (found["to_stop"], found["total"]) == (None, None)
    assert found["message"] == "for 5 participants who finished; 4.80 EUR more for 2 under way"


def test_before_anybody_finished_an_hour_is_estimated_from_trials():
    nobody = Crowd(finished=0, hours=0.0, under_way=0, trials_left=0, trial_hours=0.001)
    found = costs(Pay(per_hour=10.0, currency="EUR"), nobody, 80, Ahead())
    assert (found["spent"], found["per_participant"]) == (0.0, 0.8)


def test_without_pay_there_is_a_hint_and_no_amount():
    assert costs(Pay(), CROWD, 80, Ahead()) == {"currency": None, "message": HINT}


PAID = """
[session]
trials = 10
practice = 0
[pay]
per_participant = 2
per_hour = 6
currency = "€"
"""


def test_a_study_is_paid_by_who_finished_and_how_long_they_took(tmp_path):
    desk = Desk(tmp_path / "paid", PAID, 8)
    reader = Reader(desk.database, desk.study)

    def shown():
        return desk.database.read(lambda c: reader.shown(reader.read(c, desk.now)))["where"]["cost"]

    assert (shown()["spent"], shown()["shown"]) == (0.0, "€0.00")
    first = desk.new_participant()
    for minute in range(10):
        # An hour of lunch counts as the idle time, half an hour.
        desk.now += 3_600_000 if minute == 4 else 60_000
        first = desk.answer(first)
        if minute == 3:
            assert shown()["spent"] == 0.0  # not finished yet
    found = shown()
    assert found["participants"] == 1
    assert found["hours"] == pytest.approx((9 + 30) / 60, abs=0.001)
    assert found["spent"] == pytest.approx(2 + 6 * 39 / 60, abs=0.01)
    second = desk.new_participant()
    desk.now += 60_000
    desk.answer(second)
    assert shown()["spent"] == found["spent"]
    assert shown()["under_way"] == pytest.approx(found["per_participant"])
    # Read again, all at once, it is the same.
    again = Reader(desk.database, desk.study)
    whole = desk.database.read(lambda c: again.shown(again.read(c, desk.now)))["where"]["cost"]
    assert whole == shown()
    desk.close()


def test_simulated_participants_cost_nothing(tmp_path):
    desk = Desk(tmp_path / "rehearsal", PAID, 8)

    def shown():
        reader = Reader(desk.database, desk.study)
        return desk.database.read(lambda c: reader.shown(reader.read(c, desk.now)))["where"]["cost"]

    for simulated, spent in ((True, 0.0), (False, 2.0 + 6 * 10 / 60)):
        stage = desk.new_participant(simulated)
        for _ in range(10):
            desk.now += 60_000
            stage = desk.answer(stage)
        assert shown()["spent"] == pytest.approx(spent, abs=0.01)
        # Once people have answered, simulated participants are left out altogether.
        assert ("(simulated ones cost nothing)" in shown()["message"]) == simulated
    desk.close()


def test_the_report_has_pay_cost_and_forecast(tmp_path):
    desk = Desk(tmp_path / "reported", PAID, 8)
    stage = desk.new_participant()
    for _ in range(10):
        desk.now += 60_000
        stage = desk.answer(stage)
    text = make_report(desk.database, desk.study, desk.clock).page
    assert '<b id="cost">€3.00</b>' in text
    assert "for 1 participant who finished" in text
    assert "Payment for a completed session was €2.00 per participant and €6.00 per hour." in text
    assert '<p class="lead" id="forecast">No forecast yet.</p>' in text
    desk.close()
    unpaid = Desk(tmp_path / "unpaid", "", 8)
    assert 'id="cost"' not in make_report(unpaid.database, unpaid.study, unpaid.clock).page
    unpaid.close()


def test_a_real_study_gets_a_range_once_it_has_a_dimension(tmp_path):
    desk = Desk(tmp_path / "some", "[session]\ntrials = 60\npractice = 0\n", 12)
    worker, space = desk.worker(), gaussian_space(12, 2, 3)
    reader = Reader(desk.database, desk.study)
    seen = set()
    for number in range(12):
        participant = SimulatedParticipant(
            desk.service, space, number, ObserverNoise(0.2), wait=desk.wait
        )
        for _ in take_turns([participant], worker.turn):
            pass
        worker.turn()
        where = desk.database.read(lambda c: reader.shown(reader.read(c, desk.now)))["where"]
        to_stop = where["to_stop"]
        seen.add("met" if to_stop["met"] else "range" if to_stop["answers"] else "none")
        if to_stop["answers"] and not to_stop["met"]:
            assert 0 < to_stop["answers"][0] <= to_stop["answers"][1]
            assert "more answers until stopping (90 % range; " in to_stop["message"]
        if where["status"] == "stopped":
            break
    assert "range" in seen
    desk.close()
