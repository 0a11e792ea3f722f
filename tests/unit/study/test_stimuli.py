"""Items, lists, catch questions and positions: what loads, and what each mistake is told."""

from __future__ import annotations

import os
import struct
import tracemalloc
import zlib

import numpy as np
import pytest

from server.study.config import Catch
from server.study.items.file_types import MEDIA
from server.study.items.positions import read_positions
from server.study.items.stimuli import natural
from server.study.loading import InvalidStudy, check, load
from server.study.samples import png
from tests.support.study_folders import (
    SOUND_FILES,
    image,
    messages_of,
    only,
    riff,
    small_study,
    write,
)


@pytest.fixture
def folder(tmp_path):
    return tmp_path.resolve() / "words"


def test_every_kind_of_file_is_known(folder):
    assert set(SOUND_FILES) == set(MEDIA)
    files = {f"stimuli/a_{end[1:]}-file{end}": content for end, content in SOUND_FILES.items()}
    study = load(write(folder, {"study.toml": 'title = "All"', **files}))
    for item in study.items:
        if item.kind == "text":
            assert (item.text, item.file) == ("a word", None)
        else:
            assert item.file == folder / "stimuli" / item.file.name
            assert item.kind == MEDIA[item.file.suffix][0]
    assert study.items[1].label == "a gif file"


def test_items_come_in_natural_order(folder):
    small_study(folder, **{f"stimuli/item {n}.txt": f"w{n}" for n in (10, 9, 1, 100)})
    keys = [item.key for item in load(folder).items]
    assert keys[3:7] == ["item 1", "item 9", "item 10", "item 100"]
    assert sorted(["b", "a10", "A2", "a02"], key=natural) == ["A2", "a02", "a10", "b"]


def test_what_systems_leave_in_folders_does_not_count(folder):
    small_study(folder, **{f"stimuli/{name}": b"x" for name in (".DS_Store", "Thumbs.db", "._a")})
    assert len(load(folder).items) == 4


def test_a_list_in_csv(folder):
    rows = "text,key,alt\nsour,s,\nsweet,t,like sugar\nsalty,,\n,u,\n"
    write(
        folder,
        {
            "study.toml": 'title = "T"\nstimuli.list = "items.csv"\nstimuli.catches = "c.csv"',
            "items.csv": rows.replace(",u,", "bitter,u,"),
            "c.csv": "anchor,nearer,farther\ns,s,t\nsalty,u,t\n",
        },
    )
    study = load(folder)
    assert [item.key for item in study.items] == ["s", "t", "salty", "u"]
    assert [item.alt for item in study.items] == ["sour", "like sugar", "salty", "bitter"]
    assert study.catches == (Catch(0, 0, 1), Catch(2, 3, 1))


def test_a_list_in_csv_of_a_spreadsheet_with_semicolons(folder):
    files = {"items.csv": "\ufeffkey;text\r\na;1\r\nb;2,5\r\nc;3\r\nd;4\r\n"}
    small_study(folder, '[stimuli]\nlist = "items.csv"', **files)
    assert [item.text for item in load(folder).items] == ["1", "2,5", "3", "4"]


def test_a_list_in_toml_with_catches(folder):
    items = "".join(f'[[item]]\nfile = "stimuli/{w}.txt"\n' for w in ("red", "green", "blue"))
    items += '[[item]]\ntext = "pink 👩‍🚀"\nlabel = "P"\n'
    catch = '[[catch]]\nanchor = "red"\nnearer = "pink 👩‍🚀"\nfarther = "green"\n'
    small_study(folder, '[stimuli]\nlist = "items.toml"', **{"items.toml": items + catch})
    study = load(folder)
    assert [item.label for item in study.items] == ["red", "green", "blue", "P"]
    assert study.catches == (Catch(0, 3, 1),)


BROKEN = [
    ("x.png", b"", "stimuli/x.png: is empty, but must be a PNG image."),
    ("x.png", b"<html>", "is not a valid PNG image: its first bytes are 3c 68 74 6d 6c 3e"),
    ("x.png", png.patch(1, 2, 3)[:-6], "is a PNG image that is damaged or truncated (broken PNG"),
    ("x.png", png.patch(1, 2, 3, side=4)[:16] + bytes(8) + png.patch(1, 2, 3, side=4)[24:],
     "a PNG image without a valid header"),
    ("x.jpg", image("JPEG", width=60_000), "JPEG image of 60000 × 10 pixels"),
    ("x.jpeg", b"\xff\xd8\xff\xe0\x00\x04", "JPEG image that is damaged or truncated ("),
    ("x.gif", b"GIF89a", "a GIF image without a valid header"),
    ("x.webp", riff(b"WEBP", b"JUNK" + bytes(20)), "a WebP image without a valid header"),
    ("x.wav", b"RIFF" + struct.pack("<I", 9999) + b"WAVE", "a WAV audio file truncated after 12"),
    ("x.mp3", b"no sound", "not a valid MP3 audio file"),
    ("x.ogg", b"no sound", "not a valid Ogg audio file"),
    ("x.opus", SOUND_FILES[".ogg"], "not a valid Opus audio file"),
    ("x.flac", b"no sound", "not a valid FLAC audio file"),
    ("x.m4a", b"no sound", "not a valid M4A audio file"),
    ("x.mp4", b"no video", "not a valid MP4 video"),
    ("x.webm", b"\x1a\x45\xdf\xa3matroska", "not a valid WebM video"),
    ("x.txt", b" \n", "stimuli/x.txt: is blank, but must contain the text of an item"),
    ("x.txt", b"\xe4", "stimuli/x.txt: byte 0 is 0xe4, but must be part of text in UTF-8"),
    ("x.txt", b"x" * 2001, "text is 2001 characters long, but must have at most 2000"),
    ("x.txt", b"a\x00b", "must be text without control characters"),
    ("x.svg", b"<svg/>", "stimuli/x.svg: is a .svg file, but stimuli must end in one of"),
    ("x", b"x", "stimuli/x: is without an extension"),
    ("red.png", SOUND_FILES[".png"], 'key is "red", but must be unique (stimuli/red'),
    ("rot.txt", b"red\n", "is the same content as stimuli/red.txt, but every item must differ"),
    ("deep/x.txt", b"x", "stimuli/deep: is a folder, but stimuli must be in stimuli itself"),
    ("y" * 101 + ".txt", b"x", "must be text of 1 to 100 characters in one line"),
    ("a\nb.txt", b"x", r"stimuli/a\nb.txt: key is"),
    (os.fsdecode(b"a\xff.txt"), b"x", r"stimuli/a\udcff.txt: key is"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), BROKEN)
def test_stimuli_that_are_broken(folder, name, content, message):
    small_study(folder)
    try:
        write(folder, {f"stimuli/{name}": content})
    except OSError:
        pytest.skip("this file system does not allow the name")
    assert message in only(folder)


def claiming(side):
    """A tiny PNG whose header, with a valid checksum, claims to have so many pixels a side."""
    small = png.patch(1, 2, 3, side=4)
    header = b"IHDR" + struct.pack(">II", side, side) + small[24:29]
    return small[:12] + header + struct.pack(">I", zlib.crc32(header)) + small[33:]


@pytest.mark.parametrize("side", [14_000, 16_384, 2**31 - 1])
def test_an_image_that_would_fill_the_memory_is_refused_by_its_header(folder, side):
    small_study(folder, **{"stimuli/x.png": claiming(side)})
    tracemalloc.start()
    message = only(folder)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "PNG image of too many pixels" in message
    assert most < 20_000_000


def test_the_same_image_twice(folder):
    picture = SOUND_FILES[".png"]
    small_study(folder, **{"stimuli/x.png": picture, "stimuli/y.png": picture})
    assert only(folder).startswith("stimuli/y.png: is the same content as stimuli/x.png")


def test_stimuli_that_are_too_large(folder):
    large = {"stimuli/x.png": png.patch(1, 2, 3) + bytes(3000)}
    small_study(folder, "stimuli.max_megabytes = 0.002", **large)
    assert "MB large, but must be at most 0.002 MB (stimuli.max_megabytes)" in only(folder)


def test_links_must_stay_inside(folder, tmp_path):
    small_study(folder)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "stimuli" / "x.txt").symlink_to(tmp_path / "secret.txt")
    assert only(folder) == (
        "stimuli/x.txt: is not accessible, but must not be a link that leaves the study's folder."
    )
    (folder / "stimuli" / "x.txt").unlink()
    (folder / "stimuli" / "x.txt").symlink_to("x.txt")
    assert "not accessible" in only(folder)
    (folder / "stimuli" / "x.txt").unlink()
    (folder / "stimuli" / "x.txt").symlink_to("gone.txt")
    assert "there is none with that name" in only(folder)
    (folder / "stimuli" / "x.txt").unlink()
    write(folder, {"more/x.txt": "x"})
    (folder / "stimuli" / "x.txt").symlink_to("../more/x.txt")
    assert check(folder) == []


def test_a_pipe_is_not_opened(folder):
    small_study(folder)
    os.mkfifo(folder / "stimuli" / "x.png")
    assert "this one is not" in only(folder)


def test_too_few_and_too_many_items(folder):
    small_study(folder)
    (folder / "stimuli" / "red.txt").unlink()
    assert only(folder) == (
        'study.toml: stimuli.folder is "stimuli" with 3 items, but a study must have from 4 to '
        "2000 items."
    )
    rows = "".join(f"word {n}\n" for n in range(2001))
    small_study(folder, 'stimuli.list = "items.csv"', **{"items.csv": "text\n" + rows})
    assert 'stimuli.list is "items.csv" with 2001 items' in only(folder)


GOOD = "a,\nb,\nc,\nd,\n"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "items.csv: is empty, but must start with a header with the columns key, file, text"),
        ("text,lable\n" + GOOD, "lable is an unknown column, but every column must be one of"),
        ("text,lable\n" + GOOD, "did you mean label?"),
        ("key,label\n" + GOOD, 'line 1 is "key,label", but must have the column file or text'),
        ("text,text\n" + GOOD, "must name each column once"),
        ("text,alt\n" + GOOD + "e\n", "line 6 is 1 value long, but must have 2"),
        ("text,alt\n" + GOOD + '"e\n', "line 6 is unreadable, but must be CSV"),
        ("text,file\n" + GOOD + "e,e.png\n", "line 6, file is given together with text"),
        ("text,key\n" + GOOD + ",e\n", "line 6, file is missing, but each item must have either"),
        ("text,file\n" + GOOD + ",e.png\n", 'line 6, file is "e.png", but must name a file'),
        ("text,file\n" + GOOD + ",e.exe\n", 'line 6, file is "e.exe", but stimuli must end in'),
        ("text,file\n" + GOOD + ",../e.png\n", "without '..' and not absolute"),
        ("text,key\n" + GOOD + "e,a\n", 'line 6, key is "a", but must be unique (line 2'),
        ("text,key\n" + GOOD + "a,e\n", "line 6 is the same content as line 2 of items.csv"),
        ("text,key\n" + GOOD + f"{'e' * 101},\n", "give the item a separate key"),
    ],
)
def test_lists_that_are_wrong(folder, table, message):
    message_found = only(small_study(folder, 'stimuli.list = "items.csv"', **{"items.csv": table}))
    assert message_found.startswith("items.csv: ")
    assert message in message_found


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("[[itme]]\n", "items.toml: itme is an unknown key"),
        ('[[item]]\ntext = "e"\nlabl = "x"\n', "item 5, labl is an unknown key"),
        ('[[item]]\ntext = "e"\nlabel = 3\n', "item 5, label is 3, but must be text"),
        ("catch = 3\n", "items.toml: catch is 3, but must be tables, [[catch]]"),
        ("x = \n", "items.toml: line 1 is"),
        (
            '[[catch]]\nanchor = "a"\nnearer = "b"\nfarther = "x"\n',
            'catch 1, farther is "x", but must be the key of an item',
        ),
    ],
)
def test_toml_lists_that_are_wrong(folder, extra, message):
    items = "".join(f'[[item]]\ntext = "{letter}"\n' for letter in "abcd")
    text = items + extra if extra.startswith("[") else extra + items
    assert message in only(
        small_study(folder, 'stimuli.list = "items.toml"', **{"items.toml": text})
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("red,green,blu\n", 'line 2, farther is "blu", but must be the key of an item; did you'),
        ("red,green,blu\n", "did you mean blue?"),
        ("red,blue,blue\n", 'farther is "blue", but must differ from anchor and nearer'),
        ("red,blue,red\n", 'farther is "red", but must differ from anchor and nearer'),
        ("red,red,blue\nred,red,blue\n", "line 3 is the same as line 2 of catches.csv"),
    ],
)
def test_catches_that_are_wrong(folder, table, message):
    files = {"catches.csv": "anchor,nearer,farther\n" + table}
    assert message in only(small_study(folder, 'stimuli.catches = "catches.csv"', **files))


def test_catches_need_all_their_columns(folder):
    files = {"catches.csv": "anchor,nearer\nred,red\n"}
    assert "must have the columns anchor and nearer and farther" in only(
        small_study(folder, 'stimuli.catches = "catches.csv"', **files)
    )


def test_catches_may_lie_among_the_stimuli(folder):
    files = {"stimuli/catches.csv": "anchor,nearer,farther\nred,red,blue\n"}
    study = load(small_study(folder, 'stimuli.catches = "stimuli/catches.csv"', **files))
    assert len(study.items) == 4
    assert study.catches == (Catch(3, 3, 0),)


PLACES = "item,x1,x2\nred,1,2\ngreen,3,4\nblue,5,6\ngrey,7,8e-1\n"


def test_positions_come_in_the_order_of_the_items(folder):
    study = load(small_study(folder, 'bots.positions = "p.csv"', **{"p.csv": PLACES}))
    found = read_positions(folder / "p.csv", study.items)
    np.testing.assert_array_equal(found, [[5, 6], [3, 4], [7, 0.8], [1, 2]])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", 'p.csv: line 1 is "", but must be item and the names of one or more coordinates'),
        (PLACES.replace("item", "name"), 'line 1 is "name,x1,x2", but must be item'),
        ("item\nred\ngreen\nblue\ngrey\n", "one or more coordinates"),
        (PLACES.replace("red,1,2\n", ""), 'item "red" is missing, but every item must have'),
        (PLACES + "blu,1,2\n", 'line 6, item is "blu", but must be the key of an item; did you'),
        (PLACES + "red,1,2\n", 'line 6, item is "red", but must occur in one line only'),
        (PLACES.replace("3", "nan"), 'line 3, x1 is "nan", but must be a finite number'),
        (PLACES.replace("3,", "three,"), 'line 3, x1 is "three", but must be a finite number'),
        (PLACES.replace("3,", ""), "line 3 is 2 values long"),
    ],
)
def test_positions_that_are_wrong(folder, table, message):
    small_study(folder, 'bots.positions = "p.csv"', **{"p.csv": table})
    messages = messages_of(folder)
    assert any(message in one for one in messages), messages
    items = load(small_study(folder, "")).items
    with pytest.raises(InvalidStudy, match=r"p\.csv"):
        read_positions(folder / "p.csv", items)
