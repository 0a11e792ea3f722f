"""Tables of answers: columns by name in files and frames, headers, missing values, item names."""

from __future__ import annotations

import json
import re
import warnings
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from lore_active import LORE, InvalidTriplets, LoreError, as_triplets
from lore_active.data.formats import read_table
from lore_active.data.headers import PARTICIPANT, ROLES, TRIAL, WEIGHT, known_headers
from lore_active.simulation.observers import gaussian_space, simulated_answers
from server.cli.main import main

NAMES = [f"fruit{number:02d}" for number in range(12)]
ANSWERS = simulated_answers(gaussian_space(12, 2, 1), 300, 2)
LABELLED = np.array(NAMES, dtype=object)[ANSWERS]
MANUAL = Path(__file__).parents[3] / "docs" / "data.md"
BOTH = [pd.DataFrame, pl.DataFrame]


def rows_of(triplets):
    return np.column_stack([triplets.anchor, triplets.nearer, triplets.farther]).tolist()


def columns(header=("anchor", "nearer", "farther"), rows=LABELLED, **more):
    named = dict(zip(header, np.asarray(rows).T.tolist(), strict=True))
    return {**named, **more}


def write(tmp_path, text, name="answers.csv"):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


def csv_of(header, rows):
    return "".join(",".join(map(str, row)) + "\n" for row in [header, *rows])


def said(source, **more):
    with pytest.raises(InvalidTriplets) as caught:
        as_triplets(source, **more)
    return str(caught.value)


# ---- frames -------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", BOTH)
@pytest.mark.parametrize(
    "header",
    [
        ("anchor", "nearer", "farther"),
        ("head", "winner", "loser"),
        ("Target", "Closer", "Further"),
        ("query", "chosen", "rejected"),
        ("a", "b", "c"),
    ],
)
def test_a_frame_is_read_by_its_columns(frame, header):
    found = as_triplets(frame(columns(header)))
    assert rows_of(found) == ANSWERS.tolist()
    assert found.labels == tuple(NAMES)


@pytest.mark.parametrize("frame", BOTH)
def test_fitting_a_frame_is_fitting_its_answers(frame):
    wanted = LORE().fit(LABELLED)
    model = LORE().fit(frame(columns()))
    assert model.embedding_.tobytes() == wanted.embedding_.tobytes()
    assert model.labels_ == tuple(NAMES)
    assert model.score(frame(columns())) == wanted.score(LABELLED)


@pytest.mark.parametrize("frame", BOTH)
def test_columns_in_any_order_among_others_and_weights(frame):
    table = frame(
        {
            "participant": ["x"] * len(ANSWERS),
            **columns(("farther", "anchor", "nearer"), ANSWERS[:, [2, 0, 1]]),
            "rt_ms": list(range(len(ANSWERS))),
            "weight": [1.5] * len(ANSWERS),
        }
    )
    found = as_triplets(table)
    assert rows_of(found) == ANSWERS.tolist()
    assert found.labels is None
    assert set(found.weight) == {1.5}
    assert "already have weights" in said(table, sample_weight=np.ones(len(ANSWERS)))


def test_kinds_of_columns():
    plain = pd.DataFrame(columns())
    for kind in ("category", "string", "object"):
        assert rows_of(as_triplets(plain.astype(kind))) == ANSWERS.tolist()
    numbers = pd.DataFrame(columns(rows=ANSWERS))
    for kind in ("int8", "uint16", "Int64", "float64", "category"):
        assert rows_of(as_triplets(numbers.astype(kind))) == ANSWERS.tolist()
    for kind in (pl.Categorical, pl.Enum(NAMES), pl.String):
        cast = pl.DataFrame(columns()).select(pl.all().cast(kind))
        assert rows_of(as_triplets(cast)) == ANSWERS.tolist()
    for kind in (pl.Int8, pl.UInt64, pl.Float32):
        cast = pl.DataFrame(columns(rows=ANSWERS)).select(pl.all().cast(kind))
        assert rows_of(as_triplets(cast)) == ANSWERS.tolist()
    assert "must be numbers or labels: row 0 (counted from 0) of the frame has True" in said(
        numbers > 3
    )


def test_a_selection_of_rows_is_counted_by_position():
    table = pd.DataFrame(columns(), index=[f"row{number}" for number in range(len(ANSWERS))])
    assert rows_of(as_triplets(table.iloc[::-1])) == ANSWERS[::-1].tolist()
    table.iloc[7, 1] = table.iloc[7, 0]
    assert said(table).startswith("Row 7 (counted from 0) of the frame: (")


@pytest.mark.parametrize("frame", BOTH)
@pytest.mark.parametrize("rows", [LABELLED, ANSWERS])
def test_missing_values_are_named_by_row_and_column(frame, rows):
    cells = columns(rows=rows)
    cells["nearer"][5] = None
    assert said(frame(cells)).startswith("Row 5 (counted from 0) of the frame: nearer ")
    assert "is missing" in said(frame(cells))
    if frame is pd.DataFrame:
        nullable = "Int64" if rows is ANSWERS else "string"
        assert "Row 5 (counted from 0) of the frame: nearer" in said(frame(cells).astype(nullable))


@pytest.mark.parametrize("frame", BOTH)
def test_what_cannot_be_understood_is_refused(frame):
    four = frame({**columns(("a", "b", "c")), "d": [1] * len(ANSWERS)})
    output = said(four)
    assert "The columns of the frame are 'a', 'b', 'c', 'd'." in output
    assert known_headers() in output
    assert "'anchor', 'b', 'c'" in said(frame(columns(("anchor", "b", "c"))))
    assert "'winner' and 'nearer' could both be" in said(
        frame(columns(("target", "winner", "far"), nearer=LABELLED[:, 1].tolist()))
    )
    assert "no answers" in said(frame({"anchor": [], "nearer": [], "farther": []}))


def test_a_lazy_frame_says_what_to_do():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "call its collect() first" in said(pl.LazyFrame(columns()))


def test_two_columns_of_one_name():
    table = pd.DataFrame(columns())
    table.columns = ["anchor", "nearer", "nearer"]
    assert "'nearer'" in said(table)
    table = pd.concat([pd.DataFrame(columns()), pd.DataFrame(columns())["nearer"]], axis=1)
    assert "'nearer' and 'nearer' could both be the nearer" in said(table)


@pytest.mark.parametrize("frame", BOTH)
def test_options_as_shown_and_the_one_chosen(frame):
    left = np.where(np.arange(300) % 2, LABELLED[:, 1], LABELLED[:, 2]).tolist()
    right = np.where(np.arange(300) % 2, LABELLED[:, 2], LABELLED[:, 1]).tolist()
    shown = {"Center": LABELLED[:, 0].tolist(), "Left": left, "Right": right}
    by_item = frame({**shown, "Answer": LABELLED[:, 1].tolist()})
    side = [
        "left" if word == winner else "RIGHT"
        for word, winner in zip(left, LABELLED[:, 1], strict=True)
    ]
    by_side = frame({**shown, "Answer": side})
    assert rows_of(as_triplets(by_item)) == rows_of(as_triplets(by_side)) == ANSWERS.tolist()
    skipped = frame({**shown, "Answer": [None, *LABELLED[1:, 1].tolist()]})
    assert rows_of(as_triplets(skipped)) == ANSWERS[1:].tolist()
    # A weight for each row that was passed, also for those without an answer.
    weights = np.arange(300.0)
    assert as_triplets(skipped, sample_weight=weights).weight.tolist() == weights[1:].tolist()
    assert "shape (299,)" in said(skipped, sample_weight=weights[1:])
    wrong = frame({**shown, "Answer": ["pear", *LABELLED[1:, 1].tolist()]})
    assert "Row 0 (counted from 0) of the frame: 'pear' was chosen, but" in said(wrong)
    assert "say what was shown, but not what was chosen" in said(frame(shown))
    chosen_left = np.array([word == "left" for word in side])
    assert rows_of(as_triplets(frame(shown), y=chosen_left)) == ANSWERS.tolist()


@pytest.mark.parametrize("frame", BOTH)
def test_practice_catches_and_excluded_participants_of_a_frame(frame):
    more = {
        "purpose": ["practice", "catch", *["active"] * 298],
        "excluded": [False, False, True, *[False] * 297],
    }
    assert rows_of(as_triplets(frame(columns(**more)))) == ANSWERS[3:].tolist()
    out = frame(columns(removed=[1] * 10 + [0] * 290))
    assert rows_of(as_triplets(out)) == ANSWERS[10:].tolist()


def test_other_tables_in_memory():
    assert rows_of(as_triplets(columns())) == ANSWERS.tolist()
    records = [{"head": a, "loser": j, "winner": i} for a, i, j in ANSWERS.tolist()]
    assert rows_of(as_triplets(records)) == ANSWERS.tolist()
    structured = pd.DataFrame(columns(rows=ANSWERS)).to_records(index=False)
    assert rows_of(as_triplets(structured)) == ANSWERS.tolist()
    assert "shape (2,)" in said({"anchor": [1, 2, 3], "nearer": [1, 2], "farther": [0, 0, 0]})
    assert "must have one cell per answer" in said({"anchor": "a", "nearer": "b", "farther": 1})
    assert "Row 1 (counted from 0) of the records" in said([records[0], {"x": 1}])


@pytest.mark.parametrize(
    "source",
    [["abc", "bca"], [b"abc"], [{0, 1, 2}], [[0, 1, 2], {"a": 1, "b": 2, "c": 3}]],
)
def test_strings_sets_and_dict_keys_are_not_answers(source):
    assert "must be three items in order" in said(source)


# ---- headers of files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "target,closer,further",
        "query,chosen,rejected",
        "Reference, More Similar, Less Similar",
        "probe,near,far",
        "HEAD,Winner,LOSER",
        "anchor,positive,negative",
    ],
)
def test_a_header_by_other_names_is_a_header(tmp_path, header):
    found = as_triplets(write(tmp_path, csv_of(header.split(","), LABELLED)))
    assert rows_of(found) == ANSWERS.tolist()
    assert found.labels == tuple(NAMES)


def test_every_synonym_is_understood_in_any_order(tmp_path):
    for anchor in ROLES["anchor"]:
        for nearer, farther in zip(ROLES["nearer"], ROLES["farther"], strict=True):
            header = (farther, anchor.upper(), nearer.replace("_", " "))
            file = write(tmp_path, csv_of(header, LABELLED[:, [2, 0, 1]]))
            assert rows_of(as_triplets(file)) == ANSWERS.tolist(), header


@pytest.mark.parametrize("header", ["thing,same,other", "x,y,z", "stimulus,a,b"])
@pytest.mark.parametrize("rows", [LABELLED, ANSWERS])
def test_a_header_that_is_not_understood_is_not_an_answer(tmp_path, header, rows):
    output = said(write(tmp_path, csv_of(header.split(","), rows)))
    assert f"Line 1 of answers.csv is '{header}', which is not a known header" in output
    assert known_headers() in output


def test_a_first_row_of_known_labels_is_an_answer(tmp_path):
    assert rows_of(as_triplets(write(tmp_path, csv_of(LABELLED[0], LABELLED[1:])))) == (
        ANSWERS.tolist()
    )
    # Items may be called what columns are called elsewhere.
    text = "head,hand,foot\nhand,foot,head\nfoot,head,hand\n"
    assert as_triplets(write(tmp_path, text)).labels == ("foot", "hand", "head")
    text = "target,left,right\nleft,target,right\n"
    assert as_triplets(write(tmp_path, text)).labels == ("left", "right", "target")


def test_numbers_in_the_first_row_are_no_header(tmp_path):
    text = "90,91,92\n0,1,2\n3,4,5\n"
    assert rows_of(as_triplets(write(tmp_path, text), n_objects=93))[0] == [90, 91, 92]


def test_files_of_very_few_rows(tmp_path):
    # A single row is an answer, unless it is a header.
    assert as_triplets(write(tmp_path, "pear,fig,plum\n")).labels == ("fig", "pear", "plum")
    assert "no answers" in said(write(tmp_path, "target,closer,further\n"))
    assert "not a known header" in said(write(tmp_path, "anchor,fig,plum\n"))
    # Two rows that share no label could be a header and an answer: the file has to say.
    assert "not a known header" in said(write(tmp_path, "pear,fig,plum\nkiwi,lime,date\n"))
    assert len(as_triplets(write(tmp_path, "anchor,nearer,farther\npear,fig,plum\n"))) == 1
    assert len(as_triplets(write(tmp_path, "pear,fig,plum\nkiwi,fig,date\n"))) == 2


def test_digits_of_other_kinds_are_not_numbers(tmp_path):
    assert "mixed" in said(write(tmp_path, "0,1,2\n1,0,1_0\n"))
    assert "mixed" in said(write(tmp_path, "0,1,2\n1,0,٣\n"))


@pytest.mark.parametrize("sign", [";", "\t"])
def test_spreadsheets_of_other_countries(tmp_path, sign):
    text = csv_of(("target", "closer", "further"), LABELLED).replace(",", sign)
    assert rows_of(as_triplets(write(tmp_path, text))) == ANSWERS.tolist()
    assert rows_of(as_triplets(write(tmp_path, text.partition("\n")[2]))) == ANSWERS.tolist()


def test_columns_that_compete_are_named(tmp_path):
    output = said(write(tmp_path, "target,center,closer,further\na,a,b,c\n"))
    assert "'target' and 'center' could both be the anchor" in output


@pytest.mark.parametrize("name", ["weight", "weights", "Sample Weight"])
def test_weights_by_other_names_count_too(tmp_path, name):
    text = f"target,closer,further,{name}\na,b,c,2.5\nb,a,c,1\n"
    assert as_triplets(write(tmp_path, text)).weight.tolist() == [2.5, 1]


def test_weights_and_responses_of_arrays(tmp_path):
    question = np.where((np.arange(300) % 3 == 0)[:, None], ANSWERS[:, [0, 2, 1]], ANSWERS)
    first = np.arange(300) % 3 != 0
    for name, y in (("responses", first), ("y", np.where(first, 1, -1)), ("response", first * 1)):
        file = tmp_path / f"{name}.npz"
        np.savez(file, triplets=question, **{name: y}, weight=np.arange(300.0))
        found = as_triplets(file)
        assert rows_of(found) == ANSWERS.tolist()
        assert found.weight.tolist() == list(range(300))
    columns = dict(zip(("target", "closer", "further"), ANSWERS.T, strict=True))
    np.savez(tmp_path / "named.npz", **columns, items=np.array(NAMES))
    assert as_triplets(tmp_path / "named.npz").labels == tuple(NAMES)
    np.savez(tmp_path / "two.npz", triplets=ANSWERS, weight=np.ones(300), weights=np.ones(300))
    assert "holds weight and weights" in said(tmp_path / "two.npz")


def test_the_manual_lists_every_name_of_every_column():
    lines = re.findall(r"^\| ([a-z]+) \| ((?:`\w+` ?)+) \|$", MANUAL.read_text(), re.M)
    documented = {role: tuple(names.replace("`", "").split()) for role, names in lines}
    others = {"weight": WEIGHT, "trial": TRIAL, "participant": PARTICIPANT}
    assert documented == {**ROLES, **others}


# ---- Salmon and names ---------------------------------------------------------------------------

SALMON = "head,left,right,winner,loser,head_filename,winner_filename,loser_filename,puid\n"
NEXT = "Participant ID,Timestamp,Center,Left,Right,Answer,Alg Label\n"


def salmon(tmp_path, rows=ANSWERS):
    body = "".join(f"{a},{i},{j},{i},{j},{NAMES[a]},{NAMES[i]},{NAMES[j]},p1\n" for a, i, j in rows)
    return write(tmp_path, SALMON + body, "responses.csv")


def test_names_beside_salmons_numbers_are_kept(tmp_path):
    found = as_triplets(salmon(tmp_path))
    assert rows_of(found) == ANSWERS.tolist()
    assert found.labels == tuple(NAMES)
    # The numbers are Salmon's, so a model that was fitted to numbers can be scored.
    assert LORE().fit(ANSWERS).score(salmon(tmp_path)) == LORE().fit(ANSWERS).score(ANSWERS)
    # And names are what a model that knows names goes by, whatever the numbers are.
    turned = "".join(
        f"{11 - a},{11 - i},{11 - j},{i},{j},{NAMES[a]},{NAMES[i]},{NAMES[j]},p1\n"
        for a, i, j in ANSWERS
    )
    model = LORE().fit(LABELLED)
    other = write(tmp_path, "head,winner,loser,x,y," + SALMON.partition("loser,")[2] + turned)
    assert model.score(other) == model.score(LABELLED)


def test_targets_that_were_never_asked_keep_their_number(tmp_path):
    few = ANSWERS[(ANSWERS != 4).all(axis=1)]
    found = as_triplets(salmon(tmp_path, few), n_objects=13)
    assert rows_of(found) == few.tolist()
    assert found.labels == (*NAMES[:4], "item 4", *NAMES[5:], "item 12")


def test_a_number_with_two_names_is_refused(tmp_path):
    text = SALMON + "0,1,2,1,2,a,b,c,p\n" + "0,1,2,1,2,a,b,d,p\n"
    assert "Line 3 of answers.csv: item 2 has the label 'd', but 'c' in an earlier row" in said(
        write(tmp_path, text)
    )


def test_center_left_right_answer(tmp_path):
    rows = []
    for at, (a, i, j) in enumerate(LABELLED):
        sides = (i, j) if at % 2 else (j, i)
        rows.append(f"p1,2001-01-01 00:00:00,{a},{sides[0]},{sides[1]},{i},Random\n")
    file = write(tmp_path, NEXT + "".join(rows))
    found = as_triplets(file)
    assert rows_of(found) == ANSWERS.tolist()
    assert found.labels == tuple(NAMES)
    assert read_table(file).left_out == 0
    out = tmp_path / "out"
    result = CliRunner().invoke(main, ["fit", str(file), "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    lines = (out / "embedding.csv").read_text().splitlines()
    assert [line.partition(",")[0] for line in lines[1:]] == NAMES
    assert json.loads(result.stdout)["unseen"] == []
    file.write_text(NEXT + "".join(rows) + "p1,2001-01-01 00:00:00,a,b,c,,Random\n")
    printed = CliRunner().invoke(main, ["fit", str(file)]).stdout
    assert "1 row was left out (practice, catch trials, skipped, excluded)" in printed
    assert "300 answers about 12 items" in printed


def test_names_win_over_numbers_that_stand_beside_them(tmp_path):
    """tripletTools: numbers for R, and the items' names as they were shown."""
    head = "worker_id,rt,Center,Left,Right,Answer,sampleAlg,sampleSet,head,winner,loser\n"
    body = "".join(
        f"1,900,{NAMES[a]},{NAMES[j]},{NAMES[i]},{NAMES[i]},random,test,{a},{i},{j}\n"
        for a, i, j in ANSWERS
    )
    found = as_triplets(write(tmp_path, head + body))
    assert rows_of(found) == ANSWERS.tolist()
    assert found.labels == tuple(NAMES)


def test_arrays_with_names_are_scored_by_name(tmp_path):
    np.savez(tmp_path / "one.npz", triplets=ANSWERS, items=np.array(NAMES))
    np.savez(tmp_path / "turned.npz", triplets=11 - ANSWERS, items=np.array(NAMES[::-1]))
    model = LORE().fit(tmp_path / "one.npz")
    assert model.labels_ == tuple(NAMES)
    assert model.score(tmp_path / "turned.npz") == model.score(tmp_path / "one.npz") > 0.8


def test_labels_are_not_guessed_for_a_model_of_numbers():
    model = LORE().fit(ANSWERS)
    with pytest.raises(InvalidTriplets, match="items must be given by number here"):
        model.score(LABELLED)


# ---- anything at all ----------------------------------------------------------------------------

ODD = [0, 1, 2, -1, 0.5, "a", "b", "", None, float("nan"), float("inf"), True, b"x", b"\xff", [1]]
ODD += [{}, (1, 2, 3), 10**400, np.int8(3), "1_0", "\udc80", date(2020, 1, 1), pd.NA, pd.NaT, 1j]
ODD += [np.array([1, 2, 3]), object(), "nan", Decimal(1), {"anchor": 1}]
CALLED = [*dict.fromkeys(name for names in ROLES.values() for name in names), "x", "purpose"]
cells = st.sampled_from(ODD)
tables = st.dictionaries(
    st.sampled_from(CALLED), st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=6
)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.lists(cells, min_size=2, max_size=4), max_size=3) | tables,
    st.booleans(),
    st.sampled_from([None, [1, -1], [True], 3, "ab", [None, 1]]),
    st.sampled_from([None, [1, 2], [1], "x", [None, 1]]),
)
def test_whatever_comes_in_is_read_or_refused_in_a_sentence(source, framed, y, weights):
    if framed and isinstance(source, dict):
        source = pd.DataFrame({name: pd.Series(column) for name, column in source.items()})
    try:
        as_triplets(source, sample_weight=weights, y=y)
    except LoreError as error:
        assert str(error)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.sampled_from([*CALLED, "weight", "head_filename"]), min_size=1, max_size=6),
    st.lists(st.lists(st.sampled_from(["a", "b", "0", "1", "", "left", '"', ";"]), max_size=6)),
)
def test_whatever_a_file_holds_is_read_or_refused_in_a_sentence(tmp_path_factory, header, rows):
    file = tmp_path_factory.getbasetemp() / "any.csv"
    file.write_text(csv_of(header, rows), encoding="utf-8")
    try:
        as_triplets(file)
    except LoreError as error:
        assert str(error)


# ---- simulated participants ---------------------------------------------------------------------


def with_bots(participants=200, marks=("0", "1")):
    """Rows of people, then rows of bots that contradict them."""
    bots = LABELLED[participants:, [0, 2, 1]]
    rows = [*LABELLED[:participants], *bots]
    simulated = [marks[0]] * participants + [marks[1]] * len(bots)
    return rows, simulated


def csv_with_bots(tmp_path, participants=200):
    rows, simulated = with_bots(participants)
    lines = [(*row, mark) for row, mark in zip(rows, simulated, strict=True)]
    return write(tmp_path, csv_of(("anchor", "nearer", "farther", "simulated"), lines))


@pytest.mark.parametrize("frame", BOTH)
@pytest.mark.parametrize("marks", [("0", "1"), (0, 1), (0.0, 1.0), (False, True), ("", "True")])
def test_rows_of_simulated_participants_are_left_out_unless_they_are_wanted(frame, marks):
    rows, simulated = with_bots(marks=marks)
    table = frame(columns(rows=rows, Simulated=simulated))
    assert rows_of(as_triplets(table)) == ANSWERS[:200].tolist()
    everything = as_triplets(table, simulated=True)
    assert len(everything) == 300
    # What a caller passes beside the rows is for all of them.
    weights = np.arange(1.0, 301.0)
    assert as_triplets(table, sample_weight=weights).weight.tolist() == weights[:200].tolist()


def test_fit_leaves_simulated_participants_out_and_says_so(tmp_path):
    file = csv_with_bots(tmp_path)

    def fitted(*options):
        done = CliRunner().invoke(main, ["fit", str(file), *options])
        assert done.exit_code == 0, done.output
        return done.stdout

    report = json.loads(fitted("--json"))
    assert (report["n_triplets"], report["left_out"], report["simulated_left_out"]) == (200, 0, 100)
    said = fitted()
    assert "100 rows of simulated participants (bots) were omitted; --simulated" in said
    assert "left out (practice" not in said
    report = json.loads(fitted("--json", "--simulated"))
    assert (report["n_triplets"], report["simulated_left_out"]) == (300, 0)
    assert "omitted" not in fitted("--simulated")


def test_a_file_of_simulated_participants_only_names_the_option(tmp_path):
    file = csv_with_bots(tmp_path, participants=0)
    message = said(file)
    assert "only answers of simulated participants (bots) in answers.csv" in message
    assert "300 rows" in message and "--simulated" in message and "simulated=True" in message
    for arguments in (["fit", file], ["compare", file], ["simulate", "--pool", file]):
        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert done.exit_code == 2 and "pass --simulated" in done.stderr, arguments
    assert len(as_triplets(file, simulated=True)) == 300


def test_practice_of_simulated_participants_is_not_counted_twice(tmp_path):
    header = "anchor,nearer,farther,purpose,simulated\n"
    rows = "a,b,c,random,0\na,b,c,practice,0\na,b,c,practice,1\na,b,c,random,1\n"
    table = read_table(write(tmp_path, header + rows))
    assert (len(table.rows), table.left_out, table.simulated_left_out) == (1, 1, 2)
    assert table.place(0) == "line 2 of answers.csv"
    # Nothing but practice is no question of who gave it.
    only = header + "a,b,c,practice,0\na,b,c,practice,1\n"
    assert "simulated" not in said(write(tmp_path, only))


def test_arrays_of_simulated_participants_are_left_out(tmp_path):
    file, marks = tmp_path / "a.npz", np.arange(300) % 3 == 0
    responses = np.arange(300) % 2 == 0
    np.savez(
        file,
        triplets=ANSWERS,
        responses=responses,
        weights=np.arange(1.0, 301.0),
        simulated=marks.astype(int),
        items=np.array(NAMES),
    )
    found = as_triplets(file)
    wanted = np.where(responses[:, None], ANSWERS, ANSWERS[:, [0, 2, 1]])
    assert rows_of(found) == wanted[~marks].tolist()
    assert found.weight.tolist() == np.arange(1.0, 301.0)[~marks].tolist()
    assert read_table(file).simulated_left_out == marks.sum()
    assert len(as_triplets(file, simulated=True)) == 300
    np.savez(file, triplets=ANSWERS, simulated=np.ones(300, dtype=int))
    assert "pass --simulated" in said(file)
    np.savez(file, triplets=ANSWERS, simulated=np.ones(7, dtype=int))
    assert "The array 'simulated' of a.npz has shape (7,)" in said(file)


def test_a_pool_leaves_them_out_and_the_option_needs_a_pool(tmp_path):
    file = csv_with_bots(tmp_path)
    arguments = ["simulate", "--pool", str(file), "--answers", "60", "--no-stop"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "100 rows of simulated participants" in done.stderr
    assert "left out" not in CliRunner().invoke(main, [*arguments, "--simulated"]).stderr
    done = CliRunner().invoke(main, ["simulate", "--simulated"])
    assert done.exit_code == 2 and "requires --pool" in done.stderr
