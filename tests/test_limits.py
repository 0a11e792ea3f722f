"""Numbers beyond every bound are refused by name and rule, in study.toml and on the monitor."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import inspect

from lore_active.folder import check, load
from lore_active.settings import all_keys, rule_of
from tests.studies import only, small_study
from tests.watching import application, guarded_study, post, sign_in

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
    small_study(
        folder,
        f"{key} = {most}\nstopping.audits = 5\nbudget.answers = 10000000"
        if key == "stopping.min_answers"
        else f"{key} = {most}",
    )
    assert check(folder) == []
    load(folder)


def test_bounds_are_written_in_digits():
    assert rule_of(all_keys()["budget.answers"].type) == (
        "must be a whole number from 1 to 10000000"
    )


def test_serve_refuses_a_budget_beyond_counting_in_one_sentence(tmp_path):
    folder = guarded_study(tmp_path / "words", f"[budget]\nanswers = {HUGE}\n")
    told = subprocess.run(
        [COMMAND, "serve", str(folder), "--port", "0"], capture_output=True, text=True, timeout=300
    )
    assert told.returncode == 2
    assert "budget.answers is 99999999999999999999999, but must be a whole number" in told.stderr
    assert "Traceback" not in told.stderr


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
    assert "must be a whole number from 1 to 10000000, written in the digits 0 to 9 alone" in said
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


def test_what_is_within_the_range_is_taken_whole(client, tmp_path):
    post(client, "words", "control/budget", answers="010000000", participants=" 1000000 ")
    post(client, "words", "control/trials", trials="5000")
    assert budget(tmp_path) == (10_000_000, 1_000_000, 5000, 2)
    page = client.get("/monitor/words/").text
    assert 'name="answers" type="number" min="1" max="10000000"' in page
