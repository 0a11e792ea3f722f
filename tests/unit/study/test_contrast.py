"""Text and controls stay readable on whatever background a study chooses."""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.study.config import LIGHT_GREY
from server.study.contrast import contrast, palette
from tests.support.study_folders import messages_of, only, small_study

STYLE = Path(__file__).parents[3] / "static" / "participant.css"


def holds_wcag_aa(background: str) -> None:
    colours = palette(background)
    assert colours.paper == background
    for ground, name in product(("paper", "plate", "tint"), ("ink", "soft", "accent")):
        found = contrast(getattr(colours, name), getattr(colours, ground))
        assert found >= 4.5, f"{name} on {ground} of {colours}"
    for ground in ("paper", "plate", "tint"):
        assert contrast(colours.line, getattr(colours, ground)) >= 3.0, f"line on {ground}"
    assert contrast(colours.accent_ink, colours.accent) >= 4.5
    # On trials the accent is the ink, with the background on it.
    assert contrast(colours.paper, colours.ink) >= 4.5


def test_contrast_is_what_wcag_says():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)
    assert contrast("#777777", "#777777") == 1.0
    # The lightest grey that passes on white, and the first that does not.
    assert contrast("#767676", "#ffffff") >= 4.5 > contrast("#777777", "#ffffff")


def test_every_grey_is_readable():
    for value in range(256):
        holds_wcag_aa(f"#{value:02x}{value:02x}{value:02x}")


@given(st.integers(0, 2**24 - 1))
def test_every_colour_is_readable(value):
    holds_wcag_aa(f"#{value:06x}")


def test_the_style_sheet_has_the_colours_of_the_default():
    root = re.search(r":root \{(.*?)\}", STYLE.read_text(), re.S)[1]
    colours = asdict(palette(LIGHT_GREY))
    assert f"color-scheme: only {colours.pop('scheme')};" in root
    written = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", root))
    for name, value in colours.items():
        assert written[name.replace("_", "-")] == value


@pytest.mark.parametrize("value", ['"white"', '"#fff"', '"ebebeb"', '"#ebebeb "', '"#gggggg"', "3"])
def test_other_colour_notations_are_refused(tmp_path, value):
    message = only(small_study(tmp_path / "words", f"trial.background = {value}"))
    assert message == (
        f"study.toml: trial.background is {value}, but must be text such as "
        '"#ebebeb": # and six hexadecimal digits.'
    )


def test_capitals_will_do(tmp_path):
    assert messages_of(small_study(tmp_path / "words", 'trial.background = "#AABBCC"')) == []
