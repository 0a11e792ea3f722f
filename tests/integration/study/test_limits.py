"""Numbers beyond every bound are refused by name and rule: settings, controls, items."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from msgspec import inspect

from lore_active import LORE, LORECV, InvalidParameter, InvalidTriplets, Learner, as_triplets
from lore_active.data.comparisons import MAX_ITEMS
from server.cli.main import main
from server.study.loading import check, load
from server.study.parsing import all_keys, rule_of
from tests.support.experimenter_client import application, guarded_study, post, sign_in
from tests.support.study_folders import only, small_study

COMMAND = str(Path(sys.executable).with_name("lore-active"))
HUGE = 99999999999999999999999


def whole_numbers():
    """Every key of study.toml that is a whole number, with its bounds."""
    for key, field in all_keys().items():
        info = inspect.type_info(field.type)
        if isinstance(info, inspect.IntType):
            yield key, info


@pytest.mark.parametrize(("key", "info"), list(whole_numbers()), ids=lambda one: str(one)[:25])
def test_every_whole_number_of_a_study_has_a_named_upper_bound(tmp_path, key, info):
    folder = tmp_path.resolve() / "words"
    most = info.le if info.le is not None else info.lt - 1
    small_study(folder, f"{key} = {HUGE}")
    said = only(folder)
    assert f"study.toml: {key} is {HUGE}, but must be a whole number" in said
    assert str(info.le if info.le is not None else info.lt) in said
    # Nothing that SQLite, NumPy or a browser could not hold.
    assert most < 2**53
    small_study(folder, f"{key} = {most + 1}")
    assert key in only(folder)
    others = {
        "stopping.min_answers": "stopping.audits = 5\nbudget.answers = 10000000",
        "trial.options": 'trial.kind = "choose"\ntrial.pick = 1',
        "trial.pick": 'trial.kind = "choose"\ntrial.options = 12',
    }
    items = {f"stimuli/item{number}.txt": str(number) for number in range(13)}
    small_study(folder, f"{key} = {most}\n{others.get(key, '')}", **items)
    assert check(folder) == []
    load(folder)


def test_bounds_are_written_in_digits():
    assert rule_of(all_keys()["budget.answers"].type) == (
        "must be a whole number from 1 to 10000000"
    )


def test_serve_refuses_a_budget_beyond_counting_in_one_sentence(tmp_path):
    folder = guarded_study(tmp_path / "words", f"[budget]\nanswers = {HUGE}\n")
    result = subprocess.run(
        [COMMAND, "serve", str(folder), "--port", "0"], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 2
    assert "budget.answers is 99999999999999999999999, but must be a whole number" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture
def client(tmp_path):
    client = application(guarded_study(tmp_path / "words")).test_client()
    sign_in(client, "words")
    return client


def budget(tmp_path):
    with sqlite3.connect(tmp_path / "words" / "study.db") as database:
        found = database.execute(
            "SELECT budget_answers, budget_participants, trials, "
            "(SELECT count(*) FROM events WHERE kind IN ('budget', 'trials')) FROM state"
        ).fetchone()
    database.close()
    return found


WRONG = ["1_000", "٣", "３", "1e3", "0x10", "+5", "-1", "5.0", "1,000", "1 000", "", "five", "²"]


@pytest.mark.parametrize("text", [*WRONG, "9999999999999", "10000001", "0", "9" * 5000])
def test_the_budget_field_takes_plain_digits_within_its_range(client, tmp_path, text):
    before = budget(tmp_path)
    reply = post(client, "words", "control/budget", answers=text, participants="0")
    assert reply.status_code == 409
    said = reply.get_json()["problem"]
    start = text if len(text) <= 20 else text[:19]
    assert f"answers is {start!r}"[:-1] in said or f"answers is {text}," in said
    assert "must be a whole number from 1 to 10000000, written with the digits 0 to 9 only" in said
    assert "Nothing was changed." in said
    assert budget(tmp_path) == before


@pytest.mark.parametrize("text", [*WRONG, "1000001"])
def test_the_other_fields_too(client, tmp_path, text):
    before = budget(tmp_path)
    reply = post(client, "words", "control/budget", answers="5", participants=text)
    assert "from 0 to 1000000" in reply.get_json()["problem"]
    reply = post(client, "words", "control/trials", trials=text)
    assert "from 1 to 5000" in reply.get_json()["problem"]
    assert budget(tmp_path) == before


def test_values_within_the_range_are_accepted_unchanged(client, tmp_path):
    post(client, "words", "control/budget", answers="010000000", participants=" 1000000 ")
    post(client, "words", "control/trials", trials="5000")
    assert budget(tmp_path) == (10_000_000, 1_000_000, 5000, 2)
    page = client.get("/monitor/words/").text
    assert 'name="answers" type="number" min="1" max="10000000"' in page


# ---- items --------------------------------------------------------------------------------------

FEW = np.array([[a, (a + 1) % 20, (a + 2) % 20] for a in range(20)])


@pytest.mark.parametrize("number", [4 * 10**9, 10**5, 2**31, 2**40, 10**18, 10**30])
def test_an_item_number_beyond_every_set_is_named(number, tmp_path):
    rows = [*FEW.tolist(), [0, 1, number]]
    file = tmp_path / "a.csv"
    file.write_text("".join(f"{a},{i},{j}\n" for a, i, j in rows))
    for source, place in ((rows, r"Row 20 \(counted from 0\)"), (file, "Line 21 of a.csv")):
        with pytest.raises(InvalidTriplets, match=rf"^{place}: farther 1?4?\d+") as caught:
            LORE().fit(source)
        assert f"at most {MAX_ITEMS} items" in str(caught.value)
        assert "Number the items 0, 1, 2, …, or give them as labels" in str(caught.value)
    # The same as labels is an item like any other.
    labels = [[f"item {cell}" for cell in row] for row in rows]
    assert as_triplets(labels).n_objects == 21


def test_numbers_with_gaps_need_the_number_of_items():
    rows = [*FEW.tolist(), [0, 1, 99_999]]
    with pytest.raises(InvalidTriplets) as caught:
        as_triplets(rows)
    output = str(caught.value)
    assert "farther 99999 would make 100000 items, but only 21 numbers occur" in output
    assert "pass n_objects=100000 (--items 100000)" in output
    assert as_triplets(rows, n_objects=100_000).n_objects == 100_000
    # Participants' or products' numbers, as they come out of a data base.
    with pytest.raises(InvalidTriplets, match="would make 1020 items, but only 20 numbers occur"):
        as_triplets(FEW + 1000)
    assert as_triplets(FEW + 15).n_objects == 35
    assert as_triplets([[0, 1, 99]]).n_objects == 100
    with pytest.raises(InvalidTriplets, match="would make 101 items"):
        as_triplets([[0, 1, 100]])


def test_a_few_items_without_answers_are_warned_of():
    with pytest.warns(
        UserWarning, match="An item occurs in no answer, .* meaningless: 0. Items are"
    ):
        model = LORE().fit(FEW + 1)
    assert model.n_objects_ == 21
    with pytest.warns(UserWarning, match="meaningless: 0, 1, 2, 3, 4 and 2 more"):
        LORE().fit(FEW + 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LORECV().fit(FEW + 1, n_objects=22)


def test_the_command_says_which_items_have_no_answers(tmp_path):
    np.save(tmp_path / "a.npy", FEW + 1)
    result = CliRunner().invoke(main, ["fit", str(tmp_path / "a.npy")])
    assert "An item occurs in no answer, so its coordinates are meaningless: 0." in result.stdout
    result = CliRunner().invoke(main, ["fit", str(tmp_path / "a.npy"), "--json"])
    assert '"unseen": [0]' in result.stdout


@pytest.mark.parametrize("count", [10**9, 10**30, MAX_ITEMS + 1])
def test_more_items_than_there_can_be(count):
    with pytest.raises(InvalidParameter, match=f"n_objects is {count}, but must be at most 100000"):
        LORE().fit(FEW, n_objects=count)
    with pytest.raises(InvalidParameter, match=f"n_objects is {count}, but must be from 4 to 1000"):
        Learner(count)
    with pytest.raises(InvalidParameter, match=f"n_components is {count}, but must be a whole"):
        LORE(n_components=count).fit(FEW)
    if count < 2**63:
        for command in ("simulate", "plan"):
            result = CliRunner().invoke(main, [command, "--items", str(count)])
            assert result.exit_code == 2
            assert f"items is {count}, but must be from 4 to {MAX_ITEMS}" in result.stderr
