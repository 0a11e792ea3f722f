"""LORE beside other methods: what is said of those that run, stop, fail or are not there."""

from __future__ import annotations

import json
import os
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from lore_active.data.comparisons import as_triplets
from lore_active.rank.folds import folds
from lore_active.simulation.baselines import METHODS, Method
from lore_active.simulation.observers import gaussian_space, simulated_answers
from server.cli.main import main
from server.comparison import drawing
from server.comparison.method_process import Job
from server.comparison.run import FoldResult, Result, _Child, compare, verdict
from server.store import journal
from tests.support.open_study import Desk, Respondent

ITEMS = 12


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "answers.csv"
    answers = simulated_answers(gaussian_space(ITEMS, 2, 1), 600, 2)
    path.write_text("anchor,nearer,farther\n" + "".join(f"{a},{i},{j}\n" for a, i, j in answers))
    return path


def run(*arguments):
    return CliRunner().invoke(main, ["compare", *(str(argument) for argument in arguments)])


def test_lore_runs_and_what_is_not_installed_is_said(file, tmp_path, monkeypatch):
    # Where cblearn is there, the same must hold for a machine without it.
    monkeypatch.setattr("lore_active.simulation.baselines.find_spec", lambda name: None)
    page = tmp_path / "page.html"
    result = run(file, "--folds", 3, "--seconds", 120, "-o", page)
    assert result.exit_code == 0, result.output
    lines = {line[:24].strip(): line for line in result.stdout.splitlines()}
    assert " ± " in lines["LORE, λ = 0.01"] and " ± " in lines["LORE, cross-validated"]
    said = "not run: cblearn is not installed (pip install 'lore-active[compare]')"
    assert "–" in lines["t-STE"] and lines["t-STE"].endswith(said)
    assert str(page) in result.stdout
    text = page.read_text()
    assert "<script" not in text and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert all(method.name in text for method in METHODS.values())
    assert result.stderr == ""


def test_json_has_every_fold_and_every_method(file):
    result = run(file, "--folds", 3, "--methods", "lore-cv, lore", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert set(report) == {
        *("n_objects", "n_triplets", "folds", "components", "seed", "limit_seconds"),
        *("best", "simplest", "methods"),
    }
    assert (report["n_objects"], report["n_triplets"]) == (ITEMS, 600)
    assert [method["method"] for method in report["methods"]] == ["lore-cv", "lore"]
    for method in report["methods"]:
        assert set(method) == {
            *("method", "name", "status", "message", "folds", "folds_done"),
            *("accuracy", "accuracy_se", "rank", "seconds"),
        }
        shares = [fold["accuracy"] for fold in method["folds"]]
        assert method["status"] == "done" and method["folds_done"] == 3
        assert method["accuracy"] == pytest.approx(np.mean(shares))
        assert method["accuracy_se"] == pytest.approx(np.std(shares, ddof=1) / np.sqrt(3))
        # Two true dimensions, noise variance 0.1: far from chance, not perfect.
        assert 0.75 < method["accuracy"] < 1.0
        assert 1 <= method["rank"] <= 4
    assert report["best"] in ("lore", "lore-cv")
    again = json.loads(run(file, "--folds", 3, "--methods", "lore", "--json").stdout)
    assert [fold["accuracy"] for fold in again["methods"][0]["folds"]] == [
        fold["accuracy"] for fold in report["methods"][1]["folds"]
    ]


def test_a_method_that_takes_too_long_is_ended_and_said(tmp_path):
    path = tmp_path / "many.npy"
    np.save(path, simulated_answers(gaussian_space(60, 5, 1), 20_000, 2))
    result = run(path, "--folds", 4, "--seconds", 0.05, "--methods", "lore-cv", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    (one,) = report["methods"]
    assert (one["status"], one["message"]) == ("stopped", "stopped after 0.05 s")
    assert one["folds_done"] < 4
    assert report["best"] is None
    spoken = run(path, "--folds", 4, "--seconds", 0.05, "--methods", "lore-cv").stdout
    assert "stopped after 0.05 s after 0 of 4 folds" in spoken


def test_no_process_stays_behind_and_a_dead_one_is_said(file):
    job = Job("lore", str(file), ITEMS, 2, 5, 0)
    with _Child(job) as child:
        number = child._process.pid
        os.kill(number, 9)
        line = child.line(60)
    assert line == {"failed": "the process ended with code -9."}
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_method_that_fails_is_said(file):
    with _Child(Job("lore", str(file.parent / "gone.csv"), ITEMS, 2, 5, 0)) as child:
        line = child.line(60)
    assert line is not None and "There is no file" in line["failed"]
    answers = as_triplets(file)

    # A method of which the process knows nothing.
    method = Method("nobody", "Nobody", "", METHODS["lore"].fit)
    (result,) = compare(answers, [method], 2, 60.0, 5, 0)
    assert result.status == "failed" and "nobody" in result.message
    assert "failed" in drawing.state(result, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--folds", "1"], "--folds is 1, but must be 2 or more."),
        (["--folds", "5000"], "fewer than 5000 different questions"),
        (["--seconds", "0"], "--seconds is 0, but must be more than 0."),
        (["--components", "0"], "--components is 0, but must be 1 or more."),
        (["--seed", "-1"], "--seed is -1, but must be 0 or more."),
        (
            ["--methods", "lore,best"],
            "--methods has 'best', but must be some of lore, lore-cv, soe,",
        ),
        (
            ["-o", "picture.png"],
            "-o is picture.png, but the figure's name must end in .svg or .html.",
        ),
    ],
)
def test_wrong_input_gets_one_sentence(file, arguments, words):
    result = run(file, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1


def test_files_that_hold_no_answers_are_said(tmp_path):
    (tmp_path / "bad.csv").write_text("anchor,nearer,farther\n1,1,2\n")
    assert "names an item twice" in run(tmp_path / "bad.csv").stderr
    assert "study.toml is missing" in run(tmp_path).stderr


def test_answers_to_one_question_share_a_fold():
    rows = simulated_answers(gaussian_space(6, 2, 1), 500, 2)
    part = folds(as_triplets(rows), 0, 7)
    assert set(part) == set(range(7))
    seen = {}
    for (a, i, j), fold in zip(rows.tolist(), part, strict=True):
        assert seen.setdefault((a, min(i, j), max(i, j)), fold) == fold


def test_of_a_study_the_answers_that_count(tmp_path):
    toml = (
        "[session]\ntrials = 20\npractice = 1\nbreak_every = 0\ncatch = 0.1\n[trial]\nskip = true"
    )
    desk = Desk(tmp_path / "words", toml, items=8)
    participant = Respondent(8, 2)
    for _ in range(3):
        stage = desk.new_participant()
        while stage.kind in ("practice", "trial"):
            stage = desk.answer(stage, "skip" if stage.done == 9 else participant.side(stage))
    desk.control.exclude("test", 2, "too fast")
    rows = [one for one in desk.database.read(journal.counted) if not one.excluded]
    catches = desk.rows(
        "SELECT count(*) FROM queries WHERE purpose = 'catch' AND participant <> 2 "
        "AND id IN (SELECT query FROM answers WHERE outcome <> 'skip')"
    )[0][0]
    assert len(rows) == 2 * 19 - catches
    desk.close()
    report = json.loads(run(desk.folder, "--folds", 2, "--methods", "lore", "--json").stdout)
    assert (report["n_objects"], report["n_triplets"]) == (8, len(rows))


def results():
    fine = tuple(FoldResult(share, 3, 1.5, "λ = 0.01") for share in (0.81, 0.83))
    return [
        Result("lore-cv", "LORE <&>", "done", "", fine),
        Result("ckl", "CKL", "done", "", tuple(FoldResult(0.825, 15, 20.0, "") for _ in range(2))),
        Result("soe", "SOE", "stopped", "stopped after 9 s", (FoldResult(0.9, 15, 8.0, ""),)),
        Result("oenn", "OENN", "missing", "torch is not installed", ()),
    ]


def test_the_figure_shows_every_method_and_its_numbers():
    drawn = drawing.svg(results(), 2, "A & B")
    texts = [element.text for element in ElementTree.fromstring(drawn).iter() if element.text]
    for words in ("LORE <&>", "CKL", "SOE", "not run: torch is not installed", "15", "A & B"):
        assert words in texts
    assert drawing.svg([results()[3]], 2, "none ran")


def test_the_verdict_leaves_out_what_did_not_go_through():
    assert verdict(results()) == {"best": "ckl", "simplest": "lore-cv"}
