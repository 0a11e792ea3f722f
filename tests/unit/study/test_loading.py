"""A study's folder: what loads, and what each kind of mistake is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore_active.errors import LoreError
from server.study.config import Study, Trial
from server.study.items.file_types import MEDIA
from server.study.loading import InvalidStudy, Problem, check, load
from server.study.texts import Texts
from server.study.validation import NEVER_EMPTY
from tests.support.study_folders import SOUND_FILES, only, small_study, write


@pytest.fixture
def folder(tmp_path):
    return tmp_path.resolve() / "words"


def test_the_smallest_study_loads_with_defaults(folder):
    study = load(small_study(folder))
    assert check(folder) == []
    assert study.folder == folder
    assert study.name == "words"
    question = "Which of the two is more like the one above?"
    assert study.settings == Study(title="Words", trial=Trial(question=question))
    assert [item.key for item in study.items] == ["blue", "green", "grey", "red"]
    assert {item.kind for item in study.items} == {"text"}
    assert study.items[0].text == study.items[0].label == study.items[0].alt == "blue"


def test_everything_is_reported_at_once(folder):
    toml = """
seed = -1
sesion = 3
[session]
trials = "many"
random = 0.4
repeat = 0.4
[texts]
agree = " "
begn = "Go"
[completion]
redirect = "javascript:alert(1)"
"""
    small_study(folder, toml, **{"stimuli/bad.png": b"<html>", "stimuli/none.txt": b""})
    with pytest.raises(InvalidStudy) as caught:
        load(folder)
    assert isinstance(caught.value, LoreError)
    assert list(caught.value.problems) == check(folder)
    keys = {problem.key or problem.file for problem in caught.value.problems}
    assert keys == {
        "seed",
        "sesion",
        "session.trials",
        "session.random + session.catch + session.repeat",
        "texts.agree",
        "texts.begn",
        "completion.redirect",
        "stimuli/bad.png",
        "stimuli/none.txt",
    }
    assert str(caught.value).count("\n") == len(keys) - 1


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("seed = -1", "study.toml: seed is -1, but must be a whole number of 0 or more and below"),
        ("seed = 1.5", "seed is 1.5, but must be a whole number"),
        ("seed = true", "seed is true, but must be a whole number"),
        ('language = "?"', 'language is "?", but must be text such as en, de or pt-BR'),
        ('direction = "up"', 'direction is "up", but must be "ltr" or "rtl"'),
        ("session.trials = 0", "session.trials is 0, but must be a whole number from 1 to 5000"),
        ("session.catch = 0.6", "session.catch is 0.6, but must be a number from 0 to 0.5"),
        ("session.random = nan", "session.random is nan, but must be a number from 0 to 1"),
        ("bots.noise = inf", "bots.noise is inf, but must be a number of 0 or more"),
        ("session = 3", "session is 3, but must be a table, [session]"),
        ("trial.question = [1]", "trial.question is [1], but must be text"),
        ("trial.skip = 1", "trial.skip is 1, but must be true or false"),
        ("stimuli.max_megabytes = 0", "stimuli.max_megabytes is 0, but must be a number above 0"),
        ("stopping.confidence = 1.0", "is 1.0, but must be a number of 0.5 or more and below 1"),
        ("sesion.trials = 1", "sesion is an unknown key, but every key must be one of title, "),
        ("sesion.trials = 1", "did you mean session?"),
        ("session.trails = 1", "session.trails is an unknown key"),
        ("session.trails = 1", "did you mean trials?"),
        ("this is no toml", 'line 2 is "this is no toml", but must be TOML (expected'),
        ("seed = 1\nseed = 2", 'line 3 is "seed = 2", but must be TOML'),
        ("seed = " + "9" * 5000, "study.toml: is unreadable, but must be TOML"),
        ("x = " + "[" * 5000, "study.toml: is unreadable, but must be TOML"),
        ('trial.question = " "', 'trial.question is " ", but must not be empty'),
        ('trial.kind = "pairs"', 'trial.kind is "pairs", but must be "choose" or "odd-one-out" or'),
        ("trial.options = 13", "trial.options is 13, but must be a whole number from 0 to 12"),
        ("trial.options = 4", "trial.options is 4, but must be 2, or omitted, where trial.kind"),
        ('trial.kind = "rank"', "trial.options is missing, but must be from 2 to 12"),
        ('trial.kind = "choose"\ntrial.options = 1', "trial.options is 1, but must be from 2"),
        ('trial.kind = "rank"\ntrial.options = 3', "trial.pick is missing, but must be from 1"),
        (
            'trial.kind = "rank"\ntrial.options = 3\ntrial.pick = 3',
            'trial.pick is 3, but must be from 1 to 2 where trial.kind is "rank", below',
        ),
        (
            'trial.kind = "odd-one-out"\ntrial.pick = 2',
            'trial.pick is 2, but must be 1, or omitted, where trial.kind is "odd-one-out"',
        ),
        (
            'trial.kind = "choose"\ntrial.options = 8\ntrial.pick = 2',
            "is 8, but a question shows 8 options and an anchor, and there are only 4 items",
        ),
        ('texts.progress = "{done}/{n}"', 'texts.progress is "{done}/{n}", but may contain'),
        ('texts.progress = "{done:x}"', "{done} and {all} and no other braces"),
        ('texts.progress = "{"', 'texts.progress is "{", but may contain'),
        (
            'texts.minutes_left = "{done}"',
            "may contain the placeholder {minutes} and no other braces",
        ),
        ('texts.returning = "{seconds} {x}"', "may contain the placeholder {seconds} and no other"),
        ('texts.image_name = "{0}"', "may contain the placeholder {letter} and no other braces"),
        ('texts.map_nearest = "{item.x}"', "the placeholders {item} and {other} and no other"),
        ("completion.return_seconds = 3", "is 3, but must be 0 or at least 5, so that there is"),
        ("trial.timeout_ms = 5\ntrial.min_view_ms = 5", "must be above trial.min_view_ms (5)"),
        ("stopping.min_answers = 9000", "must be at most budget.answers (4000)"),
        ("stopping.min_answers = 200\nbudget.participants = 2", "at most 160 answers"),
        ("pay.per_hour = 12", 'pay.currency is "", but must be the currency of pay.per_hour (12)'),
        ("pay.per_hour = -1", "pay.per_hour is -1, but must be a number from 0 to 1000000"),
        ("pay.fee = 25", "pay.fee is 25, but must be a number from 0 to 1"),
        ('pay.currency = "Deutsche Mark"', "must be text of at most 12 characters"),
        ('stimuli.folder = ""', 'stimuli.folder is "", but must name a folder inside'),
        ('stimuli.folder = "/etc"', "without '..' and not absolute"),
        ('stimuli.folder = "../words/stimuli"', "without '..' and not absolute"),
        ('stimuli.folder = "C:\\\\stimuli"', "without '..' and not absolute"),
        ('stimuli.folder = "a\\u0000b"', "must name a folder inside the study's folder"),
        ('stimuli.folder = "gone"', "and there is none with that name"),
        ('stimuli.folder = "study.toml"', "and this one is not"),
        ('stimuli.list = "gone.csv"', 'stimuli.list is "gone.csv", but must name a file'),
        ('stimuli.list = "study.txt"', "there is none with that name"),
        ('stimuli.list = "stimuli/red.txt"', "must name a list that ends in .csv or .toml"),
        ('stimuli.catches = "gone.csv"', 'stimuli.catches is "gone.csv", but must name a file'),
        ('bots.positions = "gone.csv"', 'bots.positions is "gone.csv", but must name a file'),
    ],
)
def test_settings_that_are_wrong(folder, toml, message):
    assert message in only(small_study(folder, toml))


@pytest.mark.parametrize("name", NEVER_EMPTY)
def test_headings_and_buttons_are_never_empty(folder, name):
    assert name in Texts.__struct_fields__
    assert only(small_study(folder, f'texts.{name} = ""')).startswith(f"study.toml: texts.{name}")


@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("https://app.prolific.com/submissions/complete?cc=C1", True),
        ("http://localhost:8000/done?id=[PROLIFIC_PID]&x=[y]#end", True),
        ("HTTPS://example.org", True),
        ("javascript:alert(1)", False),
        ("//example.org/", False),
        ("https://", False),
        ("https://[PROLIFIC_PID]/", False),
        ("https://me:secret@example.org/", False),
        ("https://example.org/[", False),
        ("https://example.org/a b", False),
        ("https://example.org/\\n", False),
    ],
)
def test_redirect_urls(folder, address, good):
    small_study(folder, f'completion.full_redirect = "{address}"')
    if good:
        assert load(folder).settings.completion.full_redirect == address
    else:
        assert "must be a URL that starts with https:// or http://" in only(folder)


def test_a_missing_title(folder):
    small_study(folder)
    write(folder, {"study.toml": "seed = 2"})
    assert only(folder) == (
        "study.toml: title is missing, but must be text of 1 to 200 characters."
    )
    write(folder, {"study.toml": 'title = "  "'})
    assert 'title is "  ", but must not be blank' in only(folder)


def test_text_that_is_not_utf8(folder):
    small_study(folder)
    write(folder, {"study.toml": b'title = "\xff"'})
    assert only(folder) == "study.toml: byte 9 is 0xff, but must be part of text in UTF-8."


def test_missing_folders_and_files(tmp_path):
    assert "must be a folder that contains a study.toml" in only(tmp_path / "gone")
    (tmp_path / "file").write_text("")
    assert "a study must be a folder" in only(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert "study.toml is missing, but every study must have one" in only(tmp_path / "empty")


def test_the_name_must_work_in_a_url(tmp_path):
    message = only(small_study(tmp_path / "my study"))
    assert (
        'its name is "my study", but must be up to 64 letters (a to z), digits, - and _' in message
    )


def test_a_problem_never_breaks_the_line():
    assert str(Problem("a\nb", "k\x1b", "v\udcff", "must not")) == (
        r"a\nb: k\x1b is v\udcff, but must not."
    )


NAMES = st.sampled_from(["title", "seed", "session", "session.trials", "texts.agree", "stimuli"])
PIECES = st.one_of(
    st.text(max_size=20),
    st.builds("{} = {}\n".format, NAMES, st.text(max_size=8)),
    st.builds('{} = "{}"\n'.format, NAMES, st.text(max_size=8)),
    st.builds(
        '[stimuli]\n{} = "{}"\n'.format,
        st.sampled_from(["list", "folder", "catches"]),
        st.sampled_from(["items.csv", "items.toml", "stimuli", ".", "study.toml", "a\\u0000"]),
    ),
    st.builds("{} = {}\n".format, NAMES, st.one_of(st.integers(), st.floats(), st.booleans())),
)
BYTES = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda good, cut, tail: good[:cut] + tail,
        st.sampled_from(list(SOUND_FILES.values())),
        st.integers(0, 80),
        st.binary(max_size=20),
    ),
)


@given(
    toml=st.lists(PIECES, max_size=6).map("".join),
    stimuli=st.lists(st.tuples(st.sampled_from(sorted(MEDIA)), BYTES), max_size=6),
    table=st.one_of(BYTES, st.text(alphabet="abkeytxfil,;\n\"'=[]", max_size=60).map(str.encode)),
)
def test_check_never_fails_whatever_it_reads(tmp_path_factory, toml, stimuli, table):
    folder: Path = tmp_path_factory.mktemp("any")
    try:
        files = {f"stimuli/{at}{end}": content for at, (end, content) in enumerate(stimuli)}
        text = toml.encode("utf-8", "surrogatepass")
        write(folder, {"study.toml": text, "items.csv": table, "items.toml": table, **files})
        problems = check(folder)
        assert all(isinstance(problem, Problem) for problem in problems)
        assert all(str(problem).isprintable() for problem in problems)
        if problems:
            with pytest.raises(InvalidStudy):
                load(folder)
        else:
            assert len(load(folder).items) >= 4
    finally:
        shutil.rmtree(folder)
