"""The gate: every accepted form gives the same arrays, every bad one is named by row and value."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from lore_active import InvalidParameter, InvalidTriplets, as_triplets
from lore_active.data import formats

ROWS = [[0, 1, 2], [2, 0, 3], [3, 1, 0]]


def rows_of(triplets):
    return np.column_stack([triplets.anchor, triplets.nearer, triplets.farther]).tolist()


def write(tmp_path, text, name="answers.csv"):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "source",
    [
        ROWS,
        tuple(tuple(row) for row in ROWS),
        np.array(ROWS),
        np.array(ROWS, dtype=np.uint8),
        np.array(ROWS, dtype=float),
        [[str(cell) for cell in row] for row in ROWS],
        [[float(cell) for cell in row] for row in ROWS],
    ],
)
def test_array_likes(source):
    triplets = as_triplets(source)
    assert rows_of(triplets) == ROWS
    assert triplets.n_objects == 4
    assert triplets.anchor.dtype == np.int32
    assert triplets.weight.tolist() == [1, 1, 1]
    assert rows_of(as_triplets(triplets)) == ROWS


@pytest.mark.parametrize(
    "text",
    [
        "anchor,nearer,farther\n0,1,2\n2,0,3\n3,1,0\n",
        "head,winner,loser\n0,1,2\n2,0,3\n3,1,0\n",
        "0,1,2\n2,0,3\n3,1,0\n",
        "\ufeffAnchor, Nearer, Farther\r\n0, 1, 2\r\n2,0,3\r\n\r\n3,1,0",
        'worker_id,rt,loser,winner,head\n"a, b",1,2,1,0\nx,2,3,0,2\nx,3,0,1,3\n',
        "anchor,nearer,farther\n0.0,1.0,2.0\n2,0,3\n3,1,0\n",
    ],
)
def test_csv(tmp_path, text):
    assert rows_of(as_triplets(write(tmp_path, text))) == ROWS


def test_csv_weights(tmp_path):
    text = "anchor,nearer,farther,weight\n0,1,2,2.5\n2,0,3,0\n"
    assert as_triplets(write(tmp_path, text)).weight.tolist() == [2.5, 0.0]


def test_numpy_files(tmp_path):
    np.save(tmp_path / "a.npy", np.array(ROWS))
    np.savez(tmp_path / "b.npz", triplets=np.array(ROWS), weights=np.array([1.0, 2.0, 3.0]))
    columns = dict(zip(("anchor", "nearer", "farther"), np.array(ROWS).T, strict=True))
    np.savez(tmp_path / "c.npz", **columns)
    for name in ("a.npy", "b.npz", "c.npz"):
        assert rows_of(as_triplets(tmp_path / name)) == ROWS
    assert as_triplets(tmp_path / "b.npz").weight.tolist() == [1, 2, 3]


def test_labels_are_numbered_in_sorted_order():
    triplets = as_triplets([["pear", "apple", "fig"], ["fig", "pear", "apple"]])
    assert triplets.labels == ("apple", "fig", "pear")
    assert rows_of(triplets) == [[2, 0, 1], [1, 2, 0]]


def test_labels_in_a_given_order():
    triplets = as_triplets([["b", "a", "c"]], labels=["c", "b", "a", "d"])
    assert rows_of(triplets) == [[1, 2, 0]]
    assert triplets.n_objects == 4


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ([[0, 1, 2], [1, 1, 2]], ["row 1", "(1, 1, 2)", "twice"]),
        ([[0, 1, 2], [1, 0, -3]], ["row 1", "farther -3", "out of range"]),
        ([[0, 1, 2], [1, 0.5, 2]], ["row 1", "nearer 0.5", "whole number"]),
        ([[0, 1, float("nan")]], ["row 0", "farther nan", "not a number"]),
        ([[0, 1, float("inf")]], ["row 0", "farther inf"]),
        ([], ["no answers"]),
        (np.empty((0, 3)), ["no answers"]),
        ([[0, 1, 2], [0, 1]], ["row 1", "2 values"]),
        ([[0, 1]], ["row 0", "2 values"]),
        (np.zeros((2, 4), dtype=int), ["(2, 4)", "three columns"]),
        ([["a", "b", "c"], ["b", "1", "c"]], ["mixed", "row 1", "'1'", "nearer"]),
        ([["0", "1", "2"], ["1", "0", "x"]], ["mixed", "row 1", "'x'", "farther"]),
        ([["a", "b", "c"], ["b", 1, "c"]], ["mixed", "row 1", "1", "nearer"]),
        ([["a", "b", "c"], ["b", "", "c"]], ["row 1", "nearer"]),
        ([["1", "nan", "2"]], ["row 0", "nearer nan"]),
        (np.array([[True, False, True]]), ["bool"]),
        ([[True, 1, 2]], ["row 0", "True"]),
        ([[None, 1, 2]], ["row 0", "None"]),
        ([[10**30, 1, 2]], ["row 0", "anchor"]),
        (7, ["7"]),
        (None, ["None"]),
    ],
)
def test_bad_rows_are_named(source, parts):
    with pytest.raises(InvalidTriplets) as caught:
        as_triplets(source)
    for part in parts:
        assert part.lower() in str(caught.value).lower()


def test_out_of_range_names_the_range():
    with pytest.raises(InvalidTriplets, match=r"[Rr]ow 1 .*anchor 5.*5 items, numbered 0 to 4"):
        as_triplets([[0, 1, 2], [5, 1, 2]], n_objects=5)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["empty"]),
        ("anchor,nearer,farther\n", ["no answers"]),
        ("anchor,nearer,farther\n0,1,2\n0,1\n", ["line 3", "answers.csv", "2 values"]),
        ("0,1,2\n0,1,2,3\n", ["line 2", "4 values"]),
        ("anchor,nearer,farther\n0,1,2\n\n0,0,2\n", ["line 4", "twice"]),
        ("anchor,nearer,farther\n0,1,2\n0,1,x\n", ["line 3", "'x'", "mixed"]),
        ("anchor,nearer,farther,weight\n0,1,2,heavy\n", ["line 2", "'heavy'"]),
        ("anchor,nearer,farther,weight\n0,1,2,-1\n", ["line 2", "-1"]),
        ("a,b\n1,2\n", ["line 1", "a,b", "header"]),
        ("anchor,nearer\n1,2\n", ["line 1", "header"]),
        ('anchor,nearer,farther\n"0,1,2\n', ["line"]),
    ],
)
def test_bad_csv_names_the_line(tmp_path, text, parts):
    with pytest.raises(InvalidTriplets) as caught:
        as_triplets(write(tmp_path, text))
    for part in parts:
        assert part.lower() in str(caught.value).lower()


def test_unreadable_files(tmp_path):
    (tmp_path / "latin.csv").write_bytes(b"anchor,nearer,farther\n\xe9,b,c\n")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 not a zip")
    np.save(tmp_path / "objects.npy", np.array([[{}, 1, 2]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "other.npz", x=np.zeros(2), y=np.zeros(2))
    for name in ("missing.csv", "latin.csv", "broken.npz", "objects.npy", "other.npz", "."):
        with pytest.raises(InvalidTriplets, match=r"\S"):
            as_triplets(tmp_path / name)


@pytest.mark.parametrize("weights", [[1, 2], [1, 2, -1], [1, 2, np.nan], [0, 0, 0], ["a", 1, 2]])
def test_bad_weights(weights):
    with pytest.raises(InvalidTriplets):
        as_triplets(ROWS, sample_weight=weights)


@pytest.mark.parametrize("n_objects", [2, 0, -1, 3.5, "5", True])
def test_bad_item_count(n_objects):
    with pytest.raises(InvalidParameter, match="n_objects"):
        as_triplets([[0, 1, 2]], n_objects=n_objects)


def test_unknown_label():
    with pytest.raises(InvalidTriplets, match=r"[Rr]ow 0.*farther 'z'"):
        as_triplets([["a", "b", "z"]], labels=["a", "b", "c"])


def test_an_archive_that_unpacks_to_more_than_there_is_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", triplets=np.zeros((200_000, 3), dtype=np.int64))
    assert (tmp_path / "bomb.npz").stat().st_size < 20_000
    monkeypatch.setattr(formats, "MAX_UNPACKED_BYTES", 1_000_000)
    with pytest.raises(InvalidTriplets, match=r"would unpack to 0\.0 GB"):
        as_triplets(tmp_path / "bomb.npz")


def test_an_archive_with_names_that_lead_outside_writes_nothing(tmp_path):
    home = tmp_path / "in"
    home.mkdir()
    with ZipFile(home / "slip.npz", "w") as archive:
        for name in ("../triplets.npy", "/tmp/slip-triplets.npy", "..\\x.npy"):
            held = io.BytesIO()
            np.save(held, np.array([[0, 1, 2]]))
            archive.writestr(name, held.getvalue())
    with pytest.raises(InvalidTriplets, match="holds the arrays"):
        as_triplets(home / "slip.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert not Path("/tmp/slip-triplets.npy").exists()


def test_a_header_that_promises_too_much_is_refused(tmp_path):
    head = b"{'descr': '<i8', 'fortran_order': False, 'shape': (%d, 3), }" % (10**15,)
    head = head.ljust(117) + b"\n"
    (tmp_path / "huge.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head)
    with pytest.raises(InvalidTriplets, match="not a readable NumPy file"):
        as_triplets(tmp_path / "huge.npy")
