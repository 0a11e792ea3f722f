"""Published files of trials with several comparisons: THINGS' odd one out, psiz's rankings."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from lore_active import InvalidTriplets, as_triplets
from lore_active.data.formats import read_table
from lore_active.rank.folds import folds
from server.cli.main import main

# As published with THINGS-data (Hebart et al., 2023): separated by tabs, numbers from 1.
THINGS = (
    "image1\timage2\timage3\tchoice\tRT\tnoise_ceiling\tsubject_id\tHIT_nr\ttrial_nr\tage\n"
    "3\t7\t5\t2\t1450\t0\tAB\t1\t1\t31\n"
    "1\t6\t2\t3\t1320\t0\tAB\t1\t2\t31\n"
    "4\t2\t7\t1\t990\t0\tCD\t2\t1\t27\n"
)
# Its training set: numbers from 0, the odd one last.
TRAINSET = "2 4 6\n0 5 1\n6 1 3\n"
EXPECTED = [[2, 4, 6], [4, 2, 6], [0, 5, 1], [5, 0, 1], [1, 6, 3], [6, 1, 3]]


def rows_of(triplets):
    return np.column_stack([triplets.anchor, triplets.nearer, triplets.farther]).tolist()


def file(tmp_path, text, name="answers.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_things_choices_name_the_odd_one_by_its_position_and_count_from_one(tmp_path):
    table = read_table(file(tmp_path, THINGS))
    triplets = as_triplets(table)
    assert rows_of(triplets) == EXPECTED
    assert triplets.trial.tolist() == [0, 0, 1, 1, 2, 2]
    assert triplets.participant.tolist() == [0, 0, 0, 0, 1, 1]
    assert table.reading == (
        "read as 3 trials of the kind odd-one-out; its item numbers count from 1"
    )


def test_things_training_sets_have_the_odd_one_last(tmp_path):
    path = file(tmp_path, TRAINSET, "trainset.txt")
    triplets = as_triplets(path, kind="odd-one-out")
    assert sorted(rows_of(triplets)) == sorted([*EXPECTED[:4], [6, 1, 3], [1, 6, 3]])
    assert triplets.n_trials == 3
    rows = np.loadtxt(path, dtype=int)
    assert rows_of(as_triplets(rows, kind="odd-one-out")) == rows_of(triplets)
    np.save(tmp_path / "train_90.npy", rows)
    again = as_triplets(tmp_path / "train_90.npy", kind="odd-one-out")
    assert rows_of(again) == rows_of(triplets)


def test_numbers_without_a_header_could_be_anything(tmp_path):
    path = file(tmp_path, TRAINSET, "trainset.txt")
    with pytest.raises(InvalidTriplets, match=r"Line 1 of trainset.txt is '2 4 6'.*--format"):
        as_triplets(path)
    # The same numbers as triplets, if that is what they are.
    assert rows_of(as_triplets(path, kind="triplet"))[0] == [2, 4, 6]
    assert len(as_triplets(path, kind="triplet")) == 3


@pytest.mark.parametrize(
    ("choices", "items", "expected"),
    [
        # By label, by position from 0, by item number.
        ("a b c", ("a,b,c", "c,b,a", "b,c,a"), [("c", "b", "a"), ("c", "a", "b")]),
        ("0 1 2", ("0,1,2", "2,1,0", "1,2,0"), [(2, 1, 0), (2, 0, 1)]),
        ("10 11 12", ("10,11,12", "12,11,10", "11,12,10"), None),
    ],
)
def test_the_odd_one_is_an_item_or_its_position(tmp_path, choices, items, expected):
    cells = zip(items, choices.split(), strict=True)
    text = "item_1,item_2,item_3,odd_one_out\n" + "".join(f"{a},{b}\n" for a, b in cells)
    path = file(tmp_path, text)
    if expected is not None and isinstance(expected[0][0], int):
        # Items and positions are both 0, 1 and 2: nobody can tell.
        with pytest.raises(InvalidTriplets, match="numbers from 0 to 2: they could be items, or"):
            as_triplets(path)
        return
    triplets = as_triplets(path)
    assert len(triplets) == 6
    if expected is None:
        assert rows_of(triplets)[:2] == [[11, 12, 10], [12, 11, 10]]
    else:
        names = [[triplets.labels[item] for item in row] for row in rows_of(triplets)]
        assert names[0] == ["b", "c", "a"]
        assert names[2] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (("1", "2", "1"), "numbers from 1 to 2: they could be items, or positions from 0 or from"),
        (("1", "2", "4"), "choice is '4', but the items are '7', '8', '6'|choice is '1', but"),
        (("0", "3", "1"), "numbers from 0 to 3"),
    ],
)
def test_choices_that_could_mean_two_things_are_refused(tmp_path, choices, message):
    rows = zip(("5,6,7", "9,5,6", "7,8,6"), choices, strict=True)
    text = "image1,image2,image3,choice\n" + "".join(f"{a},{b}\n" for a, b in rows)
    with pytest.raises(InvalidTriplets, match=message):
        as_triplets(file(tmp_path, text))


def test_rows_without_a_choice_are_left_out(tmp_path):
    text = THINGS.replace("\t2\t1450", "\tNaN\t1450") + "5\t6\t7\t2\t1\t0\tCD\t1\t1\t9\n"
    table = read_table(file(tmp_path, text))
    assert (table.left_out, len(table.rows)) == (1, 6)
    assert as_triplets(table, 7).n_trials == 3


RANKED = [[9, 3, 5, 1, 0, 2, 4, 6, 7], [8, 0, 1, 2, 3, 4, 5, 6, 7]]


def test_psiz_observations_are_rankings_and_choices(tmp_path):
    shown = np.array([*RANKED, [1, 2, 3, 4, -1, -1, -1, -1, -1]])
    path = tmp_path / "observations.npz"
    np.savez(
        path,
        stimulus_set=shown,
        n_select=np.array([2, 2, 1]),
        is_ranked=np.array([True, False, False]),
        agent_id=np.array([4, 4, 6]),
        weight=np.ones(3),
        class_name=b"RankObservations",
    )
    table = read_table(path)
    triplets = as_triplets(table)
    assert table.reading == (
        "read as 3 trials of the kind choose-1-of-3, choose-2-of-8 and rank-2-of-8"
    )
    assert np.bincount(triplets.trial).tolist() == [13, 12, 2]
    assert triplets.participant[[0, 13, 25]].tolist() == [0, 0, 1]
    rows = rows_of(triplets)
    assert rows[:2] == [[9, 3, 5], [9, 3, 1]]
    assert [8, 0, 1] not in rows
    assert rows[-2:] == [[1, 2, 3], [1, 2, 4]]


def test_psiz_can_mark_missing_references_by_zero(tmp_path):
    path = tmp_path / "observations.npz"
    shown = np.array([[3, 1, 2, 4], [4, 2, 1, 0]])
    np.savez(path, stimulus_set=shown, n_select=1, is_ranked=True, mask_zero=True)
    table = read_table(path)
    assert rows_of(as_triplets(table)) == [[2, 0, 1], [2, 0, 3], [3, 1, 0]]
    assert table.reading.endswith("its item numbers count from 1")


def test_grids_in_a_csv_have_empty_places_last(tmp_path):
    header = "query,reference_1,reference_2,reference_3,n_select,is_ranked,worker\n"
    path = file(tmp_path, header + "a,b,c,d,2,True,W1\nb,c,a,,1,True,W2\n")
    triplets = as_triplets(path)
    names = [tuple(triplets.labels[item] for item in row) for row in rows_of(triplets)]
    assert names == [("a", "b", "c"), ("a", "b", "d"), ("a", "c", "d"), ("b", "c", "a")]
    assert triplets.trial.tolist() == [0, 0, 0, 1]
    assert triplets.participant.tolist() == [0, 0, 0, 1]


def test_options_as_they_were_shown_and_picked(tmp_path):
    header = "kind,participant,anchor,option_1,option_2,option_3,option_4,chosen_1,chosen_2\n"
    body = "rank-2-of-4,P1,a,b,c,d,e,e,c\nrank-2-of-4,P1,b,a,c,d,e,,\n"
    table = read_table(file(tmp_path, header + body))
    triplets = as_triplets(table)
    names = [tuple(triplets.labels[item] for item in row) for row in rows_of(triplets)]
    assert names == [
        ("a", "e", "c"), ("a", "e", "b"), ("a", "e", "d"), ("a", "c", "b"), ("a", "c", "d"),
    ]  # fmt: skip
    assert table.left_out == 1
    odd = "kind,option_1,option_2,option_3,chosen_1\nodd-one-out,a,b,c,b\nodd-one-out,a,b,d,a\n"
    assert as_triplets(file(tmp_path, odd)).n_trials == 2


def test_a_weight_of_a_trial_is_that_of_its_comparisons():
    triplets = as_triplets(RANKED, sample_weight=[2, 0], kind="rank-2-of-8")
    assert triplets.weight.tolist() == [2.0] * 13 + [0.0] * 13
    assert triplets.repeated("a test").n_trials == 1


def test_simulated_and_excluded_trials_are_left_out(tmp_path):
    text = (
        "query,ref_1,ref_2,ref_3,n_select,is_ranked,simulated,excluded\n"
        "0,1,2,3,2,1,0,0\n1,0,2,3,2,1,1,0\n2,0,1,3,2,1,0,1\n"
    )
    path = file(tmp_path, text)
    assert as_triplets(path).n_trials == 1
    assert as_triplets(path, simulated=True).n_trials == 2
    table = read_table(path)
    assert (table.left_out, table.simulated_left_out) == (1, 1)


GRID = "query,reference_1,reference_2,reference_3"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (f"{GRID}\n0,1,2,3\n", None, "show up to 3 options, but not how many of them were picked"),
        (f"{GRID},n_select\n0,1,2,3,2\n", None, "do not say whether the order of the picks"),
        (f"{GRID},n_select\n0,1,2,3,3\n", "rank-2-of-3", "Line 2 .*n_select says 3 picks, but the"),
        (f"{GRID},n_select,is_ranked\n0,1,2,3,3,1\n", None, "Line 2 .*pick is 3, but must be from"),
        (f"{GRID},n_select,is_ranked\n0,1,2,3,x,1\n", None, "n_select is 'x', but must be a whole"),
        (f"{GRID},n_select,is_ranked\n0,1,2,3,1,maybe\n", None, "Line 2 .*'maybe', but must be tr"),
        (f"{GRID},n_select,is_ranked\n0,1,2,1,1,1\n", None, "Line 2 .*an item occurs twice among"),
        (f"{GRID},n_select,is_ranked\n0,1,,3,1,1\n", None, "an option follows an empty place"),
        (f"{GRID},n_select,is_ranked\n,1,2,3,1,1\n", None, "the query is missing"),
        (f"{GRID}\n0,1,2,3\n", "triplet", "show trials with several options, not triplets"),
        (f"{GRID}\n0,1,2,3\n", "rank-2-of-8", "is 'rank-2-of-8', but 3 options were shown"),
        ("anchor,nearer,farther\n0,1,2\n", "rank-2-of-8", "those of comparisons .*omit the kind"),
        ("0,1,2,3\n1,2,3,0\n", "rank-2-of-8", "Line 1 .* has 4 values, but .* has 9: the query"),
        ("anchor,option_1,option_2,option_4,chosen\n0,1,2,3,1\n", None, "without gaps"),
        ("kind,anchor,option_1,option_2,option_3,chosen_1\nrank-2-of-3,0,1,2,3,1\n", None,
         "the chosen columns says 1 picks, but the kind says 2"),
        ("anchor,option_1,option_2,option_3,chosen\n0,1,2,3,9\n", None, "'9' was picked, but "),
    ],
)  # fmt: skip
def test_errors_name_the_line_the_value_and_the_rule(tmp_path, text, kind, message):
    with pytest.raises(InvalidTriplets, match=message):
        as_triplets(file(tmp_path, text), kind=kind)


def test_two_options_are_triplets_as_before(tmp_path):
    path = file(tmp_path, "anchor,option_1,option_2,chosen\n0,1,2,2\n1,0,2,2\n")
    assert rows_of(as_triplets(path)) == [[0, 2, 1], [1, 2, 0]]
    one_of_three = "anchor,option_1,option_2,option_3,chosen\n0,1,2,3,2\n"
    assert rows_of(as_triplets(file(tmp_path, one_of_three))) == [[0, 2, 1], [0, 2, 3]]


def test_frames_and_rows_in_memory_are_read_alike():
    frame = {"query": [9, 8], **{f"ref{k}": [row[k] for row in RANKED] for k in range(1, 9)}}
    named = as_triplets(frame, kind="rank-2-of-8")
    plain = as_triplets(RANKED, kind="rank-2-of-8")
    assert rows_of(named) == rows_of(plain)
    assert plain.n_trials == 2


def test_arrays_keep_trials_and_participants(tmp_path):
    triplets = as_triplets(RANKED, kind="rank-2-of-8")
    path = tmp_path / "answers.npz"
    arrays = {
        "triplets": np.array(rows_of(triplets)),
        "trial": triplets.trial,
        "participant": np.repeat([3, 1], 13),
        "simulated": np.repeat([0, 1], 13),
    }
    np.savez(path, **arrays)
    again = as_triplets(path, simulated=True)
    assert again.trial.tolist() == triplets.trial.tolist()
    assert again.participant[[0, 13]].tolist() == [0, 1]
    assert (folds(again, 3) == folds(triplets, 3)).all()
    assert as_triplets(path).n_trials == 1
    np.savez(path, **{**arrays, "trial": [1, 2]})
    with pytest.raises(InvalidTriplets, match=r"'trial' of answers.npz has shape \(2,\), but"):
        as_triplets(path)


def test_commands_read_them_and_say_how(tmp_path):
    path = file(tmp_path, TRAINSET, "trainset.txt")
    refused = CliRunner().invoke(main, ["fit", str(path), "--lam", "0.05"])
    assert refused.exit_code != 0
    assert "--format odd-one-out" in refused.output
    command = ["fit", str(path), "--lam", "0.05", "--format", "odd-one-out"]
    said = CliRunner().invoke(main, command).output
    assert "6 comparisons about 7 items" in said
    assert "The file was read as 3 trials of the kind odd-one-out" in said
    report = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    assert (report["n_trials"], report["n_triplets"]) == (3, 6)
