"""How the benchmark of stops judges a study."""

from __future__ import annotations

import pytest

from benchmarks.stops import CONDITIONS, next_share, outcome, statements
from lore_active.simulation.worlds import WORLDS


def study(stopped_rank=2, audits=(), correct=(2, 3)):
    return {
        "stopped_at": None if stopped_rank is None else 500,
        "stopped_rank": stopped_rank,
        "correct": correct,
        "true_shares": [0.6, 0.32, 0.08],
        "audits": audits,
    }


def test_a_dimension_near_the_limit_counts_either_way():
    judged = [outcome(study(rank)) for rank in (1, 2, 3, 4, None)]
    assert judged == ["too low", "right", "right", "too high", "unsettled"]


def test_what_is_ruled_out_is_compared_with_the_next_true_dimension():
    # A dimension's share is that of itself and those before, as in the test.
    assert next_share(study(), 1) == pytest.approx(0.32 / 0.92)
    assert next_share(study(), 3) == 0.0
    audits = [
        [100, 1, 0.8, None, None, None],
        [200, 2, 0.8, 0.2, None, [2, None]],
        [300, 2, 0.9, 0.2, None, [2, None]],
        [400, 2, 0.9, 0.07, None, [2, 2]],
    ]
    said = [(ruled_out, there) for _, ruled_out, there in statements([study(audits=audits)])]
    assert said == [(0.2, pytest.approx(0.08)), (0.07, pytest.approx(0.08))]


def test_every_world_is_simulated_and_every_condition_has_its_own_name():
    assert {condition.world for condition in CONDITIONS} == set(WORLDS)
    assert len({condition.name for condition in CONDITIONS}) == len(CONDITIONS)
    assert all(condition.space(1).shape[0] == condition.items for condition in CONDITIONS)
