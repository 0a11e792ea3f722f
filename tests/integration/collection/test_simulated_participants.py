"""Simulated participants: marked from arrival to the last file, and never in people's way."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import threading
import time

import numpy as np
import pytest
from click.testing import CliRunner

from lore_active.learner import snapshot
from lore_active.simulation.observers import Observer, ObserverNoise
from server.cli.main import main
from server.clock import now
from server.collection import simulated
from server.collection.screens import CONTINUED, Rejected
from server.exports import folder as export_folder
from server.exports import log
from server.exports.tables import ALL, ExportOptions
from server.learning.verification import verify
from server.learning.worker import Worker
from server.monitor.reader import Reader
from server.processes.bots import Bot, Browser, space_of
from server.report.report import report
from server.status.counting import answer_counts, participant_counts, simulated_left_out
from server.store import collection, summaries
from server.store.hash_chain import verification as chain_verification
from server.study.samples import template
from server.study.workspace import open_study
from tests.support.live_server import LiveServer, write_study
from tests.support.open_study import Desk, Respondent, desk_fixture, simulated_numbers

ITEMS = 8
TOML = """
[session]
trials = 12
practice = 1
break_every = 0
feedback = false
[budget]
answers = 60
"""
SECRET = "a secret of this test's own, long enough"


desk = desk_fixture(TOML, ITEMS)


def take_part(desk, participant, worker=None, simulated=False, trials=99, **entry):
    stage = desk.new_participant(simulated, **entry)
    while stage.kind in ("practice", "trial") and stage.done < trials:
        stage = desk.answer(stage, participant.side(stage))
        desk.now += 1500
        if worker is not None and stage.done % 4 == 0:
            worker.turn()
    return stage


def turns(worker):
    for _ in range(20):
        if not worker.turn():
            return
    raise AssertionError("the worker does not come to rest")


def bots(desk, worker, many=2):
    for number in range(many):
        take_part(
            desk, Respondent(ITEMS, 2, number), worker, True, participant_label=f"bot-{number + 1}"
        )
    turns(worker)


def counts(desk):
    participants = desk.database.read(summaries.participants)
    left_out = desk.database.read(simulated_left_out)
    return (
        desk.database.read(answer_counts),
        participant_counts(participants, desk.now, 30, left_out),
    )


def verified(desk):
    return verify(desk.database, desk.study, time.perf_counter).mismatches


# ---- counting and the model ---------------------------------------------------------------------


def test_while_only_bots_have_answered_they_are_fitted_and_counted_as_simulated(desk):
    worker = desk.worker()
    bots(desk, worker)
    answers, participants = counts(desk)
    assert (answers.answers, answers.simulated, answers.simulated_left_out) == (24, 24, 0)
    assert answers.fitted == answers.counted > 0
    assert (participants.answered, participants.simulated, participants.simulated_left_out) == (
        2,
        2,
        0,
    )
    assert verified(desk) == []


def test_the_first_human_answer_removes_all_bots_from_the_model_for_good(desk):
    worker = desk.worker()
    bots(desk, worker)
    take_part(desk, Respondent(ITEMS, 2, 7), trials=1)
    answers, participants = counts(desk)
    assert (answers.answers, answers.simulated, answers.simulated_left_out) == (1, 0, 24)
    assert (participants.arrived, participants.answered, participants.simulated_left_out) == (
        1,
        1,
        2,
    )
    turns(worker)
    assert worker.learner.counted == 1 and worker.learner.model is None
    take_part(desk, Respondent(ITEMS, 2, 5), worker, True, participant_label="late bot")
    assert worker.learner.counted == 1
    take_part(desk, Respondent(ITEMS, 2, 8), worker)
    take_part(desk, Respondent(ITEMS, 2, 9), worker)
    turns(worker)
    answers, _ = counts(desk)
    assert answers.answers == 25 and answers.simulated_left_out == 36
    assert answers.fitted == answers.counted == worker.learner.counted
    assert len(desk.rows("SELECT 1 FROM events WHERE kind = 'simulated_out'")) == 1
    assert verified(desk) == []
    # A worker that starts again, from its snapshot or from the journal alone, comes out the same.
    again = desk.worker()
    assert snapshot.dump(again.learner)[0] == snapshot.dump(worker.learner)[0]
    desk.database.write(lambda c: c.execute("DELETE FROM snapshot"))
    assert snapshot.dump(desk.worker().learner)[0] == snapshot.dump(worker.learner)[0]


def test_bots_that_come_after_participants_are_never_in_the_model(desk):
    worker = desk.worker()
    take_part(desk, Respondent(ITEMS, 2, 8), worker)
    bots(desk, worker)
    answers, participants = counts(desk)
    assert (answers.answers, answers.simulated_left_out) == (12, 24)
    assert participants.arrived == 1 and worker.learner.counted == answers.counted
    assert verified(desk) == []


def test_excluding_and_restoring_a_bot_that_is_left_out_does_not_bring_it_in(desk):
    worker = desk.worker()
    bots(desk, worker)
    take_part(desk, Respondent(ITEMS, 2, 7), worker)
    turns(worker)
    before = worker.learner.counted
    desk.control.exclude("Ada", 1, "a bot")
    desk.control.restore("Ada", 1, "a bot")
    turns(worker)
    assert worker.learner.counted == before
    answers, participants = counts(desk)
    assert (answers.answers, answers.excluded, participants.excluded) == (12, 0, 0)
    assert verified(desk) == []


def test_a_study_may_want_bots_in_its_model(tmp_path):
    desk = Desk(tmp_path / "words", TOML + "[learning]\nsimulated = true\n", items=ITEMS)
    worker = desk.worker()
    bots(desk, worker)
    take_part(desk, Respondent(ITEMS, 2, 7), worker)
    turns(worker)
    answers, participants = counts(desk)
    assert (answers.answers, answers.simulated, answers.simulated_left_out) == (36, 24, 0)
    assert (participants.answered, participants.simulated) == (3, 2)
    assert worker.learner.counted == answers.counted
    assert verified(desk) == []
    desk.close()


# ---- nobody's place -----------------------------------------------------------------------------


def test_bots_use_up_the_budget_for_bots_only(desk):
    for number in range(5):
        take_part(desk, Respondent(ITEMS, 2), None, True, participant_label=f"bot-{number}")
    refused = desk.service.arrive({"participant_label": "one too many"}, simulated=True)
    assert isinstance(refused, Rejected) and refused.kind == "full"
    for _ in range(5):
        take_part(desk, Respondent(ITEMS, 2))
    refused = desk.service.arrive({})
    assert isinstance(refused, Rejected) and refused.kind == "full"


def test_a_stop_caused_by_bots_closes_the_study_to_bots_only(tmp_path):
    toml = "[session]\ntrials = 60\npractice = 0\nfeedback = false\n"
    toml += "[stopping]\naudits = 1\nconfidence = 0.5\n"
    desk = Desk(tmp_path / "words", toml, items=ITEMS)
    # By a timer that stands still no audit rests.
    worker = Worker(desk.database, desk.study, desk.clock, lambda: 0.0)

    def stopped():
        return desk.database.read(collection.state).status == "stopped"

    for number in range(20):
        if desk.database.read(collection.simulated_stopped):
            break
        take_part(desk, Respondent(ITEMS, 1, 3, 0.02), worker, True, participant_label=f"b{number}")
    assert desk.database.read(collection.simulated_stopped) and not stopped()
    refused = desk.service.arrive({"participant_label": "another"}, simulated=True)
    assert isinstance(refused, Rejected) and refused.kind == "full"
    # People bring about an end of their own, with questions that bots may have answered before.
    for _ in range(20):
        if stopped():
            break
        take_part(desk, Respondent(ITEMS, 1, 3, 0.02), worker)
    assert stopped()
    twice = desk.rows(
        "SELECT count(*) FROM queries q JOIN queries r ON q.key = r.key AND q.id < r.id "
        "JOIN participants p ON p.id = q.participant AND p.simulated = 1 "
        "WHERE r.origin = 'learner'"
    )
    assert twice[0][0] > 0
    assert verified(desk) == []
    desk.close()


# ---- who is one ---------------------------------------------------------------------------------


def test_no_participant_is_simulated_without_the_right_secret(tmp_path):
    server = LiveServer(write_study(tmp_path / "words", TOML, ITEMS), bots_secret=SECRET)
    try:
        client = server.app.test_client()
        bot = {simulated.HEADER: SECRET}
        label = "/s/words/?participant_label=bot-1"
        assert client.get(label, headers=bot).status_code == 303
        assert client.get(label, headers={simulated.HEADER: "guessed"}).status_code == 403
        assert client.get(label, headers={simulated.HEADER: ""}).status_code == 403
        # A person who calls themselves as a bot does is a person, and not that bot.
        participant = server.app.test_client()
        assert participant.get(label).status_code == 303
        for forged in ("simulated=1", "simulated=bot-1", "participant_label=simulated=bot-1"):
            fresh = server.app.test_client()
            assert fresh.get(f"/s/words/?{forged}").status_code == 303
        served = server.studies["words"]
        marks = served.database.read(
            lambda c: [
                tuple(row) for row in c.execute("SELECT simulated, external FROM participants")
            ]
        )
    finally:
        server.close()
    assert marks[:2] == [(1, "simulated=bot-1"), (0, "participant_label=bot-1")]
    assert [mark for mark, _ in marks[2:5]] == [0, 0, 0]


def test_a_server_without_bots_takes_no_secret_for_granted(tmp_path):
    server = LiveServer(write_study(tmp_path / "words", TOML, ITEMS))
    try:
        for given in ("", "anything"):
            reply = server.app.test_client().get("/s/words/", headers={simulated.HEADER: given})
            assert reply.status_code == 403
    finally:
        server.close()


def test_the_secret_is_handed_on_to_no_further_process(monkeypatch):
    for name, value in simulated.environment(SECRET).items():
        monkeypatch.setenv(name, value)
    assert simulated.take_secret() == SECRET
    assert simulated.take_secret() == ""
    assert simulated.environment("") == {}


def test_a_bot_answers_catches_as_the_study_says_up_to_its_lapses(tmp_path):
    folder = write_study(
        tmp_path / "words", "[bots]\nlapse = 0.2\n[stimuli]\ncatches='c.csv'\n", ITEMS
    )
    (folder / "c.csv").write_text("anchor,nearer,farther\nword00,word01,word02\n")
    study, database = open_study(folder, now)
    database.close()

    class Contrary:
        def choose(self, kind, anchor, options):
            return options[:1]

    bot = Bot(study, {}, Contrary(), Browser("", None), 0.0, 1)  # type: ignore[arg-type]
    said = [bot._places(0, [2, 1]) for _ in range(2000)]
    assert 0.87 < said.count([1]) / 2000 < 0.93  # 1 − lapse / 2
    assert bot._places(0, [3, 1]) == [0]
    beside_itself = [bot._places(4, [5, 4]) for _ in range(500)]
    assert beside_itself.count([1]) > 400


def test_the_sample_study_has_bots_that_taste_as_its_catches_say_and_are_not_flagged(tmp_path):
    folder = tmp_path / "tastes"
    template.write_study(folder, "foods", 4)
    desk = Desk(folder)
    space, settings = space_of(desk.study, 1), desk.study.settings.bots
    observer_noise = ObserverNoise(noise=settings.noise, lapse=settings.lapse)
    for number in range(20):
        observer = Observer(space, observer_noise, number)
        bot = Bot(desk.study, {}, observer, Browser("", threading.Event()), 0.0, number)
        rng = np.random.default_rng(number)
        stage = desk.new_participant(True, participant_label=f"bot-{number}")
        while stage.kind in ("practice", "trial"):
            trial, rt = stage.trial, 1000 * float(rng.lognormal(0.0, 0.3))
            onset = desk.now
            desk.wait(rt)
            places = tuple(bot._places(trial.anchor, list(trial.options)))
            timings = {"rt_ms": rt, "onset_at": onset}
            stage = desk.service.answer(stage.participant, trial.token, places, None, rt, timings)
            while stage.kind in CONTINUED:
                stage = desk.service.rest(stage.participant, stage.done)
    rows = shown(desk)["participants"]["rows"]
    desk.close()
    assert len(rows) == 20 and all(row["done"] == 80 for row in rows)
    right, asked = (sum(row["catch"][k] for row in rows) for k in (0, 1))
    assert asked >= 60 and right / asked >= 0.95
    assert sum(bool(row["flags"]) for row in rows) <= 1


def test_the_sample_positions_agree_with_its_catches_and_with_taste():
    place = {food: np.array(at) for food, at in template.FOODS.items()}

    def nearer(anchor, one, other):
        near, far = (np.linalg.norm(place[anchor] - place[item]) for item in (one, other))
        return near < far

    assert all(nearer(*catch) for catch in template.FOOD_CATCHES)
    assert nearer("lemon", "orange", "chocolate") and nearer("honey", "chocolate", "chilli")


# ---- files --------------------------------------------------------------------------------------


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_format_marks_them_and_leaves_them_out_of_a_real_study(desk, tmp_path):
    worker = desk.worker()
    bots(desk, worker)
    formats = ["csv", "triplettools", "salmon", "cblearn", "psych-ds"]

    def write(name, choice=ALL):
        out = tmp_path / name
        export_folder.write(desk.database, desk.study, out, formats, choice)
        return out

    only = write("only")
    said = list(only.rglob("*.md"))
    assert said and all("Simulated data: All 24 answers" in one.read_text() for one in said)
    described = json.loads((only / "psych-ds" / "dataset_description.json").read_text())
    assert "Simulated data" in described["description"]
    assert "simulated" in {one["name"] for one in described["variableMeasured"]}
    files = {
        "csv/answers.csv": 26,
        "csv/participants.csv": 2,
        "triplettools/words_triplettools.csv": 24,
        "salmon/words_responses.csv": counts(desk)[0].counted,
        "psych-ds/data/study-words_task-answers_data.csv": 26,
    }
    for name, many in files.items():
        rows = rows_of(only / name)
        assert len(rows) == many and {row["simulated"] for row in rows} == {"1"}, name

    take_part(desk, Respondent(ITEMS, 2, 7), worker)
    turns(worker)
    real, everybody = write("real"), write("everybody", ExportOptions(simulated=True))
    for name in files:
        rows = rows_of(real / name)
        assert rows and {row["simulated"] for row in rows} == {"0"}, name
    assert len(rows_of(everybody / "csv/answers.csv")) == 39
    assert len(rows_of(everybody / "csv/participants.csv")) == 3
    fitted = [row for row in rows_of(everybody / "csv/answers.csv") if row["fitted"] == "1"]
    assert len(fitted) == counts(desk)[0].fitted
    assert {row["simulated"] for row in fitted} == {"0"}
    left_out = [
        row
        for row in rows_of(everybody / "triplettools/words_triplettools.csv")
        if row["simulated"] == "1"
    ]
    assert left_out and {row["sampleSet"] for row in left_out} == {"NA"}


@pytest.mark.parametrize(
    "name",
    [
        "csv/answers.csv",
        "triplettools/words_triplettools.csv",
        "psych-ds/data/study-words_task-answers_data.csv",
    ],
)
def test_an_import_leaves_them_out_and_says_so(desk, tmp_path, name):
    bots(desk, desk.worker())
    formats, other = [name.partition("/")[0]], tmp_path / "other"
    Desk(other, TOML, items=ITEMS).close()

    def imported(out, *options):
        file = tmp_path / out / name
        return CliRunner().invoke(main, ["import", str(file), str(other), *options])

    export_folder.write(desk.database, desk.study, tmp_path / "only" / formats[0], formats, ALL)
    refused = imported("only")
    assert refused.exit_code == 2 and "pass --simulated" in refused.stderr
    taken = json.loads(imported("only", "--simulated", "--json").stdout)
    assert taken["answers"] > 10 and taken["simulated_left_out"] == 0

    take_part(desk, Respondent(ITEMS, 2, 7))
    everybody = ExportOptions(simulated=True)
    export_folder.write(
        desk.database, desk.study, tmp_path / "all" / formats[0], formats, everybody
    )
    rows = rows_of(tmp_path / "all" / name)
    bots_rows = sum(row["simulated"] == "1" for row in rows)
    done = imported("all", "--dry-run")
    assert f"{bots_rows} rows of simulated participants (bots) were omitted" in done.stdout
    summary = json.loads(imported("all", "--json").stdout)
    assert summary["simulated_left_out"] == bots_rows
    assert summary["answers"] + summary["left_out"] + bots_rows == len(rows)


def test_the_arrays_of_a_study_of_bots_need_the_option(desk, tmp_path):
    bots(desk, desk.worker())
    export_folder.write(desk.database, desk.study, tmp_path, ["cblearn"], ALL)
    arguments = ["fit", str(tmp_path / "words_triplets.npz"), "--json"]
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2 and "pass --simulated" in refused.stderr
    assert json.loads(CliRunner().invoke(main, [*arguments, "--simulated"]).stdout)["n_triplets"]


def test_a_log_holds_the_marks_and_replays(desk, tmp_path):
    worker = desk.worker()
    bots(desk, worker)
    take_part(desk, Respondent(ITEMS, 2, 7), worker)
    turns(worker)
    path = tmp_path / "words.log.jsonl"
    path.write_bytes(b"".join(log.lines(desk.database, desk.study)))
    study, database, lines = log.load(path, tmp_path / "again.db", now)
    assert database.read(answer_counts) == counts(desk)[0]
    assert simulated_numbers(database) == [1, 2]
    assert verify(database, study, time.perf_counter, lines).mismatches == []
    database.close()


def test_the_hash_chain_covers_the_mark(desk):
    take_part(desk, Respondent(ITEMS, 2), None, True, participant_label="bot-1")
    desk.database.read(lambda c: None)
    raw = sqlite3.connect(desk.folder / "study.db")
    raw.execute("UPDATE participants SET simulated = 0")
    raw.commit()
    raw.close()
    found = desk.database.read(chain_verification.verify)
    assert [(difference.table, difference.row) for difference in found.differences] == [
        ("participants", 1)
    ]


# ---- what monitor and report say ----------------------------------------------------------------


def shown(desk):
    reader = Reader(desk.database, desk.study)
    return desk.database.read(lambda c: reader.shown(reader.read(c, desk.now)))


def methods_of(made):
    return " ".join(re.findall(r"<p><strong>.*?</p>", made.page))


def test_monitor_and_report_say_that_data_are_simulated(desk):
    worker = desk.worker()
    assert shown(desk)["where"]["banner"] == []
    bots(desk, worker)
    seen = shown(desk)
    assert seen["where"]["banner"] == [
        "Simulated data",
        "All 24 answers are from 2 simulated participants (bots).",
    ]
    assert [row["simulated"] for row in seen["participants"]["rows"]] == [True, True]
    made = report(desk.database, desk.study, desk.clock)
    assert "<strong>Simulated data</strong> All 24 answers" in made.page
    methods = methods_of(made)
    assert "2 simulated participants opened the study" in methods and "people opened" not in methods
    assert "All of these answers were simulated: 2 participants were programs" in methods


def test_monitor_and_report_of_a_real_study_leave_them_out(desk):
    worker = desk.worker()
    reader = Reader(desk.database, desk.study)
    bots(desk, worker)
    # A monitor that is open all the time.
    desk.database.read(lambda c: reader.shown(reader.read(c, desk.now)))
    take_part(desk, Respondent(ITEMS, 2, 7), None, trials=1)
    for seen in (shown(desk), desk.database.read(lambda c: reader.shown(reader.read(c, desk.now)))):
        # Before the worker has noticed: the simulated model is not this study's.
        assert seen["where"]["answers"] == 1 and seen["where"]["fitted"] == 0
        assert seen["map"]["rank"] == 0 and seen["dimensions"]["history"]["answers"] == []
        assert seen["dimensions"]["rank"] is None
    take_part(desk, Respondent(ITEMS, 2, 8), worker)
    take_part(desk, Respondent(ITEMS, 2, 9), worker)
    turns(worker)
    for seen in (shown(desk), desk.database.read(lambda c: reader.shown(reader.read(c, desk.now)))):
        assert seen["where"]["banner"][0] == "Simulated participants are left out"
        assert (seen["where"]["answers"], seen["where"]["participants"]["answered"]) == (25, 3)
        assert [row["id"] for row in seen["participants"]["rows"]] == [3, 4, 5]
        assert sum(map(sum, seen["map"]["asked"])) == 3 * (25 - seen["where"]["counts"]["catches"])
        assert max(seen["dimensions"]["history"]["answers"]) <= 25
    made = report(desk.database, desk.study, desk.clock)
    methods = methods_of(made)
    assert "3 people opened the study" in methods
    assert "2 simulated participants (bots, 24 answers) took part as well" in methods
    listed = '<span class="flag bot">simulated</span>'
    assert listed not in made.page
    everybody = report(desk.database, desk.study, desk.clock, simulated=True)
    assert everybody.page.count(listed) == 2
    assert "3 people opened the study" in methods_of(everybody)


def test_the_report_says_that_the_rule_was_met_with_simulated_answers(desk):
    worker = desk.worker()
    bots(desk, worker)
    reason = {"reason": "settled"}
    desk.database.write(
        lambda c: collection.add_event(
            c, collection.SIMULATED_STOP, "stopping rule", desk.now, **reason
        )
    )
    assert "no more bots are let in" in " ".join(shown(desk)["where"]["banner"])
    assert "The stopping rule was met after 24 answers, including simulated ones" in methods_of(
        report(desk.database, desk.study, desk.clock)
    )
