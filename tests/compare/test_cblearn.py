"""With cblearn itself: its methods run, take our export, and fail in words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cblearn.utils import check_query_response
from click.testing import CliRunner

from lore_active.data.comparisons import as_triplets
from lore_active.simulation.baselines import METHODS
from lore_active.simulation.observers import gaussian_space, simulated_answers
from server.cli.main import main
from tests.support.open_study import Desk, Respondent

# cblearn's own business with SciPy.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize. The `disp`:DeprecationWarning")
ITEMS = 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    toml = "[session]\ntrials = 40\npractice = 1\nbreak_every = 0\ncatch = 0.05\nrepeat = 0.1"
    desk = Desk(tmp_path_factory.mktemp("cblearn") / "words", toml, items=ITEMS)
    participant = Respondent(ITEMS, 2, noise=0.1)
    for _ in range(4):
        stage = desk.new_participant()
        while stage.kind in ("practice", "trial"):
            stage = desk.answer(stage, participant.side(stage))
    desk.close()
    return desk.folder


def run(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_cblearn_takes_our_export(folder, tmp_path):
    run("export", folder, "--format", "cblearn", "--out", tmp_path)
    with np.load(tmp_path / "words_triplets.npz", allow_pickle=False) as held:
        triplets = held["triplets"]
    taken = check_query_response(triplets, result_format="list-order")
    assert np.array_equal(taken, triplets)
    queries, answers = check_query_response(triplets, result_format="list-count")
    assert len(queries) == len(triplets)
    assert set(np.unique(answers)) <= {-1, 1}


@pytest.mark.parametrize("key", ["soe", "ckl", "t-ste", "gnmds"])
def test_its_methods_fit_our_export(folder, tmp_path, key):
    run("export", folder, "--format", "cblearn", "--out", tmp_path)
    answers = as_triplets(tmp_path / "words_triplets.npz")
    found = METHODS[key].fit(answers, 3, 0)
    assert found.embedding.shape == (ITEMS, 3)
    assert found.rank == 3


def test_a_study_is_compared(folder):
    report = json.loads(run("compare", folder, "--folds", 2, "--seconds", 60, "--json"))
    status = {method["method"]: method for method in report["methods"]}
    for key in ("lore", "lore-cv", "soe", "ckl", "t-ste", "gnmds", "dim-cv"):
        assert status[key]["status"] == "done", status[key]
        assert 0.5 < status[key]["accuracy"] <= 1.0
    assert status["ckl"]["rank"] == ITEMS - 1
    assert 1 <= status["dim-cv"]["rank"] <= ITEMS - 1
    if METHODS["forte"].missing():
        assert status["forte"]["message"] == "torch is not installed"


def test_weights_repeat_a_row_or_are_refused(tmp_path):
    rows = simulated_answers(gaussian_space(6, 2, 1), 40, 2)
    head = "anchor,nearer,farther,weight\n"
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    whole.write_text(head + "".join(f"{a},{i},{j},2\n" for a, i, j in rows))
    parts.write_text(head + "".join(f"{a},{i},{j},0.5\n" for a, i, j in rows))
    arguments = ("--folds", 2, "--methods", "ckl,lore", "--json")
    assert [
        method["status"] for method in json.loads(run("compare", whole, *arguments))["methods"]
    ] == [
        "done",
        "done",
    ]
    ckl, lore = json.loads(run("compare", parts, *arguments))["methods"]
    assert lore["status"] == "done"
    assert ckl["status"] == "failed" and "whole numbers" in ckl["message"]
