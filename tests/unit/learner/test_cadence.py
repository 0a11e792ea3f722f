"""When audits and refits are due."""

from __future__ import annotations

import pytest

from lore_active.learner.cadence import due

ITEMS = 10


@pytest.mark.parametrize(
    ("answers", "unfitted", "audited", "situation", "expected"),
    [
        # The first audit comes with two answers per item, whatever the last one took.
        (19, 0, None, {}, None),
        (20, 0, None, {}, "audit"),
        (20, 0, None, {"resting": True}, "audit"),
        (20, 0, None, {"auditing": True}, None),
        (19, 0, None, {"changed": True, "deserted": True}, None),
        # Further ones after 8 % more answers, refits after ten answers or 1 %.
        (107, 7, 100, {}, None),
        (108, 8, 100, {}, "audit"),
        (108, 8, 100, {"resting": True}, None),
        (110, 10, 100, {"resting": True}, "refit"),
        (110, 10, 100, {"auditing": True}, "refit"),
        (2015, 15, 2000, {}, None),
        (2021, 21, 2000, {}, "refit"),
        # Without waiting: an audit where answers changed, a refit where nobody is left to answer.
        (103, 3, 100, {"changed": True}, "audit"),
        (103, 3, 100, {"changed": True, "auditing": True}, None),
        (103, 3, 100, {"changed": True, "resting": True}, "audit"),
        (103, 3, 100, {"deserted": True}, "refit"),
        (103, 0, 100, {"deserted": True}, None),
    ],
)
def test_what_is_due(answers, unfitted, audited, situation, expected):
    assert due(answers, unfitted, audited, ITEMS, **situation) == expected
