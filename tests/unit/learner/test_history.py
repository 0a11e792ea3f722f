"""What a learner keeps of each question and answer: all of it, in few bytes."""

from __future__ import annotations

import copy
import tracemalloc

import numpy as np
import pytest

from lore_active import InvalidParameter, Learner
from lore_active.data.row_table import RowTable
from lore_active.learner.history import History
from lore_active.questions.pool import AskedSet, draw, keys
from lore_active.questions.question import AlreadyAnswered, Answer, Question, UnknownQuestion

ITEMS = 100


def asked(number, purpose="active", repeats=None, seed=7):
    return Question(number, 3, 1, 2, purpose, 0.1 + number, 4, (seed, number + 5), -1 / 3, repeats)


def test_questions_and_answers_come_back_as_they_were():
    ledger = History(ITEMS, 7)
    queries = [asked(number, *kind) for number, kind in enumerate([(), ("repeat", 0), ("catch",)])]
    assert [ledger.enter(one) for one in queries] == [0, 1, 2]
    assert [ledger.query(number) for number in range(3)] == queries
    answers = [ledger.tell(1, "right", "P1"), Answer(None, 99, 98, 0, None)]
    answers.append(ledger.tell(0, "left", "somebody"))
    assert [ledger.add(one) for one in answers] == [0, 1, 2]
    assert [ledger.answer(place) for place in range(3)] == answers
    assert answers[0] == Answer(1, 3, 2, 1, "P1")
    assert ledger.out() == [2]
    assert set(ledger.taken([])) == set(keys(np.array([[3, 1, 2], [99, 0, 98]]), ITEMS).tolist())
    ledger.skip(2)
    assert ledger.out() == []
    for mistake, error in [
        (lambda: ledger.tell(0, "left", None), AlreadyAnswered),
        (lambda: ledger.skip(0), AlreadyAnswered),
        (lambda: ledger.rows([-1]), UnknownQuestion),
        (lambda: ledger.query(3), UnknownQuestion),
        (lambda: ledger.answered(3), UnknownQuestion),
        (lambda: ledger.enter(asked(3, seed=8)), InvalidParameter),
    ]:
        with pytest.raises(error):
            mistake()


def test_items_beyond_sixteen_bits():
    ledger = History(70_000, 7)
    ledger.add(Answer(None, 69_999, 69_998, 1, None))
    assert ledger.answer(0) == Answer(None, 69_999, 69_998, 1, None)
    assert list(ledger.taken([])) == keys(np.array([[69_999, 1, 69_998]]), 70_000).tolist()


def test_a_table_grows_without_losing_anything_and_what_was_read_stays():
    table, rows = RowTable((np.int64, 3)), np.arange(9000).reshape(-1, 3)
    for row in rows[:1000]:
        table.append(row)
    before = table.rows
    table.extend(rows[1000:])
    assert (table.rows == rows).all() and (before == rows[:1000]).all()


def test_the_asked_set_behaves_like_a_set():
    rng = np.random.default_rng(2)
    taken, plain = AskedSet(), set()
    for _ in range(30):
        more = rng.integers(0, 500, 20)
        taken, plain = taken | more, plain | set(more.tolist())
        assert len(taken) == len(plain) and list(taken) == sorted(plain)
        looked_for = rng.integers(-5, 600, 50)
        assert taken.among(looked_for).tolist() == [one in plain for one in looked_for.tolist()]
        assert all((int(one) in taken) == (int(one) in plain) for one in looked_for)


def test_an_answer_costs_a_learner_few_bytes():
    learner, count = Learner(ITEMS, seed=1), 20_000
    for number, (anchor, left, right) in enumerate(
        draw(ITEMS, count, np.random.default_rng(0)).tolist()
    ):
        query = learner._record(anchor, left, right, "random", 0.5, (1, number), None)
        learner.tell(query.id, "left", str(number // 200))
    learner.ask(1)
    tracemalloc.start()
    twin = copy.deepcopy(learner)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert twin.counted == count
    assert held / count < 125


def test_an_asked_question_is_found_by_any_integer_type():
    taken = AskedSet([7, 3]) | np.array([5, 3])
    assert list(taken) == [3, 5, 7]
    assert all(key in taken for key in (5, np.int64(5), np.int32(5)))
    assert not any(key in taken for key in (4, np.int64(4), 99, "5", None))
