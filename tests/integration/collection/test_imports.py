"""Imported answers: read from many formats, matched, counted, replayed, and taken out again."""

from __future__ import annotations

import csv
import json
import time
import unicodedata

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from lore_active.data.columns import AnswerTable
from lore_active.data.formats import read_table
from lore_active.errors import InvalidTriplets
from lore_active.simulation.observers import gaussian_space, simulated_answers
from server.cli.main import main
from server.exports import log
from server.exports.tables import csv_text
from server.learning.verification import verify
from server.monitor.feed import Feed
from server.study.config import Item
from server.study.items.matching import matched
from tests.support.open_study import Desk, Respondent, desk_fixture

TOML = "[session]\ntrials = 25\npractice = 1\nbreak_every = 0\nfeedback = false\n"
ITEMS = 8
# Items that files and spreadsheets like to break.
NASTY = ["=1+1", "@home", "-5", "'=quoted", 'say "no"', "a, b; c", "😀 👩‍👩‍👧", "שלום עולם"]
SPACE = gaussian_space(ITEMS, 2, 5)


def run(*arguments, fails=False):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert (result.exit_code != 0) == fails, result.output
    return result.stderr if fails else result.stdout


def item(key, **more):
    return Item(key, "text", more.get("label", key), key, more.get("text", key), None)


def words(*numbers):
    return [item(f"word{number:02d}") for number in numbers]


def pilot(folder, count=400, seed=1, name="pilot.csv"):
    """A CSV of answers by name, from the space that people answer from."""
    rows = simulated_answers(SPACE, count, seed)
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(
        csv_text(
            [("head", "winner", "loser"), *([f"word{one:02d}" for one in row] for row in rows)]
        )
    )
    return folder / name, [tuple(row) for row in rows.tolist()]


desk = desk_fixture(TOML, ITEMS)


def answer_all(desk, worker=None, seed=1):
    participant, stage = Respondent(ITEMS, 2, seed), desk.new_participant()
    participant.space = SPACE
    while stage.kind in ("practice", "trial"):
        stage = desk.answer(stage, participant.side(stage))
        desk.now += 900
    if worker is not None:
        worker.turn()


def checked(desk, tmp_path):
    """Replay from the folder and from the log alone; gives the latter."""
    here = verify(desk.database, desk.study, time.perf_counter)
    assert here.mismatches == [] and here.fingerprint_match
    path = tmp_path / "study.log.jsonl"
    path.write_bytes(b"".join(log.lines(desk.database, desk.study)))
    fresh = tmp_path / f"again{len(list(tmp_path.glob('again*')))}.db"
    study, database, _ = log.load(path, fresh, desk.clock)
    there = verify(database, study, time.perf_counter)
    database.close()
    assert there.mismatches == [] and there.models_checked == here.models_checked
    return there


def models(desk):
    return desk.rows("SELECT answers, rank FROM models ORDER BY version")


# ---- counting -----------------------------------------------------------------------------------


def test_imported_answers_count_for_the_model_and_not_for_the_budget(desk, tmp_path):
    file, rows = pilot(tmp_path / "files")
    worker = desk.worker()
    worker.turn()
    run("import", file, desk.folder)
    assert worker.turn()
    assert models(desk)[-1][0] == len(rows)
    assert worker.learner.estimate.rank >= 1
    shown = json.loads(Feed(desk.database, desk.study, desk.clock).update(True).plain)["where"]
    assert (shown["answers"], shown["imported"], shown["fitted"]) == (0, 400, 400)
    answer_all(desk, worker)
    assert desk.rows("SELECT count(*) FROM answers")[0][0] == 26
    shown = json.loads(Feed(desk.database, desk.study, desk.clock).update(True).plain)["where"]
    assert (shown["answers"], shown["imported"]) == (25, 400)
    # A participant who starts the worker again finds what was there, not something made again.
    assert desk.worker().learner.estimate.answers == worker.learner.estimate.answers
    assert desk.rows("SELECT kind FROM events") == [("import",)]
    assert checked(desk, tmp_path).models_checked >= 1


def test_a_running_study_takes_them_in_and_out(desk, tmp_path):
    file, _ = pilot(tmp_path / "files", 150)
    worker = desk.worker()
    worker.turn()
    for seed in range(3):
        answer_all(desk, worker, seed)
    before = models(desk)[-1][0]
    run("import", file, desk.folder)
    worker.turn()
    assert models(desk)[-1][0] == before + 150
    answer_all(desk, worker, 4)
    report = json.loads(run("import", "--undo", file, desk.folder, "--json"))
    assert [one["answers"] for one in report["removed"]] == [150]
    worker.turn()
    counted = sum(answer.participant != "import 1" for answer in worker.learner.answers)
    assert models(desk)[-1][0] == counted
    # They no longer count, but the record keeps them.
    assert len(worker.learner.answers) == counted + 150
    assert checked(desk, tmp_path).models_checked >= 3
    assert desk.worker().learner.estimate.answers == counted
    assert not desk.rows("SELECT 1 FROM events WHERE kind = 'rebuilt'")


def test_without_its_answers_there_is_no_model_any_more(desk, tmp_path):
    file, _ = pilot(tmp_path / "files")
    worker = desk.worker()
    run("import", file, desk.folder)
    worker.turn()
    assert models(desk)[-1][1] >= 1
    run("import", "--undo", file, desk.folder)
    worker.turn()
    assert models(desk)[-1][1] == 0
    shown = json.loads(Feed(desk.database, desk.study, desk.clock).update(True).plain)
    assert shown["map"]["rank"] == 0 and shown["where"]["imported"] == 0
    checked(desk, tmp_path)
    # And it can come again.
    run("import", file, desk.folder)
    worker.turn()
    assert models(desk)[-1][1] >= 1
    checked(desk, tmp_path)


def test_compare_and_the_log_know_them(desk, tmp_path):
    file, rows = pilot(tmp_path / "files")
    run("import", file, desk.folder)
    report = json.loads(run("compare", desk.folder, "--folds", 2, "--methods", "lore", "--json"))
    assert report["n_triplets"] == len(rows)
    run("export", desk.folder, "--format", "log", "--out", tmp_path / "log")
    run("import", tmp_path / "log" / "words.log.jsonl", tmp_path / "again")
    text = (tmp_path / "log" / "words.log.jsonl").read_text()
    assert text.count('"kind":"imported_answers"') == len(rows)


# ---- twice, undone, only looked at --------------------------------------------------------------


def test_the_same_file_is_refused_unless_forced(desk, tmp_path):
    file, _ = pilot(tmp_path / "files", 30)
    duplicate = file.with_name("other name.csv")
    duplicate.write_bytes(file.read_bytes())
    report = json.loads(run("import", file, desk.folder, "--json"))
    assert (report["answers"], report["by"], report["file_number"]) == (30, "name", 1)
    assert "has already been imported" in run("import", duplicate, desk.folder, fails=True)
    assert "has already been imported" in run(
        "import", duplicate, desk.folder, "--dry-run", fails=True
    )
    run("import", duplicate, desk.folder, "--force")
    assert desk.rows("SELECT count(*) FROM imported_answers") == [(60,)]
    said = run("import", "--undo", "abcdef", desk.folder, fails=True)
    assert (
        f"{report['sha256'][:12]} (pilot.csv, 30), {report['sha256'][:12]} (other name.csv" in said
    )
    run("import", "--undo", report["sha256"][:10], desk.folder, "--dry-run")
    assert desk.rows("SELECT sum(removed) FROM imported_files") == [(0,)]
    out = run("import", "--undo", report["sha256"][:10], desk.folder)
    assert out.count("30 answers removed.") == 2
    assert "There are none." in run("import", "--undo", report["sha256"], desk.folder, fails=True)
    run("import", file, desk.folder)


def test_imported_trials_of_several_comparisons_stay_together(desk, tmp_path):
    rng = np.random.default_rng(4)
    rows = ["query,reference_1,reference_2,reference_3,reference_4,n_select,is_ranked"]
    for _ in range(40):
        near = np.linalg.norm(SPACE - SPACE[query := rng.integers(ITEMS)], axis=1)
        shown = rng.permutation(np.delete(np.arange(ITEMS), query))[:4]
        names = [f"word{item:02d}" for item in (query, *shown[np.argsort(near[shown])])]
        rows.append(",".join([*names, "2", "True"]))
    file = tmp_path / "grids.csv"
    file.write_text("\n".join(rows))
    out = run("import", file, desk.folder)
    assert "grids.csv: read as 40 trials of the kind rank-2-of-4." in out
    assert "40 answers, items matched by name" in out
    worker = desk.worker()
    worker.turn()
    triplets = worker.learner._triplets()
    assert (len(triplets), triplets.n_trials) == (200, 40)
    checked(desk, tmp_path)


def test_a_dry_run_leaves_nothing_behind(tmp_path):
    desk = Desk(tmp_path / "words", TOML, items=ITEMS)
    desk.close()
    for left in desk.folder.glob("study.db*"):
        left.unlink()
    file, _ = pilot(tmp_path / "files", 30)
    out = run("import", file, desk.folder, "--dry-run")
    assert "30 answers, items matched by name (the first anchor is 'word0" in out
    assert "Nothing was written." in out
    assert not (desk.folder / "study.db").exists()
    assert "there is no study.db yet" in run("import", "--undo", file, desk.folder, fails=True)


def test_what_does_not_fit_is_said_at_once(desk, tmp_path):
    file = tmp_path / "bad.csv"
    file.write_text(
        "anchor,nearer,farther\nword00,word01,word02\nred,word01,blue\nword00,word00,word02\n"
        "word03,red,word01\n"
    )
    said = run("import", file, desk.folder, fails=True)
    assert (
        "bad.csv: 2 items are not in this study: 'red' (line 3 and 1 more), 'blue' (line 3); "
        "the same item occurs twice in line 4. Nothing was imported."
    ) in said
    assert len(said.splitlines()) == 1
    assert desk.rows("SELECT count(*) FROM imported_files") == [(0,)]
    assert "File not found" in run("import", tmp_path / "gone.csv", desk.folder, fails=True)
    assert run("import", file, tmp_path / "nowhere", fails=True)
    file.write_text("0,1,2\n3,4,99\n")
    said = run("import", file, desk.folder, fails=True)
    assert "1 item is not in this study; it has 8, numbered 0 to 7: '99' (line 2)" in said


# ---- formats ------------------------------------------------------------------------------------


def test_salmon_names_before_numbers(tmp_path):
    file = tmp_path / "responses.csv"
    file.write_text(
        "head,winner,loser,puid,head_filename,winner_filename,loser_filename\n"
        "0,1,2,ab,word03,word02,word01\n"
    )
    assert matched(read_table(file), words(0, 1, 2, 3)).rows == [(3, 2, 1)]
    assert matched(read_table(file), words(0, 1, 2, 3), "number").rows == [(0, 1, 2)]
    # Other names than ours: the numbers are what is left.
    assert matched(read_table(file), [item(key) for key in "abcd"]).rows == [(0, 1, 2)]


def test_a_name_that_is_unknown_does_not_make_the_others_numbers(tmp_path):
    file = tmp_path / "responses.csv"
    file.write_text(
        "head,winner,loser,head_filename,winner_filename,loser_filename\n"
        "0,1,2,word03,word02,word01\n1,2,3,word02,word01,wrod00\n"
    )
    with pytest.raises(InvalidTriplets, match=r"1 item is not in this study: 'wrod00' \(line 3\)"):
        matched(read_table(file), words(0, 1, 2, 3))
    assert matched(read_table(file), words(0, 1, 2, 3), "number").rows == [(0, 1, 2), (1, 2, 3)]


def test_center_left_right_answer_is_imported(desk, tmp_path):
    rows = simulated_answers(SPACE, 40, 3).tolist()
    file = tmp_path / "responses.csv"
    lines = ["Participant ID,Timestamp,Center,Left,Right,Answer,Response Time (s),Alg Label"]
    for at, row in enumerate(rows):
        a, i, j = (f"word{one:02d}" for one in row)
        left, right = (i, j) if at % 2 else (j, i)
        lines.append(f"p{at % 3},2001-01-01 00:00:00.{at:06d},{a},{left},{right},{i},1.2,Random")
    lines.append("p0,2001-01-01 00:00:01,word00,word01,word02,,1.2,Random")
    file.write_text("\n".join(lines) + "\n")
    report = json.loads(run("import", file, desk.folder, "--json"))
    assert (report["answers"], report["by"], report["left_out"]) == (40, "name", 1)
    stored = desk.rows("SELECT anchor, nearer, farther FROM imported_answers ORDER BY id")
    assert stored == [tuple(row) for row in rows]


def test_a_header_by_other_names_is_not_imported_as_an_answer(desk, tmp_path):
    file = tmp_path / "pilot.csv"
    file.write_text("target,closer,further\nword00,word01,word02\n")
    assert json.loads(run("import", file, desk.folder, "--json"))["answers"] == 1
    file.write_text("thing,same,other\nword00,word01,word02\nword02,word01,word00\n")
    said = run("import", file, desk.folder, fails=True)
    assert "Line 1 of pilot.csv is 'thing,same,other', which is not a known header" in said
    file.write_text("anchor,left,right\nword00,word01,word02\n")
    assert "not what was chosen" in run("import", file, desk.folder, fails=True)


def test_responses_of_arrays_are_heard(tmp_path):
    np.savez(
        tmp_path / "a.npz",
        triplets=np.array([[0, 1, 2], [0, 1, 2]]),
        responses=np.array([True, False]),
    )
    assert matched(read_table(tmp_path / "a.npz"), words(0, 1, 2)).rows == [(0, 1, 2), (0, 2, 1)]


def test_triplettools_checks_are_kept_out_of_the_answers(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(
        "worker_id,rt,Center,Left,Right,Answer,sampleAlg,sampleSet,head,winner,loser\n"
        "1,900,a,b,c,b,random,test,a,b,c\n1,900,a,b,d,b,check,train,a,b,d\n"
    )
    table = read_table(file)
    assert table.left_out == 1
    assert matched(table, [item(key) for key in "abcd"]).rows == [(0, 1, 2)]


def test_weights_are_numbers_of_answers(tmp_path):
    file = tmp_path / "w.csv"
    file.write_text("anchor,nearer,farther,weight\na,b,c,2\nb,a,c,0\n")
    assert matched(read_table(file), [item(key) for key in "abc"]).rows == [(0, 1, 2)] * 2
    file.write_text("anchor,nearer,farther,weight\na,b,c,0.5\n")
    with pytest.raises(InvalidTriplets, match=r"Line 2 of w.csv: weight 0.5 is not a whole"):
        matched(read_table(file), [item(key) for key in "abc"])


def test_names_other_than_keys_where_they_are_one_items_alone(tmp_path):
    items = [item("a", label="Alpha"), item("b", label="Same"), item("c", label="Same", text="See")]
    assert matched(AnswerTable("t", [["Alpha", "b", "See"]]), items).rows == [(0, 1, 2)]
    with pytest.raises(InvalidTriplets, match="'Same'"):
        matched(AnswerTable("t", [["Alpha", "Same", "See"]]), items)
    # Accents stored in another way are the same name.
    accents = [item(unicodedata.normalize("NFC", key)) for key in ("é", "ö", "ñ")]
    rows = [[unicodedata.normalize("NFD", key) for key in ("ñ", "é", "ö")]]
    assert matched(AnswerTable("t", rows), accents).rows == [(2, 0, 1)]


@pytest.mark.parametrize("form", ["csv", "triplettools", "salmon", "cblearn", "psych-ds"])
def test_one_studys_exports_are_anothers_imported_answers(desk, tmp_path, form):
    answer_all(desk)
    stage = desk.new_participant()
    while stage.kind in ("practice", "trial"):
        stage = desk.answer(stage)
    desk.control.exclude("test", 2, "one key")
    run("export", desk.folder, "--format", form, "--out", tmp_path / "out", "--without-excluded")
    wanted = desk.rows(
        "SELECT q.anchor, a.chosen ->> 0, "
        "q.options ->> (a.chosen ->> 0 = q.options ->> 0) FROM answers a "
        "JOIN queries q ON q.id = a.query WHERE q.purpose NOT IN ('catch', 'practice') "
        "AND q.participant = 1 ORDER BY a.seq"
    )
    file = {
        "csv": "answers.csv",
        "triplettools": "words_triplettools.csv",
        "salmon": "words_responses.csv",
        "cblearn": "words_triplets.npz",
        "psych-ds": "data/study-words_task-answers_data.csv",
    }[form]
    # The same items in another order: names must carry, not numbers.
    turned = list(reversed(desk.study.items))
    found = matched(read_table(tmp_path / "out" / file), turned)
    assert found.by == "name"
    last = ITEMS - 1
    assert found.rows == [(last - a, last - i, last - j) for a, i, j in wanted]


# ---- round trips --------------------------------------------------------------------------------


def nasty_study(folder):
    (folder / "stimuli").mkdir(parents=True)
    rows = [("key", "text"), *((f"{text}", f"{text}\nsecond line") for text in NASTY)]
    # The list of items is a CSV like any other: its texts are what they are.
    with (folder / "items.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
    (folder / "study.toml").write_text(
        f'title = "Nasty"\nseed = 3\n{TOML}[stimuli]\nlist = "items.csv"\n'
    )
    return folder


@pytest.mark.parametrize("form", ["csv", "triplettools", "cblearn", "psych-ds"])
def test_out_and_in_again_nothing_is_lost(tmp_path, form):
    one, other = nasty_study(tmp_path / "one"), nasty_study(tmp_path / "other")
    rows = [tuple(row) for row in simulated_answers(SPACE, 40, 3).tolist()]
    file = tmp_path / "prior.csv"
    file.write_text(
        csv_text([("anchor", "nearer", "farther"), *([NASTY[k] for k in row] for row in rows)]),
        encoding="utf-8",
    )
    assert "'=1+1" in file.read_text(encoding="utf-8")
    run("import", file, one)
    run("export", one, "--format", form, "--out", tmp_path / "out")
    written = {
        "csv": "imported.csv",
        "triplettools": "one_imported.csv",
        "cblearn": "one_imported_triplets.npz",
        "psych-ds": "data/study-one_task-imported_data.csv",
    }[form]
    run("import", tmp_path / "out" / written, other)
    desk = Desk(other)
    assert desk.rows("SELECT anchor, nearer, farther FROM imported_answers ORDER BY id") == rows
    desk.close()


def is_label(text):
    return text == text.strip() and text != "" and unicodedata.normalize("NFC", text) == text


labels = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
tricky = st.sampled_from([*NASTY, "a\nb", "a\r\nb", '"', "''", "=\n", "\u202eabc", "ｆｕｌｌ", "1"])


@given(
    st.lists((labels | tricky).filter(is_label), min_size=4, max_size=8, unique=True),
    st.lists(st.permutations(range(4)), min_size=1, max_size=6),
    st.sampled_from([("anchor", "nearer", "farther"), ("head", "winner", "loser")]),
)
def test_any_labels_survive_a_csv(tmp_path_factory, keys, orders, header):
    rows = [tuple(order[:3]) for order in orders]
    file = tmp_path_factory.getbasetemp() / "any.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        stream.write(csv_text([header, *([keys[k] for k in row] for row in rows)]))
    found = matched(read_table(file), [item(key) for key in keys], "name")
    assert found.rows == rows


@given(
    st.lists((labels | tricky).filter(is_label), min_size=4, max_size=8, unique=True),
    st.lists(st.permutations(range(4)), min_size=1, max_size=6),
)
def test_any_labels_survive_arrays(tmp_path_factory, keys, orders):
    # NumPy's fixed-width texts end where only NULs are left.
    keys = [key.rstrip("\0") or f"empty{at}" for at, key in enumerate(keys)]
    if len({*keys}) < len(keys):
        return
    file = tmp_path_factory.getbasetemp() / "any.npz"
    rows = [tuple(order[:3]) for order in orders]
    np.savez(file, triplets=np.array(rows), items=np.array(keys))
    turned = [item(key) for key in reversed(keys)]
    last = len(keys) - 1
    assert matched(read_table(file), turned).rows == [
        (last - a, last - i, last - j) for a, i, j in rows
    ]
