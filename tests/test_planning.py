"""Plans: what a study will cost, from simulated ones and from a pilot."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from lore_active import InvalidParameter
from lore_active.planning import Run, Wish, _forecast, plan
from server.commands import main
from tests.studying import Desk, Person


def test_costs_follow_from_answers():
    wish = Wish(items=20, trials=50, seconds_per_trial=6.0, pay=12.0, overhead=0.2)
    runs = [Run(2, "fisher", at, 2) for at in (400, 400, 400)]
    found = _forecast(wish, 2, [*runs, Run(2, "random", None, None)])
    assert found.answers == (400.0, 400.0, 400.0)
    # A fifth of the trials are catches and repeats: 500 trials for 400 answers.
    assert found.participants == (10, 10, 10)
    assert found.hours == pytest.approx((500 * 6 / 3600,) * 3)
    assert found.money == pytest.approx((12 * 500 * 6 / 3600,) * 3)
    assert (found.runs, found.stopped, found.right) == (3, 3, 3)
    # What was not settled counts as the limit, and is said.
    assert found.random_answers == (wish.limit,) * 3
    assert found.random_stopped == 0


def test_a_wrong_stop_is_no_right_one():
    found = _forecast(Wish(items=20), 2, [Run(2, "fisher", 300, 1), Run(2, "random", 900, 2)])
    assert (found.stopped, found.right) == (1, 0)


def test_the_same_seed_gives_the_same_plan():
    wish = Wish(items=5, most=60)
    first, again = (plan(wish, [1, 2], 1, seed=3) for _ in range(2))
    assert first == again
    assert [one.rank for one in first] == [1, 2]
    assert all(0 < count <= 60 for one in first for count in one.answers)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--items", "3"), "items is 3, but must be from 4 to 100000"),
        ((), "Give the number of items"),
        (("--items", "10", "--ranks", "0-2"), "--ranks is '0-2'"),
        (("--items", "10", "--ranks", "two"), "--ranks is 'two'"),
        (("--items", "5", "--ranks", "5"), "rank 5 is not possible for 5 items"),
        (("--items", "10", "--trials", "0"), "trials is 0"),
        (("--items", "10", "--pay", "-1"), "pay is -1.0"),
        (("--items", "10", "--noise", "-1"), "noise"),
    ],
)
def test_what_cannot_be_planned_is_said(arguments, sentence):
    told = CliRunner().invoke(main, ["plan", *arguments])
    assert told.exit_code == 2
    assert sentence in told.stderr


@pytest.fixture
def desk(tmp_path):
    opened = Desk(tmp_path / "pilot", "[session]\ntrials = 30\nrepeat = 0.2\npractice = 0\n", 8)
    yield opened
    opened.close()


def test_a_pilot_tells_noise_lapses_and_trials(desk):
    worker, person = desk.worker(), Person(8, 1, noise=0.05)
    for _ in range(3):
        stage = desk.newcomer()
        while stage.kind in ("practice", "trial"):
            stage = desk.answer(stage, person.side(stage))
            desk.now += 700
        worker.turn()
    told = CliRunner().invoke(
        main, ["plan", "--from", str(desk.folder), "--ranks", "1", "--runs", "1", "--json"]
    )
    assert told.exit_code == 0, told.output
    wish = json.loads(told.stdout)["wish"]
    assert (wish["items"], wish["trials"]) == (8, 30)
    assert wish["overhead"] == pytest.approx(desk.study.settings.session.catch + 0.2)
    assert 0.001 <= wish["noise"] < 1.0
    assert 0.0 <= wish["lapse"] <= 0.2


def test_a_pilot_without_a_model_is_refused(desk):
    told = CliRunner().invoke(main, ["plan", "--from", str(desk.folder)])
    assert told.exit_code == 2
    assert "the pilot has no model yet" in told.stderr


def test_impossible_wishes_are_refused_in_python_too():
    with pytest.raises(InvalidParameter, match=r"overhead is 1\.0"):
        Wish(items=10, overhead=1.0)
