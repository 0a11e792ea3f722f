"""Whatever happens in whatever order: arrivals, answers, duplicates, pauses, restarts."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from lore_active.errors import InvalidParameter
from server.collection.screens import CONTINUED, Welcome
from server.store import collection as store
from server.store.hash_chain import verification as chain_verification
from tests.support.open_study import SIDE, Desk, response

BUDGET = 24
TOML = f"""
[session]
trials = 9
practice = 1
break_every = 4
catch = 0.1
repeat = 0.1
lease_seconds = 60
idle_minutes = 5
[trial]
skip = true
timeout_ms = 7000
[budget]
answers = {BUDGET}
participants = 8
[stopping]
min_answers = 20
"""
SIDES = st.sampled_from(["left", "left", "left", "right", "right", "right", "skip", "timeout"])


class Collecting(RuleBasedStateMachine):
    """The service and the worker against a model of what was acknowledged."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.desk = Desk(self.home / "words", TOML, items=6)
        self.worker = self.desk.worker()
        self.participants: list[str] = []
        self.acknowledged: dict[str, str] = {}
        self.late: set[str] = set()
        self.stages: dict[str, object] = {}

    def teardown(self) -> None:
        self.desk.close()
        shutil.rmtree(self.home)

    @initialize()
    def some_participants(self) -> None:
        for _ in range(3):
            self.arrive()

    @rule()
    def arrive(self) -> None:
        came = self.desk.service.arrive({})
        if isinstance(came, Welcome):
            self.participants.append(came.token)
            self.stages[came.token] = self.desk.service.visit(came.token)

    @rule(data=st.data(), steps=st.integers(1, 12), sides=st.lists(SIDES, min_size=12, max_size=12))
    @precondition(lambda self: self.participants)
    def several_go_on(self, data, steps, sides) -> None:
        tokens = data.draw(st.lists(st.sampled_from(self.participants), min_size=1, max_size=3))
        for side in sides[:steps]:
            for token in tokens:
                self.go_on(data, token, side)

    def go_on(self, data, token, side) -> None:
        stage = self.stages[token]
        service = self.desk.service
        if stage.kind == "consent":
            stage = service.consent(token, data.draw(st.integers(0, 9)) < 9)
        elif stage.kind == "instructions":
            stage = service.begin(token)
        elif stage.kind in ("practice", "trial"):
            question = stage.trial.token
            stage = service.answer(token, question, response(side))
            if stage.note != "not_taken":
                self.acknowledged.setdefault(question, side)
        elif stage.kind in CONTINUED:
            stage = service.rest(token, stage.done)
        elif stage.kind == "feedback":
            stage = service.feedback(token, "x")
        else:
            stage = service.visit(token)
        self.stages[token] = stage

    @rule(data=st.data(), side=SIDES)
    @precondition(lambda self: self.acknowledged)
    def say_it_again(self, data, side) -> None:
        question = data.draw(st.sampled_from(sorted(self.acknowledged)))
        ((token,),) = self.desk.rows(
            "SELECT p.token FROM queries q JOIN participants p ON p.id = q.participant "
            "WHERE q.token = ?",
            question,
        )
        first = self.desk.service.answer(token, question, response(side))
        again = self.desk.service.answer(token, question, response(side))
        assert (first.kind, first.trial) == (again.kind, again.trial)
        self.stages[token] = first

    @rule(minutes=st.sampled_from([0.1, 0.2, 2, 6]))
    def time_goes_by(self, minutes) -> None:
        self.desk.now += int(minutes * 60_000)

    @rule(data=st.data(), side=SIDES)
    @precondition(lambda self: self.participants)
    def some_leave_others_come_and_the_first_come_back(self, data, side) -> None:
        early = list(self.participants)
        self.desk.now += 6 * 60_000
        for _ in range(3):
            self.arrive()
        for token in [*self.participants[len(early) :], *early]:
            for _ in range(2):
                self.go_on(data, token, side)

    @rule(act=st.sampled_from(["resume", "reopen", "pause", "stop"]))
    def control(self, act) -> None:
        try:
            getattr(self.desk.control, act)("test")
        except InvalidParameter:
            state = self.desk.rows("SELECT status FROM state")[0][0]
            assert (act, state) in {
                ("pause", "paused"),
                ("pause", "stopped"),
                ("resume", "running"),
                ("resume", "stopped"),
                ("stop", "stopped"),
                ("reopen", "running"),
                ("reopen", "paused"),
            }

    @rule(data=st.data(), excluded=st.booleans())
    @precondition(lambda self: self.participants)
    def exclude_or_restore(self, data, excluded) -> None:
        number = data.draw(st.integers(1, len(self.participants)))
        act = self.desk.control.exclude if excluded else self.desk.control.restore
        act("test", number, "because")

    @rule()
    def work(self) -> None:
        for _ in range(3):
            self.worker.turn()

    @rule()
    def restart_everything(self) -> None:
        published = self.worker.last
        self.desk.close()
        self.desk.open()
        self.worker = self.desk.worker()
        assert self.worker.last == published

    @invariant()
    def every_acknowledged_answer_is_there_once(self) -> None:
        rows = self.desk.rows(
            f"SELECT q.token, {SIDE} FROM answers a JOIN queries q ON q.id = a.query"
        )
        assert len(rows) == len(self.acknowledged)
        assert dict(rows) == self.acknowledged

    @invariant()
    def nobody_shares_a_question_and_nobody_gets_one_twice(self) -> None:
        rows = self.desk.rows(
            "SELECT participant, key FROM queries "
            "WHERE slot >= 0 AND purpose NOT IN ('catch', 'repeat')"
        )
        assert len(rows) == len(set(rows))

    @invariant()
    def the_budget_holds(self) -> None:
        ((on_time, late),) = self.desk.rows(
            "SELECT count(*) FILTER (WHERE NOT late), count(*) FILTER (WHERE late) "
            "FROM answers a JOIN queries q ON q.id = a.query WHERE q.slot >= 0"
        )
        assert on_time <= BUDGET
        reserved_trials, participants = self.desk.database.read(
            lambda c: store.reserved_trials(
                c, self.desk.now - 5 * 60_000, self.desk.now, simulated=False
            )
        )
        assert reserved_trials <= BUDGET + late
        assert participants <= 8 + late

    @invariant()
    def every_row_is_as_recorded(self) -> None:
        found = self.desk.database.read(chain_verification.verify)
        assert found.differences == [] and found.periods == ["new"]
        assert self.desk.database.read(store.exclusions_without_event) == []

    @invariant()
    def order_has_no_holes(self) -> None:
        rows = [row[0] for row in self.desk.rows("SELECT seq FROM answers ORDER BY seq")]
        assert rows == list(range(1, len(rows) + 1))

    @invariant()
    def progress_is_what_was_answered(self) -> None:
        rows = self.desk.rows(
            "SELECT p.done, count(a.seq) FROM participants p LEFT JOIN queries q "
            "ON q.participant = p.id AND q.slot >= 0 LEFT JOIN answers a ON a.query = q.id "
            "GROUP BY p.id"
        )
        assert all(done == count for done, count in rows)


Collecting.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, derandomize=True
)
TestCollecting = Collecting.TestCase
