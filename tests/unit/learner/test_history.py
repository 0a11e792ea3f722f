"""What a learner keeps of each question and answer: all of it, in few bytes."""

from __future__ import annotations

import copy
import tracemalloc

import numpy as np
import pytest

from lore_active import InvalidParameter, Learner
from lore_active.learner.history import History
from lore_active.questions.pool import AskedSet, draw, keys
from lore_active.questions.question import AlreadyAnswered, Answer, Question, UnknownQuestion
from lore_active.row_table import RowTable

ITEMS = 100


def asked(number, purpose="active", repeats=None, seed=7):
    return Question(
        number, 3, (1, 2), purpose, 0.1 + number, 4, (seed, number + 5), -1 / 3, repeats
    )


def imported(anchor, nearer, farther):
    return Answer(None, anchor, (nearer, farther), (nearer,), None)


def test_questions_and_answers_come_back_as_they_were():
    history = History(ITEMS, 7)
    questions = [
        asked(number, *kind) for number, kind in enumerate([(), ("repeat", 0), ("catch",)])
    ]
    assert [history.enter(question) for question in questions] == [0, 1, 2]
    assert [history.question(number) for number in range(3)] == questions
    answers = [history.tell(1, [2], "P1"), imported(99, 98, 0)]
    answers.append(history.tell(0, [1], "someone"))
    assert [history.add(answer) for answer in answers] == [0, 1, 2]
    assert [history.answer(place) for place in range(3)] == answers
    assert answers[0] == Answer(1, 3, (1, 2), (2,), "P1")
    assert history.out() == [2]
    assert set(history.taken([])) == set(keys(np.array([[3, 1, 2], [99, 0, 98]]), ITEMS).tolist())
    history.skip(2)
    assert history.out() == []
    for mistake, error in [
        (lambda: history.tell(0, [1], None), AlreadyAnswered),
        (lambda: history.skip(0), AlreadyAnswered),
        (lambda: history.index(-1), UnknownQuestion),
        (lambda: history.index(3), UnknownQuestion),
        (lambda: history.answered(3), UnknownQuestion),
        (lambda: history.enter(asked(3, seed=8)), InvalidParameter),
        (lambda: history.enter(asked(2)), InvalidParameter),
        (lambda: history.enter(asked(-1)), InvalidParameter),
    ]:
        with pytest.raises(error):
            mistake()


def test_ids_may_be_any_numbers_in_any_order():
    history = History(ITEMS, 7)
    questions = [asked(40), asked(1), asked(0), asked(12, "repeat", repeats=40)]
    assert [history.enter(question) for question in questions] == [0, 1, 2, 3]
    assert [history.question(history.index(question.id)) for question in questions] == questions
    assert history.next_id == 41
    assert not any(history.knows(number) for number in (-1, 2, 3, 39, 41))
    answers = [history.tell(40, [1], "P1"), history.tell(0, [2], None)]
    assert [history.add(answer) for answer in answers] == [0, 1]
    assert [history.answer(index) for index in range(2)] == answers
    assert [history.answered(number) for number in (40, 1, 0, 12)] == [True, False, True, False]
    history.skip(1)
    assert history.out() == [3]


def test_items_beyond_sixteen_bits():
    history = History(70_000, 7)
    history.add(imported(69_999, 69_998, 1))
    assert history.answer(0) == imported(69_999, 69_998, 1)
    assert list(history.taken([])) == keys(np.array([[69_999, 1, 69_998]]), 70_000).tolist()


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
        question = learner.record(
            Question(number, anchor, (left, right), "random", 0.5, 0, (1, number), 0.0)
        )
        learner.tell(question.id, "left", str(number // 200))
    learner.ask(1)
    tracemalloc.start()
    duplicate = copy.deepcopy(learner)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert duplicate.counted == count
    assert held / count < 140


def test_an_asked_question_is_found_by_any_integer_type():
    taken = AskedSet([7, 3]) | np.array([5, 3])
    assert list(taken) == [3, 5, 7]
    assert all(key in taken for key in (5, np.int64(5), np.int32(5)))
    assert not any(key in taken for key in (4, np.int64(4), 99, "5", None))
