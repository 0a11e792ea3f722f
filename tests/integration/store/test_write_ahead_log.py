"""The write-ahead log cut anywhere: the database opens, and holds the first of the answers."""

from __future__ import annotations

import numpy as np

from benchmarks.reliability.power_loss import MIN_FRAMES, cut_at_random, frames, taken
from tests.support.open_study import Desk, Respondent

TOML = """
[session]
trials = 40
practice = 1
break_every = 0
feedback = false
[budget]
answers = 5000
"""


def test_a_log_truncated_or_damaged_at_a_hundred_offsets_leaves_a_prefix_of_the_answers(tmp_path):
    desk = Desk(tmp_path / "words", TOML, items=8)
    participant, acknowledged = Respondent(8, 2), set()
    worker = desk.worker()
    stages = [desk.new_participant() for _ in range(4)]
    while len(acknowledged) < 48:  # Not enough for a checkpoint, which empties the log.
        for number, stage in enumerate(stages):
            stages[number] = desk.answer(stage, participant.side(stage))
            acknowledged.add(stage.trial.token)
        worker.turn()
    assert frames(desk.folder)[0] > MIN_FRAMES
    copy = taken(desk.folder, tmp_path / "copy", lambda: frozenset(acknowledged))
    desk.close()
    found = cut_at_random(copy, 100, np.random.default_rng(7))
    assert found["problems"] == []
    assert found["lost"] == 0
    # The harm was real: cut early, hardly anything is left; cut late, nearly everything.
    assert found["shorter"] > 90
    assert found["fewest"] < found["answers"] // 4
