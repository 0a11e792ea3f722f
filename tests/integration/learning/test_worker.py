"""The worker: a replay of its journal gives the same state, whenever it is repeated."""

from __future__ import annotations

import json
import sqlite3
import time

import pytest

from lore_active.learner.cadence import rest_after_audit
from server.exports.tables import models_csv, put
from server.learning.verification import verify
from server.learning.worker import Worker
from server.store import journal
from tests.support.open_study import LONG_STUDY, Desk, Respondent, desk_fixture

ITEMS = 10


desk = desk_fixture(LONG_STUDY, ITEMS)


def collect(desk, worker, participants, participant=None, every=5, until=None):
    """People answer one after the other, the worker turning now and then."""
    participant = participant or Respondent(ITEMS, 2)
    count = 0
    for _ in range(participants):
        stage = desk.new_participant()
        while stage.kind == "trial":
            stage = desk.answer(stage, participant.side(stage))
            desk.now += 1000
            count += 1
            if count % every == 0:
                worker.turn()
            if until is not None and until():
                return


def test_the_queue_is_there_before_anyone_comes(desk):
    worker = desk.worker()
    assert worker.turn()
    assert not worker.turn()
    assert desk.rows("SELECT count(*) FROM queries WHERE participant IS NULL") == [(10,)]


def test_every_answer_reaches_the_learner_as_it_was_meant(desk):
    worker = desk.worker()
    collect(desk, worker, 3)
    worker.turn()
    rows = desk.rows(
        "SELECT q.id, q.anchor, a.chosen ->> 0, "
        "q.options ->> (a.chosen ->> 0 = q.options ->> 0), q.participant FROM answers a "
        "JOIN queries q ON q.id = a.query WHERE q.purpose NOT IN ('catch') ORDER BY a.seq"
    )
    answered = [
        (answer.question, answer.anchor, answer.nearer, answer.farther, int(answer.participant))
        for answer in worker.learner.answers
    ]
    assert answered == rows
    assert len(answered) > 100


def test_restarted_from_snapshot_or_journal_it_is_the_same_to_the_bit(desk):
    worker = desk.worker()
    collect(desk, worker, 6)
    desk.control.exclude("test", 2, "too fast")
    worker.turn()
    collect(desk, worker, 1)
    last = worker.last
    again = desk.worker()
    assert again.last == last
    from_the_start, _ = again.rebuild.replayed(None)
    assert from_the_start == last
    # And it goes on alike.
    assert [one.id for one in again.learner.ask(3)] == [one.id for one in worker.learner.ask(3)]


def test_a_journal_that_does_not_come_out_again_is_noticed_and_the_study_goes_on(desk):
    worker = desk.worker()
    collect(desk, worker, 2)
    desk.close()
    raw = sqlite3.connect(desk.folder / "study.db")
    raw.execute("DELETE FROM snapshot")
    raw.execute("DROP TRIGGER answers_are_not_changed")
    raw.execute(
        "UPDATE answers SET chosen = (SELECT json_array(value) FROM queries q, "
        "json_each(q.options) WHERE q.id = query AND value <> chosen ->> 0) WHERE seq = 7"
    )
    raw.commit()
    raw.close()
    desk.open()
    worker = desk.worker()
    ((detail,),) = desk.rows("SELECT detail FROM events WHERE kind = 'rebuilt'")
    assert "could not be reproduced" in detail
    version = worker.last.version
    collect(desk, worker, 1)
    assert worker.last.version > version


def test_each_question_has_one_id_and_is_displayed_as_it_was_drawn(desk):
    worker, participant = desk.worker(), Respondent(ITEMS, 2)
    stages = [desk.new_participant() for _ in range(6)]
    for _ in range(18):
        stages = [desk.answer(stage, participant.side(stage)) for stage in stages]
        # Questions are selected, but cannot be published yet; participants are assigned others
        # meanwhile, whose ids come between.
        planned, deserted = desk.database.read(worker._plan)
        assert planned is not None
        worker._unpublished = worker._apply(planned, worker.last, deserted)
        stages = [desk.answer(stage, participant.side(stage)) for stage in stages]
        worker.turn()
    stored = desk.rows(
        "SELECT id, anchor, options ->> 0, options ->> 1, origin FROM queries "
        "WHERE purpose <> 'catch' ORDER BY id"
    )
    known = sorted(worker.learner.questions, key=lambda question: question.id)
    assert [(one.id, one.anchor, one.left, one.right) for one in known] == [
        record[:4]
        for record in stored
        if record[0] <= worker.last.up_to_question or record[4] == "learner"
    ]
    assert desk.rows("SELECT count(*) FROM queries WHERE learner IS NOT NULL") == [(0,)]
    # Options are drawn in either order.
    selected = [record for record in stored if record[4] == "learner"]
    assert 0.4 < sum(left < right for _, _, left, right, _ in selected) / len(selected) < 0.6
    ((between,),) = desk.rows(
        "SELECT count(*) FROM steps s JOIN queries own ON own.id > s.up_to_query "
        "AND own.origin <> 'learner' AND own.id < (SELECT min(id) FROM queries WHERE step = s.id)"
    )
    assert between > 0
    again = desk.worker()
    assert again.learner.questions == worker.learner.questions
    found = verify(desk.database, desk.study, time.perf_counter)
    assert found.mismatches == [] and found.questions_checked == len(selected)


def test_exclusion_changes_the_model_and_restoration_brings_it_back(desk):
    worker = desk.worker()
    participant = Respondent(ITEMS, 2)
    collect(desk, worker, 5, participant)
    guesser = Respondent(ITEMS, 2, seed=9, noise=50.0)
    collect(desk, worker, 1, guesser)
    worker.turn()
    before = worker.learner.estimate
    desk.control.exclude("test", 6, "guesses")
    worker.turn()
    without = worker.learner.estimate
    assert without.answers < before.answers
    assert desk.rows("SELECT max(version) FROM models") == [(worker.last.version,)]
    desk.control.restore("test", 6, "a mistake")
    worker.turn()
    assert worker.learner.estimate.answers == before.answers


@pytest.fixture
def easily_settled(tmp_path):
    """A study of so few items that little can be asked about them, and a rule that asks less."""
    easy = LONG_STUDY.replace("audits = 40", "audits = 3\nconfidence = 0.8")
    opened = Desk(tmp_path / "words", easy, items=ITEMS)
    yield opened
    opened.close()


def test_it_stops_the_study_when_the_rank_is_settled_and_a_reopened_one_stays_open(easily_settled):
    desk = easily_settled
    # Audits come whenever they are due, however slow the machine is.
    worker = Worker(desk.database, desk.study, desk.clock, lambda: 0.0)

    def stopped():
        return desk.rows("SELECT status FROM state") == [("stopped",)]

    collect(desk, worker, 25, Respondent(ITEMS, 2, seed=4), until=stopped)
    assert stopped()
    ((reason,),) = desk.rows("SELECT reason FROM state")
    assert "Two dimensions, settled." in reason
    assert desk.rows("SELECT who FROM events WHERE kind = 'stop'") == [("stopping rule",)]
    desk.control.reopen("test")
    collect(desk, worker, 3, until=stopped)
    assert not stopped()


def test_skips_and_lapsed_leases_leave_questions_free(desk):
    worker = desk.worker()
    worker.turn()
    stage = desk.new_participant()
    for _ in range(5):
        stage = desk.answer(stage, "skip")
    worker.turn()
    assert worker.learner.estimate.answers == 0
    out = desk.database.read(lambda c: journal.out(c, desk.now, 10**9))
    assert out
    desk.now += desk.study.settings.session.lease_seconds * 1000 + 1
    assert desk.database.read(lambda c: journal.out(c, desk.now, 10**9)) == []


def test_what_is_out_is_not_asked_again(desk):
    """Two people at the same time never hold the same question from the queue."""
    worker = desk.worker()
    stages = [desk.new_participant() for _ in range(6)]
    participant = Respondent(ITEMS, 2)
    for _ in range(30):
        worker.turn()
        stages = [desk.answer(stage, participant.side(stage)) for stage in stages]
        rows = desk.rows(
            "SELECT key FROM queries q "
            "LEFT JOIN answers a ON a.query = q.id "
            "WHERE q.participant IS NOT NULL AND a.seq IS NULL AND origin = 'learner'"
        )
        assert len(rows) == len(set(rows))


def test_the_queue_follows_demand(desk):
    worker = desk.worker()
    worker.turn()
    stages = [desk.new_participant() for _ in range(30)]
    assert stages
    desk.answer(stages[0])
    worker.turn()
    ((ready,),) = desk.rows(
        "SELECT count(*) FROM queries WHERE participant IS NULL AND withdrawn IS NULL"
    )
    assert 30 <= ready <= 60


def test_in_a_crowd_the_queue_is_refilled_once_half_of_it_is_used(tmp_path):
    toml = "[budget]\nanswers = 100_000\n[session]\npractice = 0\n"
    desk = Desk(tmp_path / "crowd", toml, items=80)
    worker = desk.worker()
    stages = [desk.new_participant() for _ in range(150)]
    for stage in stages[:20]:
        desk.answer(stage)

    def ready():
        sql = "SELECT count(*) FROM queries WHERE participant IS NULL AND withdrawn IS NULL"
        return desk.rows(sql)[0][0]

    worker.turn()
    full, refills = ready(), 0
    assert full > 100
    for stage in stages[20:]:
        desk.answer(stage)
        before = ready()
        worker.turn()
        # Answers alone do not call for another turn at once.
        assert worker.published == (ready() > before)
        if worker.published:
            refills += 1
            assert before < 0.6 * full
    # There is no model yet, which would replace the queue.
    assert worker.last.version == 0
    assert 1 <= refills <= 3


def test_after_a_long_audit_the_answers_have_their_time_and_the_next_one_is_owed(desk):
    seconds = 0.0

    def slow(work, parts):
        nonlocal seconds
        seconds += 60.0
        return map(work, parts)

    worker = Worker(desk.database, desk.study, desk.clock, lambda: seconds)
    worker.learner.mapper = slow
    collect(desk, worker, 2, until=lambda: worker.learner.audits)
    rest = rest_after_audit(worker.last.seconds["audit"])
    assert rest > 100.0
    (first,), version = worker.learner.audits, worker.last.version
    collect(desk, worker, 2)
    while worker.turn():
        pass
    # Many more than an audit waits for; models came nevertheless.
    assert worker.learner.counted > 1.5 * first.answers
    assert worker.learner.audits == (first,)
    assert worker.last.version > version + 3
    seconds += rest
    assert worker.turn() and worker.last.work == "audit"
    while worker.turn():
        pass
    assert len(worker.learner.audits) == 2
    # The journal says when audits came: anyone who goes through it again need not know why.
    again, _ = desk.worker().rebuild.replayed(None)
    assert again == worker.last
    assert rest_after_audit(4.9) == 0.0


def test_few_items_and_many_participants_go_on_with_selected_questions(tmp_path):
    desk = Desk(tmp_path / "few", LONG_STUDY, items=6)
    worker = desk.worker()
    # 60 questions, of which each of five participants gets 40, one after the other.
    collect(desk, worker, 5, Respondent(6, 1))
    worker.turn()
    counts = desk.rows(
        "SELECT participant, key, count(*) FROM queries "
        "WHERE participant IS NOT NULL AND purpose NOT IN ('catch', 'repeat') GROUP BY 1, 2"
    )
    assert len(counts) > 150 and all(row[2] == 1 for row in counts)
    # The questions that the participant present has had are not kept ready for them.
    late = "participant > 2 AND purpose NOT IN ('catch', 'repeat')"
    origins = dict(desk.rows(f"SELECT origin, count(*) FROM queries WHERE {late} GROUP BY 1"))
    assert origins.get("fallback", 0) < 0.15 * origins["learner"]
    again = desk.worker()
    assert again.rebuild.replayed(None)[0] == worker.last
    desk.close()


def test_it_waits_once_every_question_is_out(tmp_path):
    desk = Desk(tmp_path / "four", LONG_STUDY, items=4)
    worker = desk.worker()
    participants = [desk.new_participant() for _ in range(20)]
    # Four items have twelve questions; each participant holds two of them.
    turns = 0
    while worker.turn():
        turns += 1
        assert turns < 10
    assert worker.turn() is False
    desk.answer(participants[0])
    assert worker.turn() is True
    desk.close()


def test_a_study_keeps_its_stopping_rule_and_stores_what_it_ruled_out(tmp_path):
    rule = '[stopping]\nrule = "smallest_dimension"\nsmallest_dimension = 0.5\naudits = 2\n'
    toml = LONG_STUDY.replace("[stopping]\naudits = 40\n", rule)
    desk = Desk(tmp_path / "rule", toml, items=12)
    worker = desk.worker()
    collect(*(desk, worker, 16, Respondent(12, 1)), until=lambda: worker.learner.decision.settled)
    assert worker.learner.decision.settled
    ((summary,),) = desk.rows("SELECT summary FROM models ORDER BY version DESC LIMIT 1")
    stored = json.loads(summary)
    assert stored["rule"] == "smallest_dimension"
    assert stored["sensitivity"] == json.loads(json.dumps(worker.learner.sensitivity.stored()))
    assert stored["sensitivity"]["ruled_out"] <= 0.5
    assert stored["sensitivity"]["ranks"] == [1, 1]
    # Without the key, the rule is that of the data, not the default of the version.
    file = desk.folder / "study.toml"
    desk.close()
    file.write_text(file.read_text().replace('rule = "smallest_dimension"\n', ""))
    desk.open()
    assert desk.study.settings.stopping.rule == "smallest_dimension"
    assert desk.worker().last == worker.last
    (exported,) = (
        put(tmp_path / "models.csv", models_csv(desk.database)).read_text().split("\n")[-2:-1]
    )
    assert exported.startswith(f"{worker.last.version},{worker.learner.counted},")
    assert ",smallest_dimension," in exported and exported.endswith(",1,1")
    desk.close()
