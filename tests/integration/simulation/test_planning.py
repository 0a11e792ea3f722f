"""Plans: what a study will cost, from simulated ones and from a pilot."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lore_active import InvalidParameter
from lore_active.simulation.cost import money, money_range
from lore_active.simulation.planning import PlanConfig, Run, plan, plan_row
from server.cli.main import main
from server.study.config import Pay
from tests.support.commands import completed
from tests.support.live_server import write_study
from tests.support.open_study import Desk, Respondent

EUROS = Pay(per_participant=1.0, per_hour=12.0, fee=0.25, currency="EUR")


def test_costs_follow_from_answers():
    config = PlanConfig(items=20, trials=50, seconds_per_trial=6.0, pay=EUROS, overhead=0.2)
    found = plan_row(config, [Run(2, "fisher", at, 2) for at in (400, 400, 400)])
    assert found.answers == (400.0, 400.0, 400.0)
    # A fifth of the trials are catches and repeats: 500 trials for 400 answers.
    assert found.participants == (10, 10, 10)
    assert found.hours == pytest.approx((500 * 6 / 3600,) * 3)
    assert found.cost == pytest.approx(((10 * 1 + 12 * 500 * 6 / 3600) * 1.25,) * 3)
    assert (found.runs, found.stopped, found.right) == (3, 3, 3)


def test_what_did_not_stop_counts_as_the_limit_and_costs_without_pay_are_none():
    config = PlanConfig(items=20)
    found = plan_row(config, [Run(2, "random", None, None)])
    assert found.answers == (config.limit,) * 3
    assert (found.stopped, found.right, found.cost) == (0, 0, None)


def test_a_wrong_stop_is_not_a_right_one():
    found = plan_row(PlanConfig(items=20), [Run(2, "fisher", 300, 1)])
    assert (found.stopped, found.right) == (1, 0)


def test_the_same_seed_gives_the_same_plan():
    config = PlanConfig(items=5, max_answers=60, shares=(0.5,))
    first, again = (list(plan(config, [1, 2], 1, seed=3)) for _ in range(2))
    assert first == again
    rows = [(row.selector, row.rank) for row in first]
    assert rows == [("fisher", 1), ("fisher", 2), ("random", 1), ("random", 2)]
    assert all(0 < count <= 60 for row in first for count in row.answers)


def test_the_first_row_comes_before_the_other_studies_are_done():
    seen = []
    rows = plan(
        *(PlanConfig(items=5, max_answers=20, shares=(0.5,)), [1, 2], 2, 3),
        lambda done, of: seen.append(done),
    )
    assert next(rows).rank == 1
    assert max(seen) == 2
    assert len(list(rows)) == 3
    assert max(seen) == 8


@pytest.mark.parametrize(
    ("amounts", "currency", "expected"),
    [
        ((1240.4,), "EUR", "1,240 EUR"),
        ((12.5,), "€", "€12.50"),
        ((12.5, 99.0), "GBP", "12.50 to 99.00 GBP"),
        ((35.5, 340.0), "GBP", "36 to 340 GBP"),
        ((12.5, 340.0), "GBP", "up to 340 GBP"),
        ((12.5, 340.0), "£", "up to £340"),
        ((120.0, 340.0), "$", "$120 to $340"),
        ((120.1, 120.2), "US$", "120 US$"),
    ],
)
def test_money_is_written_with_its_currency(amounts, currency, expected):
    written = money(*amounts, currency) if len(amounts) == 1 else money_range(*amounts, currency)
    assert written == expected


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--items", "3"), "items is 3, but must be from 4 to 100000"),
        ((), "or the number of items with --items"),
        (("--items", "10", "--ranks", "0-2"), "--ranks is '0-2'"),
        (("--items", "10", "--ranks", "two"), "--ranks is 'two'"),
        (("--items", "5", "--ranks", "5"), "rank 5 is not possible for 5 items"),
        (("--items", "10", "--trials", "0"), "trials is 0"),
        (("--items", "10", "--pay-per-hour", "-1"), "--pay-per-hour is -1.0, but must be a number"),
        (
            ("--items", "10", "--pay-fee", "25"),
            "--pay-fee is 25.0, but must be a number from 0 to 1",
        ),
        (("--items", "10", "--pay-per-hour", "9"), "--pay-currency EUR"),
        (("--items", "10", "--pay-currency", "x" * 13), "text of at most 12 characters"),
        (("--items", "10", "--noise", "-1"), "noise"),
    ],
)
def test_what_cannot_be_planned_is_said(arguments, sentence):
    result = CliRunner().invoke(main, ["plan", *arguments])
    assert result.exit_code == 2
    assert sentence in result.stderr


@pytest.fixture
def desk(tmp_path):
    opened = Desk(tmp_path / "pilot", "[session]\ntrials = 30\nrepeat = 0.2\npractice = 0\n", 8)
    yield opened
    opened.close()


def test_a_pilot_estimates_noise_lapses_and_trials(desk):
    worker, participant = desk.worker(), Respondent(8, 1, noise=0.05)
    for _ in range(3):
        stage = desk.new_participant()
        while stage.kind in ("practice", "trial"):
            stage = desk.answer(stage, participant.side(stage))
            desk.now += 700
        worker.turn()
    arguments = ["--ranks", "1", "--runs", "1", "--smallest-dimension", "0.5", "--json"]
    result = CliRunner().invoke(main, ["plan", "--from", str(desk.folder), *arguments])
    assert result.exit_code == 0, result.output
    first, *rows = map(json.loads, result.stdout.splitlines())
    config = first["plan"]
    assert (config["items"], config["trials"]) == (8, 30)
    assert config["overhead"] == pytest.approx(desk.study.settings.session.catch + 0.2)
    assert 0.001 <= config["noise"] < 1.0
    assert 0.0 <= config["lapse"] <= 0.2
    # 700 ms passed for each of its trials.
    assert config["seconds_per_trial"] == pytest.approx(0.7, abs=0.1)
    assert [(row["rank"], row["selector"]) for row in rows] == [(1, "fisher"), (1, "random")]


def test_a_study_folder_is_planned_with_its_own_settings_and_options_before_them(tmp_path):
    toml = (
        "[session]\ntrials = 20\n[stopping]\naudits = 2\n"
        '[pay]\nper_participant = 2.5\nfee = 0.25\ncurrency = "EUR"\n'
    )
    folder = write_study(tmp_path / "planned", toml, 5)
    arguments = ["plan", str(folder), "--ranks", "1", "--runs", "1", "--pay-fee", "0.5"]
    result = CliRunner().invoke(main, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    first, *rows = map(json.loads, result.stdout.splitlines())
    config = first["plan"]
    assert (config["items"], config["trials"], config["audits"]) == (5, 20, 2)
    assert config["pay"] == {
        "per_participant": 2.5, "per_hour": 0.0, "fee": 0.5, "currency": "EUR"
    }  # fmt: skip
    assert rows[0]["cost"] == pytest.approx([3.75 * many for many in rows[0]["participants"]])
    shown = CliRunner().invoke(main, arguments).stdout
    assert "2.50 EUR per participant, a fee of 50 %" in shown
    assert "cost (EUR)" in shown


def test_without_pay_there_is_no_cost_but_a_hint():
    arguments = ["plan", "--items", "5", "--ranks", "1", "--runs", "1"]
    shown = CliRunner().invoke(main, arguments).stdout
    assert "cost (" not in shown
    assert "set [pay] in study.toml" in shown


def test_a_pilot_without_a_model_is_refused(desk):
    result = CliRunner().invoke(main, ["plan", "--from", str(desk.folder)])
    assert result.exit_code == 2
    assert "the pilot has no model yet" in result.stderr


def test_impossible_plans_are_refused_in_python_too():
    with pytest.raises(InvalidParameter, match=r"overhead is 1\.0"):
        PlanConfig(items=10, overhead=1.0)


def test_progress_is_for_terminals_and_rows_are_for_standard_output():
    command = str(Path(sys.executable).with_name("lore-active"))
    arguments = ("plan", "--items", "5", "--ranks", "1", "--runs", "2", "--json",
                 "--smallest-dimension", "0.5")  # fmt: skip
    ours, theirs = pty.openpty()
    with subprocess.Popen([command, *arguments], stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        assert process.stdout is not None
        rows = process.stdout.read().decode().splitlines()
        said = b""
        # On Linux, reading a terminal that nobody has open any more is an error.
        while chunk := _read(ours):
            said += chunk
    os.close(ours)
    assert [next(iter(json.loads(row))) for row in rows] == ["plan", "rank", "rank"]
    assert b"simulated study 0 of 4" in said
    assert re.search(rb"simulated study 3 of 4, about .+ left", said)
    # Nor is anything else when it is one process that computes.
    result = completed(*arguments, "--jobs", "1")
    assert result.returncode == 0
    assert (result.stdout.splitlines(), result.stderr) == (rows, "")


def _read(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def test_one_course_of_answers_gives_a_row_for_each_smallest_dimension():
    config = PlanConfig(items=8, max_answers=160, rule="smallest_dimension", shares=(0.5, 0.2))
    rows = list(plan(config, [1], 1, seed=5))
    assert [(row.selector, row.smallest_dimension) for row in rows] == [
        *(("fisher", share) for share in (0.2, 0.5)),
        *(("random", share) for share in (0.2, 0.5)),
    ]
    # A larger dimension is never ruled out later.
    assert all(rows[k].answers[0] >= rows[k + 1].answers[0] for k in (0, 2))


def test_a_stop_is_right_at_the_number_of_dimensions_of_that_size():
    # Of three dimensions only two carry a tenth of the differences.
    run = Run(3, "fisher", 400, 2, smallest_dimension=0.1, correct=(2, 2))
    assert run.right and not Run(3, "fisher", 400, 2).right


def test_worlds_and_given_spaces_can_be_planned(tmp_path):
    file = tmp_path / "space.csv"
    file.write_text("item,dim_1,dim_2\n" + "".join(f"w{k},{k % 3},{k}\n" for k in range(7)))
    common = ["plan", "--ranks", "1", "--runs", "1", "--json", "--jobs", "1"]
    for more, items in (
        (["--space", str(file)], 7),
        (["--items", "6", "--world", "clusters", "--noise-spread", "0.5"], 6),
    ):
        result = CliRunner().invoke(main, [*common, *more])
        assert result.exit_code == 0, result.output
        first, *rows = map(json.loads, result.stdout.splitlines())
        assert first["plan"]["items"] == items
        assert len(rows) >= 2
    result = CliRunner().invoke(main, [*common[:2], "3", "--runs", "1", "--space", str(file)])
    assert result.exit_code == 2
    assert "the given space has 2 dimensions" in result.stderr
    result = CliRunner().invoke(main, ["plan", "--items", "8", "--ranks", "1", "--world", "circle"])
    assert result.exit_code == 2
    assert "must be 2 in the world 'circle'" in result.stderr
