"""The schedule of a session: the same for ever, with each kind's share of the trials."""

from __future__ import annotations

import hashlib

import pytest

from server.study.schedule import REPEAT_LAG, schedule


@pytest.mark.parametrize(
    ("arguments", "digest"),
    [
        ((1, 1, 150, 0.1, 0.05, 0.05), "1c1807a9da1a34a3"),
        ((7, 23, 40, 0.25, 0.1, 0.2), "ea0fc23f6536bb65"),
        ((3, 2, 500, 0.1, 0.05, 0.05), "19fd0960b679f55e"),
    ],
)
def test_a_session_that_has_begun_continues_as_planned_after_an_update(arguments, digest):
    plan = schedule(*arguments)
    text = repr((plan.kinds, plan.swapped))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


def test_each_kind_has_its_share_spread_over_the_session():
    plan = schedule(5, 9, 200, 0.1, 0.05, 0.1)
    assert [plan.kinds.count(kind) for kind in ("random", "catch", "repeat")] == [20, 10, 20]
    assert "repeat" not in plan.kinds[: REPEAT_LAG + 1] and plan.kinds[0] == "model"
    for start in range(0, 200, 8):
        assert sum(plan.swapped[start : start + 8]) == 4
    catches = [place for place, kind in enumerate(plan.kinds) if kind == "catch"]
    assert all(10 * part <= place // 2 < 10 * (part + 1.5) for part, place in enumerate(catches))


def test_a_session_shorter_than_its_kinds_still_has_a_plan():
    assert schedule(1, 1, 1, 1.0, 1.0, 1.0).kinds == ("model",)
    assert len(schedule(1, 1, 3, 1.0, 1.0, 1.0).kinds) == 3
