"""The commands `simulate` and `plan` with questions that carry more than one comparison."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from server.cli.main import main

SMALL = ("--items", "9", "--json")


def run(*arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("label", ["rank-2-of-6", "choose-2-of-4", "odd-one-out"])
def test_studies_of_each_kind_are_simulated_and_repeat(label):
    arguments = ("simulate", *SMALL, "--rank", "1", "--answers", "40", "--kind", label)
    first, again = run(*arguments), run(*arguments)
    assert [record["accuracy"] for record in first] == [record["accuracy"] for record in again]
    *audits, summary = first
    assert summary["answers"] == 40 and summary["accuracy"] > 0.8
    assert audits[0]["answers"] <= 20


def test_noise_of_other_distributions():
    arguments = ("simulate", *SMALL, "--rank", "1", "--answers", "30", "--kind", "rank-2-of-6")
    ends = [run(*arguments, "--distribution", name)[-1] for name in ("gaussian", "heavy")]
    assert ends[0]["accuracy"] != ends[1]["accuracy"]


def test_a_pool_of_triplets_answers_no_other_kind(tmp_path):
    pool = tmp_path / "pool.csv"
    pool.write_text("anchor,nearer,farther\na,b,c\nb,c,d\n")
    result = CliRunner().invoke(main, ["simulate", "--pool", str(pool), "--kind", "odd-one-out"])
    assert result.exit_code == 2 and "--pool has answers to triplets" in result.stderr


def test_kinds_are_compared_by_hours():
    arguments = ("--items", "9", "--ranks", "1", "--runs", "1", "--jobs", "1",
                 "--smallest-dimension", "0.5")  # fmt: skip
    kinds = ("--kind", "triplet", "--kind", "choose-1-of-4")
    *lines, last = run("plan", *arguments, *kinds, "--seconds-per-trial", "5", "--json")
    settings = [line["plan"] for line in lines if "plan" in line]
    assert [setting["kind"] for setting in settings] == ["triplet", "choose-1-of-4"]
    assert settings[0]["seconds_per_trial"] == 5.0
    assert settings[1]["seconds_per_trial"] == pytest.approx(5.0 * 3.97 / 3.06, rel=0.01)
    rows = [line for line in lines if "plan" not in line]
    assert {row["kind"] for row in rows} == {"triplet", "choose-1-of-4"}
    for label, hours in last["hours"].items():
        adaptive = [
            row["hours"][1] for row in rows if (row["kind"], row["selector"]) == (label, "fisher")
        ]
        assert hours == pytest.approx(np.mean(adaptive))
    assert last["recommended"] in last["hours"]
    shown = CliRunner().invoke(main, ["plan", *arguments, *kinds]).stdout
    assert "Recommended: " in shown and "tire participants" in shown


def test_an_unknown_kind_is_refused():
    for command in ("plan", "simulate"):
        result = CliRunner().invoke(main, [command, "--items", "9", "--kind", "grid"])
        assert result.exit_code == 2 and "'grid', but must be like 'triplet'" in result.stderr
