"""Weights count, or are refused: nowhere are they dropped without a word."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from lore_active import LORE, InvalidTriplets, Learner, as_triplets
from lore_active.acquisition import model as acquisition_model
from lore_active.data.triplets import MAX_REPEATED
from lore_active.rank import cross_validation, evidence
from lore_active.simulation.baselines import METHODS
from lore_active.simulation.observers import gaussian_space, simulated_answers
from lore_active.simulation.run import LoggedParticipants
from server.cli.main import main

ITEMS = 10
ANSWERS = simulated_answers(gaussian_space(ITEMS, 2, 1), 200, 2)
TIMES = np.arange(200) % 4
WHOLE = as_triplets(ANSWERS, ITEMS, TIMES)
EACH = as_triplets(np.repeat(ANSWERS, TIMES, axis=0), ITEMS)
PARTS = as_triplets(ANSWERS, ITEMS, 0.5 + TIMES)


def csv_of(tmp_path, weights, name="w.csv"):
    file = tmp_path / name
    lines = [f"{a},{i},{j},{w:g}\n" for (a, i, j), w in zip(ANSWERS, weights, strict=True)]
    file.write_text("anchor,nearer,farther,weight\n" + "".join(lines))
    return file


def test_fit_and_score_count_them(tmp_path):
    one, other = LORE().fit(WHOLE), LORE().fit(EACH)
    np.testing.assert_allclose(one.embedding_, other.embedding_, rtol=1e-6, atol=1e-9)
    assert one.score(WHOLE) == pytest.approx(other.score(EACH))
    assert one.score(ANSWERS, sample_weight=TIMES) == pytest.approx(other.score(EACH))
    assert one.score(ANSWERS) != pytest.approx(one.score(WHOLE))
    model = LORE().fit(csv_of(tmp_path, TIMES))
    assert model.embedding_.tobytes() == one.embedding_.tobytes()


def test_both_at_once_are_refused(tmp_path):
    for source in (WHOLE, csv_of(tmp_path, TIMES)):
        with pytest.raises(InvalidTriplets, match="already have weights"):
            as_triplets(source, sample_weight=np.ones(200))
    # Answers that count once each have no weights in the data.
    assert as_triplets(EACH, sample_weight=np.full(len(EACH), 2.0)).weight[0] == 2.0


def test_whole_weights_are_as_many_answers():
    again = WHOLE.repeated("a test")
    for name in ("anchor", "nearer", "farther", "weight"):
        assert getattr(again, name).tolist() == getattr(EACH, name).tolist()
    assert EACH.repeated("a test") is EACH
    huge = as_triplets(ANSWERS[:1], ITEMS, [MAX_REPEATED + 1.0])
    with pytest.raises(InvalidTriplets, match="add up to 10000001 answers, but a test takes at"):
        huge.repeated("a test")


def test_a_learner_takes_whole_weights_as_answers():
    one, other = Learner(ITEMS, 3), Learner(ITEMS, 3)
    one.add(WHOLE)
    other.add(EACH)
    assert one.answers == other.answers and len(one.answers) == TIMES.sum()
    with pytest.raises(InvalidTriplets, match=r"Weight 0.5 of row 0 .*Learner.add counts answers"):
        one.add(PARTS)
    assert len(one.answers) == TIMES.sum()
    with pytest.raises(InvalidTriplets, match="must be given by number here"):
        Learner(4).add([["a", "b", "c"], ["a", "b", "d"]])


def test_cross_validation_and_evidence_count_them_or_refuse():
    found, wanted = cross_validation.audit(WHOLE, 5), cross_validation.audit(EACH, 5)
    assert (found.rank, found.answers) == (wanted.rank, wanted.answers)
    assert found.evidence == wanted.evidence
    assert evidence.log_bayes_factors(WHOLE, 2) == evidence.log_bayes_factors(EACH, 2)
    with pytest.raises(InvalidTriplets, match="cross-validation counts answers one by one"):
        cross_validation.audit(PARTS, 5)
    with pytest.raises(InvalidTriplets, match="the marginal likelihood counts answers one by one"):
        evidence.log_bayes_factors(PARTS, 2)
    with pytest.raises(InvalidTriplets, match="the acquisition model counts each answer once"):
        acquisition_model.chosen(PARTS, np.ones(200, dtype=bool), 5, 2)


def test_compared_methods_count_them_or_say_why_not(tmp_path):
    assert METHODS["lore-cv"].fit(WHOLE, 5, 0).rank == METHODS["lore-cv"].fit(EACH, 5, 0).rank
    arguments = ["--folds", "2", "--methods", "lore,lore-cv", "--json"]
    file = csv_of(tmp_path, 0.5 + TIMES)
    report = json.loads(CliRunner().invoke(main, ["compare", str(file), *arguments]).stdout)
    lore, audited = report["methods"]
    assert lore["status"] == "done"
    assert audited["status"] == "failed"
    assert "is not a whole number, but cross-validation counts" in audited["message"]


def test_the_pool_of_a_simulation_takes_them_as_votes():
    weights = np.where(np.arange(200) % 2, 3.0, 0.0)
    participants = LoggedParticipants(as_triplets(ANSWERS, ITEMS, weights), 1)
    # A question without votes is not in the pool.
    assert participants.questions.tolist() == ANSWERS[1::2].tolist()


def test_a_pool_numbered_from_one_settles_as_one_numbered_from_zero(tmp_path):
    one, zero = tmp_path / "one.npy", tmp_path / "zero.npy"
    np.save(zero, ANSWERS)
    np.save(one, ANSWERS + 1)
    arguments = ["--answers", "60", "--no-stop", "--json"]
    result = [
        CliRunner().invoke(main, ["simulate", "--pool", str(file), *arguments]).stdout
        for file in (zero, one)
    ]
    first, second = (json.loads(text.splitlines()[-1]) for text in result)
    assert first["answers"] == second["answers"] == 60
    assert first["prequential_accuracy"] == second["prequential_accuracy"]
    assert first["message"] == second["message"]
