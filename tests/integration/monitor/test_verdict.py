"""One verdict everywhere, for each stage of a study: each with a real study that is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lore_active import Learner
from lore_active.rank.significance import wilson
from lore_active.simulation.observers import gaussian_space, simulated_answers
from lore_active.stopping import criteria
from lore_active.stopping.criteria import Criterion
from lore_active.stopping.rules import Progress, RankSettled
from lore_active.stopping.smallest_dimension import SmallestDimension
from lore_active.stopping.stages import STAGES, Collection, Findings
from lore_active.stopping.verdict import verdict
from server.cli.main import main
from server.learning.verification import _same_entries, verify
from server.monitor.feed import Feed
from server.report.report import report as make_report
from tests.support import study_stages
from tests.support.open_study import Desk
from tests.support.simulated_participants import SimulatedParticipant
from tests.support.study_stages import BUILDERS, said

NAMES = [known_stage.name for known_stage in STAGES]
ROOT = Path(__file__).parents[3]


def shown(desk: Desk) -> dict:
    return json.loads(Feed(desk.database, desk.study, desk.clock).update(True).plain)


# ---- each stage, with a study that is in it -----------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_everything_says_the_same(tmp_path, name):
    desk = BUILDERS[name](tmp_path / "words")
    found = said(desk)
    stage = next(known_stage for known_stage in STAGES if known_stage.name == name)
    assert found.stage == name
    data = shown(desk)
    where = data["where"]
    assert (where["stage"], where["headline"]) == (name, found.headline)
    assert where["explanation"] == found.explanation
    # What has no sense at this stage is not there, and so cannot be ticked.
    rule = {
        criterion.name
        for criterion in SmallestDimension().decide(Progress(9, 0, 0, [], wilson(0, 0))).criteria
    }
    names = {criterion["name"] for criterion in data["stopping"]["criteria"]}
    # The last dimension may have been found by its Bayes factor before predictions showed it.
    if "bayes_factor_fewer" in names:
        rule = rule - {"preferred_to_fewer"} | {"bayes_factor_fewer"}
    assert names == set(stage.criteria) & rule
    assert where["settled"] == data["stopping"]["settled"] == (name == "settled")
    if name == "settled":
        assert all(criterion["passed"] for criterion in data["stopping"]["criteria"])
        assert data["stopping"]["missing"] == "All criteria are met."
    else:
        assert "All criteria are met" not in json.dumps(data)
    # One accuracy beside the headline, and only of a map that there is.
    assert bool(where["predicted"]) == bool(data["accuracy"]["count"])
    assert where["has_rank"] or not where["predicted"]
    if where["predicted"]:
        assert "95 % confidence interval: " in where["predicted"]
        assert "chance: 50 %" in where["predicted"]
    _assert_charts_agree(data, found.has_rank)
    # The report and its methods text.
    report = make_report(desk.database, desk.study, desk.clock)
    assert found.headline in report.page
    assert found.methods in report.page
    # Replay makes the same of it again, to the last bit.
    again = verify(desk.database, desk.study, lambda: 0.0)
    assert again.mismatches == []
    assert again.verdict["headline"] == found.headline
    desk.close()


def _assert_charts_agree(data: dict, has_rank: bool) -> None:
    dimensions = data["dimensions"]
    if not has_rank:
        assert data["accuracy"]["value"] is None and not dimensions["rank"]
    rows = {one["rank"]: one["difference"] for one in dimensions["evidence"]}
    if not rows:
        return
    assert rows[dimensions["reference"]] == 0
    other = (
        "guessing" if dimensions["reference"] == 0 else criteria.dimensions(dimensions["reference"])
    )
    assert f"compared with {other}" in dimensions["compared"]
    # Something below nothing is said to be better, and nothing is said to be best.
    assert (min(rows.values()) < 0) == ("below 0: predicts better" in dimensions["compared"])
    assert "best" not in dimensions["compared"]


def test_every_stage_of_the_table_has_its_study():
    assert list(BUILDERS) == NAMES


def test_an_exclusion_of_all_participants_says_why_nothing_counts(tmp_path):
    desk = study_stages.none_counted(tmp_path / "words")
    where = shown(desk)["where"]
    assert f"{where['answers']} are from excluded participants" in where["explanation"]
    desk.close()


def test_imported_answers_alone_are_said_to_be_so(tmp_path):
    desk = study_stages.imported_only(tmp_path / "words")
    found = shown(desk)
    assert found["where"]["answers"] == 0
    assert found["where"]["stage"] not in ("no answers", "none counted", "too few")
    assert "All 60 answers in the model are imported." in found["where"]["explanation"]
    desk.close()


def test_a_study_of_bots_alone_is_said_to_be_one_until_participants_come(tmp_path):
    study = study_stages.Study(tmp_path / "words", study_stages.STRICT)
    desk = study.desk
    bot = SimulatedParticipant(desk.service, study.space, 1, wait=desk.wait, simulated=True)
    while bot.step():
        study.worker.turn()
    where = shown(desk)["where"]
    assert where["explanation"].endswith(
        "All of these answers are simulated: they say nothing about people."
    )
    participant = SimulatedParticipant(desk.service, study.space, 2, wait=desk.wait)
    for _ in range(4):
        participant.step()
    while study.worker.turn():
        pass
    where = shown(desk)["where"]
    assert (where["stage"], where["answers"]) == ("too few", 2)
    assert where["explanation"].endswith("24 simulated answers are left out.")
    desk.close()


def test_a_pause_is_reported_and_has_no_pace(tmp_path):
    study = study_stages.Study(tmp_path / "words", study_stages.STRICT)
    study.desk.control.pause("Ada")
    assert said(study.desk).explanation.endswith("Collection has not started.")
    study.desk.control.start("Ada")
    study.collect(study_stages.CAREFUL, lambda one: one.participants > 1)
    study.desk.now += 60_000
    assert shown(study.desk)["where"]["per_minute"] > 0
    study.desk.control.pause("Ada")
    where = shown(study.desk)["where"]
    assert where["explanation"].endswith("Collection is paused.")
    assert where["per_minute"] is None and where["to_stop"]["minutes"] is None
    study.desk.control.stop("Ada", "enough")
    where = shown(study.desk)["where"]
    assert where["explanation"].endswith("The experimenter stopped the study.")
    assert where["per_minute"] is None
    study.desk.close()


def test_a_budget_of_participants_is_a_budget(tmp_path):
    study = study_stages.Study(
        tmp_path / "words", study_stages.STRICT + "[budget]\nparticipants = 1\n"
    )
    study.collect(study_stages.CAREFUL, lambda one: one.desk.rows(
        "SELECT count(*) FROM participants WHERE stage = 'finished'") == [(1,)])  # fmt: skip
    found = said(study.finished())
    assert "The budget of 1 participant is used up." in found.explanation
    study.desk.close()


# ---- recognising them ---------------------------------------------------------------------------


def findings(rank=2, settled=False, chance=True, ranks=(), held=(1, 5), enough=True, bound=False):
    return Findings(
        rank,
        settled,
        (
            Criterion("answers", 50 if enough else 30, 48, enough),
            Criterion("better_than_chance", 0.6 if chance else 0.42, 0.5, chance),
            Criterion("audits_unchanged", held[0], held[1], held[0] >= held[1]),
        ),
        tuple(ranks),
        bound,
    )


RUNNING = Collection(answers=100, counted=90)


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ((1, 2, 3), "Three dimensions so far, not settled yet."),
        ((2, 3), "Three dimensions so far, not settled yet."),
        ((3, 2, 3), "Two or three dimensions: the number still changes from audit to audit."),
        ((2, 0, 2, 3, 2), "Up to three dimensions: the number still changes"),
        ((0, 0, 2, 3, 2, 3), "Two or three dimensions: the number still changes from audit to"),
        ((4, 2, 3, 4, 3), "Two, three or four dimensions: the number still changes"),
        # Longer ago than the rule asks a number to be the same.
        ((3, 2, 3, 3, 3, 3), "Three dimensions so far, not settled yet."),
    ],
)
def test_a_rank_is_inconsistent_if_it_comes_back(ranks, expected):
    held = next((k for k, rank in enumerate(ranks[::-1]) if rank != ranks[-1]), len(ranks))
    found = verdict(RUNNING, findings(ranks[-1], ranks=ranks, held=(held, 5)))
    assert found.headline.startswith(expected)
    assert (found.stage == "wavering") == ("still changes" in expected)


def test_a_lower_bound_is_not_worded_as_a_number():
    found = verdict(RUNNING, findings(1, bound=True))
    assert found.headline == "At least one dimension so far, not settled yet."


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rank": 0}, "something"),
        ({"rank": 0, "chance": False}, "nothing found"),
        ({"rank": 0, "chance": False, "enough": False}, "early"),
        ({"rank": 0, "held": (0, 5)}, "too few"),
        ({"rank": 2, "settled": True, "held": (5, 5)}, "settled"),
        ({"rank": 2}, "a rank"),
    ],
)
@pytest.mark.parametrize("status", ["running", "paused", "stopped"])
def test_what_is_known_does_not_depend_on_collection(changes, expected, status):
    found = verdict(Collection(status, answers=100, counted=90), findings(**changes))
    assert found.stage == ("stopped" if (expected, status) == ("a rank", "stopped") else expected)
    assert ("yet" in found.headline or "so far" in found.headline) == (
        found.stage in ("something", "nothing found", "a rank") and status != "stopped"
    )


def test_simulated_answers_are_said_to_be_simulated():
    whole = verdict(Collection(answers=90, counted=90, simulated=90), findings())
    assert "All of these answers are simulated" in whole.explanation
    part = verdict(Collection(answers=90, counted=90, simulated=30), findings())
    assert "30 of these answers are simulated." in part.explanation
    none = verdict(Collection(answers=90, counted=90, simulated_left_out=1), findings())
    assert none.explanation.endswith("1 simulated answer is left out.")


def test_every_criterion_has_a_title_a_message_and_something_to_wait_for():
    early = Progress(9, 0, 0, [], wilson(0, 0))
    reasons = [*RankSettled().decide(early).criteria, *SmallestDimension().decide(early).criteria]
    names = {reason.name for reason in reasons}
    assert names == set(criteria.CRITERIA)
    assert set(criteria.without_rank()) < names
    for reason in reasons:
        assert criteria.message(reason, 2).endswith(".")


def test_messages_give_value_threshold_and_what_is_compared():
    def message_of(name, value, threshold=2.0):
        return criteria.message(Criterion(name, value, threshold, False), 2)

    assert message_of("bayes_factor_more", 8.13) == (
        "Log Bayes factor, 2 vs 3 dimensions: 8.1 (at least 2.0 needed)."
    )
    assert "Held-out log-loss, 2 vs 1 dimension: mean advantage of 1.25" in message_of(
        "preferred_to_fewer", 1.25
    )
    assert "three dimensions could not be fitted" in message_of("preferred_to_more", float("inf"))
    assert "at least 81 % (chance: 50 %)" in message_of("better_than_chance", 0.812, 0.5)
    # Not "at least 50 %" where that is just above chance.
    assert "at least 50.3 % (chance: 50 %)" in message_of("better_than_chance", 0.503, 0.5)


# ---- accuracy ------------------------------------------------------------------------------------


def test_the_accuracy_is_of_questions_that_a_map_predicted():
    """Where no dimension was reported nothing was predicted: that is not half right."""
    learner, answers = Learner(10, seed=1), simulated_answers(gaussian_space(10, 1, 1), 200, 2)
    learner.add(answers[:20])
    learner.audit()
    asked = [learner.issue(0, (1, 2)), learner.issue(3, (4, 5))]
    if learner.estimate.rank == 0:
        assert {question.margin for question in asked} == {0.0}
    learner.add(answers[20:])
    learner.audit()
    assert learner.estimate.rank == 1
    asked += [learner.issue(6, (7, 8)), learner.issue(7, (8, 9))]
    for question in asked:
        learner.tell(question.id, "left" if question.margin > 0 else "right")
    predicted = [question for question in asked if question.margin]
    assert learner.prequential.count == len(predicted) >= 2
    assert learner.prequential.value == 1.0


def test_replay_compares_what_earlier_versions_published():
    now = '{"prequential": {"count": 3}, "added": {"count": 2}}'
    assert _same_entries('{"prequential": {"count": 3}}', now)
    assert not _same_entries('{"prequential": {"count": 4}}', now)
    assert not _same_entries('{"prequential": {"count": 3}, "other": 1}', now)


# ---- the library and its commands ---------------------------------------------------------------


def test_a_learner_has_the_same_verdict():
    learner = Learner(10, seed=1)
    assert learner.verdict.stage == "no answers"
    answers = simulated_answers(gaussian_space(10, 1, 1), 150, 2)
    learner.add(answers[:10], "P1")
    assert learner.verdict.stage == "too few"
    assert learner.verdict.explanation == "The first estimate comes after about 10 more answers."
    learner.add(answers[10:], "P1")
    learner.audit()
    assert learner.verdict.has_rank and learner.findings.ranks == (1,)
    learner.exclude("P1")
    assert learner.verdict.stage == "none counted"


def test_simulate_says_it_for_every_audit():
    words = ["simulate", "--items", "8", "--rank", "1", "--answers", "90", "--seed", "2"]
    result = CliRunner().invoke(main, [*words, "--json"])
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(one["stage"] in NAMES for one in records)
    plain = CliRunner().invoke(main, words).stdout.splitlines()
    for line, record in zip(plain, records, strict=False):
        assert record["headline"] in line
    assert records[-1]["explanation"] in plain[len(records) - 1]


def test_the_table_of_the_docs_is_the_one_in_the_code():
    page = (ROOT / "docs" / "reference" / "stages.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| **")]
    assert len(rows) == len(STAGES)
    for line, stage in zip(rows, STAGES, strict=True):
        for text in (stage.name, stage.when, stage.headline, stage.explanation):
            assert text in line
