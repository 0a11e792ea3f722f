"""Output of `new`, `check` and `password`, and completeness of the manual."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

from lore_active.simulation.observers import Observer, ObserverNoise
from lore_active.simulation.run import SimulatedParticipants, simulate
from server.auth.passwords import verify
from server.learning.replayer import new_learner
from server.processes.bots import space_of
from server.study.config import Study
from server.study.descriptions import MEANINGS, TABLES
from server.study.items.positions import read_positions
from server.study.loading import check, load
from server.study.parsing import all_keys, read, rule_of
from server.study.samples import colours
from server.study.samples.template import study_toml, write_study
from tests.support.commands import completed as run
from tests.support.study_folders import small_study

COMMAND = str(Path(sys.executable).with_name("lore-active"))
MANUAL = Path(__file__).parents[3] / "docs" / "study.md"


def run_alone(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)


def rows_of_the_manual():
    lines = re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*?) \|$", MANUAL.read_text(), re.M)
    assert len({line[0] for line in lines}) == len(lines)
    return {key: (rule, default, meaning) for key, rule, default, meaning in lines}


def test_the_manual_lists_every_key_as_it_is():
    rows = rows_of_the_manual()
    assert list(rows) == list(all_keys())
    for key, field in all_keys().items():
        default = json.dumps(field.default, ensure_ascii=False) if not field.required else ""
        rule = rule_of(field.type).removeprefix("must be ")
        assert rows[key] == (rule, f"`{default}`" if default else "required", MEANINGS[key])


def test_every_example_of_the_manual_is_valid():
    examples = re.findall(r"^```toml\n(.*?)^```", MANUAL.read_text(), re.M | re.S)
    settings = [text for text in examples if "[[item]]" not in text]
    assert len(settings) == len(TABLES)
    for text in settings:
        problems = []
        assert read(text if text.startswith("title") else 'title = "T"\n' + text, problems)
        assert problems == []


def test_every_key_has_a_meaning_and_no_other_has():
    assert set(MEANINGS) == set(all_keys())
    assert set(TABLES) == {key.rpartition(".")[0] for key in MEANINGS}


def test_the_template_has_every_key_and_means_the_defaults():
    problems = []
    settings = read(study_toml({"title": 'A "title" \\ with\tall\x7f'}), problems)
    assert problems == []
    assert settings.study == Study(title='A "title" \\ with\tall\x7f')
    assert {key for key in settings.given if key in all_keys()} == set(all_keys())


def test_the_template_explains_every_key():
    lines = study_toml({"title": "T"}).splitlines()
    for at, line in enumerate(lines):
        if re.match(r"[a-z_]+ = ", line):
            assert lines[at - 1].startswith("# ")
    assert max(map(len, (line for line in lines if line.startswith("#")))) < 100


@pytest.mark.parametrize("sample", ["foods", "colours"])
def test_samples_run_as_they_are(tmp_path, sample):
    write_study(tmp_path / "new", sample, 5)
    study = load(tmp_path / "new")
    assert study.settings.seed == 5
    assert study.catches
    assert all(item.label and item.alt for item in study.items)


def test_the_demo_settles_within_two_minutes(tmp_path):
    """As `lore-active demo` begins it: five bots, each with a second of thought an answer."""
    write_study(tmp_path / "colours", "colours", 1)
    study = load(tmp_path / "colours")
    bots, space = study.settings.bots, space_of(study, 1)
    noise = ObserverNoise(bots.noise, bots.lapse)
    participants = SimulatedParticipants([Observer(space, noise, seed) for seed in range(50)])
    answers = study.settings.budget.answers
    learner = new_learner(study, study.settings.seed)
    *_, end = simulate(learner, participants, answers, None, clock=lambda: 0.0, batch=5)
    assert end["stopped_rank"] == 2 and end["stopped_at"] <= 5 * 120
    assert learner.decision.message.startswith("The rank is settled at two dimensions.")


def lab(red, green, blue):
    """CIELAB of an sRGB colour, by the textbook."""
    share = np.array([red, green, blue]) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
              [0.0193339, 0.1191920, 0.9503041]]  # fmt: skip
    t = np.array(to_xyz) @ linear / [0.95047, 1.0, 1.08883]
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def pixels(content):
    """The pixels of a PNG of ours, with every checksum verified and its colour space declared."""
    Image.open(io.BytesIO(content), formats=["PNG"]).verify()
    with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
        assert image.mode == "RGB" and "srgb" in image.info
        return np.asarray(image)


def test_the_colours_lie_where_the_positions_say(tmp_path):
    write_study(tmp_path / "new", "colours", 5)
    study = load(tmp_path / "new")
    positions = read_positions(tmp_path / "new" / "positions.csv", study.items)
    assert positions.shape == (len(study.items), 2)
    np.testing.assert_allclose(positions.std(axis=0), 1.0, atol=0.1)
    for item, place in zip(study.items, positions, strict=True):
        picture = pixels(item.file.read_bytes())
        assert (picture == picture[0, 0]).all()
        lightness, a, b = lab(*picture[0, 0])
        assert abs(lightness - colours.LIGHTNESS) < 0.5
        np.testing.assert_allclose([a, b], place * colours.UNIT, atol=0.7)


def test_every_colour_has_its_own_name_and_catches_are_easy(tmp_path):
    found = colours.colours()
    assert len({colour.name for colour in found}) == len(found) == 28
    place = {colour.key: np.array(colour.position) for colour in found}
    for anchor, nearer, farther in colours.catches():
        near = np.linalg.norm(place[anchor] - place[nearer])
        assert 5 * near < np.linalg.norm(place[anchor] - place[farther])


def test_a_colour_outside_the_gamut_is_refused():
    with pytest.raises(ValueError, match="outside the sRGB gamut"):
        colours.srgb(74, 90, 0)


def test_new_writes_a_study_and_shows_its_password_once(tmp_path):
    output = run_alone("new", tmp_path / "mine", "--demo", "colours", "--seed", 11)
    assert output.returncode == 0, output.stderr
    password = re.search(r"only once\):  (\S+)", output.stdout)[1]
    assert verify(tmp_path / "mine", password)
    assert f"lore-active serve {tmp_path / 'mine'}" in output.stdout
    assert load(tmp_path / "mine").settings.seed == 11
    for file in (tmp_path / "mine").rglob("*"):
        assert file.is_dir() or password.encode() not in file.read_bytes()


def test_new_draws_a_seed(tmp_path):
    seeds = set()
    for name in ("a", "b", "c"):
        assert run("new", tmp_path / name).returncode == 0
        seeds.add(load(tmp_path / name).settings.seed)
    assert len(seeds) == 3


def test_new_refuses_what_is_there_and_bad_names(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear diary")
    (tmp_path / "file").write_text("")
    for name, part in (("mine", "not empty"), ("file", "not empty"), ("my study", "letters")):
        output = run("new", tmp_path / name)
        assert output.returncode == 2
        assert part in output.stderr
        assert output.stderr.count("\n") == 1
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["diary.txt"]
    (tmp_path / "empty").mkdir()
    assert run("new", tmp_path / "empty").returncode == 0


def test_check_prints_every_problem_or_a_summary(tmp_path):
    good = small_study(tmp_path / "good")
    bad = small_study(tmp_path / "bad", "seed = -1\nlanguage = 3")
    output = run("check", good)
    assert (output.returncode, output.stderr) == (0, "")
    assert output.stdout == (
        "good is ready: 4 items (4 text), 0 catch questions, 80 trials per participant, at most "
        "4,000 answers.\n"
    )
    output = run("check", bad)
    assert (output.returncode, output.stderr) == (2, "")
    assert output.stdout.splitlines() == [str(problem) for problem in check(bad)]
    output = run("check", good, bad, "--json")
    assert output.returncode == 2
    result = json.loads(output.stdout)
    assert result["ok"] is False
    first, second = result["studies"]
    assert first["problems"] == []
    assert first["summary"] == {
        "name": "good",
        "title": "Words",
        "items": 4,
        "kinds": {"text": 4},
        "catches": 0,
        "trials": 80,
        "budget": {"answers": 4000, "participants": 0},
    }
    assert second["summary"] is None
    assert {"file": "study.toml", "key": "language", "value": "3"}.items() <= second["problems"][
        1
    ].items()


def test_check_warns_of_exits_that_lead_nowhere(tmp_path):
    link = '[completion]\nredirect = "https://panel.example/done"\nfull_code = "F"\n'
    folder = small_study(tmp_path / "some", f'{link}declined_redirect = "https://panel.example/no"')
    output = run("check", folder)
    assert output.returncode == 0
    ready, *warnings = output.stdout.splitlines()
    assert ready.startswith("some is ready")
    assert warnings == [
        "Warning: study.toml: completion.expired_code and completion.expired_redirect are empty, "
        "so participants who were away when the study closed get neither a code nor a link back "
        "to the recruitment site."
    ]
    (report,) = json.loads(run("check", folder, "--json").stdout)["studies"]
    assert [f"Warning: {warning}" for warning in report["warnings"]] == warnings and report["ok"]
    whole = small_study(tmp_path / "whole", f'{link}expired_code = "E"\ndeclined_code = "D"')
    assert "Warning" not in run("check", whole).stdout


def test_a_new_study_warns_of_what_is_left_to_fill_in(tmp_path):
    write_study(tmp_path / "tastes", "foods", 1)
    _, *warnings = run("check", tmp_path / "tastes").stdout.splitlines()
    assert warnings == [
        "Warning: study.toml: texts.consent still has something to fill in: 10 places, the first "
        "of them [FILL IN: names]."
    ]
    toml = tmp_path / "tastes" / "study.toml"
    consent = load(tmp_path / "tastes").settings.texts.consent
    for asked in ("name", "institution", "contact", "ethics", "purpose", "minutes", "payment"):
        assert asked in consent.lower()
    for asked in ("stored", "kept for", "withdrawal"):
        assert asked in consent.lower()
    text = re.sub(r"\[FILL IN[^]]*\]", "all is said", toml.read_text())
    toml.write_text(text)
    assert "Warning" not in run("check", tmp_path / "tastes").stdout
    toml.write_text(text.replace('title = "How foods taste"', 'title = "Foods [ fill in ]"'))
    assert (
        "title still has something to fill in: [ fill in ]."
        in run("check", tmp_path / "tastes").stdout
    )


@pytest.mark.parametrize("sample", ["foods", "colours"])
def test_check_warns_of_a_question_about_two_options_where_there_are_more(tmp_path, sample):
    folder = tmp_path / "some"
    write_study(folder, sample, 1)
    toml = folder / "study.toml"
    text = toml.read_text().replace("options = 0", "options = 8").replace("pick = 0", "pick = 2")
    toml.write_text(text.replace('kind = "triplet"', 'kind = "rank"'))
    _, *warnings = run("check", folder).stdout.splitlines()
    (warning,) = [one for one in warnings if "trial.question" in one]
    assert "of the two" in warning and "8 options (rank-2-of-8)" in warning
    assert "asked: Which two of these are most like the one above? Choose the most" in warning
    # Everything else that participants read fits the kind.
    assert "which of two" not in load(folder).settings.texts.consent
    toml.write_text(re.sub(r'question = "[^"]*"', 'question = ""', toml.read_text()))
    assert "trial.question" not in run("check", folder).stdout


def test_check_warns_of_texts_that_are_not_translated(tmp_path):
    whole = {key: "Wort {}" for key in all_keys() if key.startswith("texts.")}
    texts = "".join(f'{key} = "Wort"\n' for key in whole)
    folder = small_study(tmp_path / "german", f'language = "de"\n{texts}')
    assert "Warning" not in run("check", folder).stdout
    some = texts.replace('texts.agree = "Wort"\n', "").replace('texts.stay = "Wort"\n', "")
    folder = small_study(tmp_path / "half", f'language = "de"\n{some}')
    assert run("check", folder).stdout.splitlines()[1:] == [
        'Warning: study.toml: language is "de", but 2 texts are still the English ones: '
        "texts.agree, texts.stay."
    ]
    none = run("check", small_study(tmp_path / "none", 'language = "de-AT"')).stdout
    assert "texts are still the English ones: texts.consent_title, " in none and " more." in none
    assert (
        "Warning" not in run("check", small_study(tmp_path / "some", 'language = "en-GB"')).stdout
    )


def test_password_sets_a_new_one(tmp_path):
    folder = small_study(tmp_path / "good")
    shown = run("password", folder).stdout.split()[-1]
    assert verify(folder, shown)
    assert run("password", folder, "--stdin", input="my own words\n").returncode == 0
    assert verify(folder, "my own words")
    output = run("password", folder, "--stdin", input="short\n")
    assert output.returncode == 2
    assert "5 characters" in output.stderr
    output = run("password", tmp_path)
    assert output.returncode == 2
    assert "contains no study.toml" in output.stderr


def test_defaults_are_within_their_own_rules():
    for key, field in all_keys().items():
        if not field.required:
            assert msgspec.convert(field.default, field.type) == field.default, key
