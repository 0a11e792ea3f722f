"""One way to count: the definition, the last refit, and every place that shows a number."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import threading
from contextlib import closing

import numpy as np
import pytest

from benchmarks.server import Serving, wait_until
from server.clock import now
from server.collection.controls import Control
from server.processes.bots import run_bots
from server.status.counting import CountsByGroup, Fates, answer_counts, fate
from server.store import models, summaries
from server.study.loading import load
from server.study.workspace import open_study
from tests.support.commands import completed
from tests.support.experimenter_client import PASSWORD, application, guarded_study, sign_in
from tests.support.open_study import SIDE, Desk, Respondent, desk_fixture
from tests.support.report_study import carried

ITEMS = 9
TOML = """
[session]
trials = 20
practice = 1
break_every = 0
feedback = false
catch = 0.1
repeat = 0.1
random = 0.1
idle_minutes = 10
[trial]
skip = true
timeout_ms = 9000
[stopping]
min_answers = 3000
"""
IDLE_MS = 10 * 60_000


desk = desk_fixture(TOML, ITEMS)


def turns(worker):
    """Let the worker do all that there is to do; it must come to rest."""
    for count in range(20):
        if not worker.turn():
            return count
    raise AssertionError("the worker does not come to rest")


def take_part(desk, worker, participant, trials=20, skip=(), timeout=(), every=7):
    """A participant answers so many questions; the worker turns now and then."""
    stage = desk.new_participant()
    while stage.kind in ("practice", "trial") and stage.done < trials:
        side = participant.side(stage)
        if stage.kind == "trial":
            side = "skip" if stage.done in skip else "timeout" if stage.done in timeout else side
        stage = desk.answer(stage, side)
        desk.now += 2000
        if stage.done % every == 0:
            worker.turn()
    return stage


# ---- the definition -----------------------------------------------------------------------------


def test_every_answer_has_one_fate():
    wanted = {
        ("practice", "left", True, True): "practice",
        ("catch", "left", True, True): "excluded",
        ("random", "skip", True, False): "excluded",
        ("active", "right", False, True): "quarantined",
        ("catch", "skip", False, False): "catches",
        ("catch", "left", False, False): "catches",
        ("random", "skip", False, False): "skipped",
        ("repeat", "timeout", False, False): "timed_out",
        ("cover", "chosen", False, False): "counted",
        ("active", "left", False, False): "counted",
        ("random", "right", False, False): "counted",
        ("repeat", "left", False, False): "counted",
    }
    for of, found in wanted.items():
        assert fate(*of) == found, of


def test_the_parts_add_up_to_all_answers(desk, tmp_path):
    worker, participant = desk.worker(), Respondent(ITEMS, 2)
    running = CountsByGroup()
    take_part(desk, worker, participant, skip=(3, 8), timeout=(5,))
    desk.database.read(running.read)
    take_part(desk, worker, participant)
    desk.database.read(running.read)
    take_part(desk, worker, participant, trials=6)
    desk.control.exclude("test", 2, "too fast")
    turns(worker)
    found = desk.database.read(answer_counts)
    assert found.practice == 3
    assert found.answers == 46
    ((catches,),) = desk.rows(
        "SELECT count(*) FROM answers a JOIN queries q ON q.id = a.query "
        "WHERE q.purpose = 'catch' AND q.participant <> 2"
    )
    assert (found.excluded, found.quarantined, found.catches) == (20, 0, catches)
    assert found.skipped + found.timed_out <= 3
    parts = (found.excluded, found.quarantined, found.catches, found.skipped, found.timed_out)
    assert found.answers == sum(parts) + found.counted
    assert found.counted == worker.learner.counted
    # Read on from where it was, or from the beginning.
    desk.database.read(running.read)
    assert desk.database.read(lambda c: running.counts(c, summaries.participants(c))) == found
    again = CountsByGroup()
    desk.database.read(again.read)
    assert running.groups == again.groups
    fates = desk.database.read(Fates)
    rows = desk.rows(
        f"SELECT a.seq, q.purpose, {SIDE}, p.excluded FROM answers a "
        "JOIN queries q ON q.id = a.query JOIN participants p ON p.id = q.participant"
    )
    assert sum(fates.counted(*row) for row in rows) == found.counted


def test_a_row_that_cannot_be_used_is_counted_as_such(desk):
    worker = desk.worker()
    take_part(desk, worker, Respondent(ITEMS, 2), every=1)
    turns(worker)
    before = desk.database.read(answer_counts)
    ((seq,),) = desk.rows(
        "SELECT max(a.seq) FROM answers a JOIN queries q ON q.id = a.query "
        "WHERE q.purpose NOT IN ('catch', 'practice')"
    )
    insert = "INSERT INTO events (at, who, kind, detail) VALUES (0, 'worker', 'quarantine', ?)"
    desk.database.write(lambda c: c.execute(insert, (json.dumps({"answer": seq}),)))
    found = desk.database.read(answer_counts)
    assert (found.quarantined, found.counted) == (1, before.counted - 1)
    assert found.answers == before.answers


# ---- the last refit -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A study that has just been audited: a few answers more are worth neither audit nor refit."""
    desk = Desk(tmp_path_factory.mktemp("collected") / "words", TOML, items=ITEMS)
    worker, participant = desk.worker(), Respondent(ITEMS, 2)
    for _ in range(9):
        take_part(desk, worker, participant)
    desk.control.exclude("test", 1, "too fast")
    turns(worker)
    desk.close()
    return desk.folder, desk.now


@pytest.fixture
def crowded(collected, tmp_path):
    folder, then = collected
    shutil.copytree(folder, tmp_path / "words")
    opened = Desk(tmp_path / "words")
    opened.now = then
    yield opened
    opened.close()


def fitted(desk):
    counts = desk.database.read(answer_counts)
    return counts.fitted, counts.counted


def last_work(desk):
    return desk.rows("SELECT work FROM steps ORDER BY id DESC LIMIT 1")[0][0]


def test_when_the_last_one_has_finished_the_model_has_every_answer(crowded):
    worker = crowded.worker()
    # After fourteen of twenty the model is fitted; six are left over.
    take_part(crowded, worker, Respondent(ITEMS, 2), every=14)
    before = fitted(crowded)
    assert before[0] < before[1]
    assert turns(worker) == 1
    assert fitted(crowded) == (before[1], before[1])
    assert worker.learner.unfitted == 0
    assert last_work(crowded) == "refit"
    # Nothing more to do, however often it looks.
    assert turns(worker) == 0


def test_a_participant_who_may_still_answer_is_waited_for(crowded):
    worker = crowded.worker()
    take_part(crowded, worker, Respondent(ITEMS, 2), trials=4)
    turns(worker)
    in_model, counted = fitted(crowded)
    assert in_model < counted
    crowded.now += IDLE_MS - 2000
    assert turns(worker) == 0 and fitted(crowded) == (in_model, counted)
    # Idle for longer than the study allows: they have left.
    crowded.now += 2001
    assert turns(worker) == 1
    assert fitted(crowded) == (counted, counted)
    assert last_work(crowded) == "refit"


def test_an_answer_that_comes_after_all_is_fitted_too(crowded):
    worker, participant = crowded.worker(), Respondent(ITEMS, 2)
    stage = take_part(crowded, worker, participant, trials=3)
    while stage.trial.purpose == "catch":
        stage = crowded.answer(stage, participant.side(stage))
    crowded.control.stop("test", "enough")
    crowded.now += IDLE_MS + 1
    turns(worker)
    in_model, counted = fitted(crowded)
    assert in_model == counted
    after = crowded.answer(stage, participant.side(stage))
    assert after.kind == "expired"
    assert turns(worker) == 1
    assert fitted(crowded) == (counted + 1, counted + 1)
    assert crowded.rows("SELECT late FROM answers ORDER BY seq DESC LIMIT 1") == [(1,)]


def test_a_study_that_ended_before_its_first_audit_has_no_model(desk):
    worker = desk.worker()
    take_part(desk, worker, Respondent(ITEMS, 2), trials=6)
    desk.now += IDLE_MS + 1
    turns(worker)
    assert desk.database.read(models.latest_model) is None
    counts = desk.database.read(answer_counts)
    assert counts.fitted == 0 and counts.waiting == counts.counted > 0


def test_the_last_refit_survives_a_restart(crowded):
    worker = crowded.worker()
    take_part(crowded, worker, Respondent(ITEMS, 2), trials=4)
    crowded.now += IDLE_MS + 1
    turns(worker)
    assert last_work(crowded) == "refit"
    again = crowded.worker()
    assert again.last == worker.last
    assert turns(again) == 0
    crowded.database.write(lambda c: c.execute("DELETE FROM snapshot"))
    assert crowded.worker().last == worker.last
    assert not crowded.rows("SELECT 1 FROM events WHERE kind = 'rebuilt'")


# ---- everything together ------------------------------------------------------------------------

BOT_STUDY = """
[session]
trials = 23
practice = 1
break_every = 0
feedback = false
catch = 0.1
repeat = 0.1
[budget]
answers = 184
participants = 8
[stopping]
min_answers = 184
audits = 60
"""


def lore_active(*arguments):
    result = completed(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A study with imported answers that bots answered to its end, one of them excluded."""
    home = tmp_path_factory.mktemp("ended")
    folder = guarded_study(home / "words", BOT_STUDY, ITEMS)
    rows = ["anchor,nearer,farther", *(f"word0{n},word0{n + 1},word0{n + 2}" for n in range(6))]
    (home / "more.csv").write_text("\n".join(rows) + "\n")
    lore_active("import", home / "more.csv", folder)
    server, over = Serving("--web", "1", str(folder)), threading.Event()
    bots = threading.Thread(
        target=run_bots, args=(load(folder), server.address(), 4, 1, 0.05, over)
    )
    watch = sqlite3.connect(folder / "study.db")

    def one(sql):
        return watch.execute(sql).fetchone()[0]

    try:
        bots.start()
        finished = "SELECT count(*) FROM participants WHERE stage = 'finished'"
        wait_until(lambda: one(finished) >= 5)
        _, database = open_study(folder, now)
        Control(database, now).exclude("test", 2, "always the same key")
        database.close()
        wait_until(lambda: one(finished) == 8)
        newest = "(SELECT max(version) FROM models)"
        # The worker is done: nothing is left to be taken in, and nothing is left to be fitted.
        counted = (
            "SELECT count(*) + 6 FROM answers a JOIN queries q ON q.id = a.query JOIN participants "
            "p ON p.id = q.participant WHERE q.purpose NOT IN ('catch', 'practice') "
            "AND NOT p.excluded AND a.outcome = 'chosen'"
        )
        fitted = "SELECT coalesce(max(answers), 0) FROM models WHERE version = " + newest
        wait_until(lambda: one(fitted) == one(counted))
    finally:
        over.set()
        server.stop()
        bots.join(30)
        watch.close()
    return folder


def answers_after_the_newest_model(folder):
    """Their questions' purposes."""
    with closing(sqlite3.connect(folder / "study.db")) as database:
        rows = database.execute(
            "SELECT q.purpose FROM answers a JOIN queries q ON q.id = a.query WHERE a.seq > "
            "(SELECT up_to_seq FROM models ORDER BY version DESC LIMIT 1)"
        )
        return [row[0] for row in rows]


def test_every_output_shows_the_same_counts(ended, tmp_path):
    with application(ended, now).test_client() as client:
        sign_in(client, "words", PASSWORD)
        monitor = client.get("/monitor/words/data").get_json()["where"]
        client.application.extensions["studies"]["words"].database.close()
    counts = monitor["counts"]
    assert counts["answers"] == monitor["answers"] == 8 * 23
    assert (counts["imported"], counts["excluded"], counts["waiting"]) == (6, 23, 0)
    assert counts["fitted"] == monitor["fitted"] == counts["counted"] + 6
    assert counts["answers"] == counts["counted"] + counts["excluded"] + counts["catches"]
    assert monitor["participants"]["answered"] == monitor["participants"]["finished"] == 8
    # The report: what it prints, its page, and its text for a paper.
    report = json.loads(lore_active("report", ended, "-o", tmp_path / "r.html", "--json"))
    assert report["counts"] == counts and report["answers"] == counts["answers"]
    page = (tmp_path / "r.html").read_text()
    # Where the very last answer is to a catch question, it calls for no further model.
    after = answers_after_the_newest_model(ended)
    drawn = carried(page)["shown"]["dimensions"]["history"]["answers"][-1]
    assert drawn == counts["answers"] - len(after) and set(after) <= {"catch"}
    table = re.search(r'id="answer-counts">(.*?)</table>', page, re.S)
    cells = [int(cell) for cell in re.findall(r'class="number">([\d,]+)<', table[1])]
    assert cells == [
        *(counts[name] for name in ("answers", "excluded", "catches")),
        *(0, counts["imported"], counts["fitted"]),
    ]
    assert f"8 participants gave {counts['answers']} answers" in page
    assert (
        f"The latest model was fitted to {counts['fitted']} answers: the {counts['answers']} "
        f"collected, minus {counts['excluded']} from excluded participants and "
        f"{counts['catches']} to catch trials, plus 6 imported answers." in page
    )
    # Replay: nothing differs, and the model that comes out has as many answers.
    replay = json.loads(lore_active("replay", ended, "--verify", "--json"))
    assert replay["mismatches"] == [] and replay["fingerprint_match"]
    assert replay["counts"] == counts
    assert f"Answers: {counts['answers']} collected, {counts['fitted']} in" in lore_active(
        "replay", ended
    )
    changed = json.loads(lore_active("replay", ended, "--what-if", "stopping.audits=50", "--json"))
    assert changed["original"]["answers"] == changed["what_if"]["answers"] == counts["answers"]


def test_every_export_counts_the_same(ended, tmp_path):
    report = json.loads(
        lore_active("export", ended, "--format", "all", "--out", tmp_path, "--json")
    )
    counts = report["counts"]
    own = counts["fitted"] - counts["imported"]

    def read(name):
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    for answers in (
        read("csv/answers.csv"),
        read("psych-ds/data/study-words_task-answers_data.csv"),
    ):
        assert len(answers) == counts["answers"] + counts["practice"]
        assert sum(row["fitted"] == "1" for row in answers) == own
    tools = read("triplettools/words_triplettools.csv")
    assert len(tools) == counts["answers"]
    assert sum(row["sampleSet"] != "NA" for row in tools) == own
    assert len(read("salmon/words_responses.csv")) == own
    with np.load(tmp_path / "cblearn" / "words_triplets.npz") as held:
        assert len(held["triplets"]) == own
    with np.load(tmp_path / "cblearn" / "words_imported_triplets.npz") as held:
        assert len(held["triplets"]) == counts["imported"]
    for form in ("csv", "triplettools", "salmon", "cblearn"):
        text = (tmp_path / form / "dictionary.md").read_text()
        assert f"| {counts['answers']} | answers collected, without practice |" in text
        assert f"| {counts['fitted']} | answers in the model |" in text
