"""Default texts of the participant's pages for each kind of question."""

from __future__ import annotations

import re

import pytest

from lore_active.questions.kinds import kind
from server.study.config import Study
from server.study.loading import load
from server.study.texts import Texts, texts_for
from server.study.validation import PLACEHOLDERS
from tests.support.study_folders import small_study

KINDS = ["odd-one-out", "choose-1-of-4", "choose-2-of-6", "rank-1-of-3", "rank-11-of-12"]


def test_triplets_have_the_texts_of_study_toml():
    texts = Texts(agree="Yes")
    assert texts_for(texts, kind("triplet")) == texts


@pytest.mark.parametrize("label", KINDS)
def test_other_kinds_have_their_own(label):
    texts = texts_for(Texts(), kind(label))
    default = Texts()
    changed = {
        name for name in Texts.__struct_fields__ if getattr(texts, name) != getattr(default, name)
    }
    assert changed >= {"consent", "instructions", "example", "how_to_answer", "not_taken"}
    for name in Texts.__struct_fields__:
        text = getattr(texts, name)
        left = set(re.findall(r"\{(\w*)\}", text))
        assert left <= set(PLACEHOLDERS.get(name, ())), f"{name}: {text}"
        if name in changed:
            assert "third" not in text and "arrow" not in text, f"{name}: {text}"


def test_units_need_no_plural():
    """A countdown comes to 1, and {minutes} may be 1: there is one text for all numbers."""
    for name in ("returning", "minutes_left"):
        text = getattr(Texts(), name)
        assert not re.search(r"\} (seconds|minutes)\b", text), text


def test_numbers_are_those_of_the_kind():
    texts = texts_for(Texts(), kind("rank-11-of-12"))
    assert "one item and twelve others" in texts.instructions
    assert "Choose the eleven" in texts.instructions and "places" in texts.instructions
    assert "odd" not in texts_for(Texts(), kind("odd-one-out")).instructions


def test_texts_of_the_study_itself_stay():
    own = Texts(consent="Lesen Sie das.", instructions="Wählen Sie zwei.")
    texts = texts_for(own, kind("choose-2-of-6"))
    assert (texts.consent, texts.instructions) == (own.consent, own.instructions)
    assert texts.how_to_answer != own.how_to_answer


def test_a_loaded_study_has_the_texts_of_its_kind(tmp_path):
    toml = 'trial.kind = "odd-one-out"\ntexts.agree = "Yes"\n'
    settings = load(small_study(tmp_path / "odd", toml)).settings
    assert settings.texts == texts_for(Texts(agree="Yes"), kind("odd-one-out"))
    assert settings.texts != Study(title="T").texts
