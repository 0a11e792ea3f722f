"""Labels that look the same: unified where only accents differ, else refused by name."""

from __future__ import annotations

import json
import unicodedata

import pytest
from click.testing import CliRunner

from lore_active import InvalidTriplets, as_triplets
from lore_active.data.formats import read_table
from lore_active.data.lookalikes import appearance, look_alike, peculiar
from server.cli.main import main
from server.clock import now
from server.store.database import Database
from server.study.config import Item
from server.study.items.matching import matched
from server.study.loading import InvalidStudy, check, load
from server.study.workspace import DATABASE, open_study
from tests.support.study_folders import only, small_study

NFC = unicodedata.normalize("NFC", "café")
NFD = unicodedata.normalize("NFD", "café")
# Each looks like the one before, and what it has that the other has not.
PAIRS = [
    (NFC, NFD, "COMBINING ACUTE ACCENT"),
    ("tea", "tea\u200b", "ZERO WIDTH SPACE"),
    ("tea", "t\u200dea", "ZERO WIDTH JOINER"),
    ("tea", "\u200etea", "LEFT-TO-RIGHT MARK"),
    ("tea", "\u202etea\u202c", "RIGHT-TO-LEFT OVERRIDE, POP DIRECTIONAL FORMATTING"),
    ("tea", "\u2067tea\u2069", "RIGHT-TO-LEFT ISOLATE"),
    ("tea", "\ufefftea", "ZERO WIDTH NO-BREAK SPACE"),
    ("tea", "te\u00ada", "SOFT HYPHEN"),
    ("tea", "tea\ufe0f", "VARIATION SELECTOR-16"),
    ("green tea", "green\u00a0tea", "NO-BREAK SPACE"),
    ("green tea", "green\u2009tea", "THIN SPACE"),
    ("green tea", "green  tea", "SPACE"),
    (NFC, "cafe\u200b\u0301", "ZERO WIDTH SPACE, COMBINING ACUTE ACCENT"),
]
SURROUNDED = ["tea ", " tea", "tea\u00a0", "\u2003tea"]
DIFFERENT = [
    ("tea", "Tea"),
    ("tea", "teas"),
    ("x2", "x²"),
    ("fi", "ﬁ"),
    ("café", "cafe"),
    # The flags of England and Scotland differ only in letters that have no face of their own.
    *[("\U0001f3f4\U000e0067\U000e0062\U000e0065", "\U0001f3f4\U000e0067\U000e0062\U000e0073")],
    ("שלום", "שלומ"),
]


def listed(folder, *keys):
    rows = "".join(f'"{key}",text {at}\n' for at, key in enumerate([*keys, "x", "y", "z"]))
    return small_study(
        folder, '[stimuli]\nlist = "items.csv"\n', **{"items.csv": ("key,text\n" + rows).encode()}
    )


@pytest.mark.parametrize(("one", "other", "name"), PAIRS)
def test_check_names_both_keys_and_what_cannot_be_seen(tmp_path, one, other, name):
    folder = listed(tmp_path.resolve() / "words", one, other)
    output = only(folder)
    assert output.startswith("items.csv: line 3, key is ")
    assert f"(with {name}" in output or f", {name}" in output
    assert f'must not look the same as "{one}"' in output
    assert "the key of line 2 of items.csv" in output
    # Nothing invisible goes to a terminal.
    assert all(sign.isprintable() for sign in output)
    result = CliRunner().invoke(main, ["check", str(folder), "--json"])
    assert result.exit_code == 2
    assert len(json.loads(result.stdout)["studies"][0]["problems"]) == 1


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_distinguishable_keys_are_accepted(tmp_path, one, other):
    folder = listed(tmp_path.resolve() / "words", one, other)
    assert check(folder) == []
    assert [item.key for item in load(folder).items][:2] == [one, other]


def test_an_invisible_character_alone_is_not_a_problem(tmp_path):
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    assert check(listed(tmp_path.resolve() / "words", family, "\u05d0\u200f")) == []


def test_files_whose_names_look_the_same(tmp_path):
    folder = small_study(
        tmp_path.resolve() / "words",
        **{"stimuli/green tea.txt": b"tea", "stimuli/green\u00a0tea.txt": b"other"},
    )
    assert "NO-BREAK SPACE" in only(folder)


def test_texts_that_look_the_same_are_the_same_to_participants(tmp_path):
    text = f'key,text\na,{NFC}\nb,{NFD}\nc,x\nd,"y\nz"\ne,y z\n'.encode()
    folder = small_study(
        tmp_path.resolve() / "words", '[stimuli]\nlist = "items.csv"\n', **{"items.csv": text}
    )
    output = only(folder)
    assert "line 3 is" in output and "COMBINING ACUTE ACCENT" in output
    assert "must not look the same as the text of line 2 of items.csv" in output


def test_a_study_that_has_begun_is_not_locked_out_of_its_data(tmp_path):
    folder = listed(tmp_path.resolve() / "words", "tea", "tea\u200b")
    with pytest.raises(InvalidStudy, match="ZERO WIDTH SPACE"):
        open_study(folder, now)
    assert not (folder / DATABASE).exists()
    # As it was begun before keys were compared by what they look like.
    Database(folder / DATABASE, now).close()
    study, database = open_study(folder, now)
    database.close()
    assert [item.key for item in study.items][:2] == ["tea", "tea\u200b"]
    result = CliRunner().invoke(main, ["export", str(folder), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "tea\u200b" in (tmp_path / "out" / "items.csv").read_text(encoding="utf-8")
    assert CliRunner().invoke(main, ["check", str(folder)]).exit_code == 2


def test_catches_and_positions_say_what_is_wrong_with_a_key(tmp_path):
    folder = small_study(
        tmp_path.resolve() / "words",
        '[stimuli]\ncatches = "c.csv"\n',
        **{"c.csv": "anchor,nearer,farther\nred\u200b,blue,green\n".encode()},
    )
    output = only(folder)
    assert "did you mean red instead of red\\u200b (with ZERO WIDTH SPACE)?" in output


@pytest.mark.parametrize(("one", "other", "name"), PAIRS[1:])
def test_labels_of_answers_that_look_the_same_are_refused(tmp_path, one, other, name):
    rows = [[one, "x", "y"], ["x", other, "y"]]
    file = tmp_path / "a.csv"
    file.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
    for source in (rows, file):
        with pytest.raises(InvalidTriplets, match=r"^The labels .* look the same\.") as caught:
            as_triplets(source)
        assert name.split(",")[-1].strip() in str(caught.value)


def test_accents_and_surrounding_space_are_unified(tmp_path):
    rows = [[NFC, "x", "y"], ["x", NFD, " y "], *([["x", one, "y"] for one in SURROUNDED])]
    assert as_triplets(rows).labels == (NFC, "tea", "x", "y")
    assert as_triplets([[NFD, "x", "y"]], labels=["x", "y", NFC]).anchor.tolist() == [2]
    assert as_triplets([[NFC, "x", "y"]], labels=["x", "y", NFD]).anchor.tolist() == [2]
    with pytest.raises(InvalidTriplets, match="occurs twice"):
        as_triplets([["x", "y", NFC]], labels=["x", "y", NFC, NFD])


def test_an_unknown_label_that_looks_like_a_known_one(tmp_path):
    with pytest.raises(InvalidTriplets, match=r"'te\\u200ba' \(with ZERO WIDTH SPACE\) looks like"):
        as_triplets([["x", "te\u200ba", "y"]], labels=["x", "y", "tea"])
    items = [Item(key, "text", key, key, key) for key in ("x", "y", "tea")]
    file = tmp_path / "a.csv"
    file.write_text("anchor,nearer,farther\nx,tea\u200b,y\n", encoding="utf-8")
    with pytest.raises(InvalidTriplets, match=r"\(with ZERO WIDTH SPACE\), which looks like 'tea'"):
        matched(read_table(file), items)
    file.write_text("anchor,nearer,farther\nx,tea\u00a0,y\n", encoding="utf-8")
    assert matched(read_table(file), items).rows == [(0, 2, 1)]


def test_the_parts():
    assert appearance(" a\u00a0\u200b b ") == "a b"
    assert look_alike(["a", "b", "a", "b\u200b"]) == ("b", "b\u200b")
    assert look_alike(["a", "b", "a"]) is None
    assert peculiar("a", "a\u200b") == ""
    assert peculiar("\u0001" * 6, "") == " (with U+0001, U+0001, U+0001, U+0001 and 2 more)"
