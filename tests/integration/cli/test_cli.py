"""The command as its user runs it: its output and its exit code; where these depend on it, as a
process of its own."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lore_active.simulation.observers import gaussian_space, simulated_answers
from server.cli.main import COMMANDS
from tests.support.commands import completed as run

COMMAND = str(Path(sys.executable).with_name("lore-active"))


def run_alone(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    file = tmp_path_factory.mktemp("answers") / "answers.csv"
    rows = simulated_answers(gaussian_space(25, 2, 1), 1500, 2)
    np.savetxt(file, rows, fmt="%d", delimiter=",", header="anchor,nearer,farther", comments="")
    return file


def test_json_has_the_documented_keys_and_nothing_else_on_stdout(answers):
    output = run_alone("fit", answers, "--json")
    assert output.returncode == 0, output.stderr
    result = json.loads(output.stdout)
    assert set(result) == {
        "n_objects",
        "n_triplets",
        "n_trials",
        "reading",
        "rank",
        "lambda",
        "objective",
        "iterations",
        "converged",
        "train_accuracy",
        "evidence",
        "further",
        "seconds",
        "left_out",
        "simulated_left_out",
        "unseen",
        "singular_values",
        "warnings",
    }
    assert result["rank"] == 2
    assert [row["rank"] for row in result["evidence"]][:3] == [0, 1, 2]
    assert result["further"] == result["warnings"] == []
    assert result["n_objects"] == 25
    assert result["n_triplets"] == result["n_trials"] == 1500
    assert result["reading"] == ""
    assert result["converged"] is True
    assert len(result["singular_values"]) == result["rank"]
    assert output.stderr == ""


def test_out_writes_embedding_and_json(answers, tmp_path):
    output = run("fit", answers, "--items", 26, "--seed", 3, "--out", tmp_path / "a" / "b")
    assert output.returncode == 0, output.stderr
    assert "dimension" in output.stdout
    with (tmp_path / "a" / "b" / "embedding.csv").open() as stream:
        rows = list(csv.reader(stream))
    result = json.loads((tmp_path / "a" / "b" / "fit.json").read_text())
    assert rows[0] == ["item", *(f"dim_{number + 1}" for number in range(result["rank"]))]
    assert [row[0] for row in rows[1:]] == [str(k) for k in range(26)]
    norms = np.linalg.norm(np.array([row[1:] for row in rows[1:]], dtype=float), axis=0)
    np.testing.assert_allclose(norms, result["singular_values"])


def test_a_fixed_penalty_is_fitted_as_before_and_says_that_answers_are_few(answers, tmp_path):
    output = run("fit", answers, "--lam", "0.01", "--json")
    result = json.loads(output.stdout)
    assert output.stderr == ""
    assert (result["lambda"], result["evidence"], result["further"]) == (0.01, [], [])
    (warning,) = result["warnings"]
    assert "60 answers per item; with fewer than 100" in warning
    assert warning in run("fit", answers, "--lam", "0.01").stdout


def test_a_further_dimension_is_tested_on_request(answers):
    output = run("fit", answers, "--smallest-dimension", "0.2")
    assert output.returncode == 0, output.stderr
    assert "held-out log-loss" in output.stdout
    assert "A further dimension with 20 % of the variance or more: ruled out" in output.stdout


def test_labels_reach_the_embedding_and_formulas_are_neutralised(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("anchor,nearer,farther\n" + "=1+1,pear,fig\nfig,pear,=1+1\n" * 3)
    output = run("fit", file, "--out", tmp_path, "--lam", "0.001")
    assert output.returncode == 0, output.stderr
    with (tmp_path / "embedding.csv").open() as stream:
        assert [row[0] for row in csv.reader(stream)] == ["item", "'=1+1", "fig", "pear"]


@pytest.mark.parametrize(
    ("text", "extra", "parts"),
    [
        ("anchor,nearer,farther\n0,1,1\n", [], ["Line 2", "(0, 1, 1)"]),
        ("anchor,nearer,farther\n0,1,9\n", ["--items", "5"], ["9", "0 to 4"]),
        ("0,1,2\n", ["--lam", "-1"], ["lam is -1.0", "positive"]),
        ("0,1,2\n", ["--lam", "0.1", "--components", "0"], ["n_components is 0"]),
        ("0,1,2\n", ["--components", "3"], ["--components is for a fixed λ: add --lam"]),
        ("0,1,2\n", ["--trim"], ["--trim is for a fixed λ: add --lam"]),
        ("0,1,2\n", ["--smallest-dimension", "2"], ["smallest_dimension is 2.0"]),
        ("0,1,2\n", ["--lam", "1", "--smallest-dimension", ".1"], ["omit --lam"]),
        ("anchor,nearer,farther,weight\n0,1,2,0.5\n", [], ["Weight 0.5", "whole number"]),
        (None, [], ["no file"]),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(tmp_path, text, extra, parts):
    file = tmp_path / "bad.csv"
    if text is not None:
        file.write_text(text)
    output = run("fit", file, *extra, "--json")
    assert output.returncode == 2
    assert output.stdout == ""
    assert "Traceback" not in output.stderr
    assert output.stderr.count("\n") == 1
    for part in parts:
        assert part in output.stderr


def test_an_output_folder_that_cannot_be_made(answers, tmp_path):
    (tmp_path / "taken").write_text("")
    output = run_alone("fit", answers, "--out", tmp_path / "taken" / "inside")
    assert output.returncode == 2
    assert "taken" in output.stderr
    assert "Traceback" not in output.stderr


def test_version_and_help():
    assert run_alone("--version").stdout.startswith("lore-active, version ")
    assert "fit" in run_alone("--help").stdout


def test_simulate_prints_a_line_per_audit_and_a_summary():
    output = run("simulate", "--items", 20, "--rank", 2, "--answers", 150, "--seed", 4, "--json")
    assert output.returncode == 0, output.stderr
    *audits, summary = map(json.loads, output.stdout.splitlines())
    assert audits
    for audit in audits:
        assert {"answers", "rank", "lambda", "accuracy", "prequential_accuracy"} <= set(audit)
        assert audit["decision"] in ("stop", "continue")
    assert summary["summary"] is True
    assert summary["true_rank"] == 2
    assert {"stopped_at", "rank", "accuracy", "refit_seconds"} <= set(summary)
    assert {"audit_seconds", "select_seconds"} <= set(summary)


def test_simulate_on_a_pool(answers):
    output = run("simulate", "--pool", answers, "--answers", 120, "--selector", "random", "--json")
    assert output.returncode == 0, output.stderr
    summary = json.loads(output.stdout.splitlines()[-1])
    assert summary["answers"] == 120
    assert summary["true_rank"] is None


def test_simulate_repeats_itself():
    def ranks(run):
        output = run("simulate", "--items", 12, "--answers", 80, "--lapse", 0.1, "--json")
        return [
            (json.loads(line)["answers"], json.loads(line)["accuracy"])
            for line in output.stdout.splitlines()
        ]

    assert ranks(run) == ranks(run) == ranks(run_alone)


@pytest.mark.parametrize(
    ("extra", "part"),
    [
        (["--items", "3"], "items is 3"),
        (["--rank", "0"], "rank is 0"),
        (["--noise", "-1"], "noise"),
    ],
)
def test_simulate_refuses_invalid_options(extra, part):
    output = run("simulate", *extra)
    assert output.returncode == 2
    assert part in output.stderr


def test_the_overview_imports_no_command_and_says_what_each_says_itself():
    for name, location in list(COMMANDS.homes.items()):
        own = COMMANDS[name].help.partition("\n\n")[0]
        assert getattr(location, "summary", own) == own, name
    code = (
        "import sys; from click.testing import CliRunner; from server.cli.main import main;"
        "result = CliRunner().invoke(main, ['--help']);"
        "assert result.exit_code == 0, result.output;"
        "heavy = {'numpy', 'numba', 'scipy', 'flask', 'PIL', 'tomlkit'} & set(sys.modules);"
        "assert not heavy, heavy; print(result.output)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Serve studies to participants" in result.stdout
