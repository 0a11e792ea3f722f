"""Exports: what is in them, what is left out, and that the tools they are for can read them."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from lore_active.data.comparisons import as_triplets
from lore_active.data.formats import safe, unsafe
from lore_active.data.lookalikes import appearance, unified
from server.cli.main import main
from server.clock import now
from server.exports.dictionary import MEANINGS
from server.exports.registry import FORMATS
from server.exports.tables import csv_text
from server.study.workspace import open_study
from tests.support.commands import run
from tests.support.live_server import write_study
from tests.support.open_study import Desk, Respondent, response
from tests.support.psych_ds_rules import issues

# Enough answers for a map, whatever the last bits are.
TRIALS, PARTICIPANTS = 60, 3
TOML = f"""
[session]
trials = {TRIALS}
practice = 1
break_every = 0
catch = 0.1
repeat = 0.1
[trial]
skip = true
"""
ITEMS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    desk = Desk(tmp_path_factory.mktemp("export") / "words", TOML, items=ITEMS)
    worker, participant = desk.worker(), Respondent(ITEMS, 1, noise=0.0)
    worker.turn()
    for number in range(PARTICIPANTS):
        stage = desk.new_participant(PROLIFIC_PID=f"=secret{number}")
        while stage.kind in ("practice", "trial"):
            side = "skip" if stage.done == 9 else participant.side(stage)
            stage = desk.answer(stage, side)
        desk.service.feedback(stage.participant, "=1+1\nthank you, “all”")
        worker.turn()
    desk.control.exclude("test", 2, "too fast")
    worker.turn()
    desk.close()
    return desk.folder


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_every_answer_and_every_column_is_explained(folder, tmp_path):
    run("export", folder, "--format", "csv", "--out", tmp_path)
    answers = read(tmp_path / "answers.csv")
    assert len(answers) == PARTICIPANTS * (TRIALS + 1)
    assert {row["excluded"] for row in answers} == {"0", "1"}
    dictionary = (tmp_path / "dictionary.md").read_text()
    for name in ("answers.csv", "participants.csv", "items.csv"):
        for column in read(tmp_path / name)[0]:
            assert f"| {column} | {MEANINGS[column]} |" in dictionary
    participants = read(tmp_path / "participants.csv")
    assert participants[0]["external"] == "PROLIFIC_PID==secret0"
    assert participants[0]["feedback"].startswith("'=1+1")
    assert "PROLIFIC_PID" in participants[0]["entry"]


def test_participants_can_be_left_out_or_pseudonymised(folder, tmp_path):
    run("export", folder, "--out", tmp_path, "--without-excluded", "--pseudonyms")
    assert {row["participant"] for row in read(tmp_path / "answers.csv")} == {"1", "3"}
    everything = "".join(file.read_text() for file in tmp_path.iterdir())
    assert "secret" not in everything
    assert "thank you" not in everything


def test_triplettools_columns(folder, tmp_path):
    run("export", folder, "--format", "triplettools", "--out", tmp_path)
    rows = read(tmp_path / "words_triplettools.csv")
    wanted = "worker_id,rt,Center,Left,Right,Answer,sampleAlg,sampleSet,head,winner,loser"
    assert list(rows[0]) == [*wanted.split(","), "purpose", "excluded", "simulated"]
    key = read(tmp_path / "words_triplettools_items.csv")
    item = [one["item"] for one in key]
    assert [one["number"] for one in key] == [str(at) for at in range(ITEMS)]
    for row in rows:
        head, winner, loser = (item[int(row[name])] for name in ("head", "winner", "loser"))
        assert {winner, loser} == {row["Left"], row["Right"]}
        assert (row["Center"], row["Answer"]) == (head, winner)
    assert {row["sampleAlg"] for row in rows} >= {"random", "adaptive", "check", "repeat"}
    # Three people, twenty trials each, one of them skipped.
    assert len(rows) == PARTICIPANTS * (TRIALS - 1)


def test_triplettools_sets_are_what_counts(folder, tmp_path):
    """Neither checks nor excluded people's answers are in a set; repeats go with their first."""
    run("export", folder, "--format", "triplettools", "--out", tmp_path)
    rows = read(tmp_path / "words_triplettools.csv")
    counts = [row for row in rows if row["excluded"] == "0" and row["purpose"] != "catch"]
    assert [row for row in rows if row["sampleSet"] in ("train", "test")] == counts
    assert {row["sampleSet"] for row in rows if row not in counts} == {"NA"}
    sets = {}
    for row in counts:
        question = (row["worker_id"], row["Center"], *sorted((row["Left"], row["Right"])))
        assert sets.setdefault(question, row["sampleSet"]) == row["sampleSet"]
    assert {row["sampleSet"] for row in counts if row["sampleAlg"] == "random"} == {"test"}
    assert {row["sampleSet"] for row in counts if row["sampleAlg"] == "adaptive"} == {"train"}


def test_triplettools_embedding_is_the_groups(folder, tmp_path):
    run("export", folder, "--format", "triplettools", "--out", tmp_path)
    run("export", folder, "--format", "csv", "--out", tmp_path)
    rows = read(tmp_path / "words_triplettools_embedding.csv")
    assert {row["worker_id"] for row in rows} == {"group"}
    # Of the columns, those with "dim" in their names are taken for coordinates.
    names = [name for name in rows[0] if "dim" in name]
    assert names == [f"dim_{number}" for number in range(1, len(names) + 1)] != []
    plain = read(tmp_path / "embedding.csv")
    assert [{"item": row["item"], **{name: row[name] for name in names}} for row in rows] == plain


def participant_summary(rows, mintrial):
    """(worker, accuracy of checks, keep), by the rules of tripletTools' `get.participant.summary`.

    A check is passed where the answer is the centre; with one check or none, all is well. Kept is
    who has accuracy above .8, a mean log response time above that of a second, and enough trials.
    """
    found = []
    for worker in dict.fromkeys(row["worker_id"] for row in rows):
        own = [row for row in rows if row["worker_id"] == worker]
        checks = [row for row in own if row["sampleAlg"] == "check"]
        accuracy = 1.0
        if len(checks) > 1:
            accuracy = sum(row["Answer"] == row["Center"] for row in checks) / len(checks)
        times = [math.log(float(row["rt"]) / 1000) for row in own if row["rt"] not in ("", "NA")]
        slow = sum(times) / len(times) > 0
        found.append((worker, accuracy, accuracy > 0.8 and slow and len(own) >= mintrial))
    return found


@pytest.mark.parametrize("own_catches", [False, True])
def test_triplettools_keeps_who_was_careful(tmp_path, own_catches):
    """With the study's own catch trials the anchor is no option: the package cannot judge them."""
    toml = "[session]\ntrials = 40\npractice = 0\nbreak_every = 0\ncatch = 0.2\n"
    toml += "feedback = false\n"
    folder = write_study(tmp_path / "words", toml, ITEMS)
    if own_catches:
        (folder / "catches.csv").write_text("anchor,nearer,farther\nword00,word01,word02\n")
        text = (folder / "study.toml").read_text()
        (folder / "study.toml").write_text(text + '[stimuli]\ncatches = "catches.csv"\n')
    desk = Desk(folder)
    participant = Respondent(ITEMS, 2, noise=0.0)
    for careful in (True, False):
        stage = desk.new_participant()
        while stage.kind == "trial":
            side = participant.side(stage)
            if stage.trial.purpose == "catch" and not careful:
                side = {"left": "right", "right": "left"}[side]
            desk.now += 2500
            # The first one's browser measures nothing.
            rt = None if careful else 1900.0
            stage = desk.service.answer(
                stage.participant, stage.trial.token, response(side), rt_ms=rt
            )
    desk.close()
    run("export", folder, "--format", "triplettools", "--out", tmp_path)
    rows = read(tmp_path / "words_triplettools.csv")
    catches = [row for row in rows if row["purpose"] == "catch"]
    assert len(catches) >= 10
    if own_catches:
        assert {row["sampleAlg"] for row in catches} == {"catch"}
        assert participant_summary(rows, 40) == [("1", 1.0, True), ("2", 1.0, True)]
    else:
        assert {row["sampleAlg"] for row in catches} == {"check"}
        assert participant_summary(rows, 40) == [("1", 1.0, True), ("2", 0.0, False)]
    assert {row["rt"] for row in rows if row["worker_id"] == "1"} == {"2500.0"}


def test_salmon_responses_are_as_its_dashboard_gives_them(folder, tmp_path):
    """Columns and rules of its own file: numbers from 0 in the order of its targets."""
    run("export", folder, "--format", "salmon", "--out", tmp_path)
    rows = read(tmp_path / "words_responses.csv")
    roles = ("head", "left", "right", "winner", "loser")
    assert set(rows[0]) == {
        *roles,
        *(f"{role}_{form}" for role in roles for form in ("html", "filename")),
        *("sampler", "score", "puid", "response_time", "network_latency", "time_received"),
        *("time_received_since_start", "datetime_received", "start_time"),
        *("puid_num_responses", "num_responses", "simulated"),
    }
    targets = (tmp_path / "words_targets.csv").read_text().splitlines()
    for at, row in enumerate(rows):
        number = {role: int(row[role]) for role in roles}
        assert {number["winner"], number["loser"]} == {number["left"], number["right"]}
        assert len({number["head"], number["left"], number["right"]}) == 3
        for role in roles:
            assert targets[number[role]] == row[f"{role}_html"] == row[f"{role}_filename"]
        since = float(row["time_received"]) - float(row["start_time"])
        assert float(row["time_received_since_start"]) == pytest.approx(since, abs=0.0011)
        assert int(row["num_responses"]) == at + 1
    assert int(rows[-1]["puid_num_responses"]) == sum(
        row["puid"] == rows[-1]["puid"] for row in rows
    )
    # Everything in the file is fitted, so participant 2, who is excluded, is not in it.
    assert {row["puid"] for row in rows} == {"1", "3"}
    start = np.loadtxt(tmp_path / "words_embedding.csv", delimiter=",", skiprows=1, ndmin=2)
    assert start.shape[0] == ITEMS and start.shape[1] > 0


def test_a_study_without_a_model_is_exported_too(tmp_path):
    folder = write_study(tmp_path / "words", items=ITEMS)
    desk = Desk(folder)
    stage = desk.new_participant()
    while stage.kind == "practice":
        stage = desk.answer(stage)
    desk.answer(stage)
    desk.close()
    report = json.loads(
        run("export", folder, "--format", "all", "--out", tmp_path / "out", "--json")
    )
    assert (report["counts"]["answers"], report["counts"]["fitted"]) == (1, 0)
    salmon = tmp_path / "out" / "salmon"
    assert not (salmon / "words_embedding.csv").exists()
    assert [row["num_responses"] for row in read(salmon / "words_responses.csv")] == ["1"]
    embedding = read(tmp_path / "out" / "triplettools" / "words_triplettools_embedding.csv")
    assert [set(row) for row in embedding] == [{"worker_id", "item"}] * ITEMS


def test_arrays_are_as_cblearn_takes_them(folder, tmp_path):
    """Its rules for list order: integers, n × 3, three different items a row, nearer second."""
    run("export", folder, "--format", "cblearn", "--out", tmp_path)
    with np.load(tmp_path / "words_triplets.npz", allow_pickle=False) as held:
        triplets, items = held["triplets"], held["items"]
        participants = held["participant"]
    assert triplets.ndim == 2 and triplets.shape[1] == 3
    assert np.issubdtype(triplets.dtype, np.integer)
    assert all(len(set(row)) == 3 for row in triplets.tolist())
    assert triplets.min() >= 0 and triplets.max() < ITEMS
    run("export", folder, "--format", "triplettools", "--out", tmp_path)
    table = [row for row in read(tmp_path / "words_triplettools.csv") if row["sampleSet"] != "NA"]
    assert [(row["head"], row["winner"], row["loser"]) for row in table] == [
        tuple(map(str, row)) for row in triplets
    ]
    assert len(participants) == len(triplets)
    # Nothing in the file could mark a participant who is excluded.
    assert set(participants.tolist()) == {1, 3}
    assert items.tolist() == [f"word{number:02d}" for number in range(ITEMS)]
    # And so does this library, from the file itself.
    assert len(as_triplets(triplets)) == len(triplets)


def test_imported_answers_are_described_in_every_format(folder, tmp_path):
    """Psych-DS asks for every column of every file; numbers have the keys beside them."""
    study = tmp_path / "words"
    shutil.copytree(folder, study)
    (tmp_path / "more.csv").write_text("anchor,nearer,farther\nword03,word01,word02\n")
    run("import", tmp_path / "more.csv", study)
    report = json.loads(
        run("export", study, "--format", "all", "--out", tmp_path / "out", "--json")
    )
    assert report["counts"]["imported"] == 1
    out = tmp_path / "out"
    description = json.loads((out / "psych-ds" / "dataset_description.json").read_text())
    named = {one["name"] for one in description["variableMeasured"]}
    for file in (out / "psych-ds" / "data").iterdir():
        assert set(read(file)[0]) <= named, file.name
    for form in ("triplettools", "salmon"):
        (row,) = read(out / form / "words_imported.csv")
        assert [row[name] for name in ("head", "winner", "loser")] == ["3", "1", "2"]
        assert row["head_filename"] == "word03"
        dictionary = (out / form / "dictionary_imported.md").read_text()
        assert all(f"| {column} |" in dictionary for column in row)


@pytest.mark.parametrize("options", [(), ("--comments",), ("--identified",)])
def test_psych_ds_rules(folder, tmp_path, options):
    run("export", folder, "--format", "psych-ds", "--out", tmp_path, *options)
    assert issues(tmp_path) == []


def test_psych_ds_rules_with_imported_answers(folder, tmp_path):
    prior, study, out = tmp_path / "prior.csv", tmp_path / "words", tmp_path / "out"
    shutil.copytree(folder, study)
    prior.write_text("anchor,nearer,farther\nword03,word01,word02\n")
    run("import", prior, study)
    run("export", study, "--format", "psych-ds", "--out", out)
    assert (out / "data" / "study-words_task-imported_data.csv").exists()
    assert issues(out) == []
    (row,) = read(out / "data" / "study-words_task-imported_data.csv")
    readme = (out / "README.md").read_text()
    assert "## imported" in readme
    assert all(f"| {column} |" in readme.partition("## imported")[2] for column in row)


def test_psych_ds_rules_before_anybody_came(tmp_path):
    folder = write_study(tmp_path / "new_study-2", "", 6)
    open_study(folder, now)[1].close()
    run("export", folder, "--format", "psych-ds", "--out", tmp_path / "out")
    assert issues(tmp_path / "out") == []


def test_breaking_the_rules_of_psych_ds_is_found(folder, tmp_path):
    run("export", folder, "--format", "psych-ds", "--out", tmp_path)
    items = tmp_path / "data" / "study-words_task-items_data.csv"
    held = items.read_text()
    description = tmp_path / "dataset_description.json"
    described = description.read_text()
    broken = {
        "row 2 has": lambda: items.write_text(held.replace("\r\n", ",\r\n").replace(",", "", 1)),
        "column kin is not": lambda: items.write_text(held.replace("kind", "kin", 1)),
        "is no file that": lambda: (tmp_path / "notes.md").write_text("notes"),
        "keywords and values": lambda: (tmp_path / "data" / "items.csv").write_text(held),
        "no official keyword": lambda: (tmp_path / "data" / "part-1_data.csv").write_text(held),
        "@type is not": lambda: description.write_text(described.replace('"Dataset"', '"Data"')),
        "colour is not a property": lambda: description.write_text(
            described.replace('"keywords"', '"colour"')
        ),
    }
    for expected, breaking in broken.items():
        before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
        breaking()
        assert expected in "; ".join(issues(tmp_path)), expected
        for one in [file for file in tmp_path.rglob("*") if file.is_file()]:
            one.write_bytes(before[one]) if one in before else one.unlink()
    assert issues(tmp_path) == []


def test_all_formats_each_in_its_folder(folder, tmp_path):
    report = json.loads(run("export", folder, "--format", "all", "--out", tmp_path, "--json"))
    assert {path.name for path in tmp_path.iterdir()} == set(FORMATS)
    assert all((tmp_path / file).exists() for file in report["files"])


def test_a_log_can_be_exported_imported_and_exported_again(folder, tmp_path):
    run("export", folder, "--format", "log", "--out", tmp_path / "one")
    log = tmp_path / "one" / "words.log.jsonl"
    run("import", log, tmp_path / "again")
    run("export", folder, "--format", "csv", "--out", tmp_path / "csv1")
    run("export", log, "--format", "csv", "--out", tmp_path / "csv2")
    for file in (tmp_path / "csv1").iterdir():
        assert file.read_bytes() == (tmp_path / "csv2" / file.name).read_bytes()
    result = CliRunner().invoke(main, ["import", str(log), str(tmp_path / "again")])
    assert result.exit_code == 2
    assert "is not empty" in result.output


def test_replay_says_that_all_is_well_and_what_is_not(folder, tmp_path):
    found = json.loads(run("replay", folder, "--verify", "--json"))
    assert found["mismatches"] == []
    assert found["models_checked"] > 1
    assert found["fingerprint_match"] is True
    assert set(found) >= {"questions_checked", "decisions_checked", "seconds"}
    run("export", folder, "--format", "log", "--out", tmp_path)
    log = tmp_path / "words.log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    lines[40] = lines[40].replace(b"1", b"2", 1)
    log.write_bytes(b"".join(lines))
    result = CliRunner().invoke(main, ["replay", str(log), "--verify"])
    assert result.exit_code == 2
    assert "Line 41 of the log" in result.output


@given(st.text() | st.text(alphabet=st.sampled_from("=+-@'\"\t\r\n;,＝＠ ax")))
def test_neutralised_cells_come_back(text):
    cell = safe(text)
    assert unsafe(cell) == text
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))


@given(
    st.lists(st.text(alphabet=st.sampled_from("=+-@'\"\t\r\n;,＝＠ ax")), min_size=1, max_size=4)
)
def test_no_spreadsheet_of_any_country_finds_a_formula(cells):
    """Where decimals have commas, spreadsheets split lines at semicolons, others at tabs."""
    line = csv_text([["1", *cells]])
    for delimiter in (",", ";", "\t"):
        for row in csv.reader(line.splitlines(), delimiter=delimiter):
            for cell in row[1:]:
                assert not cell.startswith(("=", "+", "-", "@", "＝", "＠")), (delimiter, cell)


def is_label(text):
    """Numbers are item numbers, not labels."""
    try:
        float(text)
    except ValueError:
        return bool(text)
    return False


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
        .map(unified)
        .filter(is_label),
        min_size=3,
        max_size=6,
        # Labels that look the same are refused.
        unique_by=appearance,
    ).filter(lambda labels: "" not in map(appearance, labels)),
    st.data(),
)
def test_labels_of_any_kind_survive_csv(tmp_path_factory, labels, data):
    """Any script, quotes, newlines, formulas, emoji, right-to-left; as long as they look it."""
    rows = [
        data.draw(st.permutations(labels)).copy()[:3] for _ in range(data.draw(st.integers(1, 8)))
    ]
    path = tmp_path_factory.mktemp("labels") / "answers.csv"
    path.write_text(
        csv_text([("anchor", "nearer", "farther"), *rows]), encoding="utf-8", newline=""
    )
    back = as_triplets(path)
    assert back.labels is not None
    again = [
        [back.labels[at] for at in row]
        for row in zip(back.anchor, back.nearer, back.farther, strict=True)
    ]
    assert again == rows


# ---- Psych-DS: de-identified unless asked -------------------------------------------------------


def psych_ds(folder, out, *options):
    run("export", folder, "--format", "psych-ds", "--out", out, *options)
    description = json.loads((out / "dataset_description.json").read_text())
    files = {file.name.split("_")[1]: file for file in (out / "data").iterdir()}
    return description, files


def everything(out):
    return "\n".join(file.read_text() for file in out.rglob("*") if file.is_file())


def test_psych_ds_is_de_identified(folder, tmp_path):
    description, files = psych_ds(folder, tmp_path)
    said = everything(tmp_path)
    for trace in ("secret", "PROLIFIC_PID", "thank you", "user_agent", "external"):
        assert trace not in said, trace
    assert "De-identified" in description["description"]
    # Of times there are days and durations, and no clock.
    assert not re.search(r"\d\d:\d\d:\d\d", said)
    answers, participants = read(files["task-answers"]), read(files["task-participants"])
    assert {len(row["day_utc"]) for row in (*answers, *participants)} == {10}
    assert len(answers) == PARTICIPANTS * (TRIALS + 1) and len(participants) == PARTICIPANTS
    for who in ("1", "2", "3"):
        times = [int(row["session_ms"]) for row in answers if row["participant"] == who]
        assert times == sorted(times) and times[0] >= 0
    assert all(int(row["duration_ms"]) >= 0 for row in participants)


def test_psych_ds_has_items_and_embedding(folder, tmp_path):
    description, files = psych_ds(folder, tmp_path)
    assert set(files) == {"task-answers", "task-participants", "task-items", "task-embedding"}
    items, embedding = read(files["task-items"]), read(files["task-embedding"])
    assert [row["item"] for row in items] == [row["item"] for row in embedding]
    assert len(items) == ITEMS and items[0]["text"] == "word 0"
    named = [one["name"] for one in description["variableMeasured"]]
    assert len(named) == len(set(named)) and set(embedding[0]) <= set(named)
    used = {column for file in files.values() for column in read(file)[0]}
    assert set(named) == used, "nothing is described that is not there"
    assert all(one["description"] for one in description["variableMeasured"])


def test_comments_and_names_only_if_asked(folder, tmp_path):
    _, files = psych_ds(folder, tmp_path / "comments", "--comments")
    (comment,) = {row["feedback"] for row in read(files["task-participants"])}
    assert "thank you" in comment and "secret" not in everything(tmp_path / "comments")
    description, files = psych_ds(folder, tmp_path / "named", "--identified")
    participants = read(files["task-participants"])
    assert participants[0]["external"] == "PROLIFIC_PID==secret0"
    assert participants[0]["arrived_at_utc"].endswith("+00:00")
    assert "De-identified" not in description["description"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--format", "csv", "--identified"), "--identified is for --format psych-ds"),
        (("--format", "log", "--comments"), "--comments is for --format psych-ds"),
        (("--format", "psych-ds", "--identified", "--pseudonyms"), "cannot be used together"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, tmp_path, options, expected):
    result = CliRunner().invoke(main, ["export", str(folder), "--out", str(tmp_path), *options])
    assert result.exit_code == 2 and expected in result.output
