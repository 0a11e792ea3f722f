"""Studies of every kind: what is learnt from them, how it is reproduced, and what others get."""

from __future__ import annotations

import csv
import html
import json
import re
import time
from collections import defaultdict

import numpy as np
import pytest

from lore_active.simulation.observers import gaussian_space
from server.exports import log
from server.learning.exclusion_effect import effect
from server.learning.verification import verify
from server.report.report import report
from tests.support.commands import run
from tests.support.kinds import KINDS
from tests.support.open_study import Desk
from tests.support.simulated_participants import SimulatedParticipant, take_turns

TOML = """[session]
trials = 24
practice = 1
catch = 0.1
repeat = 0.1
break_every = 0
feedback = false
[stopping]
min_answers = 3000
"""
ITEMS = 8


@pytest.fixture(scope="module", params=[kind for kind in KINDS if kind != "triplet"])
def desk(request, tmp_path_factory):
    """Bots, people, an exclusion, imported comparisons, and a worker that was restarted."""
    folder = tmp_path_factory.mktemp(request.param) / "words"
    opened = Desk(folder, KINDS[request.param] + TOML, items=ITEMS)
    worker, space = opened.worker(), gaussian_space(ITEMS, 2, 1)

    def collect(names, simulated=False):
        people = [
            SimulatedParticipant(
                opened.service, space, seed, name=name, wait=opened.wait, simulated=simulated
            )
            for seed, name in enumerate(names)
        ]
        for _ in take_turns(people, worker.turn, 9):
            pass

    collect(["", ""], simulated=True)
    collect(["one", "two", "three"])
    opened.control.exclude("test", 3, "too fast")
    worker.turn()
    opened.close()
    pilot = folder.parent / "pilot.csv"
    pilot.write_text(
        "trial,anchor,nearer,farther\n"
        "1,word00,word01,word02\n1,word00,word01,word03\n2,word04,word05,word06\n"
    )
    report = json.loads(run("import", pilot, folder, "--json"))
    assert report["answers"] == 2, "the rows of one trial are one answer"
    opened.open()
    # A worker that starts again.
    worker = opened.worker()
    worker.turn()
    collect(["four"])
    while worker.turn():
        pass
    yield opened
    opened.close()


def test_replay_is_exact(desk):
    found = verify(desk.database, desk.study, time.perf_counter)
    assert found.mismatches == []
    assert found.models_checked >= 5 and found.questions_checked > 40
    assert found.counts["answers"] > 60 and found.counts["fitted"] > 40


def test_a_worker_continues_from_the_snapshot_and_from_the_journal(desk):
    worker = desk.worker()
    assert desk.rows("SELECT count(*) FROM events WHERE kind = 'rebuilt'") == [(0,)]
    last, replayer = worker.rebuild.replayed(None)
    assert last == worker.last
    answers = [answer for answer in replayer.learner.answers if answer.question is not None]
    assert [
        (answer.question, answer.anchor, list(answer.options), list(answer.chosen))
        for answer in answers
    ] == [
        (number, anchor, json.loads(options), json.loads(chosen))
        for number, anchor, options, chosen in desk.rows(
            "SELECT q.id, q.anchor, q.options, a.chosen FROM answers a "
            "JOIN queries q ON q.id = a.query WHERE q.purpose NOT IN ('catch', 'practice') "
            "AND a.outcome = 'chosen' ORDER BY a.seq"
        )
    ]
    imported = [answer for answer in replayer.learner.answers if answer.question is None]
    assert len({one.trial for one in imported}) == 2


def test_the_log_rebuilds_the_study_and_verifies(desk, tmp_path):
    path = tmp_path / "study.log.jsonl"
    path.write_bytes(b"".join(log.lines(desk.database, desk.study)))
    study, database, where = log.load(path, tmp_path / "study.db", desk.clock)
    assert study.kind == desk.study.kind and study.settings == desk.study.settings
    found = verify(database, study, time.perf_counter, where)
    database.close()
    assert found.mismatches == []


def test_a_log_with_lists_that_are_none_is_refused(desk, tmp_path):
    database = desk.database
    lines = [json.loads(line) for line in log.lines(database, desk.study)]
    body = before = ""
    out = []
    for line in lines:
        line.pop("hash")
        if line["kind"] == "queries" and not out.count("x"):
            line["row"]["options"] = "[1, 2"
        body = json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode()
        hashed, before = log._hashed(body, before)
        out.append(hashed)
    path = tmp_path / "study.log.jsonl"
    path.write_bytes(b"".join(out))
    with pytest.raises(log.BadLog, match="an invalid row of 'queries': options is not a list"):
        log.load(path, tmp_path / "study.db", desk.clock)


def test_what_a_participant_contributes(desk):
    *_, last = effect(desk.folder, 4)
    assert last["effect"]["with"]["answers"] > last["effect"]["without"]["answers"]


def test_what_if_another_rule(desk):
    report = json.loads(run("replay", desk.folder, "--what-if", "exclude=P4", "--json"))
    assert report
    text = run("replay", desk.folder, "--what-if", "selector=random", code=2)
    assert "Another selector can only be tried out on triplets" in text


# ---- what others get ----------------------------------------------------------------------------


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def exported(desk, tmp_path_factory):
    out = tmp_path_factory.mktemp("exports")
    run("export", desk.folder, "--format", "all", "--simulated", "--out", out)
    return out


def test_one_row_for_each_answer_and_one_for_each_comparison(desk, exported):
    kind, keys = desk.study.kind, [item.key for item in desk.study.items]
    answers = {int(row["seq"]): row for row in table(exported / "csv" / "answers.csv")}
    stored = desk.rows(
        "SELECT a.seq, q.purpose, q.anchor, q.options, a.chosen FROM answers a "
        "JOIN queries q ON q.id = a.query"
    )
    assert len(stored) == len(answers)
    expected = {}
    for seq, purpose, anchor, options, chosen in stored:
        row, shown, picked = answers[seq], json.loads(options), json.loads(chosen)
        assert row["kind"] == kind.label
        assert row["anchor"] == ("" if anchor is None else keys[anchor])
        for name, items in (("option", shown), ("chosen", picked)):
            assert [row[f"{name}_{place}"] for place in range(1, len(items) + 1)] == [
                keys[item] for item in items
            ]
            assert f"{name}_{len(items) + 1}" not in row
        if purpose not in ("catch", "practice"):
            rows = kind.comparisons(anchor, shown, picked)
            assert len(rows) == kind.n_comparisons
            expected[seq] = {tuple(keys[item] for item in one) for one in rows}
    found = defaultdict(list)
    for row in table(exported / "csv" / "comparisons.csv"):
        found[int(row["trial"])].append((row["anchor"], row["nearer"], row["farther"]))
        assert row["participant"] == answers[int(row["trial"])]["participant"]
        assert row["fitted"] == answers[int(row["trial"])]["fitted"]
    assert all(len(rows) == kind.n_comparisons for rows in found.values())
    assert {seq: set(rows) for seq, rows in found.items()} == expected


def test_other_programs_get_the_same_comparisons(desk, exported):
    number = {item.key: at for at, item in enumerate(desk.study.items)}
    counted = sorted(
        (int(row["trial"]), *(number[row[name]] for name in ("anchor", "nearer", "farther")))
        for row in table(exported / "csv" / "comparisons.csv")
        if row["fitted"] == "1"
    )
    assert len(counted) > 40
    for rows in (
        table(exported / "salmon" / "words_responses.csv"),
        [
            row
            for row in table(exported / "triplettools" / "words_triplettools.csv")
            if row["sampleSet"] != "NA"
        ],
    ):
        assert counted == sorted(
            (int(row["trial"]), *(int(row[name]) for name in ("head", "winner", "loser")))
            for row in rows
        )
        assert {row["head"] != row["winner"] != row["loser"] for row in rows} == {True}
    with np.load(exported / "cblearn" / "words_triplets.npz") as arrays:
        assert counted == sorted(
            map(tuple, np.column_stack([arrays["trial"], arrays["triplets"]]).tolist())
        )
    for program in ("salmon", "triplettools"):
        text = (exported / program / "dictionary.md").read_text()
        assert "An answer is several rows, one for each of its comparisons" in text


def test_the_report_names_the_chance_levels(desk):
    kind = desk.study.kind
    made = report(desk.database, desk.study, desk.clock)
    text = html.unescape(re.sub(r"<[^>]*>", "", made.page))
    repeats = (
        f"Repeats with at least {kind.min_alike} of {kind.pick} choices in common"
        if kind.pick > 1
        else "Repeat consistency"
    )
    for what, share in (
        ("Catch trials correct", kind.pick / kind.options),
        (repeats, kind.chance_alike),
    ):
        assert f"{what} (chance: {100 * share:.0f} %)" in text
    same = f"Same choices in repeats (chance: {100 * kind.pick / kind.options:.0f} %)"
    assert (same in text) == (kind.pick > 1)
    assert made.found.shown["accuracy"]["chance"] == 1 / kind.answers
