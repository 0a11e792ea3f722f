"""What-if: the same answers under other settings, put beside what happened."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from lore_active import Learner
from lore_active.learner import snapshot
from lore_active.simulation.observers import gaussian_space, simulated_answers
from server.cli.main import main
from server.cli.replay import what_if_table
from server.learning import what_if as what_if_terms
from server.learning.trajectories import what_if
from server.store import summaries
from server.study.parsing import all_keys
from tests.support.open_study import Desk, Respondent

TOML = """
[session]
trials = 30
practice = 1
break_every = 0
feedback = false
repeat = 0.1
random = 0.35
[stopping]
confidence = 0.6
audits = 3
min_answers = 30
smallest_dimension = 0.3
"""
ITEMS = 10


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A study that stops, is reopened, and in which a participant is excluded and restored."""
    opened = Desk(tmp_path_factory.mktemp("whatif") / "words", TOML, items=ITEMS)
    worker, participant = opened.worker(), Respondent(ITEMS, 1, noise=0.05)
    worker.turn()
    for number in range(6):
        if opened.rows("SELECT status FROM state") == [("stopped",)]:
            opened.control.reopen("test")
        stage = opened.new_participant(PROLIFIC_PID=f"someone{number}")
        while stage.kind in ("practice", "trial"):
            stage = opened.answer(stage, participant.side(stage))
            opened.now += 700
            if stage.done % 6 == 0:
                worker.turn()
        if number == 2:
            opened.control.exclude("test", 1, "too fast")
            worker.turn()
            opened.control.exclude("test", 2, "too fast")
            opened.control.restore("test", 1, "a mistake")
            worker.turn()
    yield opened
    opened.close()


def compared(desk, *words):
    participants = desk.database.read(summaries.participants)
    change = what_if_terms.read(words, desk.study.settings, participants)
    return what_if(desk.database, desk.study, change, time.perf_counter), change


def test_what_if_with_the_actual_settings_reproduces_the_study(desk):
    """To the last bit: the same audits, the same stop."""
    found, change = compared(desk, "stopping.confidence=0.6")
    assert found.what_if == found.original
    assert len(found.original.points) > 8
    assert found.original.stopped_at is not None
    assert found.answers_saved == 0
    assert found.same_pool is None
    lines = list(what_if_table(found, change, desk.study))
    assert sum("stop" in line for line in lines) == 1
    assert "Answers saved: 0." in lines


def test_another_rule_stops_elsewhere_on_the_same_models(desk):
    strict, change = compared(desk, "stopping.confidence=0.999999", "stopping.audits=60")
    assert strict.what_if.points == strict.original.points
    assert strict.what_if.stopped_at is None
    assert (strict.answers_saved, strict.answers_missing) == (None, None)
    assert any(
        "would not have been enough" in one for one in what_if_table(strict, change, desk.study)
    )
    # Asked for more answers than there were when it was met, the rule tests for a further dimension
    # only after that many, and stops later. When it is met differs between processors.
    ((met,),) = desk.rows(
        "SELECT min(m.answers) FROM decisions d JOIN models m USING (step) WHERE d.settled"
    )
    needed = met + 1
    later, change = compared(desk, f"stopping.min_answers={needed}")
    assert later.what_if.stopped_at > later.original.stopped_at
    assert later.answers_missing == later.what_if.stopped_at - later.original.stopped_at
    assert (
        "Further answers needed after the original stop"
        in list(what_if_table(later, change, desk.study))[-1]
    )


def test_excluding_a_participant_equals_never_having_had_their_answers(desk):
    """Also a participant whom the experimenter took back, and by any of their names."""
    given = dict(desk.rows("SELECT id, done FROM participants"))
    found, _ = compared(desk, "exclude=P1,someone3")
    # All answers that the monitor counts, catch trials among them.
    assert found.what_if.answers == found.original.answers == sum(given.values())
    # From the first audit on, none of theirs counted: participant 1 came first.
    assert found.what_if.points[0].fitted <= found.what_if.points[0].answers - given[1]
    again, _ = compared(desk, "restore=2")
    last = again.what_if.points[-1]
    ((catches,),) = desk.rows(
        "SELECT sum(purpose = 'catch') FROM (SELECT q.purpose FROM answers a "
        "JOIN queries q ON q.id = a.query WHERE q.purpose <> 'practice' ORDER BY a.seq LIMIT ?)",
        last.answers,
    )
    assert last.fitted == last.answers - catches
    participants = desk.database.read(summaries.participants)
    for names in ("exclude=P1,someone3", "exclude=№ 1,PROLIFIC_PID=someone3,4"):
        assert what_if_terms.read([names], desk.study.settings, participants).exclude == (1, 4)


def test_another_selector_chooses_among_what_was_asked(desk):
    found, change = compared(desk, "learning.selector=random", "lam=0.01")
    questions = desk.rows(
        "SELECT DISTINCT key FROM queries q "
        "JOIN answers a ON a.query = q.id WHERE purpose NOT IN ('practice', 'catch') "
        "AND participant <> 2"
    )
    assert found.what_if.answers == found.same_pool.answers == len(questions)
    assert {point.lam for point in found.what_if.points} == {0.01}
    assert found.what_if.points != found.same_pool.points
    head = next(what_if_table(found, change, desk.study))
    assert head.split("  ")[0] == "" and "same pool, fisher" in head
    again, _ = compared(desk, "learning.selector=random", "lam=0.01")
    assert again.what_if == found.what_if


def test_everything_wrong_is_said_at_once(desk):
    result = CliRunner().invoke(
        main,
        ["replay", str(desk.folder), "--what-if", "lam=-1", "selctor=random", "stopping.audits=two",
         "stopping.confidence=1", "exclude=P7,nobody,P1", "restore=1", "lonely", "lam=2", "lam=nan",
         "audit=2", "stop.confidense=0.9", "budget.answers=50", "wholly.else=1"],
    )  # fmt: skip
    assert result.exit_code == 2
    for words in (
        'lam is "-1", but must be a number above 0.',
        "selctor is unknown, but every key must be one of learning.selector, stopping.rule,",
        "did you mean learning.selector?",
        "audit is unknown, but every key must be one of learning.selector, ",
        "restore; did you mean stopping.audits?",
        "stop.confidense is unknown, ",
        "restore; did you mean stopping.confidence or stopping.evidence?",
        "budget.answers is a key of study.toml that does not affect answers already collected, ",
        "wholly.else is unknown, but every key must be one of ",
        'stopping.audits is "two", but must be a whole number from 0 to 100.',
        'stopping.confidence is "1", but must be a number of 0.5 or more and below 1.0.',
        'exclude is "P7", but participants are given by number (1 to 6; ',
        'exclude is "nobody"',
        "restore is also 1, but a participant cannot be both excluded and restored.",
        "lonely is without a value, but must be key=value",
        "lam is given twice (2), but may be given once.",
    ):
        assert words in result.output, words
    assert result.output.count("\n") == 14
    for arguments, words in (
        (["lam=1"], "Unexpected argument 'lam=1'; give settings after --what-if."),
        (["--verify", "--what-if", "lam=1"], "cannot be used together"),
    ):
        result = CliRunner().invoke(main, ["replay", str(desk.folder), *arguments])
        assert (result.exit_code, words in result.output) == (2, True)


def test_keys_and_rules_are_those_of_study_toml(desk):
    """And what commands of earlier versions called them is still understood."""
    known = all_keys()
    assert set(what_if_terms.SETTINGS) <= set(known)
    described = (Path(__file__).parents[3] / "docs" / "study.md").read_text()
    for key in what_if_terms.SETTINGS:
        assert what_if_terms.KINDS[key] == known[key].type
        assert f"| `{key}` |" in described
    for older, key in what_if_terms.OLDER.items():
        value = "random" if key == "learning.selector" else "1" if "audits" in key else "0.9"
        value = "20" if "min_answers" in key else value
        read = [
            what_if_terms.read([f"{one}={value}"], desk.study.settings, []) for one in (older, key)
        ]
        assert read[0] == read[1] != what_if_terms.WhatIfChange(desk.study.settings)
    written = what_if_terms.read(['learning.selector = "random"'], desk.study.settings, [])
    assert written.selector == written.settings.learning.selector == "random"


def test_json_from_the_command(desk):
    words = ["--what-if", "lam=0.02", "stopping.audits=2", "--json"]
    found = json.loads(CliRunner().invoke(main, ["replay", str(desk.folder), *words]).output)
    assert found["changes"] == ["lam=0.02", "stopping.audits=2"]
    assert {finding["lam"] for finding in found["what_if"]["points"]} == {0.02}
    before, alternative = found["original"]["stopped_at"], found["what_if"]["stopped_at"]
    # Whether it stops at that λ, and where, is the models' affair, not the command's.
    gap = None if alternative is None else before - alternative
    assert found["answers_saved"] == (None if gap is None or gap < 0 else gap)
    assert found["answers_missing"] == (None if gap is None or gap >= 0 else -gap)


def test_before_the_first_audit_there_is_nothing_to_compare_with(tmp_path):
    new = Desk(tmp_path / "words", TOML, items=ITEMS)
    new.close()
    result = CliRunner().invoke(main, ["replay", str(new.folder), "--what-if", "lam=0.02"])
    assert result.exit_code == 2
    assert "The study has no audit yet" in result.output


def test_a_learner_keeps_a_fixed_lambda():
    answers = simulated_answers(gaussian_space(10, 2, 1), 150, 2)
    learner = Learner(10, seed=1, lam=0.03)
    learner.add(answers)
    audit = learner.audit()
    assert {entry.lam for entry in audit.evidence} == {learner.estimate.lam} == {0.03}
    again = snapshot.load(*snapshot.dump(learner))
    again.add(answers[:20])
    assert again.audit().lam == 0.03
    with pytest.raises(ValueError, match=r"lam is 0\.0, but must be a positive number"):
        Learner(10, lam=0.0)
